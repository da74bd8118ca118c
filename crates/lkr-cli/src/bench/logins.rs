//! The effect of logins on concurrent searches: hashing a password takes a good part of a second of CPU time.

use std::{
    fmt,
    io::{self, Write as _},
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::{
    bench::material::at_least_one,
    collection::{Gold, Query},
    connection::Login,
    http::Client,
    stats::Latency,
};

/// The number of alternations between searches with and without logins. They spread other load on the machine evenly.
const ALTERNATIONS: usize = 6;

/// The number of clients that log in continuously.
const LOGIN_CLIENTS: usize = 4;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Search with this many clients at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    searchers: usize,
    /// Fail if the ratio is above this.
    #[arg(long, value_name = "RATIO")]
    max_ratio: Option<f64>,
    /// Use the queries of the collection in this folder, which the server must contain.
    dir: PathBuf,
    #[command(flatten)]
    login: Login,
}

/// The latencies of searches with and without concurrent logins.
#[derive(Debug)]
pub(super) struct LoginsReport {
    searchers: usize,
    searches: usize,
    alone: Latency,
    during_logins: Latency,
    logins: usize,
    logging_in: Duration,
}

/// Measures on a running server with temporary accounts, because logins of one account are serialised.
pub(super) fn measure(args: &Args) -> Result<LoginsReport> {
    let queries = Gold::read(&args.dir, None)?.queries;
    ensure!(!queries.is_empty(), "{} has no queries", args.dir.display());
    let admin = args.login.log_in()?;
    let accounts: Vec<Value> = (0..LOGIN_CLIENTS).map(credentials).collect();
    let names: Vec<&str> = accounts.iter().filter_map(|account| account.get("username")?.as_str()).collect();
    writeln!(
        io::stderr(),
        "the accounts {} are removed at the end; after an interruption, remove them by hand",
        names.join(", ")
    )?;
    let created = accounts.iter().try_for_each(|account| admin.post("/users", account).map(drop));
    let report = created
        .context("create accounts to log in with")
        .and_then(|()| measure_as(args, &queries, &accounts));
    for account in &accounts {
        let username = account.get("username").and_then(Value::as_str).unwrap_or_default();
        // An account that was not created cannot be deleted.
        let _ = admin.delete(&format!("/users/{username}"));
    }
    let report = report?;
    if let Some(max_ratio) = args.max_ratio {
        ensure!(report.ratio() <= max_ratio, "{report}the ratio is above {max_ratio}");
    }
    Ok(report)
}

/// The name and password of a temporary account.
fn credentials(n: usize) -> Value {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    let secret = format!("{:016x}", std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), n));
    json!({ "username": format!("bench-{now:x}-{n}"), "password": secret.repeat(2) })
}

fn measure_as(args: &Args, queries: &[Query], accounts: &[Value]) -> Result<LoginsReport> {
    let client = args.login.anonymous()?;
    let (mut alone, mut during_logins) = (Vec::new(), Vec::new());
    let (mut logins, mut logging_in) = (0, Duration::ZERO);
    search(&client, queries, args.searchers, 1)?;
    for turn in 0..ALTERNATIONS {
        // A different `top_k` in each turn keeps the cache out.
        let top_k = 10 + 2 * turn;
        if turn % 2 == 0 {
            alone.extend(search(&client, queries, args.searchers, top_k)?);
        }
        let started = Instant::now();
        let (latencies, login_count) =
            search_during_logins(&client, queries, args.searchers, top_k + 1, accounts)?;
        logging_in += started.elapsed();
        during_logins.extend(latencies);
        logins += login_count;
        if turn % 2 == 1 {
            alone.extend(search(&client, queries, args.searchers, top_k)?);
        }
    }
    let searches = alone.len();
    let (alone, during_logins) = (Latency::of(alone), Latency::of(during_logins));
    Ok(LoginsReport { searchers: args.searchers, searches, alone, during_logins, logins, logging_in })
}

/// Runs every query once and returns the latencies.
fn search(client: &Client, queries: &[Query], searchers: usize, top_k: usize) -> Result<Vec<Duration>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut took = Vec::new();
        while let Some(query) = queries.get(next.fetch_add(1, Ordering::Relaxed)) {
            let started = Instant::now();
            client.post("/search", &json!({ "query": query.text, "top_k": top_k }))?;
            took.push(started.elapsed());
        }
        Ok(took)
    };
    thread::scope(|scope| {
        let searching: Vec<_> = (0..searchers.max(1)).map(|_| scope.spawn(work)).collect();
        let took =
            searching.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a search panicked"))?);
        Ok(took.collect::<Result<Vec<_>>>()?.concat())
    })
}

/// Runs every query once while clients log in. Returns the latencies and the number of logins.
fn search_during_logins(
    client: &Client,
    queries: &[Query],
    searchers: usize,
    top_k: usize,
    accounts: &[Value],
) -> Result<(Vec<Duration>, usize)> {
    let (is_done, logins) = (AtomicBool::new(false), AtomicUsize::new(0));
    let log_in = |account: &Value| -> Result<()> {
        let login = json!({ "username": account["username"], "password": account["password"] });
        while !is_done.load(Ordering::Relaxed) {
            client.post("/auth/login", &login).context("log in")?;
            logins.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let logging_in: Vec<_> = accounts.iter().map(|account| scope.spawn(|| log_in(account))).collect();
        let took = search(client, queries, searchers, top_k);
        is_done.store(true, Ordering::Relaxed);
        for thread in logging_in {
            thread.join().map_err(|_| anyhow!("a login panicked"))??;
        }
        Ok((took?, logins.load(Ordering::Relaxed)))
    })
}

impl LoginsReport {
    fn ratio(&self) -> f64 {
        self.during_logins.p99_ms / self.alone.p99_ms
    }
}

impl fmt::Display for LoginsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { searchers, searches, alone, during_logins, logins, logging_in } = self;
        writeln!(f, "search     {searches} searches each, {searchers} at once")?;
        writeln!(f, "  alone    {:.2} ms p50, {:.2} p99", alone.p50_ms, alone.p99_ms)?;
        let rate = *logins as f64 / logging_in.as_secs_f64();
        writeln!(
            f,
            "  logins   {:.2} ms p50, {:.2} p99, {LOGIN_CLIENTS} clients logging in, {rate:.1} logins a second",
            during_logins.p50_ms, during_logins.p99_ms
        )?;
        writeln!(f, "  ratio    {:.3} of the p99 alone", self.ratio())
    }
}

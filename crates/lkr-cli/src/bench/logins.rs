//! What logins cost the searches beside them: hashing a password takes a good part of a second of CPU.

use std::{
    fmt,
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::{
    collection::{Gold, Query},
    http::{Client, Login},
    stats::Latency,
};

/// How many times searches with and without logins take turns, so that a machine that is busy for a while is so for
/// both.
const TURNS: usize = 6;

/// How many clients log in as fast as they can.
const LOGGING_IN: usize = 4;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    login: Login,
    /// How many clients search at once.
    #[arg(long, value_name = "N", default_value_t = 1)]
    searchers: usize,
    /// Fail where the ratio is above this.
    #[arg(long, value_name = "RATIO")]
    max_ratio: Option<f64>,
    /// The folder of a collection that the server has, for its queries.
    dir: PathBuf,
}

/// Searches with and without logins beside them.
#[derive(Debug)]
pub(super) struct LoginsReport {
    searchers: usize,
    searches: usize,
    alone: Latency,
    beside: Latency,
    logins: usize,
    logging_in: Duration,
}

/// Measures against a running server, with accounts that it makes for the time: logins of one account wait for each
/// other.
pub(super) fn measure(args: &Args) -> Result<LoginsReport> {
    let queries = Gold::read(&args.dir, None)?.queries;
    ensure!(!queries.is_empty(), "{} has no queries", args.dir.display());
    let admin = args.login.log_in()?;
    let accounts: Vec<Value> = (0..LOGGING_IN).map(credentials).collect();
    let made = accounts.iter().try_for_each(|account| admin.post("/users", account).map(drop));
    let report =
        made.context("make accounts to log in as").and_then(|()| measure_as(args, &queries, &accounts));
    for account in &accounts {
        let username = account.get("username").and_then(Value::as_str).unwrap_or_default();
        // One that was not made is not there to be deleted.
        let _ = admin.delete(&format!("/users/{username}"));
    }
    let report = report?;
    if let Some(most) = args.max_ratio {
        ensure!(report.ratio() <= most, "{report}the ratio is above {most}");
    }
    Ok(report)
}

/// An account of this run and its password.
fn credentials(n: usize) -> Value {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    let secret = format!("{:016x}", std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), n));
    json!({ "username": format!("bench-{now:x}-{n}"), "password": secret.repeat(2) })
}

fn measure_as(args: &Args, queries: &[Query], accounts: &[Value]) -> Result<LoginsReport> {
    let client = args.login.anonymous();
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    let (mut logins, mut logging_in) = (0, Duration::ZERO);
    search(&client, queries, args.searchers, 1)?;
    for turn in 0..TURNS {
        // Asked for another number of results each time, so that the cache knows none of them.
        let top_k = 10 + 2 * turn;
        if turn % 2 == 0 {
            alone.extend(search(&client, queries, args.searchers, top_k)?);
        }
        let started = Instant::now();
        let (found, made) = search_beside_logins(&client, queries, args.searchers, top_k + 1, accounts)?;
        logging_in += started.elapsed();
        beside.extend(found);
        logins += made;
        if turn % 2 == 1 {
            alone.extend(search(&client, queries, args.searchers, top_k)?);
        }
    }
    let searches = alone.len();
    let (alone, beside) = (Latency::of(alone), Latency::of(beside));
    Ok(LoginsReport { searchers: args.searchers, searches, alone, beside, logins, logging_in })
}

/// Asks every query once, and answers how long each took.
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

/// The same, while clients log in; answers how many logins there were too.
fn search_beside_logins(
    client: &Client,
    queries: &[Query],
    searchers: usize,
    top_k: usize,
    accounts: &[Value],
) -> Result<(Vec<Duration>, usize)> {
    let (over, logins) = (AtomicBool::new(false), AtomicUsize::new(0));
    let log_in = |account: &Value| -> Result<()> {
        let login = json!({ "username": account["username"], "password": account["password"] });
        while !over.load(Ordering::Relaxed) {
            client.post("/auth/login", &login).context("log in")?;
            logins.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let logging_in: Vec<_> = accounts.iter().map(|account| scope.spawn(|| log_in(account))).collect();
        let took = search(client, queries, searchers, top_k);
        over.store(true, Ordering::Relaxed);
        for thread in logging_in {
            thread.join().map_err(|_| anyhow!("a login panicked"))??;
        }
        Ok((took?, logins.load(Ordering::Relaxed)))
    })
}

impl LoginsReport {
    fn ratio(&self) -> f64 {
        self.beside.p99_ms / self.alone.p99_ms
    }
}

impl fmt::Display for LoginsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { searchers, searches, alone, beside, logins, logging_in } = self;
        writeln!(f, "search     {searches} searches each, {searchers} at once")?;
        writeln!(f, "  alone    {:.2} ms p50, {:.2} p99", alone.p50_ms, alone.p99_ms)?;
        let rate = *logins as f64 / logging_in.as_secs_f64();
        writeln!(
            f,
            "  beside   {:.2} ms p50, {:.2} p99, {LOGGING_IN} clients logging in, {rate:.1} logins a second",
            beside.p50_ms, beside.p99_ms
        )?;
        writeln!(f, "  ratio    {:.3} of the p99 alone", self.ratio())
    }
}

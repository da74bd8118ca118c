//! Load on a running server: closed and open loops of several kinds of requests.

mod client;
mod documents;
mod kind;
mod pace;
mod report;
mod requests;
mod server_use;
mod tally;

use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
    sync::{Mutex, PoisonError, atomic::AtomicBool, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::{
    bench::connection::{Connection, Response},
    connection::Login,
    exit::usage,
    http::Client,
    output_file::OutputFile,
};
use client::{Load, LoadClient};
use documents::{Documents, Ended};
use kind::{Kind, Mix};
use pace::{Pace, SystemClock};
use report::{Ingestion, Step};
use requests::{Requests, collection_queries, file_queries};
use server_use::ServerUse;
use tally::Tally;

/// The time after the end of an open loop in which requests that are due are still sent. A server that has not caught up by then
/// cannot keep up.
const GRACE: Duration = Duration::from_secs(10);

/// The clients of an open loop, if none are given.
const OPEN_LOOP_CLIENTS: usize = 64;

/// The most clients. Each is a thread with a connection.
const MAX_CLIENTS: usize = 4_096;

/// The largest size of an added document. Servers accept no larger text.
const MAX_DOCUMENT_BYTES: i64 = 16 << 20;

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("questions").required(true).args(["queries", "dir"]))]
#[command(after_help = "Examples:\n\
                        \x20 lkr bench load --clients 1,8,64 --seconds 10 --queries questions.txt\n\
                        \x20 lkr bench load --rate 50,100,200 --kind search=8,cached=4,add=1 --queries questions.txt\n\
                        \x20 lkr bench load --kind mixed --json results.json ../data/gitlab_handbook")]
pub(super) struct Args {
    /// Use this many clients, each with a connection of its own. Several numbers are steps, one after another. [default: 1, or 64
    /// with --rate]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    clients: Vec<usize>,
    /// Open loop: this many requests are due in a second, at fixed times, whether or not earlier ones were answered; their
    /// latencies count from then. Without it, each client sends its next request when the last one was answered.
    #[arg(long, value_name = "R", value_delimiter = ',')]
    rate: Vec<f64>,
    /// Measure each step for this many seconds.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Send requests for this many seconds before each step, without measuring them.
    #[arg(long, value_name = "S", default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=3_600))]
    warm_up: u64,
    /// Send requests of these kinds: search, cached, filtered, space, context, summary, add, delete, each with a weight behind =
    /// or 1; or mixed, which is all of them. Deletions that find no document of this run become additions.
    #[arg(long, alias = "mix", value_name = "KIND=WEIGHT", value_delimiter = ',', default_value = "search")]
    kind: Vec<String>,
    /// Use the queries in this file, one in each line.
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
    /// Use this space for searches of kind space, and for added documents.
    #[arg(long, value_name = "NAME", default_value = "default")]
    space: String,
    /// Use this expression for filtered searches. The default selects all documents.
    #[arg(
        long = "where",
        value_name = "JSON",
        default_value = r#"{"field": "created_at", "gte": "2000-01-01"}"#
    )]
    filter: String,
    /// Add this many documents before the first step, so that there are some to delete. [default: 200 with kind delete, else 0]
    #[arg(long, value_name = "N")]
    stock: Option<u64>,
    /// Add documents of about this size.
    #[arg(long, value_name = "BYTES", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=MAX_DOCUMENT_BYTES))]
    document_bytes: u32,
    /// Fail if more requests than this failed, in all steps together.
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_errors: u64,
    /// Write the results with the whole distributions to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Use the queries of the collection in this folder.
    dir: Option<PathBuf>,
    #[command(flatten)]
    login: Login,
}

/// The documents to delete, if no number is given.
const STOCK: u64 = 200;

/// The command that deletes what a run left that was interrupted.
fn removal(prefix: &str) -> String {
    format!("`lkr rm --where '{}'`", json!({ "field": "source", "prefix": prefix }))
}

/// Measures all steps, removes what they added, and prints the results. Fails if too many requests failed.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let (steps, mix) = (steps(&args.clients, &args.rate)?, Mix::parse(&args.kind)?);
    let writes = mix.has(Kind::Add) || mix.has(Kind::Delete) || args.stock.is_some();
    let client = if writes { args.login.log_in()? } else { args.login.client()? };
    let load = load(args, mix, &client)?;
    let json = args.json.as_deref().map(OutputFile::open).transpose()?;
    check_ready(&load.url)?;
    let prefix = &load.requests.prefix;
    if writes {
        let mut err = io::stderr();
        writeln!(
            err,
            "sources of added documents begin with {prefix}; they are removed at the end, and after an interruption \
             with {}",
            removal(prefix)
        )?;
    }
    let mut measured = Vec::new();
    let mut outcome = measure_all(&load, &client, &steps, args, &mut measured);
    if writes {
        // Documents whose tasks end later would remain.
        let drained = load.documents.drain(&client).map(drop);
        let removed = documents::remove(&client, prefix);
        outcome = outcome.and(drained).and(removed);
    }
    // What was measured is printed even if the server is gone.
    let printed = if measured.is_empty() { Ok(()) } else { print(&measured, json, args.max_errors) };
    outcome.and(printed).map(|()| ExitCode::SUCCESS)
}

/// Fails if the server is not ready, or cannot be reached like the clients do. It would fail millions of requests.
fn check_ready(url: &str) -> Result<()> {
    let mut connection = Connection::open(url)?;
    let request = connection.encode("GET", "/readyz", "", "");
    let Response { status, body, .. } = connection.send(&request).context("GET /readyz")?;
    ensure!(status == 200, "the server is not ready: {}", String::from_utf8_lossy(body));
    Ok(())
}

/// The clients and the rate of each step.
fn steps(clients: &[usize], rates: &[f64]) -> Result<Vec<(usize, Option<f64>)>> {
    let default = [if rates.is_empty() { 1 } else { OPEN_LOOP_CLIENTS }];
    let clients = if clients.is_empty() { &default } else { clients };
    if let Some(wrong) = clients.iter().find(|clients| !(1..=MAX_CLIENTS).contains(*clients)) {
        return Err(usage(format!("{wrong} is no number of clients from 1 to {MAX_CLIENTS}")));
    }
    if let Some(wrong) = rates.iter().find(|rate| !(0.001..=1e6).contains(*rate)) {
        return Err(usage(format!("{wrong} is no rate from 0.001 to 1000000 requests a second")));
    }
    if rates.is_empty() {
        return Ok(clients.iter().map(|clients| (*clients, None)).collect());
    }
    let at_rates = |clients: &usize| rates.iter().map(|rate| (*clients, Some(*rate))).collect::<Vec<_>>();
    Ok(clients.iter().flat_map(at_rates).collect())
}

fn load(args: &Args, mix: Mix, client: &Client) -> Result<Load> {
    let queries = match (&args.queries, &args.dir) {
        (Some(file), _) => file_queries(file)?,
        (None, Some(dir)) => collection_queries(dir)?,
        (None, None) => return Err(usage("there are no queries")),
    };
    let filter: Value = serde_json::from_str(&args.filter)
        .map_err(|error| usage(format!("the expression of --where is no JSON: {error}")))?;
    Ok(Load {
        url: client.base().to_owned(),
        token: client.token().unwrap_or_default().to_owned(),
        mix,
        requests: Requests::new(queries, &args.space, filter, args.document_bytes as usize)?,
        documents: Documents::default(),
    })
}

/// Adds to `measured` what was measured before a failure, too.
fn measure_all(
    load: &Load,
    client: &Client,
    steps: &[(usize, Option<f64>)],
    args: &Args,
    measured: &mut Vec<Step>,
) -> Result<()> {
    let stock = args.stock.unwrap_or(if load.mix.has(Kind::Delete) { STOCK } else { 0 });
    load.add_stock(client, stock)?;
    steps.iter().try_for_each(|step| {
        let (step, outcome) = measure(load, client, *step, args)?;
        measured.push(step);
        outcome
    })
}

/// Measures one step. The second result tells whether the tasks of its documents could be read; what it added is unknown
/// otherwise.
fn measure(
    load: &Load,
    client: &Client,
    step: (usize, Option<f64>),
    args: &Args,
) -> Result<(Step, Result<()>)> {
    let (count, rate) = step;
    if load.mix.has(Kind::Cached) {
        load.cache(client)?;
    }
    let mut clients: Vec<LoadClient<'_>> = (0..count).map(|number| LoadClient::new(load, number)).collect();
    let (started, clock) = (Instant::now(), SystemClock::start());
    let warm_up = Pace::start(&clock, rate, Duration::from_secs(args.warm_up), Duration::ZERO);
    run_clients(load, client, &mut clients, &warm_up)?.1?;
    let before = ServerUse::read(client);
    let pace = Pace::start(&clock, rate, Duration::from_secs(args.seconds), GRACE);
    let (tally, followed) = run_clients(load, client, &mut clients, &pace)?;
    let seconds = pace.length().as_secs_f64();
    let after = ServerUse::read(client);
    let (ended, outcome) = match followed.and_then(|()| load.documents.drain(client)) {
        Ok(ended) => (ended, Ok(())),
        Err(error) => (Ended::default(), Err(error)),
    };
    let has_documents = ended.done + ended.failed > 0;
    let ingestion = Ingestion { ended, seconds: started.elapsed().as_secs_f64() };
    let step = Step {
        clients: count,
        rate,
        seconds,
        tally,
        cpu_seconds: after.cpu_seconds.zip(before.cpu_seconds).map(|(after, before)| after - before),
        memory_bytes: after.memory_bytes,
        ingestion: has_documents.then_some(ingestion),
    };
    Ok((step, outcome))
}

/// Runs all clients at once until the pace ends. The second result tells whether added documents could be followed until then.
fn run_clients(
    load: &Load,
    client: &Client,
    clients: &mut [LoadClient<'_>],
    pace: &Pace<'_, SystemClock>,
) -> Result<(Tally, Result<()>)> {
    let (tally, is_done) = (Mutex::new(Tally::default()), AtomicBool::new(false));
    let panicked = |_| anyhow!("a client panicked");
    let followed = thread::scope(|scope| {
        let follower =
            load.mix.has(Kind::Delete).then(|| scope.spawn(|| load.documents.follow(client, &is_done)));
        let running: Vec<_> =
            clients.iter_mut().map(|client| scope.spawn(|| client.run(pace, &tally))).collect();
        let ended: Result<Vec<()>> =
            running.into_iter().map(|client| client.join().map_err(panicked)?).collect();
        is_done.store(true, Ordering::Relaxed);
        let followed = follower.map_or(Ok(()), |follower| follower.join().map_err(panicked)?);
        ended.map(|_| followed)
    })?;
    pace.finish();
    let mut tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally.unsent = pace.unsent();
    Ok((tally, followed))
}

/// Fails if more requests failed than may.
fn print(steps: &[Step], json: Option<OutputFile>, max_errors: u64) -> Result<()> {
    write!(io::stdout(), "{}", report::text(steps)?)?;
    if let Some(file) = json {
        let json = serde_json::to_string_pretty(&report::json(steps)?)?;
        file.write(|file| writeln!(file, "{json}"))?;
    }
    let failed: u64 = steps.iter().map(Step::failed).sum::<Result<u64>>()?;
    ensure!(failed <= max_errors, "{failed} requests failed, more than {max_errors}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_all_clients_at_all_rates() {
        assert_eq!(steps(&[], &[]).unwrap(), [(1, None)]);
        assert_eq!(steps(&[1, 8], &[]).unwrap(), [(1, None), (8, None)]);
        assert_eq!(steps(&[], &[5.0, 9.0]).unwrap(), [(64, Some(5.0)), (64, Some(9.0))]);
        assert_eq!(steps(&[2, 3], &[5.0]).unwrap(), [(2, Some(5.0)), (3, Some(5.0))]);
    }

    #[test]
    fn impossible_steps_are_named() {
        assert!(steps(&[1, 0], &[]).unwrap_err().to_string().starts_with("0 is no number of clients"));
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = steps(&[], &[rate]).unwrap_err().to_string();
            assert!(error.contains("is no rate"), "{rate}: {error}");
        }
    }
}

//! Histories of several processes on one server: processes are killed and stopped beyond their leases, connections are cut,
//! delayed and repeated, the server is killed, clocks jump. What was recorded must be strictly serializable, no lease used after
//! it was lost, and no task lost. Stores and queues with a mistake must be caught.
//!
//! `LKR_HISTORY_SECONDS` is how long the history of the correct store lasts; `cargo xtask histories` sets it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod client;
#[path = "../support/common.rs"]
mod common;
mod disturbance;
mod driver;
mod queue_client;
mod shared_time;
mod state_client;
mod variants;

use std::{
    collections::BTreeMap,
    env,
    time::{Duration, Instant},
};

use driver::{Clocks, Run};
use lkr_test_history::{
    Anomaly, AnomalyKind, Call, LeaseTimes, Operation, Outcome, check_queue, check_state,
};
use variants::Variant;

/// How long the short history lasts.
const SHORT: Duration = Duration::from_secs(10);
/// How long a broken variant may stay unnoticed.
const LONGEST: Duration = Duration::from_secs(20);
/// The number of anomalies that are shown.
const MOST_SHOWN: usize = 5;

/// Runs as a client where the variable of clients is set; otherwise it has nothing to do.
#[test]
fn client_process() {
    client::run_if_client();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disturbed_histories_are_strictly_serializable_and_lose_no_task() {
    check(Clocks::Right, LeaseTimes::Checked).await;
}

/// A lease may end early or late then, but no token is used after it was lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_while_clocks_are_set_are_strictly_serializable_and_lose_no_task() {
    check(Clocks::Set, LeaseTimes::Ignored).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_that_are_sent_again_as_new_ones_are_caught() {
    catch(Variant::ResendsSteps, &[AnomalyKind::AppliedTwice]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expectations_that_only_the_client_checks_are_caught() {
    catch(Variant::ChecksInClient, &[AnomalyKind::Cycle]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_that_begin_again_are_caught() {
    catch(Variant::RestartsVersions, &[AnomalyKind::VersionRepeated]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uses_of_lost_leases_are_caught() {
    catch(Variant::IgnoresTokens, &[AnomalyKind::LeaseUsedAfterLoss]).await;
}

async fn check(clocks: Clocks, leases: LeaseTimes) {
    let Some(mut run) = Run::start(Variant::Correct, clocks).await else { return };
    let time = env::var("LKR_HISTORY_SECONDS")
        .map_or(SHORT, |seconds| Duration::from_secs(seconds.parse().unwrap()));
    run.disturb_for(time).await;
    let history = run.finish().await;
    summarize(&history, &run);
    let begin = Instant::now();
    let mut anomalies = check_state(&history);
    anomalies.extend(check_queue(&history, leases, true));
    println!("checked in {:?}", begin.elapsed());
    if !anomalies.is_empty() {
        let (seed, shown) = (run.seed, shown(&anomalies));
        panic!("LKR_HISTORY_SEED={seed}, recorded in {}:\n{shown}", run.keep());
    }
    let applied = count(&history, |o| matches!(o.call, Call::Step(_)) && o.outcome == Outcome::Done);
    let finished = count(&history, |o| matches!(o.call, Call::Finish { .. }) && o.outcome == Outcome::Done);
    assert!(
        applied > 50 && finished > 20,
        "{applied} steps and {finished} tasks are too few to mean something"
    );
}

/// Runs a broken variant until the checker reports one of these kinds.
async fn catch(variant: Variant, kinds: &[AnomalyKind]) {
    let Some(mut run) = Run::start(variant, Clocks::Right).await else { return };
    let begin = Instant::now();
    let mut seen = Vec::new();
    while begin.elapsed() < LONGEST {
        run.disturb_for(Duration::from_millis(500)).await;
        seen = run.anomalies_until_now();
        if let Some(caught) = seen.iter().find(|anomaly| kinds.contains(&anomaly.kind)) {
            println!("{variant:?} caught after {:?}: {caught}", begin.elapsed());
            return;
        }
    }
    panic!("{variant:?} with LKR_HISTORY_SEED={} was not caught: {}", run.seed, shown(&seen));
}

fn summarize(history: &[Operation], run: &Run) {
    let mut calls: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for operation in history {
        let name = match operation.call {
            Call::Read(_) => "reads",
            Call::Step(_) => "steps",
            Call::Enqueue(_) => "enqueues",
            Call::Claim { .. } => "claims",
            Call::Heartbeat { .. } => "heartbeats",
            Call::Finish { .. } => "finishes",
            Call::Retry { .. } => "retries",
        };
        let kind = match operation.outcome {
            Outcome::Conflict | Outcome::Lost => 1,
            Outcome::Unknown | Outcome::Failed(_) => 2,
            _ => 0,
        };
        calls.entry(name).or_default()[kind] += 1;
    }
    println!("{} operations; done, refused, unknown: {calls:?}; {:?}", history.len(), run.counts);
}

fn count(history: &[Operation], is_counted: impl Fn(&Operation) -> bool) -> usize {
    history.iter().filter(|operation| is_counted(operation)).count()
}

fn shown(anomalies: &[Anomaly]) -> String {
    let texts: Vec<String> = anomalies.iter().take(MOST_SHOWN).map(ToString::to_string).collect();
    format!("{} anomalies\n{}", anomalies.len(), texts.join("\n"))
}

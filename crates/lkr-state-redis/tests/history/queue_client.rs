//! Workers that queue, claim, renew, return and finish tasks, some of them too late.

use std::{sync::Arc, time::Duration};

use lkr_domain::TaskId;
use lkr_state::{Claim, TaskQueue, Work};
use lkr_test_history::{Call, Outcome};
use rand::RngExt as _;
use tokio::time::sleep;

use crate::{client::Recording, common::ms};

/// The leases of the workers. Stopped workers sleep longer.
pub(crate) const LEASE_MS: u64 = 300;
const LEASE: Duration = Duration::from_millis(LEASE_MS);

pub(crate) async fn run(queue: Arc<dyn TaskQueue>, recording: &Recording) {
    while recording.goes_on() {
        let (enqueues, delay) = {
            let mut random = rand::rng();
            (random.random_ratio(2, 5), ms(random.random_range(0..60)))
        };
        if enqueues {
            let task = TaskId::new();
            let queueing = queue.enqueue(task, Work::default(), delay);
            recording.record(Call::Enqueue(task.to_string()), queueing, |()| Outcome::Done).await;
        }
        if let Some(claim) = claim(&queue, recording, LEASE, ms(100)).await {
            work(&queue, recording, &claim).await;
        }
    }
}

/// Claims a task, and records it.
pub(crate) async fn claim(
    queue: &Arc<dyn TaskQueue>,
    recording: &Recording,
    lease: Duration,
    wait: Duration,
) -> Option<Claim> {
    let call = Call::Claim { lease_ms: u64::try_from(lease.as_millis()).unwrap() };
    let outcome = |claim: &Option<Claim>| match claim {
        Some(claim) => Outcome::Claimed { task: claim.task.to_string(), token: claim.token },
        None => Outcome::Nothing,
    };
    recording.record(call, queue.claim(lease, wait), outcome).await?
}

async fn work(queue: &Arc<dyn TaskQueue>, recording: &Recording, claim: &Claim) {
    let (what, pause) = {
        let mut random = rand::rng();
        (random.random_range(0..10), ms(random.random_range(0..60)))
    };
    match what {
        0..=3 => {}
        4 | 5 => {
            sleep(pause).await;
            heartbeat(queue, recording, claim).await;
            sleep(pause).await;
        }
        // Too late, unless nobody else wanted the task.
        6 => {
            sleep(LEASE + pause).await;
            heartbeat(queue, recording, claim).await;
        }
        7 => sleep(LEASE + pause).await,
        _ => {
            let (task, token) = (claim.task.to_string(), claim.token);
            let retrying = queue.retry(claim, pause);
            recording.record(Call::Retry { task, token }, retrying, |()| Outcome::Done).await;
            return;
        }
    }
    finish(queue, recording, claim).await;
}

async fn heartbeat(queue: &Arc<dyn TaskQueue>, recording: &Recording, claim: &Claim) {
    let call = Call::Heartbeat { task: claim.task.to_string(), token: claim.token, lease_ms: LEASE_MS };
    recording.record(call, queue.heartbeat(claim, LEASE), |()| Outcome::Done).await;
}

/// Finishes a task, and records it.
pub(crate) async fn finish(queue: &Arc<dyn TaskQueue>, recording: &Recording, claim: &Claim) {
    let call = Call::Finish { task: claim.task.to_string(), token: claim.token };
    recording.record(call, queue.finish(claim), |()| Outcome::Done).await;
}

//! Histories of a correct queue: every operation takes effect at one moment between its start and its end.

use std::collections::BTreeMap;

use lkr_test_history::{Call, Operation, Outcome};

use crate::simulator::Random;

/// The nanoseconds between two operations, and how far an operation reaches at most to both sides.
const STEP: u64 = 300_000;
const REACH: usize = 900_000;
const LEASE_MS: u64 = 2;
const LEASE: u64 = LEASE_MS * 1_000_000;

#[derive(Default)]
struct Queue {
    /// When each task becomes claimable, and its token; 0 without a claim.
    tasks: BTreeMap<String, (u64, u64)>,
    /// All claims that workers know.
    claims: Vec<(String, u64)>,
    last_token: u64,
    queued: usize,
}

/// The history of so many operations, after which all tasks are finished.
pub(crate) fn simulate(seed: u64, count: usize) -> Vec<Operation> {
    let (mut random, mut queue, mut history) = (Random(seed), Queue::default(), Vec::new());
    let mut number = 0;
    while number < count || !queue.tasks.is_empty() {
        number += 1;
        let moment = 10_000_000 + STEP * number as u64;
        let is_unknown = random.below(10) == 0 && number < count;
        let what = random.below(6);
        let (call, outcome) = match what {
            0 | 1 if number < count => queue.enqueue(moment),
            2 | 3 => queue.claim(moment),
            _ => queue.use_claim(&mut random, moment, number >= count),
        };
        if outcome == Outcome::Nothing {
            continue;
        }
        if is_unknown && let Outcome::Claimed { token, .. } = outcome {
            queue.claims.retain(|(_, known)| *known != token);
        }
        // A worker knows its claim before the next moment, so that it can use it then.
        let reach = if matches!(call, Call::Claim { .. }) { STEP as usize - 2 } else { REACH };
        let start = moment - random.below(REACH) as u64;
        let end = moment + 1 + random.below(reach) as u64;
        let (end, outcome) = if is_unknown { (None, Outcome::Unknown) } else { (Some(end), outcome) };
        history.push(Operation { process: 0, start, end, call, outcome });
    }
    keep_order_of_workers(&mut history);
    history
}

impl Queue {
    fn enqueue(&mut self, moment: u64) -> (Call, Outcome) {
        self.queued += 1;
        let task = format!("t{}", self.queued);
        self.tasks.insert(task.clone(), (moment, 0));
        (Call::Enqueue(task), Outcome::Done)
    }

    fn claim(&mut self, moment: u64) -> (Call, Outcome) {
        let call = Call::Claim { lease_ms: LEASE_MS };
        let claimable = self.tasks.iter_mut().find(|(_, (at, _))| *at <= moment);
        let Some((task, entry)) = claimable else { return (call, Outcome::Nothing) };
        self.last_token += 1;
        *entry = (moment + LEASE, self.last_token);
        self.claims.push((task.clone(), self.last_token));
        (call, Outcome::Claimed { task: task.clone(), token: self.last_token })
    }

    fn use_claim(&mut self, random: &mut Random, moment: u64, only_finishes: bool) -> (Call, Outcome) {
        if self.claims.is_empty() {
            return self.claim(moment);
        }
        let recent = self.claims.len().min(6);
        let (task, token) = self.claims[self.claims.len() - 1 - random.below(recent)].clone();
        let entry = self.tasks.get_mut(&task).filter(|(_, valid)| *valid == token);
        let outcome = if entry.is_some() { Outcome::Done } else { Outcome::Lost };
        match random.below(3) {
            0 if !only_finishes => {
                if let Some(entry) = entry {
                    entry.0 = moment + LEASE;
                }
                (Call::Heartbeat { task, token, lease_ms: LEASE_MS }, outcome)
            }
            1 if !only_finishes => {
                if let Some(entry) = entry {
                    *entry = (moment, 0);
                }
                (Call::Retry { task, token }, outcome)
            }
            _ => {
                if entry.is_some() {
                    self.tasks.remove(&task);
                }
                (Call::Finish { task, token }, outcome)
            }
        }
    }
}

/// A worker uses a claim after it got it.
fn keep_order_of_workers(history: &mut [Operation]) {
    let claimed = history.iter().filter_map(|operation| match operation.outcome {
        Outcome::Claimed { token, .. } => operation.end.map(|end| (token, end)),
        _ => None,
    });
    let claimed: BTreeMap<u64, u64> = claimed.collect();
    for operation in history {
        let got = token_of(&operation.call).and_then(|(_, token)| claimed.get(&token));
        operation.start = operation.start.max(got.map_or(0, |end| end + 1));
    }
}

fn token_of(call: &Call) -> Option<(&str, u64)> {
    match call {
        Call::Heartbeat { task, token, .. } | Call::Finish { task, token } | Call::Retry { task, token } => {
            Some((task, *token))
        }
        _ => None,
    }
}

/// Whether `claim` was acknowledged before `used` began, which was refused and has an older token of the same task.
pub(crate) fn is_newer_claim(claim: &Operation, used: &Operation) -> bool {
    let Outcome::Claimed { task, token } = &claim.outcome else { return false };
    let is_older = token_of(&used.call).is_some_and(|(of, old)| of == task && old < *token);
    used.outcome == Outcome::Lost && is_older && claim.end.is_some_and(|end| end < used.start)
}

/// The tasks that were queued with an answer.
pub(crate) fn accepted_tasks(history: &[Operation]) -> Vec<String> {
    let accepted = history.iter().filter_map(|operation| match (&operation.call, &operation.outcome) {
        (Call::Enqueue(task), Outcome::Done) => Some(task.clone()),
        _ => None,
    });
    accepted.collect()
}

//! One history for each anomaly of a queue, and histories that look alike and are correct.

#[path = "support/build.rs"]
mod build;

use build::operation;
use lkr_test_history::{
    AnomalyKind::{self, *},
    Call, LeaseTimes, Operation, Outcome, check_queue,
};

/// Times are in seconds.
const SECOND: u64 = 1_000_000_000;

fn at(start: u64, end: u64, call: Call, outcome: Outcome) -> Operation {
    operation(start * SECOND, Some(end * SECOND), call, outcome)
}

fn enqueue(start: u64, end: u64) -> Operation {
    at(start, end, Call::Enqueue("t".to_owned()), Outcome::Done)
}

/// A claim for ten seconds.
fn claim(start: u64, end: u64, token: u64) -> Operation {
    at(start, end, Call::Claim { lease_ms: 10_000 }, Outcome::Claimed { task: "t".to_owned(), token })
}

fn heartbeat(start: u64, end: u64, token: u64, outcome: Outcome) -> Operation {
    at(start, end, Call::Heartbeat { task: "t".to_owned(), token, lease_ms: 10_000 }, outcome)
}

fn finish(start: u64, end: u64, token: u64, outcome: Outcome) -> Operation {
    at(start, end, Call::Finish { task: "t".to_owned(), token }, outcome)
}

fn retry(start: u64, end: u64, token: u64) -> Operation {
    at(start, end, Call::Retry { task: "t".to_owned(), token }, Outcome::Done)
}

#[track_caller]
fn check(history: &[Operation], expected: &[AnomalyKind]) {
    let anomalies = check_queue(history, LeaseTimes::Checked, true);
    let mut kinds: Vec<AnomalyKind> = anomalies.iter().map(|anomaly| anomaly.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, expected, "{anomalies:#?}");
}

#[test]
fn task_that_is_claimed_renewed_lost_claimed_again_and_finished_is_accepted() {
    let history = [
        enqueue(0, 1),
        claim(2, 3, 1),
        heartbeat(4, 5, 1, Outcome::Done),
        claim(20, 21, 2),
        heartbeat(22, 23, 1, Outcome::Lost),
        retry(24, 25, 2),
        claim(26, 27, 3),
        finish(28, 29, 3, Outcome::Done),
        finish(30, 31, 2, Outcome::Lost),
    ];
    check(&history, &[]);
}

#[test]
fn use_of_a_lease_after_a_newer_claim_is_found() {
    let history = [enqueue(0, 1), claim(2, 3, 1), claim(20, 21, 2), finish(40, 41, 2, Outcome::Done)];
    check(&history, &[]);
    for late in [heartbeat(22, 23, 1, Outcome::Done), retry(22, 23, 1)] {
        check(&[&history[..], &[late]].concat(), &[LeaseUsedAfterLoss]);
    }
    // It overlaps the newer claim, so it may have come before.
    check(&[&history[..], &[heartbeat(20, 22, 1, Outcome::Done)]].concat(), &[]);
}

#[test]
fn use_of_a_lease_that_was_given_back_is_found() {
    let history = [
        enqueue(0, 1),
        claim(2, 3, 1),
        retry(4, 5, 1),
        heartbeat(6, 7, 1, Outcome::Done),
        claim(18, 19, 2),
        finish(20, 21, 2, Outcome::Done),
    ];
    check(&history, &[LeaseUsedAfterLoss]);
}

#[test]
fn token_that_does_not_grow_is_found() {
    let finished = finish(40, 41, 5, Outcome::Done);
    check(&[enqueue(0, 1), claim(2, 3, 5), claim(20, 21, 5), finished], &[TokenNotLarger]);
    let found = check_queue(&[enqueue(0, 1), claim(2, 3, 5), claim(20, 21, 4)], LeaseTimes::Ignored, false);
    assert_eq!(found.iter().map(|anomaly| anomaly.kind).collect::<Vec<_>>(), [TokenNotLarger]);
}

#[test]
fn claim_before_the_lease_ends_is_found() {
    let history = [enqueue(0, 1), claim(2, 3, 1), claim(5, 6, 2), finish(7, 8, 2, Outcome::Done)];
    check(&history, &[ClaimedWhileHeld]);
    let renewed = [
        enqueue(0, 1),
        claim(2, 3, 1),
        heartbeat(11, 12, 1, Outcome::Done),
        claim(15, 16, 2),
        finish(17, 18, 2, Outcome::Done),
    ];
    check(&renewed, &[ClaimedWhileHeld]);
    let anomalies = check_queue(&history, LeaseTimes::Ignored, true);
    assert!(anomalies.is_empty(), "{anomalies:?}");
    // The task may have been given back by a call without an answer.
    let unknown = Operation { end: None, outcome: Outcome::Unknown, ..retry(4, 5, 1) };
    check(&[&history[..], &[unknown]].concat(), &[]);
}

#[test]
fn task_finished_twice_or_claimed_after_its_end_is_found() {
    let history = [
        enqueue(0, 1),
        claim(2, 3, 1),
        claim(14, 15, 2),
        finish(16, 19, 1, Outcome::Done),
        finish(16, 18, 2, Outcome::Done),
    ];
    check(&history, &[LeaseUsedAfterLoss, FinishedTwice]);
    let history = [enqueue(0, 1), claim(2, 3, 1), finish(4, 5, 1, Outcome::Done), claim(6, 7, 2)];
    check(&history, &[ClaimedAfterFinish]);
}

#[test]
fn task_that_nobody_queued_is_found() {
    check(&[claim(2, 3, 1), finish(4, 5, 1, Outcome::Done)], &[UnknownTask]);
    check(&[claim(2, 3, 1), finish(4, 5, 1, Outcome::Done), enqueue(6, 7)], &[UnknownTask]);
}

#[test]
fn task_that_is_never_finished_is_lost_once_the_queue_is_empty() {
    check(&[enqueue(0, 1), claim(2, 3, 1)], &[TaskLost]);
    assert!(check_queue(&[enqueue(0, 1), claim(2, 3, 1)], LeaseTimes::Checked, false).is_empty());
    // A finish without an answer may have been done; a queueing without an answer may not.
    let unknown = Operation { end: None, outcome: Outcome::Unknown, ..finish(4, 5, 1, Outcome::Done) };
    check(&[enqueue(0, 1), claim(2, 3, 1), unknown], &[]);
    check(&[Operation { end: None, outcome: Outcome::Unknown, ..enqueue(0, 1) }], &[]);
}

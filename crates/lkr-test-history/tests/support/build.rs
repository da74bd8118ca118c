//! Short forms of operations.
#![allow(dead_code, reason = "each test uses some")]

use lkr_test_history::{Call, Change, Expect, Operation, Outcome, Seen, Write};

/// An operation between two times; `None` as the end if its outcome is unknown.
pub(crate) fn operation(start: u64, end: Option<u64>, call: Call, outcome: Outcome) -> Operation {
    Operation { process: 0, start, end, call, outcome }
}

/// A read that found these versions and values.
pub(crate) fn read(start: u64, end: u64, found: &[(&str, Option<(u64, &str)>)]) -> Operation {
    let keys = found.iter().map(|(key, _)| (*key).to_owned()).collect();
    let seen =
        found.iter().map(|(_, seen)| seen.map(|(version, value)| Seen { version, value: value.to_owned() }));
    operation(start, Some(end), Call::Read(keys), Outcome::Found(seen.collect()))
}

/// A step that was applied.
pub(crate) fn step(start: u64, end: u64, writes: &[Write]) -> Operation {
    operation(start, Some(end), Call::Step(writes.to_vec()), Outcome::Done)
}

/// A step that was refused.
pub(crate) fn refused(start: u64, end: u64, writes: &[Write]) -> Operation {
    operation(start, Some(end), Call::Step(writes.to_vec()), Outcome::Conflict)
}

/// A step without an answer.
pub(crate) fn unanswered(start: u64, writes: &[Write]) -> Operation {
    operation(start, None, Call::Step(writes.to_vec()), Outcome::Unknown)
}

pub(crate) fn put(key: &str, expect: Expect, value: &str) -> Write {
    Write { key: key.to_owned(), expect, change: Change::Put(value.to_owned()) }
}

pub(crate) fn delete(key: &str, version: u64) -> Write {
    Write { key: key.to_owned(), expect: Expect::Version(version), change: Change::Delete }
}

pub(crate) fn increment(key: &str) -> Write {
    Write { key: key.to_owned(), expect: Expect::Any, change: Change::Increment }
}

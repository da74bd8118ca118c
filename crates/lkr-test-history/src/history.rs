//! What a history consists of.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A call, when it began and ended, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The process that made the call. A process that was started again has another number.
    pub process: u32,
    /// When the call began, in nanoseconds of the machine's monotonic clock.
    pub start: u64,
    /// When the answer was there; `None` if the outcome is unknown, because then the call may take effect at any later time.
    pub end: Option<u64>,
    /// The call.
    pub call: Call,
    /// The outcome.
    pub outcome: Outcome,
}

/// A call of a store or a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// Reads these keys at one moment.
    Read(Vec<String>),
    /// Applies these writes together or not at all.
    Step(Vec<Write>),
    /// Queues a task. A history queues each task once.
    Enqueue(String),
    /// Claims any task for so many milliseconds.
    Claim {
        /// The lease.
        lease_ms: u64,
    },
    /// Renews the lease of a claim.
    Heartbeat {
        /// The task.
        task: String,
        /// The token of the claim.
        token: u64,
        /// The new lease.
        lease_ms: u64,
    },
    /// Removes a claimed task.
    Finish {
        /// The task.
        task: String,
        /// The token of the claim.
        token: u64,
    },
    /// Returns a claimed task to the queue.
    Retry {
        /// The task.
        task: String,
        /// The token of the claim.
        token: u64,
    },
}

/// A write of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// The key. A step contains each key once.
    pub key: String,
    /// The condition under which the step is applied.
    pub expect: Expect,
    /// What becomes of the key.
    pub change: Change,
}

/// The expected state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expect {
    /// Any state.
    Any,
    /// No record.
    Absent,
    /// A record of this version.
    Version(u64),
}

/// What a write does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Stores a value that no other step of the history stores under this key.
    Put(String),
    /// Removes the record. The checker knows the place of a delete only if it expects a version.
    Delete,
    /// Adds one to a counter. A key with increments has no other writes.
    Increment,
    /// Checks the expectation only.
    Check,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The records of a read, in the order of its keys.
    Found(Vec<Option<Seen>>),
    /// It was done: a step was applied, a task queued, a lease renewed or ended.
    Done,
    /// An expectation of a step did not hold, and nothing was written.
    Conflict,
    /// A task was claimed.
    Claimed {
        /// The task.
        task: String,
        /// The token, which is larger than those of all earlier claims of the task.
        token: u64,
    },
    /// There was no task to claim.
    Nothing,
    /// The queue refused the call because another worker holds the lease, or nobody does.
    Lost,
    /// No answer: the call may have taken effect, may still do so, or never.
    Unknown,
    /// A failure that no disturbance explains.
    Failed(String),
}

/// A record as a read returned it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Grows with each write of the key.
    pub version: u64,
    /// The value.
    pub value: String,
}

impl Operation {
    /// Whether the call may have taken effect: it did, or nobody knows.
    pub(crate) const fn may_have_happened(&self) -> bool {
        matches!(self.outcome, Outcome::Done | Outcome::Unknown | Outcome::Failed(_))
    }

    /// The end, or the end of time.
    pub(crate) fn latest(&self) -> u64 {
        self.end.unwrap_or(u64::MAX)
    }

    /// Whether this operation ended before the other one began.
    pub(crate) fn precedes(&self, other: &Self) -> bool {
        self.end.is_some_and(|end| end < other.start)
    }

    /// The writes of a step.
    pub(crate) fn writes(&self) -> &[Write] {
        match &self.call {
            Call::Step(writes) => writes,
            _ => &[],
        }
    }

    /// The keys of an answered read with what it found.
    pub(crate) fn found(&self) -> impl Iterator<Item = (&str, Option<&Seen>)> {
        let (keys, found) = match (&self.call, &self.outcome) {
            (Call::Read(keys), Outcome::Found(found)) => (&keys[..], &found[..]),
            _ => (&[][..], &[][..]),
        };
        keys.iter().map(String::as_str).zip(found.iter().map(Option::as_ref))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} [{}, ", self.process, Seconds(self.start))?;
        match self.end {
            Some(end) => write!(f, "{}] ", Seconds(end))?,
            None => write!(f, "?] ")?,
        }
        match &self.call {
            Call::Read(_) => {
                write!(f, "read")?;
                self.found().try_for_each(|(key, seen)| match seen {
                    Some(seen) => write!(f, " {key} = {:?} (version {})", seen.value, seen.version),
                    None => write!(f, " {key} absent"),
                })
            }
            Call::Step(writes) => {
                write!(f, "step")?;
                writes.iter().try_for_each(|write| {
                    write!(f, " {}: {:?} if {:?};", write.key, write.change, write.expect)
                })?;
                write!(f, " {:?}", self.outcome)
            }
            call => write!(f, "{call:?}: {:?}", self.outcome),
        }
    }
}

/// Nanoseconds, shown in seconds.
pub(crate) struct Seconds(pub(crate) u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000_000, self.0 / 1_000 % 1_000_000)
    }
}

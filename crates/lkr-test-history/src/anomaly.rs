//! What a checker reports.

use std::fmt;

use crate::Operation;

/// The kind of an anomaly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum AnomalyKind {
    /// One version of a key had two values.
    VersionRepeated,
    /// A step was applied twice: its value had two versions, or a counter is above its increments.
    AppliedTwice,
    /// A value was read that no step wrote.
    UnwrittenValue,
    /// A step was applied although its caller was told that it conflicts.
    ConflictApplied,
    /// A step was refused although its expectations held all the time.
    ConflictWithoutReason,
    /// A read returned a record that an acknowledged write had replaced before the read began.
    StaleRead,
    /// An acknowledged write is missing: a record is absent that was not deleted, or a counter is below its increments.
    LostWrite,
    /// The order in which the operations must have happened has a cycle.
    Cycle,
    /// A call failed in a way that no disturbance explains.
    UnexpectedFailure,
    /// A lease was used after a newer claim of the task was acknowledged, or after it was given back.
    LeaseUsedAfterLoss,
    /// A later claim of a task does not have a larger token.
    TokenNotLarger,
    /// A task was claimed while another worker certainly held its lease.
    ClaimedWhileHeld,
    /// A task was finished twice.
    FinishedTwice,
    /// A task was claimed after it had been finished.
    ClaimedAfterFinish,
    /// A task was claimed that nobody had queued.
    UnknownTask,
    /// A queued task was never finished, although the queue is empty.
    TaskLost,
}

/// What no correct store or queue does, with the operations that show it.
#[derive(Debug, Clone)]
pub struct Anomaly {
    /// The kind.
    pub kind: AnomalyKind,
    /// What is wrong, in words.
    pub detail: String,
    /// The operations that show it. In a cycle, each must have happened before the next, and the last before the first.
    pub operations: Vec<Operation>,
}

impl Anomaly {
    pub(crate) fn new<'a>(
        kind: AnomalyKind,
        detail: impl Into<String>,
        operations: impl IntoIterator<Item = &'a Operation>,
    ) -> Self {
        Self { kind, detail: detail.into(), operations: operations.into_iter().cloned().collect() }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.detail)?;
        self.operations.iter().try_for_each(|operation| write!(f, "\n    {operation}"))
    }
}

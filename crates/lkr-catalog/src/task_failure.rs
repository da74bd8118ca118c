//! The failures of tasks.

use crate::task_status::Stage;

/// Why a task failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFailure {
    /// The kind of failure, from which the server derives a public code.
    pub reason: FailureReason,
    /// The message for the client.
    pub message: String,
    /// The stage that failed.
    pub stage: Stage,
    /// Whether a retry may succeed.
    pub retryable: bool,
}

/// The kind of a task's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureReason {
    /// The input cannot be processed.
    Invalid,
    /// A client cancelled the task, or a later task replaced it.
    Cancelled,
    /// Anything else.
    Internal,
}

impl TaskFailure {
    /// The failure of a task that was cancelled in this stage.
    pub(crate) fn cancelled(stage: Stage) -> Self {
        let message = "cancelled".to_owned();
        Self { reason: FailureReason::Cancelled, message, stage, retryable: false }
    }

    /// Whether the task was cancelled.
    #[must_use]
    pub const fn is_cancelled(&self) -> bool {
        matches!(self.reason, FailureReason::Cancelled)
    }
}

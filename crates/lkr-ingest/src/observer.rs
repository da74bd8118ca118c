use std::{fmt::Debug, time::Duration};

use lkr_catalog::{Stage, Task, TaskKind};
use tracing::Span;

/// Receives what happens to tasks, to count and trace it. No call may block.
pub trait TaskObserver: Debug + Send + Sync + 'static {
    /// A stage of an attempt has ended, or the attempt has ended in it.
    fn stage_ended(&self, stage: Stage, took: Duration);

    /// An attempt of a task has ended.
    fn attempt_ended(&self, kind: TaskKind, outcome: AttemptOutcome);

    /// The span in which an attempt of a task runs; none by default.
    fn span(&self, task: &Task) -> Span {
        let _ = task;
        Span::none()
    }
}

/// How an attempt of a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The task is done, this long after it was accepted.
    Done(Duration),
    /// The attempt failed, and the task with it.
    Failed,
    /// The attempt failed; the task will be attempted again.
    Retried,
    /// The attempt does not count: the task was cancelled, waits for another one, or a store is unavailable.
    Interrupted,
}

impl AttemptOutcome {
    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Failed => "failed",
            Self::Retried => "retried",
            Self::Interrupted => "interrupted",
        }
    }
}

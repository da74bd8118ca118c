use lkr_catalog::TaskStatus;
use serde::{Deserialize, Serialize};

/// A kind of what is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EventKind {
    /// A task ended as done.
    #[serde(rename = "task.done")]
    TaskDone,
    /// A task ended as failed; cancelled ones are among them.
    #[serde(rename = "task.failed")]
    TaskFailed,
    /// A live document was deleted.
    #[serde(rename = "document.deleted")]
    DocumentDeleted,
}

impl EventKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::TaskDone, Self::TaskFailed, Self::DocumentDeleted];

    /// The name in deliveries.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TaskDone => "task.done",
            Self::TaskFailed => "task.failed",
            Self::DocumentDeleted => "document.deleted",
        }
    }

    /// What the end of a task is; `None` where it has not ended.
    pub(crate) const fn of_end(status: TaskStatus) -> Option<Self> {
        match status {
            TaskStatus::Done => Some(Self::TaskDone),
            TaskStatus::Failed => Some(Self::TaskFailed),
            TaskStatus::Pending | TaskStatus::Running => None,
        }
    }
}

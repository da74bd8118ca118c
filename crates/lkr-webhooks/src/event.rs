use lkr_catalog::TaskStatus;
use serde::{Deserialize, Serialize};

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EventKind {
    /// A task ended with the status done.
    #[serde(rename = "task.done")]
    TaskDone,
    /// A task ended with the status failed, cancelled tasks included.
    #[serde(rename = "task.failed")]
    TaskFailed,
    /// A live document was deleted.
    #[serde(rename = "document.deleted")]
    DocumentDeleted,
}

impl EventKind {
    /// All kinds.
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

    /// The event of a task's end; `None` if the task has not ended.
    pub(crate) const fn for_status(status: TaskStatus) -> Option<Self> {
        match status {
            TaskStatus::Done => Some(Self::TaskDone),
            TaskStatus::Failed => Some(Self::TaskFailed),
            TaskStatus::Pending | TaskStatus::Running => None,
        }
    }
}

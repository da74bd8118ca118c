use lkr::{DocId, FailureReason, Task, TaskFailure, TaskId, TaskInput, TaskStatus};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    formats::{Id, SpaceText, StageName, TaskKindName, TaskStatusName},
    task_results::TaskResultItem,
    timestamp::timestamp,
};
use crate::error::{ErrorCode, without_paths};

/// An accepted task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Accepted {
    /// The id of the task.
    #[schema(value_type = Id)]
    pub(crate) task_id: TaskId,
    /// pending; or the current status, if an earlier request with the same Idempotency-Key created the task
    #[schema(value_type = TaskStatusName)]
    pub(crate) status: &'static str,
}

impl From<&Task> for Accepted {
    fn from(task: &Task) -> Self {
        Self { task_id: task.task_id, status: task.status.name() }
    }
}

/// A task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaskItem {
    /// The id of the task.
    #[schema(value_type = Id)]
    task_id: TaskId,
    /// The document that it creates or replaces; null for a task over all documents.
    #[schema(required, value_type = Option<Id>)]
    doc_id: Option<DocId>,
    /// The title that the document was sent with, else the name of its file; null without either.
    #[schema(required)]
    title: Option<String>,
    /// The space in which it was accepted; null for a task about no single space.
    #[schema(required, value_type = Option<SpaceText>)]
    space: Option<String>,
    /// ingest, replace, reembed, reclassify, evaluate, delete_space or delete_where
    #[schema(value_type = TaskKindName)]
    kind: &'static str,
    /// pending, running, done or failed
    #[schema(value_type = TaskStatusName)]
    status: &'static str,
    /// The current stage, or the stage in which it ended.
    #[schema(value_type = StageName)]
    stage: &'static str,
    /// The progress of the current stage.
    progress: ProgressItem,
    /// The number of attempts that have succeeded or failed. An attempt that the end of the process cut off does not count.
    attempts: u32,
    /// When it was accepted.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was changed last.
    #[schema(format = DateTime)]
    updated_at: String,
    /// Who sent it.
    created_by: String,
    /// Present if the task is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    result: Option<TaskResultItem>,
    /// Present if the task has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<FailureItem>,
}

/// The progress of the current stage.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProgressItem {
    /// How many units are done.
    done: u64,
    /// 0 if it is not known yet.
    total: u64,
}

/// Why a task failed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FailureItem {
    /// The code, as in an error response.
    code: u32,
    /// What failed, and why.
    message: String,
    /// The stage that failed.
    #[schema(value_type = StageName)]
    stage: &'static str,
    /// Whether a retry may succeed.
    retryable: bool,
}

impl From<Task> for TaskItem {
    fn from(task: Task) -> Self {
        let (done, failed) = (task.status == TaskStatus::Done, task.status == TaskStatus::Failed);
        let doc_id = task.subject.doc_id();
        Self {
            task_id: task.task_id,
            doc_id,
            title: title(&task.input),
            space: task.space.map(String::from),
            kind: task.kind.name(),
            status: task.status.name(),
            stage: task.stage.name(),
            progress: ProgressItem { done: task.progress.done, total: task.progress.total },
            attempts: task.attempts,
            created_at: timestamp(task.created_at),
            updated_at: timestamp(task.updated_at),
            created_by: task.created_by.name,
            result: task.result.filter(|_| done).and_then(|result| TaskResultItem::new(doc_id, result)),
            error: task.error.filter(|_| failed).map(FailureItem::from),
        }
    }
}

/// What a person would call the document, before its text is read.
fn title(input: &TaskInput) -> Option<String> {
    let given = Some(&input.title).filter(|title| !title.is_empty());
    given.or_else(|| input.original.as_ref().map(|original| &original.file_name)).cloned()
}

impl From<TaskFailure> for FailureItem {
    fn from(failure: TaskFailure) -> Self {
        let message = match failure.reason {
            FailureReason::Internal => without_paths(&failure.message),
            FailureReason::Invalid | FailureReason::Cancelled => failure.message,
        };
        Self {
            code: ErrorCode::from(failure.reason).number(),
            message,
            stage: failure.stage.name(),
            retryable: failure.retryable,
        }
    }
}

/// The result of deleting a task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedTask {
    /// The id of the task.
    #[schema(value_type = Id)]
    pub(crate) task_id: TaskId,
    /// true
    pub(crate) deleted: bool,
}

/// A page of tasks, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaskList {
    /// The tasks of the page.
    items: Vec<TaskItem>,
    /// The cursor of the next page; null on the last page.
    #[schema(required)]
    next_offset: Option<String>,
}

impl TaskList {
    pub(crate) fn new(items: Vec<Task>, next_offset: Option<String>) -> Self {
        Self { items: items.into_iter().map(TaskItem::from).collect(), next_offset }
    }
}

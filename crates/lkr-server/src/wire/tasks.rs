use lkr::{
    DeleteResult, DocId, DocumentResult, ModelUsage, ReclassifyResult, ReembedResult, Task, TaskFailure,
    TaskId, TaskResult, TaskStatus,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{documents::ByLayer, eval::EvaluateResultItem, timestamp::timestamp};
use crate::error::ErrorCode;

/// An accepted task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Accepted {
    #[schema(value_type = String)]
    pub(crate) task_id: TaskId,
    /// pending; or the current status, if an earlier request with the same Idempotency-Key created the task
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
    #[schema(value_type = String)]
    task_id: TaskId,
    /// The document that it creates or replaces; null for a task over all documents.
    #[schema(required, value_type = Option<String>)]
    doc_id: Option<DocId>,
    /// The space in which it was accepted; null for a task about no single space.
    #[schema(required)]
    space: Option<String>,
    /// ingest, replace, reembed, reclassify, evaluate, delete_space or delete_where
    kind: &'static str,
    /// pending, running, done or failed
    status: &'static str,
    /// The current stage, or the stage in which it ended.
    stage: &'static str,
    progress: ProgressItem,
    /// The number of attempts that have succeeded or failed. An attempt that the end of the process cut off does not count.
    attempts: u32,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
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
    done: u64,
    /// 0 if it is not known yet.
    total: u64,
}

/// The result of a task.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = ResultItem)]
pub(crate) enum TaskResultItem {
    Document(DocumentResultItem),
    Reclassified(ReclassifyResultItem),
    Reembedded(ReembedResultItem),
    Evaluated(EvaluateResultItem),
    Deleted(DeleteResultItem),
}

/// The result of deleting documents by a task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeleteResultItem {
    /// The live points that went, by layer.
    deleted: ByLayer,
    /// Their sum.
    deleted_total: u64,
}

/// The result of ingesting or replacing a document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentResultItem {
    #[schema(value_type = String)]
    doc_id: DocId,
    title: String,
    category: String,
    language: String,
    /// The earlier document that this one duplicates; null if there is none.
    #[schema(required)]
    duplicate_of: Option<Duplicate>,
    counts: ByLayer,
    /// The number of texts that were embedded.
    embedded: u64,
    usage: UsageItem,
    warnings: Vec<String>,
    elapsed_ms: u64,
}

/// The result of classifying all documents.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReclassifyResultItem {
    /// The number of documents that were classified.
    documents: u64,
    /// The number of documents whose category the last attempt changed.
    changed: u64,
    /// The number of documents that kept the category set by a user.
    by_hand: u64,
    /// The number of documents without a category.
    uncategorized: u64,
    usage: UsageItem,
    warnings: Vec<String>,
    elapsed_ms: u64,
}

/// The result of a re-embedding.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReembedResultItem {
    /// The model that searches use now.
    model: String,
    /// The number of documents with vectors of this model.
    reembedded: u64,
    /// The number of documents without vectors of this model. Searches find them by keywords alone.
    left_out: u64,
    /// The number of texts that the last attempt embedded. Texts of earlier attempts are not embedded again.
    embedded: u64,
    /// The number of ranks that a cosine difference of 1 counts in graded fusion with this model.
    cosine_scale: f32,
    /// Why documents were left out.
    warnings: Vec<String>,
    elapsed_ms: u64,
}

/// An earlier document with the same or nearly the same content.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Duplicate {
    #[schema(value_type = String)]
    doc_id: DocId,
    /// The number of the 64 fingerprint bits that differ; 0 for equal texts.
    distance: u32,
}

/// The calls of language models.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageItem {
    calls: u64,
    tokens: u64,
}

/// Why a task failed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FailureItem {
    code: u32,
    message: String,
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

impl TaskResultItem {
    fn new(doc_id: Option<DocId>, result: TaskResult) -> Option<Self> {
        Some(match result {
            TaskResult::Document(result) => Self::Document(DocumentResultItem::new(doc_id?, result)),
            TaskResult::Reclassified(result) => Self::Reclassified(result.into()),
            TaskResult::Reembedded(result) => Self::Reembedded(result.into()),
            TaskResult::Evaluated(result) => Self::Evaluated(result.into()),
            TaskResult::Deleted(DeleteResult { deleted, .. }) => {
                Self::Deleted(DeleteResultItem { deleted_total: deleted.total(), deleted: deleted.into() })
            }
        })
    }
}

impl From<ReclassifyResult> for ReclassifyResultItem {
    fn from(result: ReclassifyResult) -> Self {
        Self {
            documents: result.documents,
            changed: result.changed,
            by_hand: result.by_hand,
            uncategorized: result.uncategorized,
            usage: result.usage.into(),
            warnings: result.warnings,
            elapsed_ms: result.elapsed_ms,
        }
    }
}

impl From<ReembedResult> for ReembedResultItem {
    fn from(result: ReembedResult) -> Self {
        Self {
            model: result.model,
            reembedded: result.reembedded,
            left_out: result.left_out,
            embedded: result.embedded,
            cosine_scale: result.cosine_scale,
            warnings: result.warnings,
            elapsed_ms: result.elapsed_ms,
        }
    }
}

impl From<ModelUsage> for UsageItem {
    fn from(usage: ModelUsage) -> Self {
        Self { calls: usage.calls, tokens: usage.tokens }
    }
}

impl DocumentResultItem {
    fn new(doc_id: DocId, result: DocumentResult) -> Self {
        Self {
            doc_id,
            title: result.title,
            category: result.category,
            language: result.language,
            duplicate_of: result
                .duplicate_of
                .map(|found| Duplicate { doc_id: found.doc_id, distance: found.distance }),
            counts: result.counts.into(),
            embedded: result.embedded,
            usage: result.usage.into(),
            warnings: result.warnings,
            elapsed_ms: result.elapsed_ms,
        }
    }
}

impl From<TaskFailure> for FailureItem {
    fn from(failure: TaskFailure) -> Self {
        Self {
            code: ErrorCode::from(failure.reason).number(),
            message: failure.message,
            stage: failure.stage.name(),
            retryable: failure.retryable,
        }
    }
}

/// The result of deleting a task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedTask {
    #[schema(value_type = String)]
    pub(crate) task_id: TaskId,
    /// true
    pub(crate) deleted: bool,
}

/// A page of tasks, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaskList {
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

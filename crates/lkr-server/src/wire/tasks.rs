use lkr::{
    DocId, DocumentResult, ModelUsage, ReclassifyResult, ReembedResult, Task, TaskFailure, TaskId,
    TaskResult, TaskStatus,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{documents::ByLayer, eval::EvaluateResultItem, moment};
use crate::error::Code;

/// That a task was accepted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Accepted {
    #[schema(value_type = String)]
    pub(crate) task_id: TaskId,
    /// pending; how it stands where it was accepted before, under the same Idempotency-Key
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
    /// The document it makes or changes; null where it is about all documents.
    #[schema(required, value_type = Option<String>)]
    doc_id: Option<DocId>,
    /// ingest, replace, reembed, reclassify or evaluate
    kind: &'static str,
    /// pending, running, done or failed
    status: &'static str,
    /// The stage it is in, or ended in.
    stage: &'static str,
    progress: ProgressItem,
    /// How many attempts have ended, well or badly; one cut off by the end of the process is none.
    attempts: u32,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
    created_by: String,
    /// Present when the task is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    result: Option<ResultItem>,
    /// Present when the task has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<FailureItem>,
}

/// How much of a stage is done.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProgressItem {
    done: u64,
    /// 0 where it is not known yet.
    total: u64,
}

/// What came of a task.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ResultItem {
    Document(DocumentResultItem),
    Reclassified(ReclassifyResultItem),
    Reembedded(ReembedResultItem),
    Evaluated(EvaluateResultItem),
}

/// What came of a document's task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentResultItem {
    #[schema(value_type = String)]
    doc_id: DocId,
    title: String,
    category: String,
    language: String,
    /// The earlier document that this one is a duplicate of; null where it is none.
    #[schema(required)]
    duplicate_of: Option<Duplicate>,
    counts: ByLayer,
    /// How many texts were embedded.
    embedded: u64,
    usage: UsageItem,
    warnings: Vec<String>,
    elapsed_ms: u64,
}

/// What came of classifying all documents.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReclassifyResultItem {
    /// How many documents were looked at.
    documents: u64,
    /// How many have another category now than before the last attempt.
    changed: u64,
    /// How many kept the category that a person chose.
    by_hand: u64,
    /// How many have no category now.
    uncategorized: u64,
    usage: UsageItem,
    warnings: Vec<String>,
    elapsed_ms: u64,
}

/// What came of embedding all documents by another model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReembedResultItem {
    /// The model that searches use now.
    model: String,
    /// How many documents have its vectors.
    reembedded: u64,
    /// How many documents it has no vectors for; they are found by their words alone.
    left_out: u64,
    /// How many texts the last attempt embedded; what earlier ones did is not done again.
    embedded: u64,
    /// How many ranks a cosine counts in the fusion with this model.
    cosine_scale: f32,
    /// Why documents were left out.
    warnings: Vec<String>,
    elapsed_ms: u64,
}

/// An earlier document of the same content.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Duplicate {
    #[schema(value_type = String)]
    doc_id: DocId,
    /// In how many of 64 bits the fingerprints differ; 0 where the texts are equal.
    distance: u32,
}

/// What language models were asked.
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
    /// Whether another try may succeed.
    retryable: bool,
}

impl From<Task> for TaskItem {
    fn from(task: Task) -> Self {
        let (done, failed) = (task.status == TaskStatus::Done, task.status == TaskStatus::Failed);
        let doc_id = task.subject.doc_id();
        Self {
            task_id: task.task_id,
            doc_id,
            kind: task.kind.name(),
            status: task.status.name(),
            stage: task.stage.name(),
            progress: ProgressItem { done: task.progress.done, total: task.progress.total },
            attempts: task.attempts,
            created_at: moment(task.created_at),
            updated_at: moment(task.updated_at),
            created_by: task.created_by.name,
            result: task.result.filter(|_| done).and_then(|result| ResultItem::new(doc_id, result)),
            error: task.error.filter(|_| failed).map(FailureItem::from),
        }
    }
}

impl ResultItem {
    fn new(doc_id: Option<DocId>, result: TaskResult) -> Option<Self> {
        Some(match result {
            TaskResult::Document(result) => Self::Document(DocumentResultItem::new(doc_id?, result)),
            TaskResult::Reclassified(result) => Self::Reclassified(result.into()),
            TaskResult::Reembedded(result) => Self::Reembedded(result.into()),
            TaskResult::Evaluated(result) => Self::Evaluated(result.into()),
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
            code: Code::from(failure.reason).number(),
            message: failure.message,
            stage: failure.stage.name(),
            retryable: failure.retryable,
        }
    }
}

/// That a task was forgotten.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedTask {
    #[schema(value_type = String)]
    pub(crate) task_id: TaskId,
    /// true
    pub(crate) deleted: bool,
}

/// A page of tasks, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaskList {
    items: Vec<TaskItem>,
    /// Where the next page begins; null after the last.
    #[schema(required)]
    next_offset: Option<String>,
}

impl TaskList {
    pub(crate) fn new(items: Vec<Task>, next_offset: Option<String>) -> Self {
        Self { items: items.into_iter().map(TaskItem::from).collect(), next_offset }
    }
}

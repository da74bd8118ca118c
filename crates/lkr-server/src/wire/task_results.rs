use lkr::{DeleteResult, DocId, DocumentResult, ModelUsage, ReclassifyResult, ReembedResult, TaskResult};
use serde::Serialize;
use utoipa::ToSchema;

use super::{documents::ByLayer, eval::EvaluateResultItem, formats::Id};

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
    /// The document.
    #[schema(value_type = Id)]
    doc_id: DocId,
    /// The title of the document.
    title: String,
    /// The category; empty if there is none.
    category: String,
    /// ISO 639-1 code; empty if unknown.
    language: String,
    /// The earlier document that this one duplicates; null if there is none.
    #[schema(required)]
    duplicate_of: Option<Duplicate>,
    /// The points that were stored, by layer.
    counts: ByLayer,
    /// The number of texts that were embedded.
    embedded: u64,
    /// The calls of language models.
    usage: UsageItem,
    /// What was left out or ignored, and why.
    warnings: Vec<String>,
    /// How long the last attempt took, in milliseconds.
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
    /// The calls of language models.
    usage: UsageItem,
    /// What was left out, and why.
    warnings: Vec<String>,
    /// How long the last attempt took, in milliseconds.
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
    /// How long the last attempt took, in milliseconds.
    elapsed_ms: u64,
}

/// An earlier document with the same or nearly the same content.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Duplicate {
    /// The earlier document.
    #[schema(value_type = Id)]
    doc_id: DocId,
    /// The number of the 64 fingerprint bits that differ; 0 for equal texts.
    distance: u32,
}

/// The calls of language models.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageItem {
    /// The number of calls.
    calls: u64,
    /// The tokens of requests and replies.
    tokens: u64,
}

impl TaskResultItem {
    /// The result of a task about this document, if it is about one.
    pub(super) fn new(doc_id: Option<DocId>, result: TaskResult) -> Option<Self> {
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

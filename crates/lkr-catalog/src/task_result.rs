//! The results of tasks.

use lkr_domain::{Counts, DocId};
use serde::{Deserialize, Serialize};

/// The result of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TaskResult {
    /// A document is searchable.
    Document(DocumentResult),
    /// All documents were classified.
    Reclassified(ReclassifyResult),
    /// All documents have vectors of another model.
    Reembedded(ReembedResult),
    /// Search quality was measured.
    Evaluated(EvaluateResult),
    /// Documents were deleted.
    Deleted(DeleteResult),
}

impl TaskResult {
    /// The result of a task about a document; `None` for a task about all documents.
    #[must_use]
    pub fn document(self) -> Option<DocumentResult> {
        match self {
            Self::Document(result) => Some(result),
            Self::Reclassified(_) | Self::Reembedded(_) | Self::Evaluated(_) | Self::Deleted(_) => None,
        }
    }
}

/// The result of a task about one document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentResult {
    /// The document's title.
    pub title: String,
    /// The earlier document that this one duplicates. All other fields then describe the earlier document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate_of: Option<Duplicate>,
    /// Its category; empty for none.
    pub category: String,
    /// The ISO 639-1 code of its language; empty if unknown.
    pub language: String,
    /// Its points by layer.
    pub counts: Counts,
    /// The number of texts that were embedded.
    pub embedded: u64,
    /// The use of language models.
    pub usage: ModelUsage,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Milliseconds from the start of the first stage to the end, without the waits between attempts.
    pub elapsed_ms: u64,
}

/// An earlier document with the same content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duplicate {
    /// The earlier document.
    pub doc_id: DocId,
    /// The number of bits, of 64, in which their fingerprints differ; 0 for equal texts.
    pub distance: u32,
}

/// The result of deleting documents by a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteResult {
    /// The number of documents that were deleted.
    pub documents: u64,
    /// The live points that went with them, by layer.
    pub deleted: Counts,
}

/// The result of classifying all documents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReclassifyResult {
    /// The number of documents that were examined.
    pub documents: u64,
    /// The number whose category differs from before the last attempt.
    pub changed: u64,
    /// The number that kept a category that a person chose.
    pub by_hand: u64,
    /// The number without a category.
    pub uncategorized: u64,
    /// The use of language models.
    pub usage: ModelUsage,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Milliseconds that the last attempt took.
    pub elapsed_ms: u64,
}

/// The result of re-embedding all documents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReembedResult {
    /// The name of the model whose vectors searches use now.
    pub model: String,
    /// The number of documents that have its vectors.
    pub reembedded: u64,
    /// The number of documents without its vectors. Searches find them by their words alone.
    #[serde(default)]
    pub left_out: u64,
    /// The number of texts that the last attempt embedded. Texts of earlier attempts are not embedded again.
    pub embedded: u64,
    /// The factor of this model's cosines in graded ranks.
    pub cosine_scale: f32,
    /// Why documents were left out.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Milliseconds that the last attempt took.
    pub elapsed_ms: u64,
}

/// The result of measuring search quality.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EvaluateResult {
    /// The quality of searches over chunks alone.
    pub flat: SearchQuality,
    /// The quality of searches over all layers.
    pub layered: SearchQuality,
    /// Milliseconds that the last attempt took.
    pub elapsed_ms: u64,
}

/// The quality of searches in one mode: means over the queries, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SearchQuality {
    /// The number of queries.
    pub queries: u64,
    /// Normalised discounted cumulative gain at 10.
    pub ndcg_at_10: f64,
    /// The share of the relevant results that are among the first 10.
    pub recall_at_10: f64,
    /// The reciprocal rank of the first relevant result among the first 10.
    pub mrr_at_10: f64,
}

impl ReclassifyResult {
    /// Adds a warning. After 20 of them, further ones are dropped, because each may be about one of very many
    /// documents.
    pub fn warn(&mut self, warning: String) {
        warn(&mut self.warnings, warning);
    }
}

impl ReembedResult {
    /// Counts a document that was left out, and adds a warning with the reason.
    pub fn leave_out(&mut self, warning: String) {
        self.left_out += 1;
        warn(&mut self.warnings, warning);
    }
}

fn warn(warnings: &mut Vec<String>, warning: String) {
    const MAX: usize = 20;
    match warnings.len() {
        0..MAX => warnings.push(warning),
        MAX => warnings.push("and more".to_owned()),
        _ => {}
    }
}

/// The use of language models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUsage {
    /// Requests.
    pub calls: u64,
    /// Tokens of requests and responses.
    pub tokens: u64,
}

use lkr_domain::{Counts, DocId};
use serde::{Deserialize, Serialize};

/// What came of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TaskResult {
    /// A document is searchable.
    Document(DocumentResult),
    /// All documents were classified.
    Reclassified(ReclassifyResult),
    /// All documents have vectors of another model.
    Reembedded(ReembedResult),
    /// Searches were judged.
    Evaluated(EvaluateResult),
}

impl TaskResult {
    /// What came of a document's task; `None` of another's.
    #[must_use]
    pub fn document(self) -> Option<DocumentResult> {
        match self {
            Self::Document(result) => Some(result),
            Self::Reclassified(_) | Self::Reembedded(_) | Self::Evaluated(_) => None,
        }
    }
}

/// What came of a document's task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentResult {
    /// The document's title.
    pub title: String,
    /// The earlier document of which this one was a duplicate: then all else here is that one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate_of: Option<Duplicate>,
    /// Its category; empty for none.
    pub category: String,
    /// The ISO 639-1 code of its language; empty where it cannot be told.
    pub language: String,
    /// Its points by layer.
    pub counts: Counts,
    /// How many texts were embedded.
    pub embedded: u64,
    /// What language models were asked.
    pub usage: ModelUsage,
    /// What the person who sent it should know.
    pub warnings: Vec<String>,
    /// From the first stage's begin to the end, in milliseconds, waiting between tries left out.
    pub elapsed_ms: u64,
}

/// An earlier document with the same content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duplicate {
    /// The earlier document.
    pub doc_id: DocId,
    /// In how many of 64 bits their fingerprints differ; 0 for equal texts.
    pub distance: u32,
}

/// What came of classifying all documents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReclassifyResult {
    /// How many documents were looked at.
    pub documents: u64,
    /// How many have another category now than before the last attempt.
    pub changed: u64,
    /// How many kept the category that a person chose.
    pub by_hand: u64,
    /// How many have no category now.
    pub uncategorized: u64,
    /// What language models were asked.
    pub usage: ModelUsage,
    /// What the person who asked for it should know.
    pub warnings: Vec<String>,
    /// What the last attempt took, in milliseconds.
    pub elapsed_ms: u64,
}

/// What came of giving all documents vectors of another model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReembedResult {
    /// The name of the model whose vectors searches use now.
    pub model: String,
    /// How many documents have its vectors.
    pub reembedded: u64,
    /// How many it has no vectors for: they are found by their words alone.
    #[serde(default)]
    pub left_out: u64,
    /// How many texts the last attempt embedded; what earlier ones did is not done again.
    pub embedded: u64,
    /// How many graded ranks a cosine counts with this model.
    pub cosine_scale: f32,
    /// Why documents were left out.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// What the last attempt took, in milliseconds.
    pub elapsed_ms: u64,
}

/// What came of judging searches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EvaluateResult {
    /// Of chunks alone.
    pub flat: SearchQuality,
    /// Of all layers.
    pub layered: SearchQuality,
    /// What the last attempt took, in milliseconds.
    pub elapsed_ms: u64,
}

/// What searches of one mode are worth: means over the queries, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SearchQuality {
    /// How many queries there were.
    pub queries: u64,
    /// Normalised discounted cumulative gain at 10.
    pub ndcg_at_10: f64,
    /// The share of what is relevant that is among the first 10.
    pub recall_at_10: f64,
    /// The reciprocal rank of the first relevant one among 10.
    pub mrr_at_10: f64,
}

impl ReclassifyResult {
    /// Adds a warning, as long as there are few: each may be about one of very many documents.
    pub fn warn(&mut self, warning: String) {
        warn(&mut self.warnings, warning);
    }
}

impl ReembedResult {
    /// Counts a document that is left out, and says why, as long as there are few.
    pub fn leave_out(&mut self, warning: String) {
        self.left_out += 1;
        warn(&mut self.warnings, warning);
    }
}

fn warn(warnings: &mut Vec<String>, warning: String) {
    const MOST: usize = 20;
    match warnings.len() {
        0..MOST => warnings.push(warning),
        MOST => warnings.push("and more".to_owned()),
        _ => {}
    }
}

/// What language models were asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUsage {
    /// Requests.
    pub calls: u64,
    /// Tokens in and out.
    pub tokens: u64,
}

use lkr_domain::{Counts, Creator, Dedup, DocId, Metadata, Original, TaskId};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

/// A piece of work that was accepted and will end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its id.
    pub task_id: TaskId,
    /// The document it makes or replaces, or the earlier one where it made none because that is equal; an id of its
    /// own where it is about all documents.
    pub doc_id: DocId,
    /// What it does.
    pub kind: TaskKind,
    /// How it stands.
    pub status: TaskStatus,
    /// The stage it is in, or ended in.
    pub stage: Stage,
    /// How much of the stage is done.
    pub progress: Progress,
    /// How many attempts have ended, well or badly; one cut off by the end of the process is none.
    pub attempts: u32,
    /// When it was accepted.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When it last changed.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    /// The account that asked for it.
    #[serde(flatten)]
    pub created_by: Creator,
    /// What it works on.
    pub input: TaskInput,
    /// What came of it, once it is done.
    #[serde(default)]
    pub result: Option<TaskResult>,
    /// Why it failed, once it has.
    #[serde(default)]
    pub error: Option<TaskFailure>,
}

/// What a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// Brings a new document in.
    Ingest,
    /// Replaces a document.
    Replace,
    /// Gives all documents vectors of another model.
    Reembed,
    /// Classifies all documents again.
    Reclassify,
    /// Judges searches by a gold set.
    Evaluate,
}

impl TaskKind {
    /// The name in answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Replace => "replace",
            Self::Reembed => "reembed",
            Self::Reclassify => "reclassify",
            Self::Evaluate => "evaluate",
        }
    }

    /// Whether it is about one document, which its `doc_id` names.
    #[must_use]
    pub const fn is_about_a_document(self) -> bool {
        matches!(self, Self::Ingest | Self::Replace)
    }
}

/// How a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskStatus {
    /// Accepted, not begun, or waiting for its next try.
    Pending,
    /// A worker has it.
    Running,
    /// Its document is searchable.
    Done,
    /// It ended without.
    Failed,
}

impl TaskStatus {
    /// The name in answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    /// Whether nothing more will happen.
    #[must_use]
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }
}

impl std::str::FromStr for TaskStatus {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        [Self::Pending, Self::Running, Self::Done, Self::Failed]
            .into_iter()
            .find(|status| status.name() == name)
            .ok_or(())
    }
}

/// A stage of ingestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Waiting for a worker.
    Queued,
    /// Reading the source into one text with blocks.
    Parse,
    /// Making nodes and chunks of it.
    Layer,
    /// Having a language model describe it, section by section.
    Describe,
    /// Making vectors and storing points, batch by batch.
    Embed,
    /// Choosing categories, document by document.
    Classify,
    /// Searching and judging, query by query.
    Evaluate,
    /// Making it visible.
    Publish,
}

impl Stage {
    /// The name in answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Parse => "parse",
            Self::Layer => "layer",
            Self::Describe => "describe",
            Self::Embed => "embed",
            Self::Classify => "classify",
            Self::Evaluate => "evaluate",
            Self::Publish => "publish",
        }
    }
}

/// How much of a stage is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Done so far.
    pub done: u64,
    /// In all; 0 where it is not known yet.
    pub total: u64,
}

/// What a task works on; empty where it is about all documents. The text itself lies among the [`Texts`](crate::Texts), under the document and revision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskInput {
    /// The revision of the document that the task makes.
    pub revision: u64,
    /// The title as it was given.
    pub title: String,
    /// The source as it was given.
    pub source: String,
    /// The metadata as it was given, without reserved keys.
    pub metadata: Metadata,
    /// What the answer should warn of from the start.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The stored original of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Original>,
    /// Whether the text was extracted from a file: then its blocks lie beside it.
    #[serde(default)]
    pub extracted: bool,
    /// The SHA-256 of the stored text, and of its blocks; none where an earlier version accepted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_sha256: Option<String>,
    /// See [`text_sha256`](Self::text_sha256).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_sha256: Option<String>,
    /// When it is a duplicate of another, and then nothing new.
    #[serde(default)]
    pub dedup: Dedup,
    /// The model that documents are to have vectors of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
}

/// An embedding model, as tasks tell of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelName {
    /// What tells its vectors apart from any other model's.
    pub id: String,
    /// Its name, for people.
    pub name: String,
}

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

impl TaskFailure {
    /// Whether the task ended because it was not wanted any more.
    #[must_use]
    pub const fn is_cancelled(&self) -> bool {
        self.code == CODE_CONFLICT
    }
}

/// The public code of an operation that a later one overtook.
pub(crate) const CODE_CONFLICT: u32 = 1003;

/// Why a task failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFailure {
    /// The public error code.
    pub code: u32,
    /// The reason.
    pub message: String,
    /// The stage that failed.
    pub stage: Stage,
    /// Whether another try may succeed.
    pub retryable: bool,
}

use lkr_domain::{Clock, Creator, Dedup, DocId, Metadata, Original, SpaceName, TaskId};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::{
    Error, ErrorKind, Result, TaskFailure, TaskResult,
    task_status::{Progress, Stage, TaskStatus},
};

/// A piece of work that was accepted and will end: done, failed or cancelled.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its id.
    pub task_id: TaskId,
    /// What it is about.
    pub subject: TaskSubject,
    /// The space in which it was accepted; `None` if it is about no single space.
    pub space: Option<SpaceName>,
    /// What it does.
    pub kind: TaskKind,
    /// Whether it waits, runs or has ended.
    pub status: TaskStatus,
    /// The stage that it is in, or ended in.
    pub stage: Stage,
    /// How much of the stage is done.
    pub progress: Progress,
    /// How many attempts have ended, with or without success. An attempt that the end of the process cut off does not
    /// count.
    pub attempts: u32,
    /// When it was accepted.
    pub created_at: OffsetDateTime,
    /// When it last changed.
    pub updated_at: OffsetDateTime,
    /// The account that asked for it.
    pub created_by: Creator,
    /// The id of the API key by which a bulk delete was asked for.
    pub key: Option<String>,
    /// What it works on.
    pub input: TaskInput,
    /// Its result, once it is done.
    pub result: Option<TaskResult>,
    /// Why it failed, once it has.
    pub error: Option<TaskFailure>,
}

impl Task {
    /// The document that the task makes or replaces, or the earlier document that it turned out to duplicate.
    ///
    /// # Errors
    /// `Internal` if the task is about all documents.
    pub fn doc_id(&self) -> Result<DocId> {
        let reason = || format!("task {} is about all documents", self.task_id);
        self.subject.doc_id().ok_or_else(|| Error::new(ErrorKind::Internal, "read task", reason()))
    }

    /// Whether it may still run: it has not ended, or has failed and may be retried.
    pub(crate) fn may_run(&self) -> bool {
        match self.status {
            TaskStatus::Pending | TaskStatus::Running => true,
            TaskStatus::Failed => !self.error.as_ref().is_some_and(TaskFailure::is_cancelled),
            TaskStatus::Done => false,
        }
    }
}

/// What a task is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskSubject {
    /// One document.
    Document(DocId),
    /// All documents.
    Corpus(CorpusSlot),
}

impl TaskSubject {
    /// The document, if the task is about one.
    #[must_use]
    pub const fn doc_id(self) -> Option<DocId> {
        match self {
            Self::Document(doc_id) => Some(doc_id),
            Self::Corpus(_) => None,
        }
    }

    /// The id in the key of the task's active record. Only [`Document`](Self::Document) makes it a document's id.
    #[must_use]
    pub const fn record_id(self) -> DocId {
        match self {
            Self::Document(doc_id) | Self::Corpus(CorpusSlot(doc_id)) => doc_id,
        }
    }

    /// The subject that a task of this kind has under the id of its active record.
    pub(crate) const fn of_record(kind: TaskKind, record_id: DocId) -> Self {
        match kind {
            TaskKind::Ingest | TaskKind::Replace => Self::Document(record_id),
            TaskKind::Reembed
            | TaskKind::Reclassify
            | TaskKind::Evaluate
            | TaskKind::DeleteSpace
            | TaskKind::DeleteWhere => Self::Corpus(CorpusSlot(record_id)),
        }
    }
}

impl From<DocId> for TaskSubject {
    fn from(doc_id: DocId) -> Self {
        Self::Document(doc_id)
    }
}

/// The slot of a task about all documents. At most one unfinished task has a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CorpusSlot(DocId);

impl CorpusSlot {
    /// The slot that all changes of the embedding model share. Ids of documents begin with their time of creation, so none
    /// equals this one.
    pub(crate) const REEMBEDDING: Self = Self(DocId::from_bytes(*b"all, by a model."));

    /// A slot of its own, for a task that excludes no other.
    pub(crate) fn unique(clock: &dyn Clock) -> Self {
        Self(DocId::new_by(clock))
    }
}

/// What a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// Adds a new document.
    Ingest,
    /// Replaces a document.
    Replace,
    /// Gives all documents vectors of another model.
    Reembed,
    /// Classifies all documents again.
    Reclassify,
    /// Measures search quality with a gold set.
    Evaluate,
    /// Removes a space with all its documents.
    #[serde(rename = "delete_space")]
    DeleteSpace,
    /// Removes the documents that match a filter.
    #[serde(rename = "delete_where")]
    DeleteWhere,
}

impl TaskKind {
    /// The name in responses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Replace => "replace",
            Self::Reembed => "reembed",
            Self::Reclassify => "reclassify",
            Self::Evaluate => "evaluate",
            Self::DeleteSpace => "delete_space",
            Self::DeleteWhere => "delete_where",
        }
    }
}

/// What a task works on; empty if it is about all documents. The text itself is among the [`Texts`](crate::Texts), under
/// the document and the revision.
///
/// The record of a task that is done or cancelled keeps the revision, the title, the original without its SHA-256 and the model alone:
/// what else it worked on is the document's, and goes with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskInput {
    /// The revision of the document that the task makes.
    pub revision: u64,
    /// The title as the client gave it.
    pub title: String,
    /// The source as the client gave it.
    pub source: String,
    /// The metadata as the client gave it, without reserved keys.
    pub metadata: Metadata,
    /// Warnings that the result starts with.
    pub warnings: Vec<String>,
    /// The stored original of a file.
    pub original: Option<Original>,
    /// Whether the text was extracted from a file: then its blocks are stored beside it.
    pub extracted: bool,
    /// The SHA-256 of the stored text; `None` for tasks of versions that did not record it.
    pub text_sha256: Option<String>,
    /// The SHA-256 of the stored blocks.
    pub blocks_sha256: Option<String>,
    /// How duplicates are found; a duplicate stores nothing new.
    pub dedup: Dedup,
    /// The embedding model that a re-embedding changes to.
    pub model: Option<ModelName>,
    /// The request that submitted it, as a W3C `traceparent`.
    pub origin: Option<String>,
}

impl TaskInput {
    /// What is kept once the task cannot run any more.
    pub(crate) fn of_ended(self) -> Self {
        let Self { revision, title, original, model, .. } = self;
        let original = original.map(|original| Original { sha256: None, ..original });
        Self { revision, title, original, model, ..Self::default() }
    }
}

/// An embedding model, as a task records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelName {
    /// Its id, which no two models share whose vectors differ.
    pub id: String,
    /// Its name, for people.
    pub name: String,
}

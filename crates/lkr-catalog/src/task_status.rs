//! The status, the stage and the progress of a task.

use serde::{Deserialize, Serialize};

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskStatus {
    /// Accepted, and not started yet or waiting for a retry.
    Pending,
    /// A worker is processing it.
    Running,
    /// Its document is searchable.
    Done,
    /// It ended without success.
    Failed,
}

impl TaskStatus {
    /// The name in responses.
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
    /// Parsing the source into one text with blocks.
    Parse,
    /// Building nodes and chunks.
    Layer,
    /// Summarizing sections with a language model.
    Describe,
    /// Embedding texts and storing points, batch by batch.
    Embed,
    /// Classifying documents, one by one.
    Classify,
    /// Running and measuring searches, query by query.
    Evaluate,
    /// Making the document visible.
    Publish,
    /// Deleting documents, one by one.
    Delete,
}

impl Stage {
    /// The name in responses.
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
            Self::Delete => "delete",
        }
    }
}

/// The progress of a stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Units that are done.
    pub done: u64,
    /// All units; 0 while the number is unknown.
    pub total: u64,
}

//! Schemas of values that many requests and responses contain. They describe only; the values are made and checked elsewhere.

use utoipa::ToSchema;

/// An id: 32 hexadecimal digits.
#[derive(Debug, ToSchema)]
#[schema(pattern = "^[0-9a-f]{32}$")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct Id(String);

/// The name of a space.
#[derive(Debug, ToSchema)]
#[schema(as = SpaceName, pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct SpaceText(String);

/// A query: 1 to 2,000 characters, not counting surrounding white space.
#[derive(Debug, ToSchema)]
#[schema(min_length = 1, max_length = 2000, pattern = "\\S")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct QueryText(String);

/// Several queries.
#[derive(Debug, ToSchema)]
#[schema(min_items = 1, max_items = 10)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct QueryList(Vec<QueryText>);

/// An ISO 639-1 code.
#[derive(Debug, ToSchema)]
#[schema(pattern = "^[a-z]{2}$")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct LanguageCode(String);

/// What a task does.
#[derive(Debug, ToSchema)]
#[schema(as = TaskKind, rename_all = "snake_case")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) enum TaskKindName {
    /// Ingests a document.
    Ingest,
    /// Replaces a document.
    Replace,
    /// Embeds all documents with another model.
    Reembed,
    /// Classifies documents again.
    Reclassify,
    /// Measures searches.
    Evaluate,
    /// Deletes a space with its documents.
    DeleteSpace,
    /// Deletes the documents that match an expression.
    DeleteWhere,
}

/// The status of a task.
#[derive(Debug, ToSchema)]
#[schema(as = TaskStatus, rename_all = "snake_case")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) enum TaskStatusName {
    /// It waits for a worker.
    Pending,
    /// A worker has begun it.
    Running,
    /// It succeeded.
    Done,
    /// It failed or was cancelled.
    Failed,
}

/// A stage of a task.
#[derive(Debug, ToSchema)]
#[schema(as = TaskStage, rename_all = "snake_case")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) enum StageName {
    /// Waiting for a worker.
    Queued,
    /// Parsing the source.
    Parse,
    /// Building nodes and chunks.
    Layer,
    /// Summarizing sections.
    Describe,
    /// Embedding texts and storing points.
    Embed,
    /// Classifying documents.
    Classify,
    /// Running and measuring searches.
    Evaluate,
    /// Making the document visible.
    Publish,
    /// Deleting documents.
    Delete,
}

/// How a summary was made.
#[derive(Debug, ToSchema)]
#[schema(as = SummaryKind, rename_all = "snake_case")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) enum SummaryKindName {
    /// By a language model.
    Generated,
    /// By picking sentences.
    Extractive,
}

/// The status of the service or of a dependency.
#[derive(Debug, ToSchema)]
#[schema(as = HealthStatus, rename_all = "snake_case")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) enum HealthName {
    /// It works.
    Ok,
    /// It works, or is missing, so that responses contain less.
    Degraded,
    /// It does not work.
    Down,
}

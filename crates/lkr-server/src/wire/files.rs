use lkr::{Task, TaskId};
use serde::Serialize;
use utoipa::ToSchema;

/// A file to be ingested.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it says what the parts are, which are read as they come")]
pub(crate) struct UploadForm {
    /// The file. Its name's extension tells what it is; its largest size is configured, 50 MB by default.
    #[schema(value_type = String, format = Binary)]
    file: String,
    /// The title, at most 4,096 characters; the file's name without extension when blank.
    #[schema(nullable = false)]
    title: Option<String>,
    /// Where the document comes from, at most 4,096 characters; `file:` and the file's name when empty.
    #[schema(nullable = false)]
    source: Option<String>,
    /// Free metadata as a JSON object; ignored when it is none. Values become strings.
    #[schema(nullable = false)]
    metadata: Option<String>,
    /// Ingest it although the settings say that it is a duplicate.
    #[schema(nullable = false)]
    force: Option<bool>,
    /// Where a live document has the same source and the caller may change it, replace that: of several the newest.
    #[schema(nullable = false)]
    upsert: Option<bool>,
}

/// A file in place of what a document was made of.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it says what the parts are, which are read as they come")]
pub(crate) struct ReplaceForm {
    /// The file. Its name's extension tells what it is; its largest size is configured, 50 MB by default.
    #[schema(value_type = String, format = Binary)]
    file: String,
    /// The title, at most 4,096 characters; the file's name without extension when blank.
    #[schema(nullable = false)]
    title: Option<String>,
    /// Where the document comes from, at most 4,096 characters; `file:` and the file's name when empty.
    #[schema(nullable = false)]
    source: Option<String>,
    /// Free metadata as a JSON object; ignored when it is none. Values become strings.
    #[schema(nullable = false)]
    metadata: Option<String>,
}

/// That a file was accepted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadAccepted {
    #[schema(value_type = String)]
    task_id: TaskId,
    /// pending; how it stands where it was accepted before, under the same Idempotency-Key
    status: &'static str,
    /// Where the file is stored, relative to the folder of uploads; empty where storing it failed.
    saved_path: String,
}

impl From<&Task> for UploadAccepted {
    fn from(task: &Task) -> Self {
        let path = task.input.original.as_ref().map(|original| original.path.clone());
        Self { task_id: task.task_id, status: task.status.name(), saved_path: path.unwrap_or_default() }
    }
}

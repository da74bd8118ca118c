use lkr::{Task, TaskId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::formats::{Id, TaskStatusName};

/// A file to ingest.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used; the parts are read as a stream")]
pub(crate) struct UploadForm {
    /// The file. The extension of its name decides its format. Its size limit is configured, 50 MB by default.
    #[schema(value_type = String, format = Binary)]
    file: String,
    /// The title, at most 4,096 characters. If it is blank, the file name without extension is used.
    #[schema(nullable = false, max_length = 4096)]
    title: Option<String>,
    /// Where the document comes from, at most 4,096 characters. If it is empty, `file:` and the file name are used.
    #[schema(nullable = false, max_length = 4096)]
    source: Option<String>,
    /// Metadata as a JSON object; anything else is ignored with a warning. Values become strings.
    #[schema(nullable = false)]
    metadata: Option<String>,
    /// Ingest the file even if the settings detect a duplicate.
    #[schema(nullable = false)]
    force: Option<bool>,
    /// Replace the newest live document with the same source, if the caller may change that document.
    #[schema(nullable = false)]
    upsert: Option<bool>,
    /// The space of the document, `default` if absent or empty.
    #[schema(nullable = false, pattern = "^([a-z0-9][a-z0-9._-]{0,63})?$")]
    space: Option<String>,
}

/// A file that replaces a document's content.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used; the parts are read as a stream")]
pub(crate) struct ReplaceForm {
    /// The file. The extension of its name decides its format. Its size limit is configured, 50 MB by default.
    #[schema(value_type = String, format = Binary)]
    file: String,
    /// The title, at most 4,096 characters. If it is blank, the file name without extension is used.
    #[schema(nullable = false, max_length = 4096)]
    title: Option<String>,
    /// Where the document comes from, at most 4,096 characters. If it is empty, `file:` and the file name are used.
    #[schema(nullable = false, max_length = 4096)]
    source: Option<String>,
    /// Metadata as a JSON object; anything else is ignored with a warning. Values become strings.
    #[schema(nullable = false)]
    metadata: Option<String>,
    /// Ignored, with a warning if it is not the space of the document: a replacement stays there.
    #[schema(nullable = false)]
    space: Option<String>,
    /// true or false, without effect: it is there so that the form of an upload can be sent here.
    #[schema(nullable = false)]
    force: Option<bool>,
    /// true or false, without effect as `force` is.
    #[schema(nullable = false)]
    upsert: Option<bool>,
}

/// An accepted file.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadAccepted {
    /// The id of the task.
    #[schema(value_type = Id)]
    task_id: TaskId,
    /// pending; or the current status, if an earlier request with the same Idempotency-Key created the task
    #[schema(value_type = TaskStatusName)]
    status: &'static str,
    /// The path of the stored file, relative to the upload folder; empty if it could not be stored.
    saved_path: String,
}

impl From<&Task> for UploadAccepted {
    fn from(task: &Task) -> Self {
        let path = task.input.original.as_ref().map(|original| original.path.clone());
        Self { task_id: task.task_id, status: task.status.name(), saved_path: path.unwrap_or_default() }
    }
}

use std::{collections::BTreeMap, fmt::Debug};

use crate::{CheckedFile, Result};

/// The metadata key of a document that holds the digest of its file's bytes, in lower-case hexadecimal digits.
pub const FILE_SHA256: &str = "file_sha256";

/// The port to a service, limited to one space and to the documents that this account created there.
///
/// Calls block and may come from several threads. An implementation repeats calls that fail for a moment; if it returns
/// [`Unavailable`](crate::ErrorKind::Unavailable), the run stops.
pub trait Remote: Debug + Send + Sync {
    /// Passes all live documents whose source begins with `prefix` to `page`, page by page.
    ///
    /// Documents that other accounts created must not be among them, because they would be changed and deleted.
    fn list(&self, prefix: &str, page: &mut dyn FnMut(Vec<RemoteDocument>)) -> Result<()>;

    /// Submits a file. It replaces the live document of the same source under its id, if there is one.
    ///
    /// `Refused` if the service does not accept this file.
    fn upload(&self, upload: &Upload<'_>) -> Result<TaskId>;

    /// The state of an upload's task. `NotFound` if the service does not remember it any more.
    fn task(&self, id: &TaskId) -> Result<TaskState>;

    /// Changes the record of a document in one step, without reading its file again.
    fn rename(&self, doc_id: &str, rename: &Rename<'_>) -> Result<()>;

    /// Deletes a document.
    fn delete(&self, doc_id: &str) -> Result<()>;

    /// The number of this account's tasks that have not ended; a run waits for them if one before it was interrupted.
    fn unfinished_tasks(&self) -> Result<usize>;
}

/// A document that the service holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteDocument {
    /// Its id.
    pub doc_id: String,
    /// Its source.
    pub source: String,
    /// Its title.
    pub title: String,
    /// The value of its metadata key [`FILE_SHA256`].
    pub file_sha256: Option<String>,
    /// When its live revision was published, in milliseconds since 1970; only the order counts.
    pub updated_at: i64,
}

/// What changes in a document whose file has another path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rename<'a> {
    /// The new source.
    pub source: &'a str,
    /// The new title, if it changes.
    pub title: Option<&'a str>,
    /// Whether the metadata key [`FILE_SHA256`] is removed, so that the file is sent again.
    pub removes_digest: bool,
}

/// A file to submit.
#[derive(Debug)]
pub struct Upload<'a> {
    /// The source of the document.
    pub source: &'a str,
    /// The name of the file without its folders.
    pub file_name: &'a str,
    /// The metadata of the document.
    pub metadata: BTreeMap<String, String>,
    /// The content. It may be opened several times.
    pub file: &'a CheckedFile,
}

/// The id of a task of the service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskId(pub String);

/// What became of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskState {
    /// It has not ended.
    Unfinished,
    /// The document is visible.
    Done,
    /// It failed because of the file, for this reason. The same bytes are not sent again.
    Refused(String),
    /// It failed for another reason, or was cancelled. The file is sent again.
    Failed(String),
}

use serde::Serialize;

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Files that have a document now and had none before.
    pub new: usize,
    /// Files whose document was replaced.
    pub changed: usize,
    /// Documents that followed their file.
    pub moved: usize,
    /// Documents that were deleted.
    pub deleted: usize,
    /// Documents that have no file and were kept: because nothing may be deleted, because their files vanished during the
    /// run, or because they could not be moved and their files could not be sent either.
    pub kept: usize,
    /// Files whose document was right before the run.
    pub unchanged: usize,
    /// Files that were not synchronised, sorted by path.
    pub issues: Vec<Issue>,
}

impl Report {
    /// The number of issues of a kind.
    #[must_use]
    pub fn count(&self, kind: IssueKind) -> usize {
        self.issues.iter().filter(|issue| issue.kind == kind).count()
    }
}

/// A file or folder that is not synchronised, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Issue {
    /// The path in the folder; empty for the folder itself. Bytes that are not UTF-8 are replaced.
    pub path: String,
    /// What the reason is about.
    pub kind: IssueKind,
    /// The reason for people.
    pub reason: String,
}

impl Issue {
    pub(crate) fn new(path: impl Into<String>, kind: IssueKind, reason: impl Into<String>) -> Self {
        Self { path: path.into(), kind, reason: reason.into() }
    }
}

/// Why a file or folder is not synchronised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IssueKind {
    /// The service refused the file.
    Refused,
    /// The file could not be sent, or changed each time it was.
    Failed,
    /// The file or folder cannot be read. Documents of files below it are kept.
    Unreadable,
    /// The file has more bytes than are allowed. Its document of an earlier time is kept.
    TooLarge,
    /// The name is not UTF-8.
    NotUtf8,
    /// The path is longer than a source may be.
    PathTooLong,
    /// A line of an ignore file is not valid; the other lines apply.
    IgnoreFile,
}

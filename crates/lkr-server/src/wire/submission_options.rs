/// How the client wants a document to be ingested.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SubmissionOptions {
    /// Ingest it even if it is a duplicate.
    pub(crate) force: bool,
    /// Replace the live document with the same source.
    pub(crate) upsert: bool,
    /// The space of a new document; the default space if it is absent.
    pub(crate) space: Option<String>,
}

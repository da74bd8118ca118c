/// How the client wants a document to be ingested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SubmissionOptions {
    /// Ingest it even if it is a duplicate.
    pub(crate) force: bool,
    /// Replace the live document with the same source.
    pub(crate) upsert: bool,
}

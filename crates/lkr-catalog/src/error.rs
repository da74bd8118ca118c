use std::error::Error as StdError;

use lkr_domain::DocId;
use lkr_state::{ConflictError, contention_reason};

/// The result of a call to the catalog.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The state changed meanwhile: the step was not done.
    Conflict,
    /// The records changed during every attempt; the same call may succeed later. The store works.
    Contention,
    /// The records do not allow it, whatever else changes meanwhile.
    Refused,
    /// A store is away or full; the same call may succeed later.
    Unavailable,
    /// What is stored cannot be read.
    Corrupt,
    /// Anything else.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure of the catalog: its kind, the operation, and the source.
    retryable: ErrorKind::Contention | ErrorKind::Unavailable
}

impl Error {
    pub(crate) fn corrupt(operation: &'static str, source: impl StdError + Send + Sync + 'static) -> Self {
        Self::new(ErrorKind::Corrupt, operation, source)
    }

    /// A blob store that could not read or write.
    pub(crate) fn blob(operation: &'static str, source: impl StdError + Send + Sync + 'static) -> Self {
        Self::new(ErrorKind::Unavailable, operation, source)
    }

    /// A point that the record of `doc_id` counts on and the store does not have.
    pub(crate) fn missing_point(operation: &'static str, doc_id: DocId) -> Self {
        Self::new(ErrorKind::Corrupt, operation, format!("document {doc_id} lacks a point"))
    }
}

impl ConflictError for Error {
    fn is_conflict(&self) -> bool {
        self.kind() == ErrorKind::Conflict
    }

    fn contention(operation: &'static str, attempts: u32) -> Self {
        Self::new(ErrorKind::Contention, operation, contention_reason(attempts))
    }
}

impl From<lkr_state::Error> for Error {
    fn from(error: lkr_state::Error) -> Self {
        let kind = match error.kind() {
            lkr_state::ErrorKind::Conflict => ErrorKind::Conflict,
            lkr_state::ErrorKind::Contention => ErrorKind::Contention,
            _ if error.is_retryable() => ErrorKind::Unavailable,
            lkr_state::ErrorKind::Corrupt => ErrorKind::Corrupt,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, "state store", error)
    }
}

impl From<lkr_vectors::Error> for Error {
    fn from(error: lkr_vectors::Error) -> Self {
        let kind = match error.kind() {
            _ if error.is_retryable() => ErrorKind::Unavailable,
            lkr_vectors::ErrorKind::Corrupt => ErrorKind::Corrupt,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, "vector store", error)
    }
}

impl From<object_store::Error> for Error {
    fn from(error: object_store::Error) -> Self {
        let kind = match error {
            object_store::Error::NotFound { .. } => ErrorKind::Corrupt,
            object_store::Error::NotSupported { .. } | object_store::Error::NotImplemented { .. } => {
                ErrorKind::Internal
            }
            _ => ErrorKind::Unavailable,
        };
        Self::new(kind, "blob store", error)
    }
}

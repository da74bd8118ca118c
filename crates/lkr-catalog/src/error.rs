use std::{error::Error as StdError, fmt};

use lkr_domain::DocId;

/// The result of a call to the catalog.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The state changed meanwhile: the step was not done.
    Conflict,
    /// A store is away or full; the same call may succeed later.
    Unavailable,
    /// What is stored cannot be read.
    Corrupt,
    /// Anything else.
    Internal,
}

/// A failure of the catalog: its kind, the operation, and the source.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    operation: &'static str,
    source: Box<dyn StdError + Send + Sync>,
}

impl Error {
    /// An error of `kind` in `operation`, caused by `source`.
    pub fn new(
        kind: ErrorKind,
        operation: &'static str,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self { kind, operation, source: source.into() }
    }

    pub(crate) fn corrupt(operation: &'static str, source: impl StdError + Send + Sync + 'static) -> Self {
        Self::new(ErrorKind::Corrupt, operation, source)
    }

    /// A point that the record of `doc_id` counts on and the store does not have.
    pub(crate) fn missing_point(operation: &'static str, doc_id: DocId) -> Self {
        Self::new(ErrorKind::Corrupt, operation, format!("document {doc_id} lacks a point"))
    }

    /// The kind of failure.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The operation that failed.
    #[must_use]
    pub const fn operation(&self) -> &'static str {
        self.operation
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.source)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self.source.as_ref())
    }
}

impl From<lkr_state::Error> for Error {
    fn from(error: lkr_state::Error) -> Self {
        let kind = match error.kind() {
            lkr_state::ErrorKind::Conflict => ErrorKind::Conflict,
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

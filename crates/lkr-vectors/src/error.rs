use std::{error::Error as StdError, fmt, io};

/// The result of a call to a vector store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The collection or alias does not exist.
    NotFound,
    /// The collection exists with another specification.
    Conflict,
    /// The request is wrong: dimensions, a non-finite number, a cursor that is none.
    Invalid,
    /// The store is away, busy or full; the same call may succeed later.
    Unavailable,
    /// What is stored is damaged.
    Corrupt,
    /// Anything else.
    Internal,
}

/// A failure of a vector store: its kind, the operation, and the source.
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

    /// The error of a copy that could not be written.
    pub(crate) fn io(operation: &'static str, error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::AlreadyExists => ErrorKind::Invalid,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Unavailable,
            io::ErrorKind::InvalidData => ErrorKind::Corrupt,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, operation, error)
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

use std::{error::Error as StdError, fmt};

/// The result of a search.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong; the message says what of it.
    Invalid,
    /// As many searches as are allowed at once are running; the same call may succeed later.
    Overloaded,
    /// A store is away or busy; the same call may succeed later.
    Unavailable,
    /// What is stored cannot be read.
    Corrupt,
    /// Anything else.
    Internal,
}

/// A failure of a search: its kind, the operation, and the source.
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

    pub(crate) fn invalid(reason: String) -> Self {
        Self::new(ErrorKind::Invalid, "search request", reason)
    }

    pub(crate) fn overloaded(limit: usize) -> Self {
        Self::new(ErrorKind::Overloaded, "search", format!("{limit} searches are running already"))
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
        matches!(self.kind, ErrorKind::Overloaded | ErrorKind::Unavailable)
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

impl From<lkr_catalog::Error> for Error {
    fn from(error: lkr_catalog::Error) -> Self {
        let kind = match error.kind() {
            _ if error.is_retryable() => ErrorKind::Unavailable,
            lkr_catalog::ErrorKind::Corrupt => ErrorKind::Corrupt,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, "catalog", error)
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

impl From<tokio::task::JoinError> for Error {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::new(ErrorKind::Internal, "assemble results", error)
    }
}

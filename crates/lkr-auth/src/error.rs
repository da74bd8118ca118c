use std::{error::Error as StdError, fmt};

/// The result of a call to this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong: a username or password that none can be.
    Invalid,
    /// The credential is missing, malformed, unknown or expired, or the account is disabled.
    Unauthenticated,
    /// The account changed meanwhile.
    Conflict,
    /// The store is away or busy; the same call may succeed later.
    Unavailable,
    /// Anything else.
    Internal,
}

/// A failure: its kind, the operation, and the source.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    operation: &'static str,
    source: Box<dyn StdError + Send + Sync>,
}

impl Error {
    pub(crate) fn new(
        kind: ErrorKind,
        operation: &'static str,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self { kind, operation, source: source.into() }
    }

    pub(crate) fn invalid(operation: &'static str, reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, operation, reason.into())
    }

    pub(crate) fn unauthenticated(reason: &'static str) -> Self {
        Self::new(ErrorKind::Unauthenticated, "authentication", reason)
    }

    pub(crate) fn internal(
        operation: &'static str,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self::new(ErrorKind::Internal, operation, source)
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
        matches!(self.kind, ErrorKind::Unavailable | ErrorKind::Conflict)
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
            _ => ErrorKind::Internal,
        };
        Self::new(kind, "account store", error)
    }
}

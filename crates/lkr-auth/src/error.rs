use std::error::Error as StdError;

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

lkr_domain::declare_error! {
    /// A failure: its kind, the operation, and the source.
    retryable: ErrorKind::Unavailable | ErrorKind::Conflict
}

impl Error {
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

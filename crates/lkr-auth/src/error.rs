use std::{error::Error as StdError, time::Duration};

/// The result of a call to this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong: a username, password or name of a key that none can be.
    Invalid,
    /// The credential is missing, malformed, unknown or expired, or the account is disabled.
    Unauthenticated,
    /// Who asks may not do this, or nobody may: the last admin would be lost.
    Forbidden,
    /// There is no such account or key.
    NotFound,
    /// There is an account of this name.
    Taken,
    /// The account has as many keys as it may have.
    TooMany,
    /// Too many passwords were wrong.
    RateLimited {
        /// When the next one is looked at: after this long, at least a second.
        retry_after: Duration,
    },
    /// Too many passwords wait to be hashed; the same call may succeed later.
    Overloaded,
    /// The account changed meanwhile.
    Conflict,
    /// The store is away or busy; the same call may succeed later.
    Unavailable,
    /// Anything else.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure: its kind, the operation, and the source.
    retryable: ErrorKind::Unavailable
        | ErrorKind::Conflict
        | ErrorKind::Overloaded
        | ErrorKind::RateLimited { .. }
}

impl Error {
    pub(crate) fn invalid(operation: &'static str, reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, operation, reason.into())
    }

    pub(crate) fn unauthenticated(reason: &'static str) -> Self {
        Self::new(ErrorKind::Unauthenticated, "authentication", reason)
    }

    pub(crate) fn forbidden(reason: &'static str) -> Self {
        Self::new(ErrorKind::Forbidden, "account management", reason)
    }

    pub(crate) fn no_account() -> Self {
        Self::new(ErrorKind::NotFound, "account", "there is no account of this name")
    }

    pub(crate) fn taken() -> Self {
        Self::new(ErrorKind::Taken, "username", "there is an account of this name")
    }

    pub(crate) fn keeps_changing(operation: &'static str) -> Self {
        Self::new(ErrorKind::Conflict, operation, "the account keeps changing")
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

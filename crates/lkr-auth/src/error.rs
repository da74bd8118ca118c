use std::{error::Error as StdError, time::Duration};

use lkr_state::{ConflictError, contention_reason};

/// The result of a call to this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong: a username, a password or the name of a key is not allowed.
    Invalid,
    /// The credential is missing, malformed, unknown or expired, or the account is disabled.
    Unauthenticated,
    /// The actor lacks the rights, or nobody has them: the last admin cannot be removed.
    Forbidden,
    /// The account or key does not exist.
    NotFound,
    /// The username exists already.
    Taken,
    /// The account has the maximum number of keys.
    TooMany,
    /// Too many logins failed.
    RateLimited {
        /// The wait before the next login is accepted, at least a second.
        retry_after: Duration,
    },
    /// Too many passwords wait to be hashed; the same call may succeed later.
    Overloaded,
    /// The account was changed by someone else.
    Conflict,
    /// The records changed during every attempt; the same call may succeed later. The store works.
    Contention,
    /// The store is unavailable or busy; the same call may succeed later.
    Unavailable,
    /// Any other failure.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure: its kind, the operation, and the source.
    retryable: ErrorKind::Unavailable
        | ErrorKind::Conflict
        | ErrorKind::Contention
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
        Self::new(ErrorKind::NotFound, "account", "no account has this name")
    }

    pub(crate) fn taken() -> Self {
        Self::new(ErrorKind::Taken, "username", "an account has this name already")
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
            lkr_state::ErrorKind::Contention => ErrorKind::Contention,
            _ if error.is_retryable() => ErrorKind::Unavailable,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, "account store", error)
    }
}

impl ConflictError for Error {
    /// Whether a write of the store met a conflict. Other errors of kind `Conflict` cannot be repeated.
    fn is_conflict(&self) -> bool {
        let source = self.source().and_then(|source| source.downcast_ref::<lkr_state::Error>());
        source.is_some_and(ConflictError::is_conflict)
    }

    fn contention(operation: &'static str, attempts: u32) -> Self {
        Self::new(ErrorKind::Contention, operation, contention_reason(attempts))
    }
}

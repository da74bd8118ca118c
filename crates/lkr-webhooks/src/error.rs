use std::error::Error as StdError;

use lkr_state::{ConflictError, contention_reason};

/// The result of a call to this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong: an address that must not be called, a secret that is not allowed, or no events.
    Invalid,
    /// No webhook has this id.
    NotFound,
    /// There are [`MAX_WEBHOOKS`](crate::MAX_WEBHOOKS) webhooks already.
    TooMany,
    /// The store is unavailable or busy; the same call may succeed later.
    Unavailable,
    /// A stored record cannot be read.
    Corrupt,
    /// A record was changed by someone else; the step was not applied.
    Conflict,
    /// The records changed during every attempt; the same call may succeed later. The store works.
    Contention,
    /// Any other failure.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure: its kind, the operation, and the source. No message contains a secret.
    retryable: ErrorKind::Unavailable | ErrorKind::Contention
}

impl Error {
    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, "webhook", reason.into())
    }

    /// A record that cannot be decoded. The cause is left out, because it may quote the record.
    pub(crate) fn damaged() -> Self {
        Self::new(ErrorKind::Corrupt, "read webhook record", "the record is damaged")
    }
}

impl From<lkr_sealing::Error> for Error {
    fn from(error: lkr_sealing::Error) -> Self {
        Self::new(ErrorKind::Internal, "seal webhook secret", error)
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
        Self::new(kind, "webhook store", error)
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

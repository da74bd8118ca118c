use std::error::Error as StdError;

use lkr_domain::SpaceName;
use lkr_state::{ConflictError, contention_reason};

/// The result of a call to this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong: a title, a description or a combination of policies is not allowed, or a member is unknown.
    Invalid,
    /// The space or group does not exist.
    NotFound,
    /// A space has or had the name, or a group has it.
    Taken,
    /// The space does not allow the change: it is the default space, or it is being deleted.
    Conflict,
    /// The records changed during every attempt; the same call may succeed later. The store works.
    Contention,
    /// The store is unavailable or busy; the same call may succeed later.
    Unavailable,
    /// A stored record cannot be read.
    Corrupt,
    /// Any other failure.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure: its kind, the operation, and the source.
    retryable: ErrorKind::Unavailable | ErrorKind::Contention
}

impl Error {
    pub(crate) fn invalid(operation: &'static str, reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, operation, reason.into())
    }

    pub(crate) fn no_space(name: &SpaceName) -> Self {
        Self::new(ErrorKind::NotFound, "space", format!("no space has the name {:?}", name.as_str()))
    }

    pub(crate) fn no_group(name: &str) -> Self {
        Self::new(ErrorKind::NotFound, "group", format!("no group has the name {name:?}"))
    }

    pub(crate) fn conflict(operation: &'static str, reason: &'static str) -> Self {
        Self::new(ErrorKind::Conflict, operation, reason)
    }

    pub(crate) fn taken(operation: &'static str, reason: String) -> Self {
        Self::new(ErrorKind::Taken, operation, reason)
    }

    pub(crate) fn corrupt(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Corrupt, "read space record", source)
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
            lkr_state::ErrorKind::Corrupt => ErrorKind::Corrupt,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, "space store", error)
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

//! The error of a tool, as the client reads it.

/// The result of a call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument is invalid.
    Invalid,
    /// What was asked for does not exist, or the caller may not read it.
    NotFound,
    /// The caller lacks the permission, or the state does not allow it.
    Refused,
    /// There is too much work, or a store or model is unavailable; try again later.
    Unavailable,
    /// Any other error.
    Internal,
}

lkr_domain::declare_error! {
    /// An error: its kind, the operation that failed, and the source. Clients are shown the reason, so it names no path.
    retryable: ErrorKind::Unavailable
}

impl Error {
    pub(crate) fn invalid(operation: &'static str, reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, operation, reason.into())
    }

    pub(crate) fn not_found(operation: &'static str, reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, operation, reason.into())
    }
}

impl From<lkr::Error> for Error {
    fn from(error: lkr::Error) -> Self {
        let kind = match error.kind() {
            lkr::ErrorKind::Invalid => ErrorKind::Invalid,
            lkr::ErrorKind::NotFound => ErrorKind::NotFound,
            lkr::ErrorKind::Conflict => ErrorKind::Refused,
            lkr::ErrorKind::Overloaded | lkr::ErrorKind::Unavailable => ErrorKind::Unavailable,
            _ => ErrorKind::Internal,
        };
        match kind {
            ErrorKind::Unavailable | ErrorKind::Internal => {
                // Its message may name paths and addresses.
                tracing::error!(%error, "a tool failed");
                Self::new(kind, error.operation(), "the knowledge base is unavailable; see its log")
            }
            _ => Self::new(kind, error.operation(), error.reason()),
        }
    }
}

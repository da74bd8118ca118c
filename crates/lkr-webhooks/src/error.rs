/// The result of a call to this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong: an address that may not be called, a secret that cannot be one, no events.
    Invalid,
    /// There is no such webhook.
    NotFound,
    /// There are as many as there may be.
    TooMany,
    /// The store is away or busy; the same call may succeed later.
    Unavailable,
    /// What is stored cannot be read.
    Corrupt,
    /// The state changed meanwhile: the step was not done.
    Conflict,
    /// Anything else.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure: its kind, the operation, and the source. No message holds a secret.
    retryable: ErrorKind::Unavailable
}

impl Error {
    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, "webhook", reason.into())
    }

    /// A record that cannot be read. What is wrong with it is left out: that may quote it.
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
            _ if error.is_retryable() => ErrorKind::Unavailable,
            lkr_state::ErrorKind::Corrupt => ErrorKind::Corrupt,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, "webhook store", error)
    }
}

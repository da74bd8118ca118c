use std::error::Error as StdError;

/// The result of a call to this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The address is invalid or forbidden; nothing was sent.
    Refused,
    /// The request cannot be sent, or the certificates cannot be read.
    Invalid,
    /// The host is unknown or does not accept connections.
    Unreachable,
    /// A time limit was exceeded.
    TimedOut,
    /// The response exceeds the size limit.
    TooLarge,
    /// The response was cut off or is not valid HTTP.
    Broken,
}

lkr_domain::declare_error! {
    /// A failure: its kind, the operation, and the source. No message repeats parts of an address that may be secret.
    retryable: ErrorKind::Unreachable | ErrorKind::TimedOut | ErrorKind::Broken
}

impl Error {
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Refused, "outgoing address", reason.into())
    }

    pub(crate) fn unreachable(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Unreachable, "connect", source)
    }

    pub(crate) fn timed_out(operation: &'static str) -> Self {
        Self::new(ErrorKind::TimedOut, operation, "it took too long")
    }
}

impl From<hyper::Error> for Error {
    fn from(error: hyper::Error) -> Self {
        let kind = if error.is_user() { ErrorKind::Invalid } else { ErrorKind::Broken };
        Self::new(kind, "outgoing request", error)
    }
}

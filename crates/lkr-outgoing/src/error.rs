use std::error::Error as StdError;

/// The result of a call to this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The address is none, or may not be called; nothing was sent.
    Refused,
    /// The request cannot be sent as it is, or the certificates cannot be read.
    Invalid,
    /// The host is not known, or nobody answers there.
    Unreachable,
    /// It took too long.
    TimedOut,
    /// The answer is larger than the caller takes.
    TooLarge,
    /// The answer broke off, or is none of HTTP.
    Broken,
}

lkr_domain::declare_error! {
    /// A failure: its kind, the operation, and the source. No message repeats what may be secret in an address.
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

/// The result of a call to this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is not a taxonomy. The source names the line, where it was loaded from a path that too.
    Invalid,
    /// The file cannot be read.
    Unreadable,
    /// The model did not answer now; it may later.
    ModelAway,
    /// Anything else.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure: its kind, the operation, and the source.
    retryable: ErrorKind::ModelAway
}

impl From<lkr_models::Error> for Error {
    fn from(error: lkr_models::Error) -> Self {
        let kind = if error.is_retryable() { ErrorKind::ModelAway } else { ErrorKind::Internal };
        Self::new(kind, "classify", error)
    }
}

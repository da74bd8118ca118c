/// The result of a call to this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is not a valid taxonomy. The source names the line, and the path if the file was loaded from one.
    Invalid,
    /// The file cannot be read.
    Unreadable,
    /// The model is unavailable for now; a retry may succeed.
    ModelUnavailable,
    /// Any other failure.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure: its kind, the operation, and the source.
    retryable: ErrorKind::ModelUnavailable
}

impl From<lkr_models::Error> for Error {
    fn from(error: lkr_models::Error) -> Self {
        let kind = if error.is_retryable() { ErrorKind::ModelUnavailable } else { ErrorKind::Internal };
        Self::new(kind, "classify", error)
    }
}

use lkr_parsers::ErrorKind as Parsing;
use serde::{Deserialize, Serialize};

/// The result of an extraction.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is not what its name says, or is broken beyond use.
    Input,
    /// The file is encrypted, and its password is not known.
    Encrypted,
    /// The file needs more memory, time or room than it may have.
    Limit,
    /// The parser crashed on it.
    Crash,
    /// Too many files are waiting already.
    Overloaded,
    /// The extraction failed for another reason than the file.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure to extract the text of a file: its kind, the operation, and the source.
    retryable: ErrorKind::Overloaded
}

impl ErrorKind {
    /// Whether another file in its place would have been read.
    #[must_use]
    pub const fn is_about_the_file(self) -> bool {
        matches!(self, Self::Input | Self::Encrypted | Self::Limit | Self::Crash)
    }
}

impl From<lkr_parsers::Error> for Error {
    fn from(error: lkr_parsers::Error) -> Self {
        let kind = match error.kind() {
            Parsing::Input => ErrorKind::Input,
            Parsing::Encrypted => ErrorKind::Encrypted,
            Parsing::Limit => ErrorKind::Limit,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, error.operation(), error.reason())
    }
}

impl From<tokio::task::JoinError> for Error {
    fn from(error: tokio::task::JoinError) -> Self {
        let kind = if error.is_panic() { ErrorKind::Crash } else { ErrorKind::Internal };
        let reason = if error.is_panic() { "the parser failed on it" } else { "it was cut off" };
        Self::new(kind, OPERATION, reason)
    }
}

/// What failed, where nothing closer can be said.
pub(crate) const OPERATION: &str = "read the file";

/// An error that is not about the file.
pub(crate) fn internal(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::Internal, OPERATION, error)
}

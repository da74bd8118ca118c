use lkr_parsers::ErrorKind as ParserErrorKind;
use serde::{Deserialize, Serialize};

/// The result of an extraction.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is not of the format that its name says, or of one that is not supported.
    Input,
    /// The file is damaged or incomplete.
    Damaged,
    /// The file is encrypted with an unknown password.
    Encrypted,
    /// The text of the file is in pictures, which were not read.
    Pictures,
    /// The file exceeds a limit of memory, time or output.
    Limit,
    /// The file contains more text than is extracted.
    TooMuchText,
    /// The parser crashed on the file.
    Crash,
    /// Too many files are waiting already.
    Overloaded,
    /// The extraction failed for a reason other than the file.
    Internal,
}

lkr_domain::declare_error! {
    /// An error of extracting text: its kind, the operation that failed, and the source.
    retryable: ErrorKind::Overloaded
}

impl ErrorKind {
    /// Whether the file is the reason of the error.
    #[must_use]
    pub const fn is_file_error(self) -> bool {
        matches!(
            self,
            Self::Input
                | Self::Damaged
                | Self::Encrypted
                | Self::Pictures
                | Self::Limit
                | Self::TooMuchText
                | Self::Crash
        )
    }
}

impl From<lkr_parsers::Error> for Error {
    fn from(error: lkr_parsers::Error) -> Self {
        let kind = match error.kind() {
            ParserErrorKind::Input => ErrorKind::Input,
            ParserErrorKind::Damaged => ErrorKind::Damaged,
            ParserErrorKind::Encrypted => ErrorKind::Encrypted,
            ParserErrorKind::Pictures => ErrorKind::Pictures,
            ParserErrorKind::Limit => ErrorKind::Limit,
            ParserErrorKind::TooMuchText => ErrorKind::TooMuchText,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, error.operation(), error.reason())
    }
}

impl From<tokio::task::JoinError> for Error {
    fn from(error: tokio::task::JoinError) -> Self {
        let kind = if error.is_panic() { ErrorKind::Crash } else { ErrorKind::Internal };
        let reason =
            if error.is_panic() { "the parser crashed on the file" } else { "the extraction was cancelled" };
        Self::new(kind, OPERATION, reason)
    }
}

/// The operation of errors that have no more specific one.
pub(crate) const OPERATION: &str = "extract text";

/// An error whose reason is not the file.
pub(crate) fn internal(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::Internal, OPERATION, error)
}

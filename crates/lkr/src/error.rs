use std::{error::Error as StdError, fmt};

/// The result of a call to a knowledge base.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input is wrong.
    Invalid,
    /// There is no such thing.
    NotFound,
    /// The state changed meanwhile, or the folder is in use.
    Conflict,
    /// There is too much to do; try again later.
    Overloaded,
    /// A store or model is away; try again later.
    Unavailable,
    /// Anything else.
    Internal,
}

/// A failure: its kind, the operation, and the source.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    operation: &'static str,
    source: Box<dyn StdError + Send + Sync>,
}

impl Error {
    /// An error of `kind` in `operation`, caused by `source`.
    pub fn new(
        kind: ErrorKind,
        operation: &'static str,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self { kind, operation, source: source.into() }
    }

    /// The kind of failure.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The operation that failed.
    #[must_use]
    pub const fn operation(&self) -> &'static str {
        self.operation
    }

    /// Why it failed, in one line.
    #[must_use]
    pub fn reason(&self) -> String {
        self.source.to_string()
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self.kind, ErrorKind::Overloaded | ErrorKind::Unavailable)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.source)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self.source.as_ref())
    }
}

/// Names the operation of the knowledge base in which a part of it failed.
pub(crate) trait During<T> {
    fn during(self, operation: &'static str) -> Result<T>;
}

impl<T, E: Into<Failed>> During<T> for std::result::Result<T, E> {
    fn during(self, operation: &'static str) -> Result<T> {
        self.map_err(|error| {
            let Failed { kind, source } = error.into();
            Error { kind, operation, source }
        })
    }
}

/// A part's failure on the way to an [`Error`].
pub(crate) struct Failed {
    kind: ErrorKind,
    source: Box<dyn StdError + Send + Sync>,
}

impl From<lkr_catalog::Error> for Failed {
    fn from(error: lkr_catalog::Error) -> Self {
        let kind = match error.kind() {
            lkr_catalog::ErrorKind::Conflict => ErrorKind::Conflict,
            lkr_catalog::ErrorKind::Unavailable => ErrorKind::Unavailable,
            _ => ErrorKind::Internal,
        };
        Self { kind, source: error.into() }
    }
}

impl From<lkr_ingest::Error> for Failed {
    fn from(error: lkr_ingest::Error) -> Self {
        let kind = match error.kind() {
            lkr_ingest::ErrorKind::Invalid => ErrorKind::Invalid,
            lkr_ingest::ErrorKind::Overtaken => ErrorKind::Conflict,
            lkr_ingest::ErrorKind::Overloaded => ErrorKind::Overloaded,
            lkr_ingest::ErrorKind::StoreAway | lkr_ingest::ErrorKind::ModelAway => ErrorKind::Unavailable,
            _ => ErrorKind::Internal,
        };
        Self { kind, source: error.into() }
    }
}

impl From<lkr_retrieval::Error> for Failed {
    fn from(error: lkr_retrieval::Error) -> Self {
        let kind = match error.kind() {
            lkr_retrieval::ErrorKind::Invalid => ErrorKind::Invalid,
            lkr_retrieval::ErrorKind::Overloaded => ErrorKind::Overloaded,
            lkr_retrieval::ErrorKind::Unavailable => ErrorKind::Unavailable,
            _ => ErrorKind::Internal,
        };
        Self { kind, source: error.into() }
    }
}

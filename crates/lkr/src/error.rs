use std::error::Error as StdError;

/// The result of a call to a knowledge base.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input is invalid.
    Invalid,
    /// The requested item does not exist.
    NotFound,
    /// The state changed concurrently, or the folder is in use.
    Conflict,
    /// Too much work is in progress; try again later.
    Overloaded,
    /// A store or model is unavailable; try again later.
    Unavailable,
    /// Any other error.
    Internal,
}

lkr_domain::declare_error! {
    /// An error: its kind, the operation that failed, and the source.
    retryable: ErrorKind::Overloaded | ErrorKind::Unavailable
}

/// Converts the error of a crate below to an [`Error`] of the named operation.
pub(crate) trait During<T> {
    fn during(self, operation: &'static str) -> Result<T>;
}

impl<T, E: Into<SourceError>> During<T> for std::result::Result<T, E> {
    fn during(self, operation: &'static str) -> Result<T> {
        self.map_err(|error| {
            let SourceError { kind, source } = error.into();
            Error { kind, operation, source }
        })
    }
}

/// Refuses a page of no items: who reads page after page would never come to the end.
pub(crate) fn check_limit(limit: usize, operation: &'static str) -> Result<()> {
    match limit {
        0 => Err(Error::new(ErrorKind::Invalid, operation, "limit is 0, at least 1 is required")),
        _ => Ok(()),
    }
}

/// The kind and the source of an [`Error`] whose operation is not known yet.
pub(crate) struct SourceError {
    kind: ErrorKind,
    source: Box<dyn StdError + Send + Sync>,
}

impl From<lkr_catalog::Error> for SourceError {
    fn from(error: lkr_catalog::Error) -> Self {
        let kind = match error.kind() {
            lkr_catalog::ErrorKind::Conflict | lkr_catalog::ErrorKind::Refused => ErrorKind::Conflict,
            lkr_catalog::ErrorKind::Contention => ErrorKind::Overloaded,
            lkr_catalog::ErrorKind::Unavailable => ErrorKind::Unavailable,
            _ => ErrorKind::Internal,
        };
        Self { kind, source: error.into() }
    }
}

impl From<lkr_ingest::Error> for SourceError {
    fn from(error: lkr_ingest::Error) -> Self {
        let kind = match error.kind() {
            lkr_ingest::ErrorKind::Invalid => ErrorKind::Invalid,
            lkr_ingest::ErrorKind::Conflict
            | lkr_ingest::ErrorKind::Superseded
            | lkr_ingest::ErrorKind::Refused => ErrorKind::Conflict,
            lkr_ingest::ErrorKind::Overloaded | lkr_ingest::ErrorKind::Contention => ErrorKind::Overloaded,
            lkr_ingest::ErrorKind::StoreUnavailable | lkr_ingest::ErrorKind::ModelUnavailable => {
                ErrorKind::Unavailable
            }
            _ => ErrorKind::Internal,
        };
        Self { kind, source: error.into() }
    }
}

impl From<lkr_retrieval::Error> for SourceError {
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

impl From<lkr_spaces::Error> for SourceError {
    fn from(error: lkr_spaces::Error) -> Self {
        let kind = match error.kind() {
            lkr_spaces::ErrorKind::Invalid => ErrorKind::Invalid,
            lkr_spaces::ErrorKind::NotFound => ErrorKind::NotFound,
            lkr_spaces::ErrorKind::Taken | lkr_spaces::ErrorKind::Conflict => ErrorKind::Conflict,
            lkr_spaces::ErrorKind::Contention => ErrorKind::Overloaded,
            lkr_spaces::ErrorKind::Unavailable => ErrorKind::Unavailable,
            _ => ErrorKind::Internal,
        };
        Self { kind, source: error.into() }
    }
}

impl From<lkr_state::Error> for SourceError {
    fn from(error: lkr_state::Error) -> Self {
        let kind = match error.kind() {
            lkr_state::ErrorKind::Contention => ErrorKind::Overloaded,
            _ if error.is_retryable() => ErrorKind::Unavailable,
            _ => ErrorKind::Internal,
        };
        Self { kind, source: error.into() }
    }
}

#[cfg(feature = "lmdb")]
impl From<lkr_archive::Error> for SourceError {
    fn from(error: lkr_archive::Error) -> Self {
        let kind = match error.kind() {
            lkr_archive::ErrorKind::Io => ErrorKind::Unavailable,
            _ => ErrorKind::Invalid,
        };
        Self { kind, source: error.into() }
    }
}

#[cfg(feature = "files")]
impl From<lkr_sandbox::Error> for SourceError {
    fn from(error: lkr_sandbox::Error) -> Self {
        let kind = match error.kind() {
            lkr_sandbox::ErrorKind::Overloaded => ErrorKind::Overloaded,
            kind if kind.is_file_error() => ErrorKind::Invalid,
            _ => ErrorKind::Internal,
        };
        let reason = error.reason();
        Self { kind, source: crate::files::FileError { kind: error.kind(), reason }.into() }
    }
}

use std::error::Error as StdError;

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

lkr_domain::declare_error! {
    /// A failure: its kind, the operation, and the source.
    retryable: ErrorKind::Overloaded | ErrorKind::Unavailable
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
            lkr_catalog::ErrorKind::Conflict | lkr_catalog::ErrorKind::Refused => ErrorKind::Conflict,
            lkr_catalog::ErrorKind::Contention => ErrorKind::Overloaded,
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
            lkr_ingest::ErrorKind::Overtaken | lkr_ingest::ErrorKind::Refused => ErrorKind::Conflict,
            lkr_ingest::ErrorKind::Overloaded | lkr_ingest::ErrorKind::Contention => ErrorKind::Overloaded,
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

impl From<lkr_state::Error> for Failed {
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
impl From<lkr_archive::Error> for Failed {
    fn from(error: lkr_archive::Error) -> Self {
        let kind = match error.kind() {
            lkr_archive::ErrorKind::Io => ErrorKind::Unavailable,
            _ => ErrorKind::Invalid,
        };
        Self { kind, source: error.into() }
    }
}

#[cfg(feature = "files")]
impl From<lkr_sandbox::Error> for Failed {
    fn from(error: lkr_sandbox::Error) -> Self {
        let kind = match error.kind() {
            lkr_sandbox::ErrorKind::Overloaded => ErrorKind::Overloaded,
            kind if kind.is_about_the_file() => ErrorKind::Invalid,
            _ => ErrorKind::Internal,
        };
        Self { kind, source: error.reason().into() }
    }
}

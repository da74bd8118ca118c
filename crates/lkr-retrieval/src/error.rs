/// The result of a search.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong; the message says what of it.
    Invalid,
    /// As many searches as are allowed at once are running; the same call may succeed later.
    Overloaded,
    /// A store is away or busy; the same call may succeed later.
    Unavailable,
    /// What is stored cannot be read.
    Corrupt,
    /// Anything else.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure of a search: its kind, the operation, and the source.
    retryable: ErrorKind::Overloaded | ErrorKind::Unavailable
}

impl Error {
    pub(crate) fn invalid(reason: String) -> Self {
        Self::new(ErrorKind::Invalid, "search request", reason)
    }

    pub(crate) fn overloaded(limit: usize) -> Self {
        Self::new(ErrorKind::Overloaded, "search", format!("{limit} searches are running already"))
    }
}

impl From<lkr_catalog::Error> for Error {
    fn from(error: lkr_catalog::Error) -> Self {
        let kind = match error.kind() {
            _ if error.is_retryable() => ErrorKind::Unavailable,
            lkr_catalog::ErrorKind::Corrupt => ErrorKind::Corrupt,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, "catalog", error)
    }
}

impl From<lkr_vectors::Error> for Error {
    fn from(error: lkr_vectors::Error) -> Self {
        let kind = match error.kind() {
            _ if error.is_retryable() => ErrorKind::Unavailable,
            lkr_vectors::ErrorKind::Corrupt => ErrorKind::Corrupt,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, "vector store", error)
    }
}

impl From<tokio::task::JoinError> for Error {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::new(ErrorKind::Internal, "assemble results", error)
    }
}

/// The result of a search.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is invalid; the message names the key and the bound.
    Invalid,
    /// The maximum number of searches is running, or of texts is being read for contexts; the same call may succeed later.
    Overloaded,
    /// A store is unavailable or busy; the same call may succeed later.
    Unavailable,
    /// A stored record or point cannot be decoded.
    Corrupt,
    /// Any other failure.
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
        let reason = format!("{limit} searches are running already, the maximum");
        Self::new(ErrorKind::Overloaded, "search", reason)
    }

    pub(crate) fn overloaded_by_texts(limit: usize) -> Self {
        let reason = format!("{limit} texts are read for contexts already, the maximum");
        Self::new(ErrorKind::Overloaded, "context", reason)
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
        Self::new(ErrorKind::Internal, "blocking search task", error)
    }
}

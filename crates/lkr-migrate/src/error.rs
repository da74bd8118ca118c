/// The result of a migration.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The target holds data that this migration did not write.
    NotEmpty,
    /// Another process uses the source or the target, or goes on with the same migration.
    InUse,
    /// The source changed while it was copied. Another run begins again.
    Changed,
    /// The target differs from the source.
    Different,
    /// The request is invalid, such as a part that only one side has.
    Invalid,
    /// A store is unreachable, busy or full, and stayed so; another run goes on where this one stopped.
    Unavailable,
    /// Stored data is damaged.
    Corrupt,
    /// Anything else.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure of a migration: its kind, the operation, and the source.
    retryable: ErrorKind::Unavailable
}

/// An error of a store, which becomes an [`Error`] when it is known what was done.
pub(crate) trait StoreError: std::error::Error + Send + Sync + 'static {
    fn kind(&self) -> ErrorKind;
}

impl StoreError for lkr_state::Error {
    fn kind(&self) -> ErrorKind {
        match lkr_state::Error::kind(self) {
            _ if self.is_retryable() => ErrorKind::Unavailable,
            lkr_state::ErrorKind::Conflict => ErrorKind::InUse,
            lkr_state::ErrorKind::Corrupt => ErrorKind::Corrupt,
            _ => ErrorKind::Internal,
        }
    }
}

impl StoreError for lkr_vectors::Error {
    fn kind(&self) -> ErrorKind {
        match lkr_vectors::Error::kind(self) {
            _ if self.is_retryable() => ErrorKind::Unavailable,
            lkr_vectors::ErrorKind::Corrupt => ErrorKind::Corrupt,
            _ => ErrorKind::Internal,
        }
    }
}

impl StoreError for lkr_catalog::Error {
    fn kind(&self) -> ErrorKind {
        match lkr_catalog::Error::kind(self) {
            _ if self.is_retryable() => ErrorKind::Unavailable,
            lkr_catalog::ErrorKind::Corrupt => ErrorKind::Corrupt,
            _ => ErrorKind::Internal,
        }
    }
}

impl StoreError for object_store::Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Generic { .. } | Self::JoinError { .. } => ErrorKind::Unavailable,
            Self::NotFound { .. } => ErrorKind::Corrupt,
            _ => ErrorKind::Internal,
        }
    }
}

impl StoreError for std::io::Error {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Unavailable
    }
}

impl Error {
    pub(crate) fn store(operation: &'static str, error: impl StoreError) -> Self {
        Self::new(error.kind(), operation, error)
    }
}

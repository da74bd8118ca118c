use std::io;

/// The result of a call to a vector store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The collection or alias does not exist.
    NotFound,
    /// The collection exists with another specification, or its name is taken by an alias.
    Conflict,
    /// The request is invalid: wrong dimensions, a number that is not finite, a malformed cursor.
    Invalid,
    /// The store is unreachable, busy or full; the same call may succeed later.
    Unavailable,
    /// Stored data is damaged.
    Corrupt,
    /// Anything else.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure of a vector store: its kind, the operation, and the source.
    retryable: ErrorKind::Unavailable
}

impl Error {
    /// Maps an I/O error of reading or writing a snapshot.
    pub(crate) fn io(operation: &'static str, error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::AlreadyExists => ErrorKind::Invalid,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Unavailable,
            io::ErrorKind::InvalidData => ErrorKind::Corrupt,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, operation, error)
    }
}

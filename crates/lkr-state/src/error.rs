use std::io;

/// The result of a call to a state store or task queue.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An expectation does not hold; nothing was written.
    Conflict,
    /// The records changed during every attempt of an operation. The store works; the same call may succeed later.
    Contention,
    /// Another worker holds the lease now, or the task has left the queue.
    LeaseLost,
    /// The request is invalid: an empty or too long key, a value that is too large.
    Invalid,
    /// The store is unreachable, busy or full; the same call may succeed later.
    Unavailable,
    /// Stored data is damaged.
    Corrupt,
    /// Anything else.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure of a state store or task queue: its kind, the operation, and the source.
    retryable: ErrorKind::Contention | ErrorKind::Unavailable
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

use std::io;

/// The result of a call to a state store or task queue.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The expected version is not the present one; nothing was written.
    Conflict,
    /// The records changed during every attempt of an operation; the same call may succeed later. The store works.
    Contention,
    /// The lease has passed to another worker, or the task has left the queue.
    LeaseLost,
    /// The request is wrong: an empty or too long key, a value that is too large.
    Invalid,
    /// The store is away, busy or full; the same call may succeed later.
    Unavailable,
    /// What is stored is damaged.
    Corrupt,
    /// Anything else.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure of a state store or task queue: its kind, the operation, and the source.
    retryable: ErrorKind::Contention | ErrorKind::Unavailable
}

impl Error {
    /// The error of a copy that could not be written.
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

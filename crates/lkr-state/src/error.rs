use std::{error::Error as StdError, fmt, io};

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

/// The source of an `Unavailable` error of a store that answers and has lost its records: the server was emptied, or another
/// one is at its address. Nothing is read or written until somebody has restored them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordsLost;

impl fmt::Display for RecordsLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the store was emptied or replaced since it was opened; its records have to be restored")
    }
}

impl StdError for RecordsLost {}

impl RecordsLost {
    /// Whether it caused `error`, directly or not.
    #[must_use]
    pub fn caused(error: &(dyn StdError + 'static)) -> bool {
        std::iter::successors(Some(error), |&error| error.source()).any(|error| error.is::<Self>())
    }
}

/// Whether `error` or one of its causes is a full disk or an exhausted quota. A retry does not help then.
#[must_use]
pub fn disk_is_full(error: &(dyn StdError + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source())
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| is_no_room(error.kind()))
}

const fn is_no_room(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl Error {
    /// The error of a store that has lost its records.
    #[must_use]
    pub fn records_lost(operation: &'static str) -> Self {
        Self::new(ErrorKind::Unavailable, operation, RecordsLost)
    }

    /// The error of reading or writing a file of records, such as a snapshot.
    #[must_use]
    pub fn io(operation: &'static str, error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::AlreadyExists => ErrorKind::Invalid,
            kind if is_no_room(kind) => ErrorKind::Unavailable,
            io::ErrorKind::InvalidData => ErrorKind::Corrupt,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, operation, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_records_are_found_behind_other_errors() {
        let lost = Error::records_lost("get");
        assert!(lost.is_retryable() && RecordsLost::caused(&lost));
        assert!(RecordsLost::caused(&Error::new(ErrorKind::Internal, "outer", lost)));
        assert!(!RecordsLost::caused(&Error::new(ErrorKind::Unavailable, "get", "connection refused")));
    }

    #[test]
    fn full_disk_is_found_behind_other_errors() {
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            let full = Error::io("write", kind.into());
            assert!(full.is_retryable() && disk_is_full(&full));
            assert!(disk_is_full(&Error::new(ErrorKind::Internal, "outer", full)));
        }
        assert!(!disk_is_full(&Error::io("write", io::ErrorKind::PermissionDenied.into())));
    }
}

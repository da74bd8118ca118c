use std::{error::Error as StdError, fmt, io};

/// The result of opening a store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kinds of errors when a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another process, or another store of this process, uses the folder.
    Locked,
    /// The folder was written in a format that this version of the crate does not read.
    OtherFormat,
    /// The folder contains no store, or a damaged one.
    Corrupt,
    /// The disk is full, or another resource is exhausted; opening may succeed later.
    Unavailable,
    /// The operating system reported an error.
    Io,
    /// Anything else.
    Internal,
}

lkr_domain::declare_error! {
    /// A failure to open a store: its kind, the operation, and the source.
    retryable: ErrorKind::Locked | ErrorKind::Unavailable
}

impl Error {
    pub(crate) fn io(operation: &'static str, source: io::Error) -> Self {
        Self::new(ErrorKind::Io, operation, source)
    }

    pub(crate) fn failure(operation: &'static str, failure: Failure) -> Self {
        let kind = match failure.kind {
            FailureKind::Corrupt => ErrorKind::Corrupt,
            FailureKind::Unavailable => ErrorKind::Unavailable,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, operation, failure.source)
    }

    /// An error of opening a store; for damage it names the command that lists it.
    pub(crate) fn on_open(failure: Failure) -> Self {
        match failure.kind {
            FailureKind::Corrupt => Self::corrupt_store(&failure),
            _ => Self::failure("open", failure),
        }
    }

    /// A damaged store, with the command that lists the damage.
    pub(crate) fn corrupt_store(reason: &dyn fmt::Display) -> Self {
        Self::new(ErrorKind::Corrupt, "open", format!("{reason}; run `lkr doctor` to list the damage"))
    }
}

/// The kinds of internal failures: those of the three ports together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    NotFound,
    Conflict,
    LeaseLost,
    Invalid,
    Unavailable,
    Corrupt,
    Internal,
}

/// An internal failure, before it is converted to the error of a port.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: FailureKind,
    source: Box<dyn StdError + Send + Sync>,
}

/// The result of internal operations.
pub(crate) type InternalResult<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(kind: FailureKind, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { kind, source: source.into() }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(FailureKind::NotFound, message.into())
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Conflict, message.into())
    }

    pub(crate) fn lease_lost(message: impl Into<String>) -> Self {
        Self::new(FailureKind::LeaseLost, message.into())
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Invalid, message.into())
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Unavailable, message.into())
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Corrupt, message.into())
    }

    pub(crate) fn internal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(FailureKind::Internal, source)
    }

    pub(crate) const fn kind(&self) -> FailureKind {
        self.kind
    }

    /// The same failure with another kind.
    pub(crate) fn into_kind(self, kind: FailureKind) -> Self {
        Self { kind, ..self }
    }

    /// Whether the failed job has written nothing: requests are validated before the first write.
    pub(crate) const fn is_refusal(&self) -> bool {
        matches!(
            self.kind,
            FailureKind::NotFound | FailureKind::Conflict | FailureKind::LeaseLost | FailureKind::Invalid
        )
    }

    pub(crate) fn into_vectors(self, operation: &'static str) -> lkr_vectors::Error {
        use lkr_vectors::ErrorKind as To;
        let kind = match self.kind {
            FailureKind::NotFound => To::NotFound,
            FailureKind::Conflict => To::Conflict,
            FailureKind::Invalid => To::Invalid,
            FailureKind::Unavailable => To::Unavailable,
            FailureKind::Corrupt => To::Corrupt,
            FailureKind::LeaseLost | FailureKind::Internal => To::Internal,
        };
        lkr_vectors::Error::new(kind, operation, self.source)
    }

    pub(crate) fn into_state(self, operation: &'static str) -> lkr_state::Error {
        use lkr_state::ErrorKind as To;
        let kind = match self.kind {
            FailureKind::Conflict => To::Conflict,
            FailureKind::LeaseLost => To::LeaseLost,
            FailureKind::Invalid => To::Invalid,
            FailureKind::Unavailable => To::Unavailable,
            FailureKind::Corrupt => To::Corrupt,
            FailureKind::NotFound | FailureKind::Internal => To::Internal,
        };
        lkr_state::Error::new(kind, operation, self.source)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl From<heed::Error> for Failure {
    fn from(error: heed::Error) -> Self {
        use heed::MdbError as Mdb;
        let kind = match error {
            heed::Error::Io(error) => return error.into(),
            heed::Error::Mdb(
                Mdb::MapFull | Mdb::ReadersFull | Mdb::TxnFull | Mdb::MapResized | Mdb::TlsFull | Mdb::Panic,
            ) => FailureKind::Unavailable,
            heed::Error::Mdb(
                Mdb::Corrupted | Mdb::PageNotFound | Mdb::Invalid | Mdb::VersionMismatch | Mdb::Problem,
            )
            | heed::Error::Decoding(_) => FailureKind::Corrupt,
            _ => FailureKind::Internal,
        };
        Self::new(kind, error)
    }
}

/// The remaining kinds mean that a resource is exhausted or that writing is temporarily impossible. Errors without a
/// kind, such as EIO, may also be temporary. The error stays the source, so that callers can recognise a full disk.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::Unsupported
            | io::ErrorKind::InvalidInput => FailureKind::Internal,
            io::ErrorKind::AlreadyExists => FailureKind::Invalid,
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => FailureKind::Corrupt,
            _ => FailureKind::Unavailable,
        };
        Self::new(kind, error)
    }
}

/// `EIO`, which has this number on every Unix.
const INPUT_OUTPUT_ERROR: i32 = 5;
/// A disk with fewer free bytes than this is full: a short write used up the rest.
const DISK_FULL_BELOW: u64 = 1 << 20;

impl Failure {
    /// Whether what failed may succeed later. A part of a disk that cannot be read rarely can later.
    pub(crate) fn may_pass(&self) -> bool {
        self.kind == FailureKind::Unavailable && self.system_error() != Some(INPUT_OUTPUT_ERROR)
    }

    fn system_error(&self) -> Option<i32> {
        self.source.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error)
    }

    /// Classifies the failure of a write by the free bytes on the disk. LMDB reports EIO if a full disk takes only a
    /// part of a write; such a failure becomes `StorageFull`.
    pub(crate) fn classify_write_error(self, free_space: impl FnOnce() -> Option<u64>) -> Self {
        if self.system_error() != Some(INPUT_OUTPUT_ERROR) {
            return self;
        }
        match free_space() {
            Some(free_space) if free_space < DISK_FULL_BELOW => {
                let message = format!("{self}; {free_space} bytes free on the disk");
                io::Error::new(io::ErrorKind::StorageFull, message).into()
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io_kind(failure: &Failure) -> Option<io::ErrorKind> {
        failure.source.downcast_ref::<io::Error>().map(io::Error::kind)
    }

    fn failed(number: i32) -> Failure {
        heed::Error::Io(io::Error::from_raw_os_error(number)).into()
    }

    #[test]
    fn system_error_converted_stays_the_source() {
        let full = failed(28);
        assert_eq!(
            (full.kind(), io_kind(&full)),
            (FailureKind::Unavailable, Some(io::ErrorKind::StorageFull))
        );
    }

    #[test]
    fn full_disk_may_pass_and_a_part_that_cannot_be_read_does_not() {
        let [full, unreadable] = [28, INPUT_OUTPUT_ERROR].map(|number| failed(number).may_pass());
        assert_eq!((full, unreadable, Failure::corrupt("damaged").may_pass()), (true, false, false));
    }

    #[test]
    fn short_write_without_free_space_is_reported_as_full_disk() {
        let full = failed(INPUT_OUTPUT_ERROR).classify_write_error(|| Some(4_096));
        assert_eq!(
            (full.kind(), io_kind(&full)),
            (FailureKind::Unavailable, Some(io::ErrorKind::StorageFull))
        );
        for free_space in [None, Some(DISK_FULL_BELOW)] {
            let other = failed(INPUT_OUTPUT_ERROR).classify_write_error(|| free_space);
            assert_eq!(other.kind(), FailureKind::Unavailable);
            assert_ne!(io_kind(&other), Some(io::ErrorKind::StorageFull));
        }
        let corrupt = Failure::corrupt("a row is damaged").classify_write_error(|| Some(0));
        assert_eq!(corrupt.kind(), FailureKind::Corrupt);
    }
}

use std::{error::Error as StdError, fmt, io};

/// The result of opening a store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kept a store from being opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another process, or another store of this one, has the folder.
    Locked,
    /// The folder was written in a format that this version of the crate does not read.
    OtherFormat,
    /// What is in the folder is no store, or a damaged one.
    Corrupt,
    /// The disk is full, or out of some other resource; opening may succeed later.
    Unavailable,
    /// The operating system refused something.
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
            Kind::Corrupt => ErrorKind::Corrupt,
            Kind::Unavailable => ErrorKind::Unavailable,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, operation, failure.source)
    }

    /// What kept a store from being opened to be used: where it is damaged, it says who tells more.
    pub(crate) fn unopened(failure: Failure) -> Self {
        match failure.kind {
            Kind::Corrupt => Self::corrupt_store(&failure),
            _ => Self::failure("open", failure),
        }
    }

    /// That a store is damaged, and who tells more.
    pub(crate) fn corrupt_store(reason: &dyn fmt::Display) -> Self {
        Self::new(ErrorKind::Corrupt, "open", format!("{reason}; `lkr doctor` tells what is damaged"))
    }
}

/// What kind of failure it was, inside: the kinds of the three ports together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    NotFound,
    Conflict,
    LeaseLost,
    Invalid,
    Unavailable,
    Corrupt,
    Internal,
}

/// A failure inside, before it becomes the error of a port.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    source: Box<dyn StdError + Send + Sync>,
}

/// The result of what is done inside.
pub(crate) type Done<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(kind: Kind, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { kind, source: source.into() }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, message.into())
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(Kind::Conflict, message.into())
    }

    pub(crate) fn lease_lost(message: impl Into<String>) -> Self {
        Self::new(Kind::LeaseLost, message.into())
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, message.into())
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Kind::Unavailable, message.into())
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Self::new(Kind::Corrupt, message.into())
    }

    pub(crate) fn internal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(Kind::Internal, source)
    }

    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    /// The same failure as one of another kind.
    pub(crate) fn into_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// Whether a job that fails so has written nothing: what is wrong with a request is found before its writes.
    pub(crate) const fn is_refusal(&self) -> bool {
        matches!(self.kind, Kind::NotFound | Kind::Conflict | Kind::LeaseLost | Kind::Invalid)
    }

    pub(crate) fn into_vectors(self, operation: &'static str) -> lkr_vectors::Error {
        use lkr_vectors::ErrorKind as To;
        let kind = match self.kind {
            Kind::NotFound => To::NotFound,
            Kind::Conflict => To::Conflict,
            Kind::Invalid => To::Invalid,
            Kind::Unavailable => To::Unavailable,
            Kind::Corrupt => To::Corrupt,
            Kind::LeaseLost | Kind::Internal => To::Internal,
        };
        lkr_vectors::Error::new(kind, operation, self.source)
    }

    pub(crate) fn into_state(self, operation: &'static str) -> lkr_state::Error {
        use lkr_state::ErrorKind as To;
        let kind = match self.kind {
            Kind::Conflict => To::Conflict,
            Kind::LeaseLost => To::LeaseLost,
            Kind::Invalid => To::Invalid,
            Kind::Unavailable => To::Unavailable,
            Kind::Corrupt => To::Corrupt,
            Kind::NotFound | Kind::Internal => To::Internal,
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
            ) => Kind::Unavailable,
            heed::Error::Mdb(
                Mdb::Corrupted | Mdb::PageNotFound | Mdb::Invalid | Mdb::VersionMismatch | Mdb::Problem,
            )
            | heed::Error::Decoding(_) => Kind::Corrupt,
            _ => Kind::Internal,
        };
        Self::new(kind, error)
    }
}

/// The system says by these kinds that it is out of something, or cannot write just now. What it has no kind for, an
/// input/output error of the disk foremost, may pass as well. The error stays the source, so that callers can tell a
/// full disk from the rest.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::Unsupported
            | io::ErrorKind::InvalidInput => Kind::Internal,
            io::ErrorKind::AlreadyExists => Kind::Invalid,
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Kind::Corrupt,
            _ => Kind::Unavailable,
        };
        Self::new(kind, error)
    }
}

/// `EIO`, which has this number on every Unix.
const INPUT_OUTPUT_ERROR: i32 = 5;
/// A disk with less room than this, in bytes, is full: a write that was cut short took what there was.
const NO_ROOM: u64 = 1 << 20;

impl Failure {
    /// The failure of a write, where the disk has `room`, in bytes. LMDB calls it an input/output error when a full
    /// disk takes only a part of what is written; where there is no room, it becomes one that says so.
    pub(crate) fn of_write(self, room: impl FnOnce() -> Option<u64>) -> Self {
        let error = self.source.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        if error != Some(INPUT_OUTPUT_ERROR) {
            return self;
        }
        match room() {
            Some(room) if room < NO_ROOM => {
                let message = format!("{self}, with {room} bytes left on the disk");
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
    fn an_error_of_the_system_stays_the_source() {
        let full = failed(28);
        assert_eq!((full.kind(), io_kind(&full)), (Kind::Unavailable, Some(io::ErrorKind::StorageFull)));
    }

    #[test]
    fn a_write_cut_short_is_a_full_disk_where_there_is_no_room() {
        let full = failed(INPUT_OUTPUT_ERROR).of_write(|| Some(4_096));
        assert_eq!((full.kind(), io_kind(&full)), (Kind::Unavailable, Some(io::ErrorKind::StorageFull)));
        for room in [None, Some(NO_ROOM)] {
            let other = failed(INPUT_OUTPUT_ERROR).of_write(|| room);
            assert_eq!(other.kind(), Kind::Unavailable);
            assert_ne!(io_kind(&other), Some(io::ErrorKind::StorageFull));
        }
        let corrupt = Failure::corrupt("a row is damaged").of_write(|| Some(0));
        assert_eq!(corrupt.kind(), Kind::Corrupt);
    }
}

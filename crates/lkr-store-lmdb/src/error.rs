use std::{error::Error as StdError, fmt, io};

/// The result of opening a store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kept a store from being opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another process, or another store of this one, has the folder.
    Locked,
    /// The folder was written by a newer version of this crate.
    NewerVersion,
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
        let kind = match &error {
            heed::Error::Io(error) => return Self::from_io(error.kind(), error.to_string()),
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

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::from_io(error.kind(), error)
    }
}

impl Failure {
    /// The system says by these kinds that it is out of something, or cannot write just now. What it has no kind
    /// for, an input/output error of the disk foremost, may pass as well.
    fn from_io(kind: io::ErrorKind, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let kind = match kind {
            io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::Unsupported
            | io::ErrorKind::InvalidInput => Kind::Internal,
            io::ErrorKind::AlreadyExists => Kind::Invalid,
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Kind::Corrupt,
            _ => Kind::Unavailable,
        };
        Self::new(kind, source)
    }
}

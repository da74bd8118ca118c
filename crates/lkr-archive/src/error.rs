use std::io;

/// The result of a call to this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What was read is no backup.
    Foreign,
    /// It is a backup, but a later version made it.
    Newer,
    /// It is a backup, and not as it was written; the source says what is wrong with it.
    Damaged,
    /// An entry cannot be added: its path is none, or its content has another length.
    Invalid,
    /// What the archive is written to or read from failed.
    Io,
}

lkr_domain::declare_error! {
    /// A failure: its kind, the operation, and the source.
}

pub(crate) const READ: &str = "read backup";
pub(crate) const WRITE: &str = "write backup";

pub(crate) fn damaged(reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::Damaged, READ, reason.into())
}

/// A failure while reading: of the reader below, unless it is one that only what was read can cause.
pub(crate) fn while_reading(error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::Other
        | io::ErrorKind::InvalidData
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::UnexpectedEof => ErrorKind::Damaged,
        _ => ErrorKind::Io,
    };
    Error::new(kind, READ, error)
}

pub(crate) fn while_writing(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, WRITE, error)
}

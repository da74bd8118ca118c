use std::io;

/// The result of a call to this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The data is not a backup archive.
    NotAnArchive,
    /// A later version of the program created the archive.
    UnsupportedVersion,
    /// The archive is damaged; the source says where.
    Damaged,
    /// An entry cannot be added, because its path is invalid or its content has another length.
    Invalid,
    /// Reading or writing the archive failed.
    Io,
}

lkr_domain::declare_error! {
    /// An error: its kind, the operation that failed, and the source.
}

pub(crate) const READ: &str = "read backup";
pub(crate) const WRITE: &str = "write backup";

pub(crate) fn damaged(reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::Damaged, READ, reason.into())
}

/// Maps an error of reading. Kinds that only the content can cause mean damage, all others an I/O error.
pub(crate) fn read_error(error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::Other
        | io::ErrorKind::InvalidData
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::UnexpectedEof => ErrorKind::Damaged,
        _ => ErrorKind::Io,
    };
    Error::new(kind, READ, error)
}

pub(crate) fn write_error(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, WRITE, error)
}

use std::io;

/// The result of a call to this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another process synchronises the folder.
    Busy,
    /// It cannot be seen whether the folder was moved or copied; [`crate::Identity`] tells.
    MovedOrCopied,
    /// The folder's own files in `.lkr` were written by a later version of the program.
    UnsupportedVersion,
    /// The folder, or its own files in `.lkr`, cannot be read or written.
    Folder,
    /// The folder cannot be watched, for example because it has more folders than the system can watch.
    Watch,
    /// The observer asked to stop.
    Stopped,
    /// The service refuses this file or document; others may succeed.
    Refused,
    /// The document or task does not exist.
    NotFound,
    /// The service is overloaded or cannot be reached; the run stops, and a later one goes on.
    Unavailable,
    /// Any other failure of the service.
    Other,
}

lkr_domain::declare_error! {
    /// An error: its kind, the operation that failed, and the source.
    retryable: ErrorKind::Busy | ErrorKind::Unavailable
}

pub(crate) const OPEN: &str = "open synchronised folder";
pub(crate) const READ: &str = "read synchronised folder";
pub(crate) const STATE: &str = "write state of synchronised folder";
pub(crate) const WATCH: &str = "watch folder";

/// Maps an I/O error of a path, which the message names.
pub(crate) fn folder_error(operation: &'static str, path: &std::path::Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Folder, operation, format!("{}: {error}", path.display()))
}

pub(crate) fn stopped() -> Error {
    Error::new(ErrorKind::Stopped, "synchronise folder", "stopped on request")
}

/// Maps an error of the watcher.
#[expect(clippy::needless_pass_by_value, reason = "the form of map_err")]
pub(crate) fn watch_error(error: notify::Error) -> Error {
    Error::new(ErrorKind::Watch, WATCH, error.to_string())
}

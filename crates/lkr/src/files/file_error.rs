use std::{error::Error as StdError, fmt};

use super::FileErrorKind;
use crate::Error;

/// The source of an error about a file.
#[derive(Debug)]
pub(crate) struct FileError {
    pub(crate) kind: FileErrorKind,
    pub(crate) reason: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl StdError for FileError {}

/// Why a file was refused: for example because it is damaged, needs a password, or has only pictures of text. `None` if
/// the error is not about a file.
#[must_use]
pub fn refusal(error: &Error) -> Option<FileErrorKind> {
    let kind = error.source()?.downcast_ref::<FileError>()?.kind;
    kind.is_file_error().then_some(kind)
}

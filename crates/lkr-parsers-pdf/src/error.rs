use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use lkr_parsers::{Error, ErrorKind, Result};
use pdfium_render::prelude::{PdfiumError, PdfiumInternalError};

/// The operation that every error of this crate names.
const READ: &str = "read the PDF file";

/// What a PDF file begins with.
const MARK: &[u8] = b"%PDF-";

/// Readers find the mark although other bytes stand before it; so far in it may be.
const HEAD: usize = 1024;

/// A file that cannot be opened without its password.
pub(crate) fn encrypted() -> Error {
    Error::new(ErrorKind::Encrypted, READ, "it is encrypted and opens with a password only")
}

/// A file that opens without a password, but in which nothing can be found.
pub(crate) fn undeciphered() -> Error {
    Error::new(ErrorKind::Encrypted, READ, "it is encrypted in a way that is not known here")
}

/// Refuses what is no PDF file.
pub(crate) fn check_begins(bytes: &[u8]) -> Result<()> {
    let head = bytes.get(..HEAD.min(bytes.len())).unwrap_or_default();
    if head.windows(MARK.len()).any(|window| window == MARK) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Input, READ, "it does not begin as a PDF file does"))
}

/// What `work` answers; an error where it panics, as engines do on broken files.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let failed = |_| Err(Error::new(ErrorKind::Input, READ, "it is broken beyond use"));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(failed)
}

/// What pdf_oxide says of a file that it cannot open.
pub(crate) fn from_oxide(error: pdf_oxide::Error) -> Error {
    let kind = match error {
        pdf_oxide::Error::Io(_) => ErrorKind::Internal,
        _ => ErrorKind::Input,
    };
    Error::new(kind, READ, error)
}

/// What PDFium says of a file that it cannot open.
pub(crate) fn from_pdfium(error: PdfiumError) -> Error {
    match error {
        PdfiumError::PdfiumLibraryInternalError(
            PdfiumInternalError::PasswordError | PdfiumInternalError::SecurityError,
        ) => encrypted(),
        error => Error::new(ErrorKind::Input, READ, error),
    }
}

/// A library that cannot be used.
pub(crate) fn no_library(path: &Path, error: &PdfiumError) -> Error {
    Error::new(ErrorKind::Internal, "load PDFium", format!("{}: {error}", path.display()))
}

/// What lopdf says of a file that it cannot open.
pub(crate) fn from_lopdf(error: lopdf::Error) -> Error {
    use lopdf::{DecompressError, Error as Lopdf, encryption::DecryptionError};
    match error {
        Lopdf::InvalidPassword | Lopdf::Decryption(DecryptionError::IncorrectPassword) => encrypted(),
        Lopdf::Decryption(_) => undeciphered(),
        error @ Lopdf::Decompress(DecompressError::MemoryLimitExceeded { .. }) => {
            Error::new(ErrorKind::Limit, READ, error)
        }
        error => Error::new(ErrorKind::Input, READ, error),
    }
}

/// Content that cannot be found or unpacked.
pub(crate) fn unreadable() -> Error {
    Error::new(ErrorKind::Input, READ, "content of it cannot be found or unpacked")
}

/// The content of a page is too long.
pub(crate) fn too_long() -> Error {
    Error::new(ErrorKind::Limit, READ, "a page of it has more than 32 MiB of content")
}

/// What keeps a file from being written again without its hidden text.
pub(crate) fn unwritten(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Input, READ, error)
}

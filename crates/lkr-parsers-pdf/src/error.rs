use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use lkr_parsers::{Error, ErrorKind, Result};
use pdfium_render::prelude::{PdfiumError, PdfiumInternalError};

/// The operation of all errors of this crate.
const READ: &str = "read the PDF file";

/// The header of a PDF file.
const MARK: &[u8] = b"%PDF-";

/// Other bytes may come before the header, up to this offset.
const HEAD: usize = 1024;

/// The error for a file that needs a password.
pub(crate) fn encrypted() -> Error {
    Error::new(
        ErrorKind::Encrypted,
        READ,
        "the file is encrypted and needs a password; save a copy without the password",
    )
}

/// The error for a file that opens without a password, but cannot be decrypted.
pub(crate) fn unsupported_cipher() -> Error {
    Error::new(
        ErrorKind::Encrypted,
        READ,
        "the file is encrypted with an unsupported cipher; save a copy that is not encrypted",
    )
}

/// The error for a damaged file.
pub(crate) fn damaged(reason: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Damaged, READ, format!("the file is damaged or incomplete: {reason}"))
}

/// The error for a file whose only text is in pictures that were not read for this reason.
pub(crate) fn pictures(reason: &str) -> Error {
    let reason = format!("its pages are pictures without text that can be selected, and {reason}");
    Error::new(ErrorKind::Pictures, READ, reason)
}

/// The error for a page that the file does not have.
pub(crate) fn no_page(page: u32, pages: usize) -> Error {
    let pages = if pages == 1 { "1 page".to_owned() } else { format!("{pages} pages") };
    Error::new(ErrorKind::Input, READ, format!("there is no page {page}: the file has {pages}"))
}

/// The error for a page without a visible part.
pub(crate) fn no_area() -> Error {
    damaged("the page has no area")
}

/// Maps an error of writing an image.
pub(crate) fn from_png(error: png::EncodingError) -> Error {
    Error::new(ErrorKind::Internal, "write the image of a page", error)
}

/// Rejects files without a PDF header.
pub(crate) fn check_header(bytes: &[u8]) -> Result<()> {
    let head = bytes.get(..HEAD.min(bytes.len())).unwrap_or_default();
    if head.windows(MARK.len()).any(|window| window == MARK) {
        return Ok(());
    }
    Err(damaged("no PDF header in the first 1024 bytes"))
}

/// Runs `work`; returns an error if it panics, as engines do on invalid files.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let failed = |_| Err(damaged("the engine panicked on the file"));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(failed)
}

/// Maps an error of pdf_oxide.
pub(crate) fn from_oxide(error: pdf_oxide::Error) -> Error {
    match error {
        error @ pdf_oxide::Error::Io(_) => Error::new(ErrorKind::Internal, READ, error),
        error => damaged(error),
    }
}

/// Maps an error of PDFium.
pub(crate) fn from_pdfium(error: PdfiumError) -> Error {
    match error {
        PdfiumError::PdfiumLibraryInternalError(
            PdfiumInternalError::PasswordError | PdfiumInternalError::SecurityError,
        ) => encrypted(),
        error => damaged(error),
    }
}

/// The error for a library that cannot be loaded.
pub(crate) fn no_library(path: &Path, error: &PdfiumError) -> Error {
    Error::new(ErrorKind::Internal, "load PDFium", format!("{}: {error}", path.display()))
}

/// Maps an error of lopdf.
pub(crate) fn from_lopdf(error: lopdf::Error) -> Error {
    use lopdf::{DecompressError, Error as Lopdf, encryption::DecryptionError};
    match error {
        Lopdf::InvalidPassword | Lopdf::Decryption(DecryptionError::IncorrectPassword) => encrypted(),
        Lopdf::Decryption(_) => unsupported_cipher(),
        error @ Lopdf::Decompress(DecompressError::MemoryLimitExceeded { .. }) => {
            Error::new(ErrorKind::Limit, READ, error)
        }
        error => damaged(error),
    }
}

/// The error for content that cannot be found or unpacked.
pub(crate) fn unreadable() -> Error {
    damaged("content cannot be found or unpacked")
}

/// The error for a page with too much content.
pub(crate) fn too_long() -> Error {
    Error::new(ErrorKind::Limit, READ, "a page has more than 32 MiB of content")
}

/// Maps an error of writing a file without its hidden text.
pub(crate) fn write_failed(error: std::io::Error) -> Error {
    damaged(error)
}

//! Maps the errors of other crates.

use std::{fmt, io};

use lkr_parsers::{Error, ErrorKind};
use zip::result::ZipError;

/// An exceeded limit, as the source of an IO error.
#[derive(Debug)]
struct LimitExceeded(&'static str);

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for LimitExceeded {}

/// The error for an exceeded limit.
pub(crate) fn limit(reason: &'static str) -> Error {
    Error::new(ErrorKind::Limit, "read the DOCX file", reason)
}

/// The error for a file with more text than is extracted.
pub(crate) fn too_much_text() -> Error {
    Error::new(ErrorKind::TooMuchText, "read the DOCX file", "it contains more than 64 MiB of text")
}

/// The IO error for an exceeded limit.
pub(crate) fn limit_io(reason: &'static str) -> io::Error {
    io::Error::other(LimitExceeded(reason))
}

/// The error for an invalid file.
pub(crate) fn input(reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::Input, "read the DOCX file", reason.into())
}

pub(crate) fn zip(error: ZipError) -> Error {
    let kind = match &error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) | ZipError::InvalidPassword => {
            ErrorKind::Encrypted
        }
        _ => ErrorKind::Damaged,
    };
    let reason = match kind {
        ErrorKind::Encrypted => "it is protected by a password; save a copy without the password".to_owned(),
        _ => damage(error),
    };
    Error::new(kind, "unpack the DOCX file", reason)
}

/// The error for a document whose only text is in pictures.
pub(crate) fn pictures() -> Error {
    let reason = "it has pictures but no text, and pictures in DOCX files are not read; save it as PDF, and read it with OCR";
    Error::new(ErrorKind::Pictures, "read the DOCX file", reason)
}

/// Whether a part of the file is invalid.
pub(crate) fn is_invalid(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Input | ErrorKind::Damaged)
}

fn damage(error: impl fmt::Display) -> String {
    format!("it is damaged or incomplete: {error}")
}

pub(crate) fn xml(error: quick_xml::Error) -> Error {
    match &error {
        quick_xml::Error::Io(inner) if is_limit(inner) => {
            Error::new(ErrorKind::Limit, "read the DOCX file", inner.to_string())
        }
        _ => Error::new(ErrorKind::Damaged, "parse the XML of the DOCX file", damage(error)),
    }
}

pub(crate) fn io(error: io::Error) -> Error {
    if is_limit(&error) {
        return Error::new(ErrorKind::Limit, "unpack the DOCX file", error);
    }
    Error::new(ErrorKind::Damaged, "unpack the DOCX file", damage(error))
}

pub(crate) fn office(error: office_oxide::OfficeError) -> Error {
    Error::new(ErrorKind::Damaged, "read the DOCX file", damage(error))
}

fn is_limit(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<LimitExceeded>())
}

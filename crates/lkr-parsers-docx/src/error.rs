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
        _ => ErrorKind::Input,
    };
    Error::new(kind, "unpack the DOCX file", error)
}

pub(crate) fn xml(error: quick_xml::Error) -> Error {
    match &error {
        quick_xml::Error::Io(inner) if is_limit(inner) => {
            Error::new(ErrorKind::Limit, "read the DOCX file", inner.to_string())
        }
        _ => Error::new(ErrorKind::Input, "parse the XML of the DOCX file", error),
    }
}

pub(crate) fn io(error: io::Error) -> Error {
    let kind = if is_limit(&error) { ErrorKind::Limit } else { ErrorKind::Input };
    Error::new(kind, "unpack the DOCX file", error)
}

pub(crate) fn office(error: office_oxide::OfficeError) -> Error {
    Error::new(ErrorKind::Input, "read the DOCX file", error)
}

fn is_limit(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<LimitExceeded>())
}

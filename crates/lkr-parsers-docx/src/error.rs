//! What other crates report, as errors of the port.

use std::{fmt, io};

use lkr_parsers::{Error, ErrorKind};
use zip::result::ZipError;

/// A bound that a file went beyond, as it travels through readers.
#[derive(Debug)]
struct Beyond(&'static str);

impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Beyond {}

/// A bound was passed: `reason` says which.
pub(crate) fn limit(reason: &'static str) -> Error {
    Error::new(ErrorKind::Limit, "read the DOCX file", reason)
}

/// The same out of a reader of bytes.
pub(crate) fn limit_io(reason: &'static str) -> io::Error {
    io::Error::other(Beyond(reason))
}

/// The file is not what it should be: `reason` says why.
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
        quick_xml::Error::Io(inner) if is_beyond(inner) => {
            Error::new(ErrorKind::Limit, "read the DOCX file", inner.to_string())
        }
        _ => Error::new(ErrorKind::Input, "read the DOCX file's XML", error),
    }
}

pub(crate) fn io(error: io::Error) -> Error {
    let kind = if is_beyond(&error) { ErrorKind::Limit } else { ErrorKind::Input };
    Error::new(kind, "unpack the DOCX file", error)
}

pub(crate) fn office(error: office_oxide::OfficeError) -> Error {
    Error::new(ErrorKind::Input, "read the DOCX file", error)
}

fn is_beyond(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Beyond>())
}

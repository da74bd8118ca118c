//! What other crates report, as errors of the port.

use lkr_parsers::{Error, ErrorKind};

pub(crate) fn html2text(error: html2text::Error) -> Error {
    Error::new(ErrorKind::Internal, "render the HTML page", error)
}

/// The page needs more than the crate can do in the memory there is.
pub(crate) fn too_much(reason: &'static str) -> Error {
    Error::new(ErrorKind::Limit, "render the HTML page", reason)
}

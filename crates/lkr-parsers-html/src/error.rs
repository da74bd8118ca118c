//! Maps the errors of other crates.

use lkr_parsers::{Error, ErrorKind};

pub(crate) fn html2text(error: html2text::Error) -> Error {
    Error::new(ErrorKind::Internal, "render the HTML page", error)
}

/// The page has pictures but no text.
pub(crate) fn pictures() -> Error {
    let reason = "it has pictures but no visible text, and pictures in HTML pages are not read";
    Error::new(ErrorKind::Pictures, "read the HTML page", reason)
}

/// The page exceeds what the crate can render in a bounded amount of memory.
pub(crate) fn limit(reason: &'static str) -> Error {
    Error::new(ErrorKind::Limit, "render the HTML page", reason)
}

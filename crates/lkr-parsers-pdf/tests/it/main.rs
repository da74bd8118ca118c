//! PDF files, through each of the engines.

#![allow(
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests"
)]

mod common;
mod documents;
mod files;
mod hidden;
mod layout;
mod lopdf;
mod oxide;
mod pdfium;
mod scrubbed;

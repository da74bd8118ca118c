//! Tests of PDF parsing with every engine.

#![allow(
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests"
)]

mod common;
mod damage;
mod documents;
mod encodings;
mod fields;
mod files;
mod hidden_text;
mod hidden_text_removal;
mod layout;
mod lopdf;
mod other_engines;
mod oxide;
mod pages;
mod pdfium;
mod rotation;
mod tables;

#![doc = include_str!("../README.md")]

mod charset;
mod compose;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod deadline;
mod error;
mod format;
mod markdown;
mod ocr;
mod parser;
mod plain;
mod sniff;
mod structure;
mod text;

pub use charset::{Decoded, charset_of, decode};
pub use compose::{Composer, MAX_TEXT_BYTES, MAX_TITLE_CHARS};
pub use deadline::{Clock, Deadline};
pub use error::{Error, ErrorKind, Result};
pub use format::{Format, extension, format_of};
pub use markdown::Markdown;
pub use ocr::{Ocr, PageImage};
pub use parser::{Parser, Source};
pub use plain::PlainText;
pub use sniff::check as check_format;
pub use structure::{decode_blocks, encode_blocks};

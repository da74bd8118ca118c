#![doc = include_str!("../README.md")]

#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod markdown;
mod parser;
mod plain;

pub use error::{Error, ErrorKind, Result};
pub use markdown::Markdown;
pub use parser::{Parser, Source};
pub use plain::PlainText;

#![doc = include_str!("../README.md")]

mod about;
mod error;
mod hashed;
mod reader;
mod sums;
mod writer;

pub use about::About;
pub use error::{Error, ErrorKind, Result};
pub use hashed::digest;
pub use reader::{ArchiveReader, Entry};
pub use writer::ArchiveWriter;

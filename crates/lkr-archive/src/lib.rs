#![doc = include_str!("../README.md")]

mod checksums;
mod error;
mod hashing_reader;
mod header_limit;
mod info;
mod reader;
mod writer;

pub use error::{Error, ErrorKind, Result};
pub use hashing_reader::digest;
pub use info::ArchiveInfo;
pub use reader::{ArchiveReader, Entry};
pub use writer::ArchiveWriter;

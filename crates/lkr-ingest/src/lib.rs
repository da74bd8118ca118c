#![doc = include_str!("../README.md")]

mod change;
mod classify;
mod dense;
mod draft;
mod error;
mod file;
mod ingestor;
mod janitor;
mod long_texts;
mod options;
mod pipeline;
mod reembed;
mod shelves;
mod store;
mod worker;

pub use change::DocumentChange;
pub use error::{Error, ErrorKind, Result};
pub use file::NewFile;
pub use ingestor::{Ingestor, Ports, drop_reserved};
pub use options::IngestOptions;
pub use worker::Workers;

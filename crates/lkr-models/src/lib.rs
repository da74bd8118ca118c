#![doc = include_str!("../README.md")]

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod embedder;
mod error;
mod memory;
mod paced;
mod sparse;

pub use embedder::{EmbedKind, Embedder, EmbedderProfile};
pub use error::{Error, ErrorKind, Result};
pub use memory::MemoryEmbedder;
pub use paced::{PaceOptions, Paced};
pub use sparse::{SparseEncoder, average_terms, term_id};

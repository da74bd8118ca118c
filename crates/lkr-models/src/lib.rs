#![doc = include_str!("../README.md")]

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod embedder;
mod error;
mod memory;
mod memory_reranker;
mod paced;
mod reranker;
mod sparse;

pub use embedder::{EmbedKind, Embedder, EmbedderProfile};
pub use error::{Error, ErrorKind, Result};
pub use memory::MemoryEmbedder;
pub use memory_reranker::MemoryReranker;
pub use paced::{PaceOptions, Paced};
pub use reranker::{Reranker, RerankerProfile, RerankerSource};
pub use sparse::{SparseEncoder, average_terms, term_id};

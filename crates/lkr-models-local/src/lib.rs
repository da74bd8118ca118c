#![doc = include_str!("../README.md")]

mod attention;
mod batch;
mod bf16;
mod config;
mod embedder;
mod embeddings;
mod encoder;
mod error;
mod fingerprint;
mod folder;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod head;
mod int8;
mod kernels;
mod lane;
mod layer;
mod linear;
mod modules;
mod options;
mod pairs;
mod panels;
mod pooling;
mod product;
mod rerank_folder;
mod reranker;
mod rotary;
mod scratch;
mod steps;
mod tiles;
mod tokens;
mod weights;

pub use embedder::LocalEmbedder;
pub use options::LocalOptions;
pub use reranker::{LocalReranker, RerankOptions};

#![doc = include_str!("../README.md")]

mod batch;
mod config;
mod embedder;
mod encoder;
mod error;
mod fingerprint;
mod folder;
mod head;
mod kernels;
mod lane;
mod layer;
mod matrix;
mod options;
mod pairs;
mod pooling;
mod rerank_folder;
mod reranker;
mod tokens;
mod weights;

pub use embedder::LocalEmbedder;
pub use options::LocalOptions;
pub use reranker::{LocalReranker, RerankOptions};

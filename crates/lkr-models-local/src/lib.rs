#![doc = include_str!("../README.md")]

mod batch;
mod config;
mod embedder;
mod encoder;
mod error;
mod fingerprint;
mod folder;
mod kernels;
mod lane;
mod layer;
mod matrix;
mod options;
mod tokens;
mod weights;

pub use embedder::LocalEmbedder;
pub use options::{LocalOptions, MINILM_COSINE_SCALE};

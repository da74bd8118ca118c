#![doc = include_str!("../README.md")]

mod error;
mod options;
mod provider;
mod rerank;

pub use options::RemoteOptions;
pub use rerank::HttpReranker;

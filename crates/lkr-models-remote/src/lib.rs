#![doc = include_str!("../README.md")]

mod capabilities;
mod chat;
mod embedder;
mod error;
mod options;
mod ordered_schema;
mod provider;
mod provider_error;
mod reasoning;
mod reranker;
mod sse;
mod stream;
mod truncate;
mod wire;

pub use capabilities::{ProviderCapabilities, ResponseFormat};
pub use chat::HttpChat;
pub use embedder::HttpEmbedder;
pub use options::{ChatOptions, EmbedOptions, RemoteOptions};
pub use reranker::HttpReranker;

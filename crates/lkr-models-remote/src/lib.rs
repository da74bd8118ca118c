#![doc = include_str!("../README.md")]

mod capabilities;
mod chat;
mod cut;
mod embed;
mod error;
mod options;
mod ordered;
mod provider;
mod rerank;
mod said;
mod sse;
mod stream;
mod thoughts;
mod wire;

pub use capabilities::{ProviderCapabilities, ResponseFormat};
pub use chat::HttpChat;
pub use embed::HttpEmbedder;
pub use options::{ChatOptions, EmbedOptions, RemoteOptions};
pub use rerank::HttpReranker;

#![doc = include_str!("../README.md")]

mod chat;
mod cut;
mod embed;
mod error;
mod manner;
mod options;
mod ordered;
mod provider;
mod rerank;
mod said;
mod sse;
mod stream;
mod thoughts;
mod wire;

pub use chat::HttpChat;
pub use embed::HttpEmbedder;
pub use manner::{Held, Manner};
pub use options::{ChatOptions, EmbedOptions, RemoteOptions};
pub use rerank::HttpReranker;

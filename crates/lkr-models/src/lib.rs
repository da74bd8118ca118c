#![doc = include_str!("../README.md")]

mod chat;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod embedder;
mod error;
mod memory;
mod memory_reranker;
mod paced;
mod reranker;
mod scripted_chat;
mod sparse;
mod spread;

pub use chat::{
    AnswerEnd, AnswerSchema, ChatAnswer, ChatMessage, ChatModel, ChatModelSource, ChatPart, ChatProfile,
    ChatPurpose, ChatRequest, ChatStream, Role, TokenUsage,
};
pub use embedder::{EmbedKind, Embedder, EmbedderProfile, EmbedderSource};
pub use error::{Error, ErrorKind, Result};
pub use memory::MemoryEmbedder;
pub use memory_reranker::MemoryReranker;
pub use paced::{PaceOptions, Paced};
pub use reranker::{Reranker, RerankerProfile, RerankerSource};
pub use scripted_chat::ScriptedChat;
pub use sparse::{SparseEncoder, average_terms, term_id};
pub use spread::{SPREAD_SAMPLE, cosine_scale, spread};

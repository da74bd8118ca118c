#![doc = include_str!("../README.md")]

mod breaker;
mod chat;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod cut_off;
mod embedder;
mod error;
#[cfg(test)]
mod faulty;
mod limited;
mod memory;
mod memory_reranker;
mod metered;
mod paced;
mod reranker;
mod retried;
mod scripted_chat;
mod sparse;
mod spread;
#[cfg(test)]
mod stacked;
mod structured;

pub use breaker::{Breaker, BreakerOptions};
pub use chat::{
    AnswerEnd, AnswerSchema, ChatAnswer, ChatMessage, ChatModel, ChatModelSource, ChatPart, ChatProfile,
    ChatPurpose, ChatRequest, ChatStream, Role, TokenUsage,
};
pub use embedder::{EmbedKind, Embedder, EmbedderProfile, EmbedderSource};
pub use error::{Error, ErrorKind, Result};
pub use limited::Limited;
pub use memory::MemoryEmbedder;
pub use memory_reranker::MemoryReranker;
pub use metered::{CallObserver, CallOutcome, Metered, ModelCall, Operation};
pub use paced::{PaceOptions, Paced};
pub use reranker::{Reranker, RerankerProfile, RerankerSource};
pub use retried::{Retried, RetryOptions};
pub use scripted_chat::ScriptedChat;
pub use sparse::{SparseEncoder, average_terms, term_id};
pub use spread::{SPREAD_SAMPLE, cosine_scale, spread};
pub use structured::{Structured, ask_structured};

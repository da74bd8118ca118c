#![doc = include_str!("../README.md")]

mod adaptive_batch;
mod calibration;
mod chat;
mod circuit_breaker;
mod concurrency_limit;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
#[cfg(test)]
mod decorator_tests;
mod embedder;
mod error;
#[cfg(test)]
mod faulty_model;
mod instrumented;
mod memory;
mod memory_reranker;
mod reranker;
mod retry;
mod scripted_chat;
mod sparse;
mod structured_answer;
mod truncated_json;

pub use adaptive_batch::{AdaptiveBatch, AdaptiveBatchOptions};
pub use calibration::{REFERENCE_SCALE, calibration_passages, cosine_scale, spread};
pub use chat::{
    AnswerSchema, ChatAnswer, ChatMessage, ChatModel, ChatModelSource, ChatPart, ChatProfile, ChatPurpose,
    ChatRequest, ChatStream, FinishReason, Role, TokenUsage,
};
pub use circuit_breaker::{CircuitBreaker, CircuitBreakerOptions};
pub use concurrency_limit::ConcurrencyLimit;
pub use embedder::{EmbedKind, Embedder, EmbedderProfile, EmbedderSource, Precision};
pub use error::{Error, ErrorKind, Result};
pub use instrumented::{CallObserver, CallOutcome, Instrumented, ModelCall, Operation};
pub use memory::MemoryEmbedder;
pub use memory_reranker::MemoryReranker;
pub use reranker::{Reranker, RerankerProfile, RerankerSource};
pub use retry::{Retry, RetryOptions};
pub use scripted_chat::ScriptedChat;
pub use sparse::{SparseEncoder, average_terms, term_id};
pub use structured_answer::{StructuredAnswer, complete_structured};

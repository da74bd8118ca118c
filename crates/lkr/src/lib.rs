#![doc = include_str!("../README.md")]

#[cfg(feature = "lmdb")]
pub mod backup;
#[cfg(feature = "lmdb")]
mod blocking;
mod builder;
mod categories;
#[cfg(feature = "lmdb")]
pub mod doctor;
mod embedders;
mod error;
mod evaluate;
#[cfg(feature = "files")]
pub mod files;
#[cfg(feature = "lmdb")]
mod folders;
mod health;
mod kb;
#[cfg(feature = "lmdb")]
mod open;
mod rerankers;
mod submit;

pub use builder::Builder;
pub use embedders::Embedding;
pub use error::{Error, ErrorKind, Result};
#[cfg(feature = "lmdb")]
pub use folders::Folders;
pub use health::Health;
pub use kb::{ChunkPage, Detail, KnowledgeBase};
pub use lkr_catalog::{
    Catalog, DocumentResult, Duplicate, EvaluateResult, ExtractedText, FailureReason, Idempotency,
    LimitExceeded, ListFilter, ModelName, ModelUsage, NodeRecord, Page, Progress, ReclassifyResult,
    ReembedResult, SearchQuality, Stage, Stats, StoredOriginal, Task, TaskFailure, TaskInput, TaskKind,
    TaskResult, TaskStatus, TaskSubject, UNCATEGORIZED, check_properties, stored_name,
};
pub use lkr_domain::*;
/// Measures of rankings, and gold sets.
pub use lkr_eval as evaluation;
pub use lkr_ingest::{DocumentChange, IngestOptions, NewFile, OnReplace, Submission, Upsert, drop_reserved};
/// The parts of a search's answer.
pub use lkr_retrieval as retrieval;
pub use lkr_retrieval::{
    CacheStatus, Fusion, GroupBy, MemoryCache, Mode, SearchCache, SearchFilters, SearchOptions,
    SearchOutcome, SearchRequest, SearchResponse, SearchResult, StreamedSearch,
};
pub use lkr_taxonomy::{self as taxonomy, Category, Taxonomy};
#[cfg(feature = "lmdb")]
pub use open::{OpenOptions, open_embedder, open_state};

/// The ports, for those who bring their own stores and models, and the crates that hold all that they speak of.
pub mod ports {
    pub use lkr_catalog::Outbox;
    pub use lkr_models::{
        self as models, ChatModel, ChatModelSource, ChatPurpose, EmbedKind, Embedder, EmbedderProfile,
        EmbedderSource, Reranker, RerankerProfile, RerankerSource,
    };
    pub use lkr_parsers::{self as parsers, Parser};
    pub use lkr_state::{self as state, StateStore, TaskQueue};
    pub use lkr_vectors::{self as vectors, VectorStore};
    pub use object_store::{self, ObjectStore};
}

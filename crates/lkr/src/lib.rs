#![doc = include_str!("../README.md")]

#[cfg(feature = "lmdb")]
pub mod backup;
mod blocking;
mod builder;
#[cfg(feature = "lmdb")]
pub mod doctor;
mod documents;
#[cfg(feature = "lmdb")]
mod embedded_store;
mod embedders;
mod error;
mod evaluate;
#[cfg(feature = "files")]
pub mod files;
#[cfg(feature = "lmdb")]
mod folder_blobs;
#[cfg(feature = "lmdb")]
mod folders;
mod health;
mod kb;
#[cfg(feature = "lmdb")]
mod local_models;
#[cfg(feature = "lmdb")]
mod open;
mod rerankers;
mod similarity;
/// Spaces, groups and members, and what a caller may do.
pub mod spaces;
#[cfg(feature = "lmdb")]
mod stores;
mod submit;
#[cfg(feature = "lmdb")]
mod text_files;
mod waiting;
mod watch_tasks;

pub use builder::Builder;
pub use documents::{ChunkPage, DocumentWithNodes};
pub use embedders::EmbeddingStatus;
pub use error::{Error, ErrorKind, Result};
pub use evaluate::MAX_GOLD_BYTES;
#[cfg(feature = "lmdb")]
pub use folders::Folders;
pub use health::{Health, PartHealth, QueueStatus};
pub use kb::KnowledgeBase;
pub use lkr_catalog::{
    CHANGE_KEPT, Catalog, DeleteResult, DocumentResult, Duplicate, EvaluateResult, ExtractedText,
    FailureReason, Idempotency, LimitExceeded, ListFilter, ListOrder, ModelName, ModelUsage, NodeRecord,
    Page, Progress, ReclassifyResult, ReembedResult, SearchQuality, Stage, Stats, StoredOriginal, Task,
    TaskChange, TaskFailure, TaskInput, TaskKind, TaskLists, TaskResult, TaskStatus, TaskSubject,
    UNCATEGORIZED, check_line, check_properties, check_text, stored_name,
};
pub use lkr_domain::*;
/// Ranking measures and gold sets.
pub use lkr_eval as evaluation;
pub use lkr_ingest::{
    BulkDelete, DocumentChange, IngestOptions, NewFile, OnReplace, Submission, Upsert, WorkerStatus,
    drop_reserved,
};
/// Search requests and responses.
pub use lkr_retrieval as retrieval;
pub use lkr_retrieval::{
    CacheSize, CacheStatus, ContextPassage, ContextRequest, ContextResponse, Fusion, GroupBy, MemoryCache,
    Mode, SearchCache, SearchFilters, SearchOptions, SearchOutcome, SearchProfile, SearchRequest,
    SearchResponse, SearchResult, SearchStage, StreamedSearch,
};
pub use lkr_taxonomy::{self as taxonomy, Category, Taxonomy};
pub use lkr_threads::BackgroundRuntime;

#[cfg(feature = "lmdb")]
pub use embedded_store::{has_knowledge_base, open_state};
#[cfg(feature = "lmdb")]
pub use local_models::open_embedder;
#[cfg(feature = "lmdb")]
pub use open::OpenOptions;
#[cfg(feature = "lmdb")]
pub use stores::{AllStores, ConfiguredStores, OpenFolder, OtherStores, SharedState};
pub use waiting::until_available;

/// Moving a knowledge base between stores.
pub mod migrate {
    pub use lkr_migrate::*;
}

/// The ports, for programs with their own stores and models, and the crates that define the types in their signatures.
pub mod ports {
    pub use lkr_catalog::Outbox;
    pub use lkr_ingest::{self as ingest, DeletionPolicy};
    pub use lkr_models::{
        self as models, ChatModel, ChatModelSource, ChatPurpose, EmbedKind, Embedder, EmbedderProfile,
        EmbedderSource, Precision, Reranker, RerankerProfile, RerankerSource,
    };
    pub use lkr_parsers::{self as parsers, Parser};
    pub use lkr_state::{self as state, StateStore, TaskQueue};
    pub use lkr_vectors::{self as vectors, VectorStore};
    pub use object_store::{self, ObjectStore};
}

/// The programs of docs/embedding.md, which are compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
struct EmbeddingPage;

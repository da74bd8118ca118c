//! Tests of the facade, as a program embeds it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failing test panics"
)]

#[cfg(all(feature = "files", feature = "lmdb"))]
mod backup;
mod bulk_delete;
mod change_failures;
mod changes;
mod closed_kb;
mod common;
mod context;
mod describe;
mod doctor;
mod duplicates;
mod evaluate;
mod file_titles;
#[cfg(feature = "files")]
mod files;
mod ingest;
mod lost_records;
mod no_runtime;
mod outbox;
mod pages;
mod reembed;
mod reembed_failures;
mod replace;
mod rerank;
mod salted_embedder;
mod shared_backup;
mod spaces;
mod store_away;
mod vectors;
#[cfg(feature = "files")]
mod words;
#[cfg(feature = "files")]
mod workers;

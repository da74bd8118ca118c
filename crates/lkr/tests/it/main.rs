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
mod changes;
mod common;
mod describe;
mod doctor;
#[cfg(feature = "files")]
mod files;
mod ingest;
mod outbox;
mod reembed;
mod replace;
mod rerank;

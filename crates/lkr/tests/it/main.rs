//! What a knowledge base does, through the crate that programs embed.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test and what helps it ends where something fails"
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

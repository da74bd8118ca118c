//! Whole runs against a service in memory.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failing test panics"
)]

mod bench;
mod crashes;
mod files;
mod folders;
mod identities;
mod moves;
mod previews;
mod runs;
mod service;
mod watch;

//! Spaces over the in-memory store.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod changes;
mod concurrency;
mod model;
mod rights;
mod support;

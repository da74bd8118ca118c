//! The store against a real S3-compatible server, directly and through a proxy that makes faults.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod catalog;
mod checks;
mod connections;
mod objects;
mod outages;
mod proxy;
mod support;

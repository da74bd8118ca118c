//! The settings on a store in memory.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by a panic"
)]

mod changes;
mod checks;
mod derived;
mod model;
mod races;
mod schema;
mod secrets;
mod support;

//! Tests of the OpenAI API against a local HTTP server with scripted faults.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the helpers of tests may fail as the tests do"
)]

mod chat;
mod embed;
mod refusals;
mod streams;
mod support;

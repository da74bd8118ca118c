//! The API of OpenAI against a real server on this machine, which misbehaves as it is told.
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

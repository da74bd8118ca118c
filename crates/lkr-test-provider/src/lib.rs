#![doc = include_str!("../README.md")]
#![expect(clippy::expect_used, reason = "a test ends where something fails")]

mod chat;
mod check;
mod embeddings;
mod fault;
mod http;
mod provider;

pub use fault::Fault;
pub use provider::{Quirks, Seen, TestProvider};

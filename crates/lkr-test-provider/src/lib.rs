#![doc = include_str!("../README.md")]
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a failure should end the test")]

mod chat;
mod check;
mod embeddings;
mod fault;
mod http;
mod provider;

pub use fault::Fault;
pub use provider::{ProviderBehavior, ReceivedRequest, TestProvider};

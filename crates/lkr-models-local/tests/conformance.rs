//! What every embedder promises.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    dead_code,
    reason = "the helpers of all tests are shared"
)]

mod common;

use std::sync::Arc;

use lkr_models::Embedder;

async fn make() -> (Arc<dyn Embedder>, ()) {
    (Arc::new(common::open(&common::fixture("tiny-bert-mean"))), ())
}

lkr_models::embedder_suite!(make());

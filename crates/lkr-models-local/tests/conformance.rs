//! Runs the conformance suites of embedders and rerankers.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    dead_code,
    reason = "the helpers of all tests are shared"
)]

#[path = "support/common.rs"]
mod common;

use std::sync::Arc;

use lkr_models::{Embedder, Reranker};

async fn make() -> (Arc<dyn Embedder>, ()) {
    (Arc::new(common::open(&common::fixture("tiny-bert-mean"))), ())
}

lkr_models::embedder_suite!(make());

mod bert_reranker {
    use super::*;

    async fn make() -> (Arc<dyn Reranker>, ()) {
        (Arc::new(common::open_reranker(&common::fixture("tiny-bert-reranker"))), ())
    }

    lkr_models::reranker_suite!(make());
}

mod xlm_roberta_reranker {
    use super::*;

    async fn make() -> (Arc<dyn Reranker>, ()) {
        (Arc::new(common::open_reranker(&common::fixture("tiny-xlm-roberta-reranker"))), ())
    }

    lkr_models::reranker_suite!(make());
}

//! What a search asks of the store, and what a second round adds.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use lkr_retrieval::{LegKind, Mode, SearchOptions, SearchRequest};
use lkr_vectors::FailingVectors;

use crate::{
    base::respond,
    results::{library, request},
};

/// How many batches and reads a search makes.
async fn asked(options: SearchOptions, request: &SearchRequest) -> (usize, usize) {
    let base = library().await;
    let (batches, reads) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted_batches, counted_reads) = (Arc::clone(&batches), Arc::clone(&reads));
    let vectors = FailingVectors::new(base.vectors.clone(), move |operation| {
        match operation {
            "query_batch" => counted_batches.fetch_add(1, Ordering::Relaxed),
            "get" => counted_reads.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        None
    });
    let searcher = base.searcher_with(Arc::new(vectors), options);
    assert!(!respond(&searcher, request).await.results.is_empty());
    (batches.load(Ordering::Relaxed), reads.load(Ordering::Relaxed))
}

#[tokio::test]
async fn lesson_10_all_layers_are_asked_in_one_batch_and_again_in_one_more_at_most() {
    let twice = SearchOptions { second_round: true, ..SearchOptions::default() };
    let layered = request("volcanoes on Io");
    let flat = SearchRequest { mode: Mode::Flat, ..layered.clone() };
    // The results of three layers are read in any case; the second round reads its chunks besides.
    assert_eq!(asked(SearchOptions::default(), &layered).await, (1, 3));
    assert_eq!(asked(twice.clone(), &layered).await, (2, 4));
    assert_eq!(asked(SearchOptions::default(), &flat).await, (1, 1));
    assert_eq!(asked(twice.clone(), &flat).await, (1, 1));
    // Without a dense vote there is nothing to move.
    assert_eq!(asked(twice, &request("Io の火山")).await.0, 1);
}

#[tokio::test]
async fn a_second_round_moves_the_dense_legs_alone() {
    let base = library().await;
    let request = SearchRequest { explain: true, ..request("volcanoes on Io") };
    let twice = SearchOptions { second_round: true, ..SearchOptions::default() };
    let first = respond(&base.searcher(), &request).await;
    let second = respond(&base.searcher_with(base.vectors.clone(), twice), &request).await;
    let (first, second) = (first.results.as_slice(), second.results.as_slice());
    let of = |chunk_id| second.iter().find(|result| result.chunk_id == chunk_id).unwrap();
    for result in first {
        assert_eq!(result.scores.sparse, of(result.chunk_id).scores.sparse);
    }
    let best = &first[0];
    assert!(of(best.chunk_id).scores.dense > best.scores.dense, "it did not come nearer");
}

#[tokio::test]
async fn one_kind_of_legs_can_be_asked_alone() {
    let base = library().await;
    let request = SearchRequest { explain: true, ..request("volcanoes on Io") };
    for (only, other) in [(LegKind::Sparse, LegKind::Dense), (LegKind::Dense, LegKind::Sparse)] {
        let options = SearchOptions { only: Some(only), ..SearchOptions::default() };
        let response = respond(&base.searcher_with(base.vectors.clone(), options), &request).await;
        let explain = response.explain.as_ref().unwrap();
        let weights = |kind| explain.legs.iter().filter(move |leg| leg.kind == kind).map(|leg| leg.weight);
        assert!(weights(only).all(|weight| weight > 0.0) && weights(other).all(|weight| weight == 0.0));
        assert!(response.warnings.is_empty() && !response.results.is_empty());
    }
}

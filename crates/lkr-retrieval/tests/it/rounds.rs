//! The calls that a search makes to the store, and the second round.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use lkr_retrieval::{GroupBy, LegKind, Mode, SearchOptions, SearchRequest};
use lkr_vectors::FailingVectors;

use crate::{
    base::{TestBase, TestDocument, respond},
    results::{library, request},
};

/// The number of query batches and reads of a search in the library.
async fn calls(options: SearchOptions, request: &SearchRequest) -> (usize, usize) {
    calls_over(&library().await, options, request).await
}

/// The number of query batches and reads of a search.
async fn calls_over(base: &TestBase, options: SearchOptions, request: &SearchRequest) -> (usize, usize) {
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
async fn lesson_10_second_round_adds_at_most_one_batch() {
    let two_rounds = SearchOptions { second_round: true, ..SearchOptions::default() };
    let layered = request("volcanoes on Io");
    let flat = SearchRequest { mode: Mode::Flat, ..layered.clone() };
    // Each search reads the results of its layers; the second round also reads the vectors of three chunks.
    assert_eq!(calls(SearchOptions::default(), &layered).await, (1, 3));
    assert_eq!(calls(two_rounds.clone(), &layered).await, (2, 4));
    assert_eq!(calls(SearchOptions::default(), &flat).await, (1, 1));
    assert_eq!(calls(two_rounds.clone(), &flat).await, (1, 1));
    // If the dense legs have no weight, there is no second round.
    assert_eq!(calls(two_rounds, &request("Io の火山")).await.0, 1);
}

#[tokio::test]
async fn search_for_more_documents_than_there_are_asks_once_for_others() {
    let base = TestBase::embedded().await;
    let many: String =
        (0..500).map(|n| format!("## Part {n}\n\nThe whale number {n} sings to the whale.\n\n")).collect();
    let (large, _) = base.add(TestDocument { title: "Whales", text: &many, ..TestDocument::default() }).await;
    assert!(large.counts.chunks > 400);
    base.add(TestDocument { title: "Ships", text: "A whale sank a ship.", ..TestDocument::default() }).await;
    let mut documents = SearchRequest { group_by: GroupBy::Document, ..request("whale") };
    assert_eq!(calls_over(&base, SearchOptions::default(), &documents).await.0, 2);
    documents.filters.doc_ids = Some(vec![large.doc_id]);
    assert_eq!(calls_over(&base, SearchOptions::default(), &documents).await.0, 1);
}

#[tokio::test]
async fn second_round_changes_dense_scores_only() {
    let base = library().await;
    let request = SearchRequest { explain: true, ..request("volcanoes on Io") };
    let two_rounds = SearchOptions { second_round: true, ..SearchOptions::default() };
    let first = respond(&base.searcher(), &request).await;
    let second = respond(&base.searcher_with(base.vectors.clone(), two_rounds), &request).await;
    let (first, second) = (first.results.as_slice(), second.results.as_slice());
    let of = |chunk_id| second.iter().find(|result| result.chunk_id == chunk_id).unwrap();
    for result in first {
        assert_eq!(result.scores.sparse, of(result.chunk_id).scores.sparse);
    }
    let best = &first[0];
    assert!(
        of(best.chunk_id).scores.dense > best.scores.dense,
        "the query did not move towards the best result"
    );
}

#[tokio::test]
async fn option_only_restricts_a_search_to_one_kind_of_legs() {
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

//! Legs, their fusion, and explanations of rankings.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use lkr_domain::Layer;
use lkr_retrieval::{Fusion, LegKind, LegReport, Mode, SearchRequest, SearchResponse};
use lkr_vectors::FailingVectors;

use crate::{
    base::{TestDocument, respond, titles},
    results::{check_order, library, request},
};

#[tokio::test]
async fn lesson_10_explain_reports_legs_ranks_and_time() {
    let base = library().await;
    let explained = SearchRequest { explain: true, ..request("volcanoes on Io") };
    let response = respond(&base.searcher(), &explained).await;
    let explain = response.explain.as_ref().unwrap();
    let legs: Vec<_> = explain.legs.iter().map(|leg| (leg.layer, leg.kind)).collect();
    let expected: Vec<_> = Layer::ALL
        .into_iter()
        .flat_map(|layer| [(layer, LegKind::Dense), (layer, LegKind::Sparse)])
        .collect();
    assert_eq!(legs, expected);
    for leg in &explain.legs {
        assert!(leg.weight > 0.0 && leg.candidates > 0 && leg.ms >= 0.0, "{leg:?}");
    }
    let weight =
        |layer| explain.legs.iter().filter(|leg| leg.layer == layer).map(|leg| leg.weight).sum::<f32>();
    let weights = Layer::ALL.map(weight);
    for (weight, expected) in weights.into_iter().zip([0.05, 0.025, 0.1, 2.0]) {
        assert!((weight - expected).abs() < 1e-5, "{weights:?}");
    }
    let ids: Vec<_> = explain.results.iter().map(|result| result.chunk_id).collect();
    assert_eq!(ids, response.results.iter().map(|result| result.chunk_id).collect::<Vec<_>>());
    assert_eq!(explain.results[0].ranks.named().map(|(_, rank)| rank), [Some(1); 8]);
    for (result, explained) in response.results.iter().zip(&explain.results) {
        assert_eq!(
            (explained.scores.chunks_dense, explained.scores.chunks_sparse),
            (result.scores.dense, result.scores.sparse)
        );
        assert_eq!((explained.fused, explained.exact, explained.reranked), (result.score, false, None));
        for ((leg, rank), (_, score)) in explained.ranks.named().into_iter().zip(explained.scores.named()) {
            assert_eq!(rank.is_some(), score.is_some(), "{leg}");
        }
    }
    assert!(explain.rerank.is_none());
    let flat = respond(&base.searcher(), &SearchRequest { mode: Mode::Flat, ..explained }).await;
    let explain = flat.explain.as_ref().unwrap();
    assert_eq!(explain.legs.len(), 2);
    assert_eq!(explain.results[0].ranks.l1_dense, None);
    assert_eq!(explain.results[0].ranks.chunks_sparse, Some(1));
    assert!(flat.layers.l1.is_empty() && flat.layers.l2.is_empty() && flat.layers.l3.is_empty());
}

#[tokio::test]
async fn lesson_10_one_batch_queries_all_layers() {
    let base = library().await;
    let batches = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&batches);
    let vectors = FailingVectors::new(base.vectors.clone(), move |operation| {
        counted.fetch_add(usize::from(operation == "query_batch"), Ordering::Relaxed);
        None
    });
    let searcher = base.searcher_over(Arc::new(vectors));
    for mode in [Mode::Layered, Mode::Flat] {
        batches.store(0, Ordering::Relaxed);
        let response = respond(&searcher, &SearchRequest { mode, ..request("volcanoes on Io") }).await;
        assert!(!response.results.is_empty());
        assert_eq!(batches.load(Ordering::Relaxed), 1, "{mode:?}");
    }
}

#[tokio::test]
async fn lesson_15_no_chunk_is_hidden_by_its_parents() {
    let base = library().await;
    base.add(TestDocument {
        title: "Ledger",
        text: "# Ledger\n\nInvoices and receipts of the year. Rent was paid. Zyzzyva was seen. Taxes are due.",
        ..TestDocument::default()
    })
    .await;
    let searcher = base.searcher();
    for query in ["zyzzyva", "it", "a cat on Europa", "ice"] {
        for fusion in [Fusion::Graded, Fusion::Rrf] {
            let layered = SearchRequest { top_k: 100, fusion, ..request(query) };
            let flat = SearchRequest { mode: Mode::Flat, ..layered.clone() };
            let ids = |response: &SearchResponse| -> HashSet<_> {
                response.results.iter().map(|result| result.chunk_id).collect()
            };
            let (layered, flat) = (respond(&searcher, &layered).await, respond(&searcher, &flat).await);
            assert_eq!(ids(&layered), ids(&flat));
            for result in &layered.results {
                let flat_result =
                    flat.results.iter().find(|other| other.chunk_id == result.chunk_id).unwrap();
                assert!(result.score >= flat_result.score);
            }
        }
    }
    assert_eq!(titles(&*respond(&searcher, &request("zyzzyva")).await)[0], "Ledger");
}

#[tokio::test]
async fn plain_fusion_sums_reciprocal_ranks_with_equal_weights() {
    let base = library().await;
    let request = SearchRequest { fusion: Fusion::Rrf, explain: true, ..request("volcanoes on Io") };
    let response = respond(&base.searcher(), &request).await;
    check_order(&response);
    let explain = response.explain.as_ref().unwrap();
    assert!(explain.legs.iter().all(|leg| leg.weight == 1.0));
    for (result, explained) in response.results.iter().zip(&explain.results) {
        let ranks = explained.ranks.named().into_iter().filter_map(|(_, rank)| rank);
        let expected: f64 = ranks.map(|rank| 1.0 / (60.0 + f64::from(rank))).sum();
        assert!((f64::from(result.score) - expected).abs() < 1e-6);
    }
}

#[tokio::test]
async fn query_in_a_language_unknown_to_the_model_gets_no_dense_weight() {
    let base = library().await;
    base.add(TestDocument {
        title: "東京",
        text: "東京タワーは高い。私は東京に行く。",
        ..TestDocument::default()
    })
    .await;
    let request = SearchRequest { explain: true, ..request("東京タワー") };
    let response = respond(&base.searcher(), &request).await;
    assert_eq!(titles(&response), ["東京"]);
    assert!(response.warnings.is_empty());
    let legs = &response.explain.as_ref().unwrap().legs;
    let (dense, sparse): (Vec<&LegReport>, Vec<_>) = legs.iter().partition(|leg| leg.kind == LegKind::Dense);
    assert!(dense.iter().all(|leg| leg.weight == 0.0 && leg.candidates == 0 && leg.ms == 0.0));
    assert!(sparse.iter().all(|leg| leg.weight > 0.0));
}

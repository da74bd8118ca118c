//! Headings as evidence in layered searches.

use std::collections::HashMap;

use lkr_domain::Layer;
use lkr_retrieval::{Fusion, Mode, SearchOptions, SearchRequest, SearchResponse};

use crate::{
    base::{TestBase, TestDocument, respond},
    results::{library, request},
};

/// The nearest heading of each result, and the share of the query in it.
fn headings(response: &SearchResponse) -> Vec<(String, f32)> {
    let explained = response.explain.as_ref().unwrap().results.iter().map(|explained| explained.heading);
    let leaf = response.results.iter().map(|result| result.path.last().cloned().unwrap_or_default());
    leaf.zip(explained).collect()
}

fn explained(query: &str) -> SearchRequest {
    SearchRequest { explain: true, ..request(query) }
}

#[tokio::test]
async fn heading_counts_by_the_share_of_the_query_in_it() {
    let base = library().await;
    let found = respond(&base.searcher(), &explained("how thick is Europa")).await;
    assert_eq!(headings(&found)[0], ("Europa".to_owned(), 0.5));
    assert!(headings(&found)[1..].iter().all(|(_, share)| *share == 0.0));
    // Flat searches and plain fusion, the baselines, do not use headings.
    for (mode, fusion) in [(Mode::Flat, Fusion::Graded), (Mode::Layered, Fusion::Rrf)] {
        let plain = SearchRequest { mode, fusion, ..explained("how thick is Europa") };
        let found = respond(&base.searcher(), &plain).await;
        assert!(headings(&found).iter().all(|(_, share)| *share == 0.0));
    }
}

#[tokio::test]
async fn section_whose_heading_matches_ranks_above_one_with_equal_text() {
    // The indexed texts of both sections contain the same words.
    let base = TestBase::embedded().await;
    let text =
        "# Rules\n\n## Cake layers\n\nThe order of evidence.\n\n## Order of evidence\n\nThe cake layers.\n";
    base.add(TestDocument { title: "Rules", text, source: "rules.md", ..TestDocument::default() }).await;
    for (query, first) in [("evidence in order", "Order of evidence"), ("a cake with layers", "Cake layers")]
    {
        let found = respond(&base.searcher(), &explained(query)).await;
        assert_eq!(headings(&found)[0], (first.to_owned(), 1.0));
        assert_eq!(headings(&found)[1].1, 0.0);
        let flat = respond(&base.searcher(), &SearchRequest { mode: Mode::Flat, ..explained(query) }).await;
        assert!(flat.results[0].score - flat.results[1].score < 1e-4, "only the heading distinguishes them");
    }
}

#[tokio::test]
async fn upper_layers_weigh_less_when_results_are_below_headings() {
    let weights = |response: &SearchResponse| {
        let legs = &response.explain.as_ref().unwrap().legs;
        Layer::ALL
            .map(|layer| legs.iter().filter(|leg| leg.layer == layer).map(|leg| leg.weight).sum::<f32>())
    };
    let close = |weights: [f32; 4], expected: [f32; 4]| {
        weights.iter().zip(expected).all(|(weight, expected)| (weight - expected).abs() < 1e-5)
    };
    let found = respond(&library().await.searcher(), &explained("volcanoes on Io")).await;
    assert!(close(weights(&found), [0.05, 0.025, 0.1, 2.0]), "{:?}", weights(&found));
    let base = TestBase::embedded().await;
    let text = "Io has volcanoes. They throw sulphur high above its ground.";
    base.add(TestDocument { title: "Notes", text, source: "notes.txt", ..TestDocument::default() }).await;
    let found = respond(&base.searcher(), &explained("volcanoes on Io")).await;
    assert!(close(weights(&found), [0.2, 0.1, 0.4, 2.0]), "{:?}", weights(&found));
}

#[tokio::test]
async fn first_results_are_independent_of_the_requested_number() {
    let base = TestBase::embedded().await;
    let section = |n: usize| format!("## Storm {n}\n\nStorm number {n} passes the river at noon.\n");
    let text: String = (0..80).map(section).collect();
    for title in ["Storms", "Storms again"] {
        base.add(TestDocument { title, text: &text, source: title, ..TestDocument::default() }).await;
    }
    let searcher = base.searcher_with(base.vectors.clone(), SearchOptions::default());
    let request_for = |top_k| SearchRequest { top_k, ..explained("storm at the river") };
    let scores = |response: &SearchResponse| -> HashMap<_, _> {
        response.results.iter().map(|result| (result.chunk_id, result.score.to_bits())).collect()
    };
    let many = scores(&*respond(&searcher, &request_for(50)).await);
    for top_k in [1, 2, 5, 10, 20, 30, 40] {
        let few = scores(&*respond(&searcher, &request_for(top_k)).await);
        assert!(few.len() == top_k && few.iter().all(|(id, score)| many.get(id) == Some(score)), "{top_k}");
    }
}

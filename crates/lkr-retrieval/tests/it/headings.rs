//! What headings add to layered searches.

use std::collections::HashMap;

use lkr_domain::Layer;
use lkr_retrieval::{Fusion, Mode, SearchOptions, SearchRequest, SearchResponse};

use crate::{
    base::{Base, Given, respond},
    results::{library, request},
};

/// The leaf headings of the results, and how far each names what was asked for.
fn headings(response: &SearchResponse) -> Vec<(String, f32)> {
    let explained = response.explain.as_ref().unwrap().results.iter().map(|explained| explained.heading);
    let leaf = response.results.iter().map(|result| result.path.last().cloned().unwrap_or_default());
    leaf.zip(explained).collect()
}

fn explained(query: &str) -> SearchRequest {
    SearchRequest { explain: true, ..request(query) }
}

#[tokio::test]
async fn a_heading_counts_by_what_it_names_of_the_query() {
    let base = library().await;
    let found = respond(&base.searcher(), &explained("how thick is Europa")).await;
    assert_eq!(headings(&found)[0], ("Europa".to_owned(), 0.5));
    assert!(headings(&found)[1..].iter().all(|(_, names)| *names == 0.0));
    // The yardsticks are as they were.
    for (mode, fusion) in [(Mode::Flat, Fusion::Graded), (Mode::Layered, Fusion::Rrf)] {
        let plain = SearchRequest { mode, fusion, ..explained("how thick is Europa") };
        let found = respond(&base.searcher(), &plain).await;
        assert!(headings(&found).iter().all(|(_, names)| *names == 0.0));
    }
}

#[tokio::test]
async fn a_section_that_is_named_comes_before_one_that_says_as_much() {
    // The two have the same words, in all that is indexed of them.
    let base = Base::embedded().await;
    let text =
        "# Rules\n\n## Cake layers\n\nThe order of evidence.\n\n## Order of evidence\n\nThe cake layers.\n";
    base.add(Given { title: "Rules", text, source: "rules.md", ..Given::default() }).await;
    for (query, first) in [("evidence in order", "Order of evidence"), ("a cake with layers", "Cake layers")]
    {
        let found = respond(&base.searcher(), &explained(query)).await;
        assert_eq!(headings(&found)[0], (first.to_owned(), 1.0));
        assert_eq!(headings(&found)[1].1, 0.0);
        let flat = respond(&base.searcher(), &SearchRequest { mode: Mode::Flat, ..explained(query) }).await;
        assert!(flat.results[0].score - flat.results[1].score < 1e-4, "nothing else tells them apart");
    }
}

#[tokio::test]
async fn the_layers_above_say_less_where_headings_say_it_already() {
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
    let base = Base::embedded().await;
    let text = "Io has volcanoes. They throw sulphur high above its ground.";
    base.add(Given { title: "Notes", text, source: "notes.txt", ..Given::default() }).await;
    let found = respond(&base.searcher(), &explained("volcanoes on Io")).await;
    assert!(close(weights(&found), [0.2, 0.1, 0.4, 2.0]), "{:?}", weights(&found));
}

#[tokio::test]
async fn the_first_results_do_not_depend_on_how_many_are_asked_for() {
    let base = Base::embedded().await;
    let section = |n: usize| format!("## Storm {n}\n\nStorm number {n} passes the river at noon.\n");
    let text: String = (0..80).map(section).collect();
    for title in ["Storms", "Storms again"] {
        base.add(Given { title, text: &text, source: title, ..Given::default() }).await;
    }
    let searcher = base.searcher_with(base.vectors.clone(), SearchOptions::default());
    let ask = |top_k| SearchRequest { top_k, ..explained("storm at the river") };
    let of = |response: &SearchResponse| -> HashMap<_, _> {
        response.results.iter().map(|result| (result.chunk_id, result.score.to_bits())).collect()
    };
    let many = of(&*respond(&searcher, &ask(50)).await);
    for top_k in [1, 2, 5, 10, 20, 30, 40] {
        let few = of(&*respond(&searcher, &ask(top_k)).await);
        assert!(few.len() == top_k && few.iter().all(|(id, score)| many.get(id) == Some(score)), "{top_k}");
    }
}

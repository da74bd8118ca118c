//! Results, filters, explanations and extractive summaries.

use std::collections::{BTreeMap, HashMap, HashSet};

use lkr_retrieval::{ErrorKind, GroupBy, Mode, SearchFilters, SearchRequest, SearchResponse, SummaryKind};
use proptest::prelude::*;

use crate::base::{TestBase, TestDocument, respond, titles};

const MOONS: &str = "# Moons\n\n## Europa\n\nEuropa hides a salty ocean under a crust of ice. The ice is twenty \
    kilometres thick. Probes will fly past it.\n\n## Io\n\nIo is covered by volcanoes. Lava lakes glow on its night \
    side. Tidal heating melts its mantle.\n\n## Titan\n\nTitan has lakes of methane. Its haze is orange.\n";

const PETS: &str = "# Pets\n\n## Cats\n\nA cat sleeps most of the day. It hunts at dusk and drinks little.\n\n\
    ## Dogs\n\nA dog wants company. It barks at strangers.\n";

const RECIPES: &str = "# Recipes\n\n## Soup\n\nBoil the lentils with cumin until they are soft.\n\n## Bread\n\n\
    Knead the dough for ten minutes and let it rise.\n";

pub(crate) async fn library() -> TestBase {
    let base = TestBase::embedded().await;
    base.add(TestDocument {
        title: "Moons of the outer planets",
        text: MOONS,
        source: "https://example.org/moons",
        category: "astronomy",
        metadata: &[("kind", "article"), ("year", "2024")],
    })
    .await;
    base.add(TestDocument {
        title: "Pets",
        text: PETS,
        source: "pets.md",
        category: "",
        metadata: &[("kind", "guide")],
    })
    .await;
    base.add(TestDocument {
        title: "Recipes",
        text: RECIPES,
        source: "recipes.md",
        category: "food",
        ..TestDocument::default()
    })
    .await;
    base
}

pub(crate) fn request(query: &str) -> SearchRequest {
    SearchRequest::new(query)
}

pub(crate) fn check_order(response: &SearchResponse) {
    assert!(
        response
            .results
            .is_sorted_by(|a, b| a.score > b.score || (a.score == b.score && a.chunk_id < b.chunk_id))
    );
    let chunks: HashSet<_> = response.results.iter().map(|result| result.chunk_id).collect();
    assert_eq!(chunks.len(), response.results.len());
}

#[tokio::test]
async fn result_has_its_source_offsets_and_scores() {
    let base = library().await;
    let response = respond(&base.searcher(), &request("  how thick is the ice of Europa\n")).await;
    check_order(&response);
    assert_eq!(response.query, "how thick is the ice of Europa");
    assert!(response.warnings.is_empty() && response.summary.is_none() && response.explain.is_none());
    let best = &response.results[0];
    assert_eq!(best.title, "Moons of the outer planets");
    assert_eq!((best.source.as_str(), best.category.as_str()), ("https://example.org/moons", "astronomy"));
    assert_eq!(best.path.last().map(String::as_str), Some("Europa"));
    let chars: Vec<char> = MOONS.chars().collect();
    for result in response.results.iter().filter(|result| result.doc_id == best.doc_id) {
        let cut: String = chars[result.char_start as usize..result.char_end as usize].iter().collect();
        assert_eq!(cut, result.text);
    }
    assert!(best.scores.dense.is_some() && best.scores.sparse.is_some());
    assert!(best.scores.l1.is_some() && best.scores.l2.is_some() && best.scores.l3.is_some());
}

#[tokio::test]
async fn layers_are_the_nodes_that_contain_the_results() {
    let base = library().await;
    let response = respond(&base.searcher(), &request("volcanoes and lava on Io")).await;
    let best = &response.results[0];
    let layers = &response.layers;
    assert_eq!(layers.l1[0].doc_id, best.doc_id);
    assert_eq!(layers.l1[0].title, "Moons of the outer planets");
    assert!(!layers.l1[0].summary.is_empty());
    assert_eq!(layers.l2[0].title, "Io");
    assert!(layers.l2[0].summary.contains("Io is covered by volcanoes"), "{}", layers.l2[0].summary);
    assert_eq!(layers.l3[0].doc_id, best.doc_id);
    let docs: HashSet<_> = response.results.iter().map(|result| result.doc_id).collect();
    for hits in [&layers.l1, &layers.l2, &layers.l3] {
        assert!(hits.is_sorted_by(|a, b| a.score > b.score || (a.score == b.score && a.id < b.id)));
        assert!(hits.iter().all(|hit| docs.contains(&hit.doc_id)));
    }
}

#[tokio::test]
async fn dense_legs_find_synonyms_without_common_words() {
    let base = library().await;
    let response = respond(&base.searcher(), &request("feline")).await;
    let best = &response.results[0];
    assert_eq!((best.title.as_str(), best.scores.sparse), ("Pets", None));
    assert!(best.text.contains("cat"));
    assert!(best.highlights.is_empty());
}

#[tokio::test]
async fn highlights_are_ranges_of_code_points() {
    let base = TestBase::embedded().await;
    base.add(TestDocument {
        title: "Über",
        text: "🏔 Über dem Ozean — ein océan, l’océan 𝔘 of ice.",
        ..TestDocument::default()
    })
    .await;
    base.add(TestDocument {
        title: "塔",
        text: "私は東京タワーに行く。とても高い。",
        ..TestDocument::default()
    })
    .await;
    let searcher = base.searcher();
    let marked = |response: &SearchResponse| -> Vec<String> {
        let result = &response.results[0];
        let chars: Vec<char> = result.text.chars().collect();
        let cut = |&(start, end): &(u32, u32)| chars[start as usize..end as usize].iter().collect();
        result.highlights.iter().map(cut).collect()
    };
    assert!(marked(&*respond(&searcher, &request("océan")).await).contains(&"océan".to_owned()));
    assert_eq!(marked(&*respond(&searcher, &request("東京タワー")).await), ["東京タワー"]);
}

#[tokio::test]
async fn each_filter_excludes_documents_that_do_not_match() {
    let base = library().await;
    let searcher = base.searcher();
    let all = respond(&searcher, &request("it")).await;
    let of = |title: &str| all.results.iter().find(|result| result.title == title).unwrap().doc_id;
    let some = |text: &str| Some(text.to_owned());
    let metadata = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    let moons = "Moons of the outer planets";
    let none = SearchFilters::default;
    let cases = [
        (SearchFilters { category: some("astronomy"), ..none() }, vec![moons]),
        (SearchFilters { category: some(""), ..none() }, vec!["Pets"]),
        (SearchFilters { source: some("recipes.md"), ..none() }, vec!["Recipes"]),
        (SearchFilters { doc_ids: Some(vec![of("Pets"), of("Recipes")]), ..none() }, vec!["Pets", "Recipes"]),
        (SearchFilters { doc_ids: Some(Vec::new()), ..none() }, vec![]),
        (SearchFilters { language: some("en"), ..none() }, vec![moons, "Pets", "Recipes"]),
        (SearchFilters { language: some("de"), ..none() }, vec![]),
        (SearchFilters { metadata: metadata(&[("kind", "article")]), ..none() }, vec![moons]),
        (SearchFilters { metadata: metadata(&[("kind", "article"), ("year", "1999")]), ..none() }, vec![]),
        (
            SearchFilters { category: some("food"), metadata: metadata(&[("kind", "guide")]), ..none() },
            vec![],
        ),
    ];
    for (filters, expected) in cases {
        for mode in [Mode::Layered, Mode::Flat] {
            let request = SearchRequest { filters: filters.clone(), mode, ..request("it") };
            let response = respond(&searcher, &request).await;
            let found: HashSet<_> = titles(&response).into_iter().collect();
            assert_eq!(found, expected.iter().copied().collect(), "{filters:?}");
        }
    }
}

#[tokio::test]
async fn group_by_document_shows_the_best_chunk_of_each() {
    let base = library().await;
    let searcher = base.searcher();
    let chunks = respond(&searcher, &request("the ice of Europa, a cat, bread")).await;
    let by_document =
        SearchRequest { group_by: GroupBy::Document, ..request("the ice of Europa, a cat, bread") };
    let documents = respond(&searcher, &by_document).await;
    let mut seen = HashSet::new();
    let best: Vec<_> = chunks.results.iter().filter(|result| seen.insert(result.doc_id)).collect();
    assert_eq!(documents.results.iter().collect::<Vec<_>>(), best);
    assert_eq!(documents.results.len(), 3);
}

#[tokio::test]
async fn group_by_document_finds_documents_behind_a_large_one() {
    // The second number is more than a leg ever lists.
    for parts in [400, 6_500] {
        let base = TestBase::embedded().await;
        let lines: String = (0..parts)
            .map(|n| format!("## Part {n}\n\nThe whale number {n} sings to the whale.\n\n"))
            .collect();
        let large = TestDocument { title: "Whale whale whale", text: &lines, ..TestDocument::default() };
        let (large, _) = base.add(large).await;
        assert!(large.counts.chunks >= parts);
        base.add(TestDocument {
            title: "Ships",
            text: "A ship was sunk by a whale once, it is said.",
            ..TestDocument::default()
        })
        .await;
        let request = SearchRequest { group_by: GroupBy::Document, mode: Mode::Flat, ..request("whale") };
        let response = respond(&base.searcher(), &request).await;
        assert_eq!(titles(&response), ["Whale whale whale", "Ships"]);
        assert!(response.warnings.is_empty());
    }
}

#[tokio::test]
async fn top_k_limits_the_number_of_results() {
    let base = library().await;
    for (top_k, group_by, expected) in
        [(1, GroupBy::Chunk, 1), (2, GroupBy::Document, 2), (100, GroupBy::Document, 3)]
    {
        let request = SearchRequest { top_k, group_by, ..request("it") };
        assert_eq!(respond(&base.searcher(), &request).await.results.len(), expected);
    }
}

#[tokio::test]
async fn extractive_summary_cites_its_chunks() {
    let base = library().await;
    let request = SearchRequest { summarize: true, ..request("how thick is the ice of Europa") };
    let response = respond(&base.searcher(), &request).await;
    let summary = response.summary.as_ref().unwrap();
    assert_eq!((summary.kind, summary.model.as_ref()), (SummaryKind::Extractive, None));
    assert_eq!(response.warnings, ["no language model configured: the summary is extractive"]);
    assert!(summary.text.contains("The ice is twenty kilometres thick. ["), "{}", summary.text);
    for citation in &summary.citations {
        assert!(summary.text.contains(&citation.marker));
        let chunk = response.results.iter().find(|result| result.chunk_id == citation.chunk_id).unwrap();
        assert_eq!(chunk.doc_id, citation.doc_id);
    }
}

#[tokio::test]
async fn empty_knowledge_base_and_query_without_words_yield_no_results() {
    let base = TestBase::embedded().await;
    let request_all = SearchRequest { summarize: true, explain: true, ..request("anything") };
    let response = respond(&base.searcher(), &request_all).await;
    assert!(response.results.is_empty() && response.layers.l1.is_empty());
    assert_eq!(response.summary.as_ref().unwrap().text, "");
    let base = TestBase::new(None).await;
    let response = respond(&base.searcher(), &request("?!")).await;
    assert_eq!(
        response.warnings,
        ["no embedding model: keyword search only", "the query contains no searchable words"]
    );
}

#[tokio::test]
async fn request_out_of_bounds_is_invalid() {
    let base = library().await;
    for invalid in [request(" "), SearchRequest { top_k: 0, ..request("q") }] {
        let error = base.searcher().search(&invalid).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}

/// Texts with headings, lists, tables, code, and characters of one to four bytes.
fn texts() -> impl Strategy<Value = Vec<String>> {
    let word = prop::sample::select(&[
        "whale",
        "océan",
        "鯨が歌う。",
        "🐋",
        "e\u{301}cume",
        "ERR-47",
        "sea",
        ". ",
        "\n",
        "\r\n\r\n",
    ]);
    let line = prop::collection::vec(word, 1..40).prop_map(|words| words.join(" "));
    let block = prop_oneof![
        line.clone(),
        line.clone().prop_map(|line| format!("## {}", line.replace(['\n', '\r'], " "))),
        line.clone().prop_map(|line| format!("- {line}\n- {line}")),
        line.prop_map(|line| format!("```\n{line}\n```")),
    ];
    let text =
        prop::collection::vec(block, 1..12).prop_map(|blocks| format!("whale\n\n{}", blocks.join("\n\n")));
    prop::collection::vec(text, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For each result of each kind of search, the document's text between the offsets is the result's text, and
    /// highlights lie within it.
    #[test]
    fn lesson_09_offsets_cut_exactly_the_cited_text(texts in texts()) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let base = TestBase::embedded().await;
            let mut by_document = HashMap::new();
            for text in &texts {
                let (document, _) = base.add(TestDocument { title: "t", text, ..TestDocument::default() }).await;
                by_document.insert(document.doc_id, text.chars().collect::<Vec<char>>());
            }
            let searcher = base.searcher();
            let mut checked = 0;
            for query in ["whale", "\"whale sea\" océan", "鯨が歌う", "err-47 🐋"] {
                for (mode, group_by) in [(Mode::Layered, GroupBy::Chunk), (Mode::Flat, GroupBy::Document)] {
                    let request = SearchRequest { mode, group_by, top_k: 100, ..request(query) };
                    for result in &respond(&searcher, &request).await.results {
                        let chars = &by_document[&result.doc_id];
                        let cut: String = chars[result.char_start as usize..result.char_end as usize].iter().collect();
                        assert_eq!(cut, result.text);
                        let length = result.char_end - result.char_start;
                        let mut end = None;
                        for &(from, to) in &result.highlights {
                            assert!(end.is_none_or(|end| end < from) && from < to && to <= length, "{result:?}");
                            end = Some(to);
                        }
                        checked += 1;
                    }
                }
            }
            assert!(checked > 0);
        });
    }
}

//! Literal matches, and the document cap.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use lkr_retrieval::{Fusion, GroupBy, Mode, SearchOptions, SearchRequest, SearchResponse};
use lkr_vectors::{FailingVectors, VectorStore};

use crate::base::{TestBase, TestDocument, WordEmbedder, respond, titles};

fn request(query: &str) -> SearchRequest {
    SearchRequest { explain: true, ..SearchRequest::new(query) }
}

/// A knowledge base in which each text is a document with its title.
async fn base(texts: &[(&str, &str)]) -> TestBase {
    let base = TestBase::embedded().await;
    for (title, text) in texts {
        base.add(TestDocument { title, text, ..TestDocument::default() }).await;
    }
    base
}

fn exact(response: &SearchResponse) -> Vec<bool> {
    response.explain.as_ref().unwrap().results.iter().map(|result| result.exact).collect()
}

/// The highlighted parts of the first result.
fn marked(response: &SearchResponse) -> Vec<String> {
    let result = &response.results[0];
    let chars: Vec<char> = result.text.chars().collect();
    let cut = |&(start, end): &(u32, u32)| chars[start as usize..end as usize].iter().collect();
    result.highlights.iter().map(cut).collect()
}

/// Codes that differ in a digit, and texts that match the other words of the query better.
const CODES: [(&str, &str); 5] = [
    ("one", "The code ERR-4711 stands for a disk that is full. Nothing was written."),
    ("two", "The code ERR-4712 stands for a disk that is full. Nothing was written."),
    ("three", "The code ERR-47110 stands for a disk that is full. Nothing was written."),
    (
        "four",
        "Error codes: every error has a code, and the code of an error stands for the error. A code is a code.",
    ),
    ("five", "What does an error mean? What a code stands for: the meaning of the error code."),
];

#[tokio::test]
async fn identifier_in_a_query_ranks_its_exact_match_first() {
    let base = base(&CODES).await;
    for query in ["ERR-4711", "what does the error code err-4711 stand for", "\"ERR-4711\" error code"] {
        for fusion in [Fusion::Graded, Fusion::Rrf] {
            for mode in [Mode::Layered, Mode::Flat] {
                let response =
                    respond(&base.searcher(), &SearchRequest { fusion, mode, ..request(query) }).await;
                assert_eq!(titles(&response)[0], "one", "{query}");
                assert_eq!(exact(&response).iter().filter(|exact| **exact).count(), 1, "{query}");
                assert!(marked(&response).contains(&"ERR-4711".to_owned()), "{query}");
                assert!(response.results.is_sorted_by(|a, b| a.score >= b.score));
            }
        }
    }
}

#[tokio::test]
async fn phrase_that_no_passage_contains_is_told() {
    let base = base(&CODES).await;
    let told = async |query: &str| {
        let response = respond(&base.searcher(), &request(query)).await;
        let told = response.warnings.iter().any(|warning| warning.contains("quotation marks"));
        (response.results.len(), told)
    };
    assert_eq!(told("\"disk that is full\"").await, (5, false));
    assert_eq!(told("\"disk that was full\"").await, (5, true));
    assert_eq!(told("\"disk that was full\" ERR-4711").await, (5, true), "an identifier is no phrase");
    assert_eq!(told("disk that was full").await, (5, false));
    assert_eq!(told("\"zeppelin hangar\"").await, (5, true));
}

#[tokio::test]
async fn query_of_stop_words_without_results_is_explained() {
    let base = TestBase::new(None).await;
    let text = "To be, or not to be, that is the question.";
    base.add(TestDocument { title: "Hamlet", text, ..TestDocument::default() }).await;
    for (query, quotes) in [("to be or not to be", false), ("\"to be, or not to be\"", true)] {
        let response = respond(&base.searcher(), &request(query)).await;
        let told = |part: &str| response.warnings.iter().any(|warning| warning.contains(part));
        assert_eq!(response.results.len(), 0, "{query}");
        assert_eq!(
            (told("too frequent"), told("quotation marks")),
            (true, quotes),
            "{:?}",
            response.warnings
        );
    }
}

#[tokio::test]
async fn stop_words_do_not_explain_a_filter_without_matches() {
    for (embedder, is_told) in [(None, true), (Some(WordEmbedder::new("words")), false)] {
        let base = TestBase::new(embedder).await;
        let text = "To be, or not to be, that is the question.";
        base.add(TestDocument { title: "Hamlet", text, ..TestDocument::default() }).await;
        let mut request = request("to be or not to be");
        request.filters.source = Some("elsewhere".to_owned());
        let response = respond(&base.searcher(), &request).await;
        let told = response.warnings.iter().any(|warning| warning.contains("too frequent"));
        assert_eq!((response.results.len(), told), (0, is_told), "{:?}", response.warnings);
    }
}

#[tokio::test]
async fn versions_and_file_names_are_found_by_the_whole_and_by_parts() {
    let base = base(&[
        ("a", "Since v1.2.3 the flag is gone."),
        ("b", "Since v1.2.4 the flag is back."),
        ("c", "The loop stands in src/main.rs below the imports."),
        ("d", "Call parseUrl before anything else."),
        ("e", "The field max_open_files bounds them; see std::fs for the rest."),
        ("f", "It needs 1,000 files, or 3.14 of them at 10:30."),
        ("g", "Nothing of the kind."),
    ])
    .await;
    let searcher = base.searcher();
    for (query, expected) in [
        ("1.2.3", "a"),
        ("v1.2.4", "b"),
        ("what changed in 1.2.4", "b"),
        ("main.rs", "c"),
        ("src/main.rs", "c"),
        ("main", "c"),
        ("parseUrl", "d"),
        ("parseurl", "d"),
        ("url", "d"),
        ("max_open_files", "e"),
        ("open", "e"),
        ("std::fs", "e"),
        ("1000", "f"),
        ("1,000", "f"),
        ("3.14", "f"),
        ("10:30", "f"),
    ] {
        let response = respond(&searcher, &request(query)).await;
        assert_eq!(titles(&response)[0], expected, "{query}");
        assert!(!marked(&response).is_empty(), "{query}");
    }
    let both = respond(&searcher, &request("1.2")).await;
    assert_eq!(titles(&both)[..2].iter().copied().collect::<HashSet<_>>(), HashSet::from(["a", "b"]));
}

#[tokio::test]
async fn quoted_phrase_ranks_its_exact_match_first() {
    let base = base(&[
        ("loose", "Ice on the ocean. The ocean is salty, and salty is the ice. Salty, salty ocean ice."),
        ("exact", "Somewhere below, the salty ocean waits."),
        ("other", "A cat sleeps."),
    ])
    .await;
    let searcher = base.searcher();
    let response = respond(&searcher, &request("ice \"below salty\" ocean")).await;
    assert!(exact(&response).iter().all(|exact| !exact), "no text contains the phrase");
    let response = respond(&searcher, &request("ice ocean \"the SALTY ocean\"")).await;
    assert_eq!(titles(&response)[0], "exact");
    assert_eq!(marked(&response), ["the salty ocean"]);
    let response = respond(&searcher, &request("the salty ocean waits")).await;
    assert_eq!((titles(&response)[0], exact(&response)[0]), ("exact", true));
    assert_eq!(marked(&response), ["the salty ocean waits"]);
}

#[tokio::test]
async fn identifier_in_nearly_all_candidates_does_not_count() {
    let texts: Vec<_> = (0..9).map(|n| format!("covid-19 case {n} and more of it")).collect();
    let mut documents: Vec<_> = texts.iter().map(|text| ("case", text.as_str())).collect();
    documents.push(("virus", "The virus spreads by air; masks hold the virus back, and masks are cheap."));
    let base = base(&documents).await;
    let response = respond(&base.searcher(), &request("do masks hold the virus of covid-19 back")).await;
    assert_eq!(titles(&response)[0], "virus");
    assert!(exact(&response).iter().all(|exact| !exact));
}

#[tokio::test]
async fn lesson_11_chinese_and_japanese_are_found_by_keyword() {
    let base = TestBase::new(None).await;
    for (title, text) in [
        ("塔", "私は東京タワーに行く。とても高い。"),
        ("空", "東の空に月が出る。京都の夜。"),
        ("检索", "知识检索服务把文档分成四层,每一层都有自己的向量。"),
        ("天气", "今天天气很好,我们去公园散步。"),
        ("猫", "吾輩は猫である。名前はまだ無い。"),
    ] {
        base.add(TestDocument { title, text, ..TestDocument::default() }).await;
    }
    let searcher = base.searcher();
    for (query, expected, part) in [
        ("東京タワー", "塔", "東京タワー"),
        ("東京タワーの高さは", "塔", "東京タワー"),
        ("京都", "空", "京都"),
        ("文档分成几层", "检索", "文档分成"),
        ("向量", "检索", "向量"),
        ("公园散步", "天气", "公园散步"),
        ("名前", "猫", "名前"),
        ("猫", "猫", "猫"),
    ] {
        let response = respond(&searcher, &request(query)).await;
        assert_eq!(titles(&response).first(), Some(&expected), "{query}");
        assert!(marked(&response).concat().contains(part), "{query}: {:?}", marked(&response));
    }
}

/// A text of `count` sections about whales.
fn sections(count: usize) -> String {
    (0..count).map(|n| format!("## Part {n}\n\nThe whale number {n} sings to the whale.\n\n")).collect()
}

#[tokio::test]
async fn one_document_gets_at_most_two_thirds_of_a_page() {
    let base = TestBase::embedded().await;
    base.add(TestDocument { title: "Whale whale whale", text: &sections(30), ..TestDocument::default() })
        .await;
    for n in 0..5 {
        let (title, text) =
            (format!("ship {n}"), format!("Ship number {n} was sunk by a whale once, it is said."));
        base.add(TestDocument { title: &title, text: &text, ..TestDocument::default() }).await;
    }
    let searcher = base.searcher();
    let mut before = HashSet::new();
    for (top_k, most) in [(1, 1), (3, 2), (10, 7), (12, 8), (35, 30), (100, 30)] {
        let response = respond(&searcher, &SearchRequest { top_k, ..request("whale") }).await;
        let from_large = titles(&response).iter().filter(|title| title.starts_with("Whale")).count();
        assert_eq!(from_large, most, "of {top_k}");
        assert!(response.results.is_sorted_by(|a, b| a.score >= b.score));
        let ids: HashSet<_> = response.results.iter().map(|result| result.chunk_id).collect();
        assert!(ids.is_superset(&before), "the page of {top_k} lacks results of a smaller page");
        before = ids;
    }
    assert_eq!(before.len(), 35);
    let by_document = SearchRequest { group_by: GroupBy::Document, ..request("whale") };
    assert_eq!(respond(&searcher, &by_document).await.results.len(), 6);
}

#[tokio::test]
async fn documents_ranked_behind_a_large_one_get_their_share_of_the_page() {
    let base = TestBase::embedded().await;
    let (large, _) = base
        .add(TestDocument { title: "Whale whale whale", text: &sections(400), ..TestDocument::default() })
        .await;
    for n in 0..5 {
        let text = format!("Ship number {n} was, as it is said and often told, sunk by a whale once.");
        base.add(TestDocument { title: "ship", text: &text, ..TestDocument::default() }).await;
    }
    let batches = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&batches);
    let vectors: Arc<dyn VectorStore> =
        Arc::new(FailingVectors::new(base.vectors.clone(), move |operation| {
            counted.fetch_add(usize::from(operation == "query_batch"), Ordering::Relaxed);
            None
        }));
    let searcher = |second_round| {
        base.searcher_with(Arc::clone(&vectors), SearchOptions { second_round, ..SearchOptions::default() })
    };
    let (one_round, two_rounds) = (searcher(false), searcher(true));
    let count =
        |response: &SearchResponse| response.results.iter().filter(|r| r.doc_id == large.doc_id).count();
    for (mode, searcher) in
        [(Mode::Layered, &one_round), (Mode::Layered, &two_rounds), (Mode::Flat, &one_round)]
    {
        let request = SearchRequest { mode, ..request("whale") };
        let response = respond(searcher, &request).await;
        assert_eq!((response.results.len(), count(&response)), (10, 7), "{mode:?}");
        assert_eq!(
            batches.swap(0, Ordering::Relaxed),
            2,
            "{mode:?}: the other documents take a second batch"
        );
        assert!(response.results.is_sorted_by(|a, b| a.score >= b.score));
        for result in response.results.iter().filter(|result| result.doc_id != large.doc_id) {
            assert!(result.text.contains("sunk by a whale") && !result.highlights.is_empty(), "{result:?}");
        }
    }
    // A filter on that document lets it fill the page.
    let mut alone = request("whale");
    alone.filters.doc_ids = Some(vec![large.doc_id]);
    assert_eq!(count(&*respond(&one_round, &alone).await), 10);
}

#[tokio::test]
async fn single_matching_document_fills_the_page() {
    let base = base(&[("Whales", &sections(20)), ("Bread", "Knead the dough.")]).await;
    let request = SearchRequest { mode: Mode::Flat, ..request("sings") };
    let response = respond(&TestBase { embedder: None, ..base }.searcher(), &request).await;
    assert_eq!(titles(&response), ["Whales"; 10]);
}

//! Reranking, and rerankers that fail.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use lkr_models::{Error, ErrorKind, MemoryReranker, Reranker, RerankerProfile, RerankerSource, Result};
use lkr_retrieval::{
    CacheStatus, GroupBy, MemoryCache, SearchOptions, SearchRequest, SearchResponse, Searcher,
};
use tokio::time::Instant;

use crate::base::{TestBase, TestDocument, respond, titles};

/// A reranker that scores a passage by the number in it, or misbehaves.
#[derive(Debug)]
struct TestReranker {
    profile: RerankerProfile,
    behaviour: Behaviour,
    calls: AtomicUsize,
}

#[derive(Debug)]
enum Behaviour {
    Numbers,
    Fails,
    Hangs,
    TooFewScores,
    NonFinite,
}

impl TestReranker {
    fn new(behaviour: Behaviour) -> Arc<Self> {
        let profile =
            RerankerProfile { id: format!("{behaviour:?}"), name: "judge".to_owned(), candidates: 4 };
        Arc::new(Self { profile, behaviour, calls: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl Reranker for TestReranker {
    fn profile(&self) -> &RerankerProfile {
        &self.profile
    }

    async fn rerank(&self, _: &str, passages: &[String]) -> Result<Vec<f32>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let number = |text: &String| {
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            digits.parse().unwrap_or(-1.0)
        };
        match self.behaviour {
            Behaviour::Numbers => Ok(passages.iter().map(number).collect()),
            Behaviour::Fails => Err(Error::new(ErrorKind::Unavailable, "rerank", "made to fail")),
            Behaviour::Hangs => std::future::pending().await,
            Behaviour::TooFewScores => Ok(vec![1.0]),
            Behaviour::NonFinite => Ok(vec![f32::NAN; passages.len()]),
        }
    }
}

/// A source whose reranker is misconfigured.
#[derive(Debug)]
struct Misconfigured;

#[async_trait]
impl RerankerSource for Misconfigured {
    async fn reranker(&self) -> Result<Option<Arc<dyn Reranker>>> {
        Err(Error::new(ErrorKind::Config, "reranker", "made to fail"))
    }
}

fn source(reranker: Arc<impl Reranker>) -> Arc<dyn RerankerSource> {
    let reranker: Arc<dyn Reranker> = reranker;
    Arc::new(reranker)
}

/// Documents 1 to 7 about whales, each less relevant than the one before.
async fn base() -> TestBase {
    let base = TestBase::new(None).await;
    for n in 1..=7_u32 {
        let more = "and of ships ".repeat(n as usize);
        let (title, text) = (format!("doc {n}"), format!("A tale of whales {}.", more.trim_end()));
        base.add(TestDocument { title: &title, text: &text, ..TestDocument::default() }).await;
    }
    base
}

fn searcher(base: &TestBase, rerankers: Arc<dyn RerankerSource>) -> Searcher {
    let options = SearchOptions { rerank_timeout: Duration::from_millis(50), ..SearchOptions::default() };
    let cache = Arc::new(MemoryCache::default());
    Searcher::new(base.vectors.clone(), base.catalog.clone(), None, cache, options).with_rerankers(rerankers)
}

fn request() -> SearchRequest {
    SearchRequest { explain: true, ..SearchRequest::new("whales") }
}

fn check_cuts(response: &SearchResponse) {
    for result in &response.results {
        assert!(result.text.starts_with("A tale of whales") && result.char_start == 0, "{result:?}");
        assert_eq!(result.char_end as usize, result.text.chars().count());
        assert_eq!(result.highlights, [(10, 16)]);
    }
}

#[tokio::test]
async fn reranker_orders_the_best_candidates_and_the_rest_follows() {
    let base = base().await;
    let reranker = TestReranker::new(Behaviour::Numbers);
    let searcher = searcher(&base, source(reranker.clone()));
    let plain = respond(&searcher, &SearchRequest { rerank: Some(false), ..request() }).await;
    assert_eq!(titles(&plain), ["doc 1", "doc 2", "doc 3", "doc 4", "doc 5", "doc 6", "doc 7"]);
    assert_eq!(
        reranker.calls.load(Ordering::Relaxed),
        0,
        "the reranker was called although the request refused it"
    );
    let reranked = respond(&searcher, &request()).await;
    assert_eq!(titles(&reranked), ["doc 4", "doc 3", "doc 2", "doc 1", "doc 5", "doc 6", "doc 7"]);
    assert!(reranked.results.is_sorted_by(|a, b| a.score > b.score));
    assert_eq!(plain.warnings, reranked.warnings);
    check_cuts(&reranked);
    for (rerank, explain) in [(0, plain.explain.as_ref()), (4, reranked.explain.as_ref())] {
        let explain = explain.unwrap();
        assert_eq!(explain.rerank.as_ref().map_or(0, |report| report.candidates), rerank);
        let shown = explain.results.iter().filter(|result| result.reranked.is_some()).count();
        assert_eq!(shown, rerank);
    }
    let explain = reranked.explain.as_ref().unwrap();
    assert_eq!(explain.rerank.as_ref().unwrap().model, "judge");
    assert_eq!(explain.results[0].reranked, Some(4.0));
    assert_eq!(explain.results[0].ranks.chunks_sparse, Some(4), "ranks are those of the legs");
    for (result, explained) in plain.results.iter().zip(&plain.explain.as_ref().unwrap().results) {
        assert_eq!(result.score, explained.fused);
    }
    // Only the order and the shown scores differ.
    let by_id = |response: &SearchResponse| {
        let mut results = response.results.clone();
        results.iter_mut().for_each(|result| result.score = 0.0);
        results.sort_by_key(|result| result.chunk_id);
        results
    };
    assert_eq!(by_id(&plain), by_id(&reranked));
}

#[tokio::test]
async fn page_is_cut_after_reranking() {
    let base = base().await;
    let searcher = searcher(&base, source(TestReranker::new(Behaviour::Numbers)));
    for group_by in [GroupBy::Chunk, GroupBy::Document] {
        let request = SearchRequest { top_k: 2, group_by, ..request() };
        assert_eq!(titles(&*respond(&searcher, &request).await), ["doc 4", "doc 3"]);
    }
}

#[tokio::test(start_paused = true)]
async fn search_succeeds_when_the_reranker_fails_hangs_or_returns_invalid_scores() {
    let base = base().await;
    for behaviour in [Behaviour::Fails, Behaviour::Hangs, Behaviour::TooFewScores, Behaviour::NonFinite] {
        let reranker = TestReranker::new(behaviour);
        let searcher = searcher(&base, source(reranker.clone()));
        let started = Instant::now();
        for searches in 1..=2 {
            let searched = searcher.search(&request()).await.unwrap();
            assert_eq!(searched.cache, CacheStatus::Miss, "a degraded response was cached");
            let response = &searched.response;
            assert_eq!(titles(response)[..2], ["doc 1", "doc 2"]);
            assert!(response.warnings.iter().any(|warning| warning.contains("not reranked")), "{response:?}");
            assert!(response.explain.as_ref().unwrap().rerank.is_none());
            check_cuts(response);
            // A reranker that timed out is not called during its cooldown.
            let expected = if matches!(reranker.behaviour, Behaviour::Hangs) { 1 } else { searches };
            assert_eq!(reranker.calls.load(Ordering::Relaxed), expected);
        }
        assert!(started.elapsed() < Duration::from_secs(10), "the searches waited for the reranker");
    }
    let response = respond(&searcher(&base, Arc::new(Misconfigured)), &request()).await;
    assert_eq!(titles(&response)[0], "doc 1");
    assert!(response.warnings.iter().any(|warning| warning.contains("not reranked")));
}

#[tokio::test(start_paused = true)]
async fn reranker_that_timed_out_is_not_called_during_its_cooldown() {
    let base = base().await;
    let reranker = TestReranker::new(Behaviour::Hangs);
    let options = SearchOptions {
        max_concurrent: 1,
        admission_timeout: Duration::from_millis(300),
        rerank_timeout: Duration::from_millis(100),
        rerank_cooldown: Duration::from_millis(400),
        ..SearchOptions::default()
    };
    let (vectors, catalog) = (base.vectors.clone(), base.catalog.clone());
    let searcher = Searcher::new(vectors, catalog, None, Arc::new(MemoryCache::default()), options);
    let searcher = searcher.with_rerankers(source(reranker.clone()));
    for _ in 0..20 {
        assert!(searcher.search(&request()).await.is_ok());
    }
    assert_eq!(reranker.calls.load(Ordering::Relaxed), 1);
    tokio::time::advance(Duration::from_millis(400)).await;
    assert!(searcher.search(&request()).await.is_ok());
    assert_eq!(reranker.calls.load(Ordering::Relaxed), 2, "it is called again after the cooldown");
}

#[tokio::test]
async fn missing_reranker_causes_a_warning_only_if_requested() {
    let base = base().await;
    let searcher = base.searcher();
    let warns =
        |response: &SearchResponse| response.warnings.iter().any(|warning| warning.contains("reranker"));
    for (rerank, warned) in [(None, false), (Some(false), false), (Some(true), true)] {
        assert_eq!(warns(&*respond(&searcher, &SearchRequest { rerank, ..request() }).await), warned);
    }
}

#[tokio::test]
async fn lesson_31_cache_key_contains_the_reranker() {
    let base = base().await;
    let cache = Arc::new(MemoryCache::default());
    let (vectors, catalog) = (base.vectors.clone(), base.catalog.clone());
    let plain = Searcher::new(vectors, catalog, None, cache, SearchOptions::default());
    let one = plain.clone().with_rerankers(source(TestReranker::new(Behaviour::Numbers)));
    let other = plain.clone().with_rerankers(source(Arc::new(MemoryReranker::new())));
    for searcher in [&plain, &one, &other] {
        assert_eq!(searcher.search(&request()).await.unwrap().cache, CacheStatus::Miss);
    }
    for searcher in [&plain, &one, &other] {
        assert_eq!(searcher.search(&request()).await.unwrap().cache, CacheStatus::Hit);
    }
    assert_eq!(titles(&*respond(&one, &request()).await)[0], "doc 4");
    let without = SearchRequest { rerank: Some(false), ..request() };
    assert_eq!(titles(&*respond(&one, &without).await)[0], "doc 1");
}

#[tokio::test]
async fn search_without_results_does_not_warn_about_reranking() {
    let searcher = searcher(&TestBase::new(None).await, source(TestReranker::new(Behaviour::Numbers)));
    let request = SearchRequest { rerank: Some(true), ..request() };
    let response = respond(&searcher, &request).await;
    assert!(response.results.is_empty());
    assert!(!response.warnings.iter().any(|warning| warning.contains("rerank")), "{:?}", response.warnings);
}

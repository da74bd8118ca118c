//! What becomes of the order where a reranker is there, and where it fails.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use lkr_models::{Error, ErrorKind, MemoryReranker, Reranker, RerankerProfile, RerankerSource, Result};
use lkr_retrieval::{
    CacheStatus, GroupBy, MemoryCache, SearchOptions, SearchRequest, SearchResponse, Searcher,
};

use crate::base::{Base, Given, respond, titles};

/// Scores a passage by the number that stands in it, or as it is told to.
#[derive(Debug)]
struct Judge {
    profile: RerankerProfile,
    verdict: Verdict,
    asked: AtomicUsize,
}

#[derive(Debug)]
enum Verdict {
    Numbers,
    Fails,
    Hangs,
    Forgets,
    NotNumbers,
}

impl Judge {
    fn new(verdict: Verdict) -> Arc<Self> {
        let profile = RerankerProfile { id: format!("{verdict:?}"), name: "judge".to_owned(), candidates: 4 };
        Arc::new(Self { profile, verdict, asked: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl Reranker for Judge {
    fn profile(&self) -> &RerankerProfile {
        &self.profile
    }

    async fn rerank(&self, _: &str, passages: &[String]) -> Result<Vec<f32>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let number = |text: &String| {
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            digits.parse().unwrap_or(-1.0)
        };
        match self.verdict {
            Verdict::Numbers => Ok(passages.iter().map(number).collect()),
            Verdict::Fails => Err(Error::new(ErrorKind::Unavailable, "rerank", "made to fail")),
            Verdict::Hangs => std::future::pending().await,
            Verdict::Forgets => Ok(vec![1.0]),
            Verdict::NotNumbers => Ok(vec![f32::NAN; passages.len()]),
        }
    }
}

/// Where the reranker cannot even be had.
#[derive(Debug)]
struct Nowhere;

#[async_trait]
impl RerankerSource for Nowhere {
    async fn reranker(&self) -> Result<Option<Arc<dyn Reranker>>> {
        Err(Error::new(ErrorKind::Config, "reranker", "made to fail"))
    }
}

fn source(reranker: Arc<impl Reranker>) -> Arc<dyn RerankerSource> {
    let reranker: Arc<dyn Reranker> = reranker;
    Arc::new(reranker)
}

/// Documents about whales, each later one less so; the numbers rise.
async fn base() -> Base {
    let base = Base::new(None).await;
    for n in 1..=7_u32 {
        let more = "and of ships ".repeat(n as usize);
        let (title, text) = (format!("doc {n}"), format!("A tale of whales {}.", more.trim_end()));
        base.add(Given { title: &title, text: &text, ..Given::default() }).await;
    }
    base
}

fn searcher(base: &Base, rerankers: Arc<dyn RerankerSource>) -> Searcher {
    let options = SearchOptions { rerank_wait: Duration::from_millis(50), ..SearchOptions::default() };
    let cache = Arc::new(MemoryCache::default());
    Searcher::new(base.vectors.clone(), base.catalog.clone(), None, cache, options).reranking(rerankers)
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
async fn the_best_are_ranked_again_and_the_rest_follows() {
    let base = base().await;
    let judge = Judge::new(Verdict::Numbers);
    let searcher = searcher(&base, source(judge.clone()));
    let plain = respond(&searcher, &SearchRequest { rerank: Some(false), ..request() }).await;
    assert_eq!(titles(&plain), ["doc 1", "doc 2", "doc 3", "doc 4", "doc 5", "doc 6", "doc 7"]);
    assert_eq!(judge.asked.load(Ordering::Relaxed), 0, "it is not asked where it is not wanted");
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
    // Nothing but the order and the score is another.
    let by_id = |response: &SearchResponse| {
        let mut results = response.results.clone();
        results.iter_mut().for_each(|result| result.score = 0.0);
        results.sort_by_key(|result| result.chunk_id);
        results
    };
    assert_eq!(by_id(&plain), by_id(&reranked));
}

#[tokio::test]
async fn a_page_is_chosen_from_what_was_ranked_again() {
    let base = base().await;
    let searcher = searcher(&base, source(Judge::new(Verdict::Numbers)));
    for group_by in [GroupBy::Chunk, GroupBy::Document] {
        let request = SearchRequest { top_k: 2, group_by, ..request() };
        assert_eq!(titles(&*respond(&searcher, &request).await), ["doc 4", "doc 3"]);
    }
}

#[tokio::test]
async fn a_reranker_that_fails_is_slow_or_wrong_fails_no_search() {
    let base = base().await;
    for verdict in [Verdict::Fails, Verdict::Hangs, Verdict::Forgets, Verdict::NotNumbers] {
        let judge = Judge::new(verdict);
        let searcher = searcher(&base, source(judge.clone()));
        let started = Instant::now();
        for asked in 1..=2 {
            let searched = searcher.search(&request()).await.unwrap();
            assert_eq!(searched.cache, CacheStatus::Miss, "a poorer answer is not kept");
            let response = &searched.response;
            assert_eq!(titles(response)[..2], ["doc 1", "doc 2"]);
            assert!(response.warnings.iter().any(|warning| warning.contains("not reranked")), "{response:?}");
            assert!(response.explain.as_ref().unwrap().rerank.is_none());
            check_cuts(response);
            // Who was waited for in vain is left alone for a while.
            let expected = if matches!(judge.verdict, Verdict::Hangs) { 1 } else { asked };
            assert_eq!(judge.asked.load(Ordering::Relaxed), expected);
        }
        assert!(started.elapsed() < Duration::from_secs(10));
    }
    let response = respond(&searcher(&base, Arc::new(Nowhere)), &request()).await;
    assert_eq!(titles(&response)[0], "doc 1");
    assert!(response.warnings.iter().any(|warning| warning.contains("not reranked")));
}

#[tokio::test]
async fn a_slow_reranker_takes_no_search_its_turn() {
    let base = base().await;
    let judge = Judge::new(Verdict::Hangs);
    let options = SearchOptions {
        max_concurrent: 1,
        admission_wait: Duration::from_millis(300),
        rerank_wait: Duration::from_millis(100),
        rerank_pause: Duration::from_millis(400),
        ..SearchOptions::default()
    };
    let (vectors, catalog) = (base.vectors.clone(), base.catalog.clone());
    let searcher = Searcher::new(vectors, catalog, None, Arc::new(MemoryCache::default()), options);
    let searcher = searcher.reranking(source(judge.clone()));
    for _ in 0..20 {
        assert!(searcher.search(&request()).await.is_ok());
    }
    let asked = judge.asked.load(Ordering::Relaxed);
    assert!((1..20).contains(&asked), "{asked}");
    // After its pause it is asked again, which tells when it is well.
    tokio::time::timeout(Duration::from_secs(20), async {
        while judge.asked.load(Ordering::Relaxed) == asked {
            searcher.search(&request()).await.unwrap();
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn without_a_reranker_only_who_asks_for_one_is_told() {
    let base = base().await;
    let searcher = base.searcher();
    let said =
        |response: &SearchResponse| response.warnings.iter().any(|warning| warning.contains("reranker"));
    for (rerank, told) in [(None, false), (Some(false), false), (Some(true), true)] {
        assert_eq!(said(&*respond(&searcher, &SearchRequest { rerank, ..request() }).await), told);
    }
}

#[tokio::test]
async fn lesson_31_the_reranker_is_part_of_the_key() {
    let base = base().await;
    let cache = Arc::new(MemoryCache::default());
    let (vectors, catalog) = (base.vectors.clone(), base.catalog.clone());
    let plain = Searcher::new(vectors, catalog, None, cache, SearchOptions::default());
    let one = plain.clone().reranking(source(Judge::new(Verdict::Numbers)));
    let other = plain.clone().reranking(source(Arc::new(MemoryReranker::new())));
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
async fn nothing_found_is_nothing_to_rank_again() {
    let searcher = searcher(&Base::new(None).await, source(Judge::new(Verdict::Numbers)));
    let request = SearchRequest { rerank: Some(true), ..request() };
    let response = respond(&searcher, &request).await;
    assert!(response.results.is_empty());
    assert!(!response.warnings.iter().any(|warning| warning.contains("rerank")), "{:?}", response.warnings);
}

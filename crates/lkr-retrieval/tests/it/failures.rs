//! What becomes of failures outside.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use async_trait::async_trait;
use lkr_catalog::Catalog;
use lkr_models::{EmbedKind, Embedder, EmbedderProfile};
use lkr_retrieval::{
    CacheKey, CacheStatus, Error, ErrorKind, LegKind, MemoryCache, Result, SearchCache, SearchOptions,
    SearchRequest, SearchResponse, Searcher,
};
use lkr_state::{FailingState, MemoryState};
use lkr_vectors::{FailingVectors, VectorStore};
use tokio::sync::Semaphore;

use crate::base::{Base, Given, WordEmbedder, respond, titles};

async fn base(embedder: Option<Arc<WordEmbedder>>) -> Base {
    let base = Base::new(embedder).await;
    base.add(Given { title: "Moons", text: "Europa hides an ocean under its ice.", ..Given::default() })
        .await;
    base
}

fn request() -> SearchRequest {
    SearchRequest { explain: true, ..SearchRequest::new("the ocean of Europa") }
}

#[derive(Debug)]
struct BadCache {
    hangs: bool,
}

impl BadCache {
    async fn fail<T>(&self) -> Result<T> {
        if self.hangs {
            std::future::pending::<()>().await;
        }
        Err(Error::new(ErrorKind::Unavailable, "cache", "made to fail"))
    }
}

#[async_trait]
impl SearchCache for BadCache {
    async fn get(&self, _: &CacheKey) -> Result<Option<Arc<SearchResponse>>> {
        self.fail().await
    }

    async fn put(&self, _: &CacheKey, _: Arc<SearchResponse>) -> Result<()> {
        self.fail().await
    }
}

fn searcher(base: &Base, cache: impl SearchCache, options: SearchOptions) -> Searcher {
    let embedder = base.embedder.clone().map(|e| e as Arc<dyn Embedder>);
    Searcher::new(base.vectors.clone(), base.catalog.clone(), embedder, Arc::new(cache), options)
}

#[tokio::test]
async fn a_cache_that_fails_or_hangs_fails_no_search() {
    let base = base(Some(WordEmbedder::new("words"))).await;
    let options = SearchOptions { cache_wait: Duration::from_millis(1), ..SearchOptions::default() };
    for hangs in [false, true] {
        let searcher = searcher(&base, BadCache { hangs }, options.clone());
        for _ in 0..2 {
            let searched = searcher.search(&request()).await.unwrap();
            assert_eq!(searched.cache, CacheStatus::Miss);
            assert_eq!(titles(&searched.response), ["Moons"]);
        }
    }
}

#[tokio::test]
async fn without_a_model_words_alone_are_searched() {
    let base = base(None).await;
    let searcher = base.searcher();
    let response = respond(&searcher, &request()).await;
    assert_eq!(titles(&response), ["Moons"]);
    assert_eq!(response.warnings, ["no embedding model: keyword search only"]);
    assert_eq!(response.results[0].scores.dense, None);
    assert_eq!(searcher.search(&request()).await.unwrap().cache, CacheStatus::Hit);
}

#[tokio::test]
async fn a_model_that_fails_leaves_the_words_and_is_not_remembered() {
    let base = base(Some(WordEmbedder::new("words"))).await;
    let searcher = base.searcher();
    let fails = &base.embedder.as_ref().unwrap().fails;
    fails.store(true, Ordering::Relaxed);
    let poor = respond(&searcher, &request()).await;
    assert_eq!(titles(&poor), ["Moons"]);
    assert_eq!(poor.warnings, ["the embedding model failed: keyword search only"]);
    fails.store(false, Ordering::Relaxed);
    let searched = searcher.search(&request()).await.unwrap();
    assert_eq!(searched.cache, CacheStatus::Miss);
    assert!(searched.response.warnings.is_empty() && searched.response.results[0].scores.dense.is_some());
}

#[tokio::test]
async fn lesson_12_vectors_of_another_model_are_not_asked() {
    let stored = base(Some(WordEmbedder::new("words"))).await;
    for embedder in [WordEmbedder::new("other"), WordEmbedder::new("words")] {
        let same = embedder.profile().id == "words";
        let base = Base { embedder: Some(embedder), ..stored.clone() };
        let searcher = base.searcher();
        let response = respond(&searcher, &request()).await;
        assert_eq!(titles(&response), ["Moons"]);
        assert_eq!(response.warnings.len(), usize::from(!same), "{:?}", response.warnings);
        let legs = &response.explain.as_ref().unwrap().legs;
        assert!(legs.iter().filter(|leg| leg.kind == LegKind::Dense).all(|leg| (leg.weight > 0.0) == same));
        let again = searcher.search(&request()).await.unwrap().cache;
        assert_eq!(again, if same { CacheStatus::Hit } else { CacheStatus::Miss });
    }
}

#[tokio::test]
async fn every_operation_that_fails_is_an_error_with_its_reason() {
    let base = base(Some(WordEmbedder::new("words"))).await;
    for (failing, kind, expected) in [
        ("describe", lkr_vectors::ErrorKind::Unavailable, ErrorKind::Unavailable),
        ("query_batch", lkr_vectors::ErrorKind::Internal, ErrorKind::Internal),
        ("query_batch", lkr_vectors::ErrorKind::NotFound, ErrorKind::Internal),
        ("get", lkr_vectors::ErrorKind::Corrupt, ErrorKind::Corrupt),
    ] {
        let vectors: Arc<dyn VectorStore> = base.vectors.clone();
        let vectors = FailingVectors::new(vectors, move |operation| (operation == failing).then_some(kind));
        let error = base.searcher_over(Arc::new(vectors)).search(&request()).await.unwrap_err();
        assert_eq!(error.kind(), expected, "{failing}");
        assert!(error.to_string().contains("made to fail"), "{error}");
    }
}

#[tokio::test]
async fn records_that_cannot_be_read_are_an_error() {
    let base = base(None).await;
    let state = FailingState::new(Arc::new(MemoryState::new()), |_| Some(lkr_state::ErrorKind::Unavailable));
    let catalog = Catalog::new(Arc::new(state));
    let base = Base { catalog, ..base };
    let error = base.searcher().search(&request()).await.unwrap_err();
    assert!(error.is_retryable());
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

/// A model that answers when it is let go.
#[derive(Debug)]
struct StuckEmbedder {
    inner: Arc<WordEmbedder>,
    entered: Semaphore,
    let_go: Semaphore,
}

#[async_trait]
impl Embedder for StuckEmbedder {
    fn profile(&self) -> &EmbedderProfile {
        self.inner.profile()
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> lkr_models::Result<Vec<Vec<f32>>> {
        self.entered.add_permits(1);
        let _pass = self.let_go.acquire().await.unwrap();
        self.inner.embed(kind, texts).await
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.inner.letters_per_piece(text)
    }
}

#[tokio::test]
async fn more_searches_than_allowed_are_refused_after_a_short_wait() {
    let inner = WordEmbedder::new("words");
    let base = base(Some(inner.clone())).await;
    let embedder = Arc::new(StuckEmbedder { inner, entered: Semaphore::new(0), let_go: Semaphore::new(0) });
    let options = SearchOptions {
        max_concurrent: 1,
        admission_wait: Duration::from_millis(1),
        ..SearchOptions::default()
    };
    let (vectors, catalog) = (base.vectors.clone(), base.catalog.clone());
    let cache = Arc::new(MemoryCache::default());
    let searcher = Searcher::new(vectors, catalog, Some(embedder.clone()), cache, options);
    let (first, second) = (request(), SearchRequest::new("ice"));
    let (first, ()) = tokio::join!(searcher.search(&first), async {
        let _entered = embedder.entered.acquire().await.unwrap();
        let error = searcher.search(&second).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Overloaded);
        assert!(error.is_retryable());
        embedder.let_go.add_permits(1);
    });
    assert!(first.is_ok());
    // The turn was given back, and what is in the cache needs none.
    assert!(searcher.search(&second).await.is_ok());
}

#[tokio::test]
async fn lesson_31_the_whole_request_is_the_key() {
    let base = base(None).await;
    let cache = Arc::new(MemoryCache::default());
    let searcher = Searcher::new(
        base.vectors.clone(),
        base.catalog.clone(),
        None,
        Arc::<MemoryCache>::clone(&cache),
        SearchOptions::default(),
    );
    let plain = SearchRequest::new("ocean");
    let mut variants = vec![plain.clone()];
    let mut vary = |change: &dyn Fn(&mut SearchRequest)| {
        let mut request = plain.clone();
        change(&mut request);
        variants.push(request);
    };
    vary(&|r| r.query = "oceans".to_owned());
    vary(&|r| r.top_k = 11);
    vary(&|r| r.summarize = true);
    vary(&|r| r.explain = true);
    vary(&|r| r.mode = lkr_retrieval::Mode::Flat);
    vary(&|r| r.group_by = lkr_retrieval::GroupBy::Document);
    vary(&|r| r.fusion = lkr_retrieval::Fusion::Rrf);
    vary(&|r| r.filters.category = Some(String::new()));
    vary(&|r| r.filters.source = Some(String::new()));
    vary(&|r| r.filters.language = Some("en".to_owned()));
    vary(&|r| r.filters.doc_ids = Some(Vec::new()));
    vary(&|r| drop(r.filters.metadata.insert("a".to_owned(), "b".to_owned())));
    for request in &variants {
        assert_eq!(searcher.search(request).await.unwrap().cache, CacheStatus::Miss, "{request:?}");
    }
    for request in &variants {
        let searched = searcher.search(request).await.unwrap();
        assert_eq!(searched.cache, CacheStatus::Hit, "{request:?}");
        assert_eq!(searched.response.explain.is_some(), request.explain);
        assert_eq!(searched.response.summary.is_some(), request.summarize);
    }
    let padded = SearchRequest::new("\tocean ");
    assert_eq!(searcher.search(&padded).await.unwrap().cache, CacheStatus::Hit);
    let other_model = Searcher::new(
        base.vectors.clone(),
        base.catalog.clone(),
        Some(WordEmbedder::new("words")),
        cache,
        SearchOptions::default(),
    );
    assert_eq!(other_model.search(&plain).await.unwrap().cache, CacheStatus::Miss);
}

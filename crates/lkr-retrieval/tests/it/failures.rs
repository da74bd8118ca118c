//! Failures of the cache, the models and the stores.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use lkr_catalog::Catalog;
use lkr_models::Embedder;
use lkr_retrieval::{
    CacheKey, CacheStatus, Error, ErrorKind, LegKind, MemoryCache, Result, SearchCache, SearchOptions,
    SearchRequest, SearchResponse, Searcher,
};
use lkr_state::{FailingState, MemoryState};
use lkr_vectors::{FailingVectors, VectorStore};

use crate::base::{BlockedEmbedder, TestBase, TestDocument, WordEmbedder, respond, titles};

async fn base(embedder: Option<Arc<WordEmbedder>>) -> TestBase {
    let base = TestBase::new(embedder).await;
    base.add(TestDocument {
        title: "Moons",
        text: "Europa hides an ocean under its ice.",
        ..TestDocument::default()
    })
    .await;
    base
}

fn request() -> SearchRequest {
    SearchRequest { explain: true, ..SearchRequest::new("the ocean of Europa") }
}

#[derive(Debug)]
struct FailingCache {
    hangs: bool,
}

impl FailingCache {
    async fn fail<T>(&self) -> Result<T> {
        if self.hangs {
            std::future::pending::<()>().await;
        }
        Err(Error::new(ErrorKind::Unavailable, "cache", "made to fail"))
    }
}

#[async_trait]
impl SearchCache for FailingCache {
    async fn get(&self, _: &CacheKey) -> Result<Option<Arc<SearchResponse>>> {
        self.fail().await
    }

    async fn put(&self, _: &CacheKey, _: Arc<SearchResponse>) -> Result<()> {
        self.fail().await
    }
}

fn searcher(base: &TestBase, cache: impl SearchCache, options: SearchOptions) -> Searcher {
    let embedder = base.embedder.clone().map(|e| e as Arc<dyn Embedder>);
    Searcher::new(base.vectors.clone(), base.catalog.clone(), embedder, Arc::new(cache), options)
}

#[tokio::test(start_paused = true)]
async fn search_succeeds_when_the_cache_fails_or_hangs() {
    let base = base(Some(WordEmbedder::new("words"))).await;
    let options = SearchOptions { cache_timeout: Duration::from_millis(1), ..SearchOptions::default() };
    for hangs in [false, true] {
        let searcher = searcher(&base, FailingCache { hangs }, options.clone());
        for _ in 0..2 {
            let searched = searcher.search(&request()).await.unwrap();
            assert_eq!(searched.cache, CacheStatus::Miss);
            assert_eq!(titles(&searched.response), ["Moons"]);
        }
    }
}

#[tokio::test]
async fn search_without_a_model_uses_keywords_and_warns() {
    let base = base(None).await;
    let searcher = base.searcher();
    let response = respond(&searcher, &request()).await;
    assert_eq!(titles(&response), ["Moons"]);
    assert_eq!(response.warnings, ["no embedding model: keyword search only"]);
    assert_eq!(response.results[0].scores.dense, None);
    assert_eq!(searcher.search(&request()).await.unwrap().cache, CacheStatus::Hit);
}

#[tokio::test]
async fn search_with_a_failed_model_uses_keywords_and_is_not_cached() {
    let base = base(Some(WordEmbedder::new("words"))).await;
    let searcher = base.searcher();
    let fails = &base.embedder.as_ref().unwrap().fails;
    fails.store(true, Ordering::Relaxed);
    let degraded = respond(&searcher, &request()).await;
    assert_eq!(titles(&degraded), ["Moons"]);
    assert_eq!(degraded.warnings, ["the embedding model failed: keyword search only"]);
    fails.store(false, Ordering::Relaxed);
    let searched = searcher.search(&request()).await.unwrap();
    assert_eq!(searched.cache, CacheStatus::Miss);
    assert!(searched.response.warnings.is_empty() && searched.response.results[0].scores.dense.is_some());
}

#[tokio::test]
async fn lesson_12_vectors_of_another_model_are_not_queried() {
    let stored = base(Some(WordEmbedder::new("words"))).await;
    for embedder in [WordEmbedder::new("other"), WordEmbedder::new("words")] {
        let same = embedder.profile().id == "words";
        let base = TestBase { embedder: Some(embedder), ..stored.clone() };
        let searcher = base.searcher();
        let response = respond(&searcher, &request()).await;
        assert_eq!(titles(&response), ["Moons"]);
        assert_eq!(response.warnings.len(), usize::from(!same), "{:?}", response.warnings);
        let legs = &response.explain.as_ref().unwrap().legs;
        assert!(legs.iter().filter(|leg| leg.kind == LegKind::Dense).all(|leg| (leg.weight > 0.0) == same));
        let second = searcher.search(&request()).await.unwrap().cache;
        assert_eq!(second, if same { CacheStatus::Hit } else { CacheStatus::Miss });
    }
}

#[tokio::test]
async fn failed_vector_store_operation_is_an_error_of_its_kind() {
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
        assert!(error.to_string().contains("injected fault"), "{error}");
    }
}

#[tokio::test]
async fn unavailable_state_store_is_a_retryable_error() {
    let base = base(None).await;
    let state = FailingState::new(Arc::new(MemoryState::new()), |_| Some(lkr_state::ErrorKind::Unavailable));
    let catalog = Catalog::new(Arc::new(state));
    let base = TestBase { catalog, ..base };
    let error = base.searcher().search(&request()).await.unwrap_err();
    assert!(error.is_retryable());
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn uncached_search_reads_the_generation_and_the_records_once() {
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reads);
    let state = FailingState::new(Arc::new(MemoryState::new()), move |operation| {
        counted.fetch_add(usize::from(operation == "get_many"), Ordering::Relaxed);
        None
    });
    let base = TestBase { catalog: Catalog::new(Arc::new(state)), ..TestBase::embedded().await };
    base.add(TestDocument { title: "Moons", text: "Europa hides an ocean.", ..TestDocument::default() })
        .await;
    reads.store(0, Ordering::Relaxed);
    let response = respond(&base.searcher(), &request()).await;
    assert_eq!(titles(&response), ["Moons"]);
    assert_eq!(reads.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn searches_over_the_concurrency_limit_are_refused_after_a_short_wait() {
    let inner = WordEmbedder::new("words");
    let base = base(Some(inner.clone())).await;
    let embedder = Arc::new(BlockedEmbedder::new(inner));
    let options = SearchOptions {
        max_concurrent: 1,
        admission_timeout: Duration::from_millis(1),
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
        embedder.released.add_permits(1);
    });
    assert!(first.is_ok());
    // The first search has released its permit.
    assert!(searcher.search(&second).await.is_ok());
}

#[tokio::test]
async fn lesson_31_cache_key_contains_the_whole_request() {
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

use std::{sync::Arc, time::Instant};

use lkr_catalog::Catalog;
use lkr_models::{Embedder, SparseEncoder};
use lkr_text::query_terms;
use lkr_vectors::VectorStore;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::spawn_blocking,
    time::timeout,
};

use crate::{
    CacheKey, CacheStatus, Error, Result, SearchCache, SearchOptions, SearchRequest, SearchResponse,
    assemble::assemble,
    find::{Found, Stores, find},
    voice::{Voice, voice},
    warning,
};

/// Searches. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Searcher {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    vectors: Arc<dyn VectorStore>,
    catalog: Catalog,
    embedder: Option<Arc<dyn Embedder>>,
    cache: Arc<dyn SearchCache>,
    options: SearchOptions,
    turns: Semaphore,
}

/// A response and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Searched {
    /// The response.
    pub response: Arc<SearchResponse>,
    /// Where it came from.
    pub cache: CacheStatus,
}

impl Searcher {
    /// A searcher over these stores. Without an embedder it searches by keyword alone.
    #[must_use]
    pub fn new(
        vectors: Arc<dyn VectorStore>,
        catalog: Catalog,
        embedder: Option<Arc<dyn Embedder>>,
        cache: Arc<dyn SearchCache>,
        options: SearchOptions,
    ) -> Self {
        let turns = Semaphore::new(options.max_concurrent.clamp(1, Semaphore::MAX_PERMITS));
        Self { inner: Arc::new(Inner { vectors, catalog, embedder, cache, options, turns }) }
    }

    /// Answers a request. The future may be dropped at any await.
    ///
    /// A response from the cache is answered as it is, its `took_ms` included. Responses that a passing failure made
    /// poorer are not kept.
    ///
    /// # Errors
    /// `Invalid` where the request is, `Overloaded` where too many searches are running, and what the stores fail
    /// with. A cache or an embedder that fails is no error.
    pub async fn search(&self, request: &SearchRequest) -> Result<Searched> {
        let started = Instant::now();
        request.validate()?;
        let request = request.normalised();
        // Read before the retrieval: what changes during it leaves the entry under a number that no one asks for.
        let key = self.inner.key(request.clone()).await?;
        if let Some(response) = self.inner.cached(&key).await {
            return Ok(Searched { response, cache: CacheStatus::Hit });
        }
        let turn = self.inner.turn().await?;
        let (mut response, lasting) = self.inner.answer(request).await?;
        drop(turn);
        response.took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let response = Arc::new(response);
        if lasting {
            self.inner.keep(&key, &response).await;
        }
        Ok(Searched { response, cache: CacheStatus::Miss })
    }
}

impl Inner {
    async fn key(&self, request: SearchRequest) -> Result<CacheKey> {
        Ok(CacheKey {
            request,
            generation: self.catalog.generation().await?,
            model: self.embedder.as_ref().map(|embedder| embedder.profile().id.clone()),
            candidates: self.options.candidates,
        })
    }

    async fn cached(&self, key: &CacheKey) -> Option<Arc<SearchResponse>> {
        match timeout(self.options.cache_wait, self.cache.get(key)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the search cache could not be read");
                None
            }
            Err(_) => {
                tracing::warn!("the search cache did not answer in time");
                None
            }
        }
    }

    async fn keep(&self, key: &CacheKey, response: &Arc<SearchResponse>) {
        match timeout(self.options.cache_wait, self.cache.put(key, Arc::clone(response))).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the search cache could not be written"),
            Err(_) => tracing::warn!("the search cache did not take an entry in time"),
        }
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>> {
        match timeout(self.options.admission_wait, self.turns.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(Error::overloaded(self.options.max_concurrent)),
        }
    }

    /// Answers a request in its normal form. The flag tells whether the answer will be the same until something
    /// changes.
    async fn answer(&self, request: SearchRequest) -> Result<(SearchResponse, bool)> {
        let words = query_terms(&request.query);
        let sparse = SparseEncoder::default().query(&request.query);
        let voice = voice(&request.query, sparse, self.embedder.as_deref()).await;
        let stores = Stores { vectors: &*self.vectors, catalog: &self.catalog };
        let mut found = find(stores, &request, &voice, self.options.candidates).await?;
        let lasting = found.settled && !voice.passing && !found.legs.other_model;
        let warnings = warnings(&request, voice, &found);
        let response = spawn_blocking(move || assemble(request, &mut found, &words, warnings)).await??;
        Ok((response, lasting))
    }
}

fn warnings(request: &SearchRequest, voice: Voice, found: &Found) -> Vec<String> {
    let mut warnings = voice.warnings;
    if found.legs.other_model {
        warnings.push(warning::NOT_EMBEDDED.to_owned());
    }
    if found.legs.all.iter().all(|leg| !leg.asked) {
        warnings.push(warning::NO_WORDS.to_owned());
    }
    if request.rerank == Some(true) {
        warnings.push(warning::NO_RERANKER.to_owned());
    }
    warnings
}

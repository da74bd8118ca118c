//! The state that all clones of a searcher share: stores, cache, permits, and the reranker that is cooling down.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lkr_catalog::Catalog;
use lkr_vectors::VectorStore;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit},
    time::{Instant, timeout},
};

use crate::{CacheKey, CacheSize, Error, Result, SearchCache, SearchOptions, SearchResponse};

/// How many texts are read for contexts at once. Each takes up to 1 MiB of memory meanwhile.
const MAX_TEXTS_READ: usize = 16;

/// The shared state of a searcher.
#[derive(Debug)]
pub(crate) struct SearcherState {
    pub(crate) vectors: Arc<dyn VectorStore>,
    pub(crate) catalog: Catalog,
    pub(crate) options: SearchOptions,
    cache: Arc<dyn SearchCache>,
    permits: Arc<Semaphore>,
    text_permits: Semaphore,
    cooldown: Mutex<Option<Cooldown>>,
}

/// A reranker that timed out, and the time from which it is called again.
#[derive(Debug)]
struct Cooldown {
    reranker: String,
    until: Instant,
}

impl SearcherState {
    pub(crate) fn new(
        vectors: Arc<dyn VectorStore>,
        catalog: Catalog,
        cache: Arc<dyn SearchCache>,
        options: SearchOptions,
    ) -> Self {
        let permits = Arc::new(Semaphore::new(options.max_concurrent.clamp(1, Semaphore::MAX_PERMITS)));
        let text_permits = Semaphore::new(MAX_TEXTS_READ);
        Self { vectors, catalog, options, cache, permits, text_permits, cooldown: Mutex::default() }
    }

    /// The size of the cache; `None` if it cannot tell.
    pub(crate) fn cache_size(&self) -> Option<CacheSize> {
        self.cache.size()
    }

    /// The cached response for `key`; `None` if there is none or the cache failed.
    pub(crate) async fn cached(&self, key: &CacheKey) -> Option<Arc<SearchResponse>> {
        match timeout(self.options.cache_timeout, self.cache.get(key)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                tracing::warn!(%error, "reading the search cache failed; searching without it");
                None
            }
            Err(_) => {
                let timeout = self.options.cache_timeout;
                tracing::warn!(?timeout, "reading the search cache timed out; searching without it");
                None
            }
        }
    }

    /// Caches a response. A failure is logged and otherwise ignored.
    pub(crate) async fn cache(&self, key: &CacheKey, response: &Arc<SearchResponse>) {
        match timeout(self.options.cache_timeout, self.cache.put(key, Arc::clone(response))).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "writing the search cache failed; the response is not cached");
            }
            Err(_) => {
                let timeout = self.options.cache_timeout;
                tracing::warn!(
                    ?timeout,
                    "writing the search cache timed out; the response may not be cached"
                );
            }
        }
    }

    /// A permit to search.
    ///
    /// # Errors
    /// `Overloaded` if none was free within the admission timeout.
    pub(crate) async fn permit(&self) -> Result<OwnedSemaphorePermit> {
        match timeout(self.options.admission_timeout, Arc::clone(&self.permits).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(Error::overloaded(self.options.max_concurrent)),
        }
    }

    /// A permit to read a text for a context, in the order in which they were asked for.
    ///
    /// # Errors
    /// `Overloaded` if none was free within the admission timeout.
    pub(crate) async fn text_permit(&self) -> Result<SemaphorePermit<'_>> {
        match timeout(self.options.admission_timeout, self.text_permits.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(Error::overloaded_by_texts(MAX_TEXTS_READ)),
        }
    }

    /// Whether a reranker timed out so recently that it is not called.
    pub(crate) fn is_cooling_down(&self, reranker: &str) -> bool {
        self.cooldown().as_ref().is_some_and(|it| it.reranker == reranker && Instant::now() < it.until)
    }

    /// Stops calling a reranker for the cooldown period.
    pub(crate) fn start_cooldown(&self, reranker: String) {
        let until = Instant::now() + self.options.rerank_cooldown;
        *self.cooldown() = Some(Cooldown { reranker, until });
    }

    fn cooldown(&self) -> MutexGuard<'_, Option<Cooldown>> {
        self.cooldown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Answers to requests in their normal form, from the stores or from the cache.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use lkr_catalog::Catalog;
use lkr_domain::Layer;
use lkr_models::{EmbedderSource, SparseEncoder};
use lkr_text::{Literals, QueryTerm, query_terms};
use lkr_vectors::VectorStore;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::spawn_blocking,
    time::timeout,
};

use crate::{
    CacheKey, Error, Fusion, Mode, Result, SearchCache, SearchOptions, SearchRequest, SearchResponse,
    assemble::{Asked, assemble},
    encoded_query::{EncodedQuery, Speaker, voice},
    find::{Found, Stores, find},
    look::{Look, Reranked, Reranking},
    summary::Writer,
    warning,
};

/// What all clones of a searcher share: it answers requests, and keeps answers.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) vectors: Arc<dyn VectorStore>,
    pub(crate) catalog: Catalog,
    pub(crate) cache: Arc<dyn SearchCache>,
    pub(crate) options: SearchOptions,
    pub(crate) turns: Semaphore,
    pub(crate) too_slow: Mutex<Option<(String, Instant)>>,
}

impl Inner {
    /// What makes vectors like those that are stored. It is asked as it is named here to the end of the search.
    pub(crate) async fn speaker(&self, embedders: Option<&dyn EmbedderSource>) -> Result<Speaker> {
        let Some(embedders) = embedders else { return Ok(Speaker::Nobody) };
        let Some(wanted) = embedders.embedders().into_iter().next() else { return Ok(Speaker::Nobody) };
        let stored = self.vectors.describe(&Layer::Chunks.into()).await?;
        let model = stored.and_then(|stored| stored.dense).map(|dense| dense.model);
        let Some(embedder) = model.and_then(|model| embedders.embedder_of(&model)) else {
            return Ok(Speaker::ModelMismatch(wanted.profile().id.clone()));
        };
        Ok(Speaker::Model(embedder))
    }

    pub(crate) async fn key(
        &self,
        request: SearchRequest,
        speaker: &Speaker,
        reranking: &Reranking,
        writer: Option<&Writer>,
    ) -> Result<CacheKey> {
        Ok(CacheKey {
            request,
            generation: self.catalog.generation().await?,
            model: speaker.id().map(str::to_owned),
            reranker: reranking.profile().map(|profile| profile.id.clone()),
            summarizer: writer.and_then(Writer::name).map(str::to_owned),
            candidates: self.options.candidates,
            second_round: self.options.second_round,
            only: self.options.only,
        })
    }

    /// The reranker that was waited for in vain, and until when it is not asked again.
    fn too_slow(&self) -> MutexGuard<'_, Option<(String, Instant)>> {
        self.too_slow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_left_alone(&self, reranker: &str) -> bool {
        self.too_slow().as_ref().is_some_and(|(id, until)| id == reranker && Instant::now() < *until)
    }

    pub(crate) async fn cached(&self, key: &CacheKey) -> Option<Arc<SearchResponse>> {
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

    pub(crate) async fn keep(&self, key: &CacheKey, response: &Arc<SearchResponse>) {
        match timeout(self.options.cache_wait, self.cache.put(key, Arc::clone(response))).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the search cache could not be written"),
            Err(_) => tracing::warn!("the search cache did not take an entry in time"),
        }
    }

    pub(crate) async fn turn(&self) -> Result<SemaphorePermit<'_>> {
        match timeout(self.options.admission_wait, self.turns.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(Error::overloaded(self.options.max_concurrent)),
        }
    }

    /// Answers a request in its normal form; `None` where the stored vectors are of another model now. The flag tells
    /// whether the answer will be the same until something changes.
    pub(crate) async fn answer(
        &self,
        request: SearchRequest,
        speaker: &Speaker,
        reranking: Reranking,
    ) -> Result<Option<(SearchResponse, bool)>> {
        let literals = Arc::new(Literals::of(&request.query));
        let words: Arc<[QueryTerm]> = query_terms(&request.query).into();
        let asked = Asked { words: Arc::clone(&words), literals: Arc::clone(&literals) };
        let sparse = SparseEncoder::default().query(&request.query);
        let mut voice = voice(&request.query, sparse, speaker, &self.options).await;
        if let Some(dense) = &mut voice.dense
            && let Some(found_out) = self.catalog.cosine_scale(&dense.model).await?
        {
            dense.cosine_scale = found_out;
        }
        let stores = Stores { vectors: &*self.vectors, catalog: &self.catalog };
        let reranker = reranking.profile().map(|profile| profile.id.clone());
        let has_headings = request.mode == Mode::Layered && request.fusion == Fusion::Graded;
        let look = Look { literals, words: has_headings.then_some(words), reranking };
        let mut found = find(stores, &request, &voice, &look, &self.options).await?;
        if found.legs.other_model {
            return Ok(None);
        }
        let reranked = matches!(found.reranked, Reranked::Not | Reranked::Done(_));
        if let (Reranked::TooSlow, Some(id)) = (&found.reranked, reranker) {
            *self.too_slow() = Some((id, Instant::now() + self.options.rerank_pause));
        }
        let lasting = found.settled && reranked && !voice.passing;
        let warnings = warnings(&request, voice, &found);
        let response = spawn_blocking(move || assemble(request, &mut found, &asked, warnings)).await??;
        Ok(Some((response, lasting)))
    }
}

fn warnings(request: &SearchRequest, voice: EncodedQuery, found: &Found) -> Vec<String> {
    let mut warnings = voice.warnings;
    if found.legs.all.iter().all(|leg| !leg.asked) {
        warnings.push(warning::NO_WORDS.to_owned());
    }
    match found.reranked {
        Reranked::Failed | Reranked::TooSlow => warnings.push(warning::RERANK_FAILED.to_owned()),
        Reranked::Not if request.rerank == Some(true) => warnings.push(warning::NO_RERANKER.to_owned()),
        Reranked::Not | Reranked::Done(_) => {}
    }
    warnings
}

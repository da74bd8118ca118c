use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use lkr_catalog::Catalog;
use lkr_domain::Layer;
use lkr_models::{Embedder, EmbedderSource, RerankerSource, SparseEncoder};
use lkr_text::{Literals, QueryTerm, query_terms};
use lkr_vectors::VectorStore;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::spawn_blocking,
    time::timeout,
};

use crate::{
    CacheKey, CacheStatus, Error, Fusion, Mode, Result, SearchCache, SearchOptions, SearchRequest,
    SearchResponse,
    assemble::{Asked, assemble},
    find::{Found, Stores, find},
    look::{Look, Reranked, Reranking},
    voice::{Speaker, Voice, voice},
    warning,
};

/// How often a search begins anew because its model is not that of the documents any more, before it goes by words.
const SWITCHES: usize = 3;

/// Searches. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Searcher {
    inner: Arc<Inner>,
    embedders: Option<Arc<dyn EmbedderSource>>,
    rerankers: Option<Arc<dyn RerankerSource>>,
}

#[derive(Debug)]
struct Inner {
    vectors: Arc<dyn VectorStore>,
    catalog: Catalog,
    cache: Arc<dyn SearchCache>,
    options: SearchOptions,
    turns: Semaphore,
    too_slow: Mutex<Option<(String, Instant)>>,
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
    /// A searcher over these stores. Without an embedder it searches by keyword alone, as over vectors of another.
    #[must_use]
    pub fn new(
        vectors: Arc<dyn VectorStore>,
        catalog: Catalog,
        embedder: Option<Arc<dyn Embedder>>,
        cache: Arc<dyn SearchCache>,
        options: SearchOptions,
    ) -> Self {
        let turns = Semaphore::new(options.max_concurrent.clamp(1, Semaphore::MAX_PERMITS));
        let too_slow = Mutex::default();
        let inner = Inner { vectors, catalog, cache, options, turns, too_slow };
        let embedders = embedder.map(|embedder| Arc::new(embedder) as Arc<dyn EmbedderSource>);
        Self { inner: Arc::new(inner), embedders, rerankers: None }
    }

    /// The same searcher with embedders that are named anew at each search: of them, the one is asked that made the
    /// stored vectors.
    #[must_use]
    pub fn embedding(self, embedders: Arc<dyn EmbedderSource>) -> Self {
        Self { embedders: Some(embedders), ..self }
    }

    /// The same searcher with a reranker, which is asked for anew at each search.
    #[must_use]
    pub fn reranking(self, rerankers: Arc<dyn RerankerSource>) -> Self {
        Self { rerankers: Some(rerankers), ..self }
    }

    /// Answers a request. The future may be dropped at any await.
    ///
    /// A response from the cache is answered as it is, its `took_ms` included. Responses that a passing failure made
    /// poorer are not kept.
    ///
    /// # Errors
    /// `Invalid` where the request is, `Overloaded` where too many searches are running, and what the stores fail
    /// with. A cache, an embedder or a reranker that fails is no error.
    pub async fn search(&self, request: &SearchRequest) -> Result<Searched> {
        let started = Instant::now();
        request.validate()?;
        let request = request.normalised();
        let reranking = self.reranker_for(&request).await;
        let mut tries = SWITCHES;
        loop {
            let speaker = match tries {
                0 => Speaker::Stranger(String::new()),
                _ => self.inner.speaker(self.embedders.as_deref()).await?,
            };
            if let Some(searched) = self.try_search(&request, &speaker, &reranking, started).await? {
                return Ok(searched);
            }
            tries = tries.saturating_sub(1);
        }
    }

    /// Answers a request in its normal form; `None` where documents got vectors of another model meanwhile.
    async fn try_search(
        &self,
        request: &SearchRequest,
        speaker: &Speaker,
        reranking: &Reranking,
        started: Instant,
    ) -> Result<Option<Searched>> {
        // Read before the retrieval: what changes during it leaves the entry under a number that no one asks for.
        let key = self.inner.key(request.clone(), speaker, reranking).await?;
        if let Some(response) = self.inner.cached(&key).await {
            return Ok(Some(Searched { response, cache: CacheStatus::Hit }));
        }
        let turn = self.inner.turn().await?;
        let answer = self.inner.answer(request.clone(), speaker, reranking.clone()).await?;
        drop(turn);
        let Some((mut response, lasting)) = answer else { return Ok(None) };
        response.took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let response = Arc::new(response);
        if lasting {
            self.inner.keep(&key, &response).await;
        }
        Ok(Some(Searched { response, cache: CacheStatus::Miss }))
    }

    /// The reranker in force, where one is wanted.
    async fn reranker_for(&self, request: &SearchRequest) -> Reranking {
        let Some(source) = self.rerankers.as_ref().filter(|_| request.rerank != Some(false)) else {
            return Reranking::No;
        };
        let patience = self.inner.options.rerank_wait;
        match source.reranker().await {
            Ok(Some(reranker)) if self.inner.is_left_alone(&reranker.profile().id) => Reranking::Failed,
            Ok(reranker) => reranker.map_or(Reranking::No, |reranker| Reranking::By(reranker, patience)),
            Err(error) => {
                tracing::warn!(%error, "the reranker cannot be had");
                Reranking::Failed
            }
        }
    }
}

impl Inner {
    /// What makes vectors like those that are stored. It is asked as it is named here to the end of the search.
    async fn speaker(&self, embedders: Option<&dyn EmbedderSource>) -> Result<Speaker> {
        let Some(embedders) = embedders else { return Ok(Speaker::Nobody) };
        let Some(wanted) = embedders.embedders().into_iter().next() else { return Ok(Speaker::Nobody) };
        let stored = self.vectors.describe(&Layer::Chunks.into()).await?;
        let model = stored.and_then(|stored| stored.dense).map(|dense| dense.model);
        let Some(embedder) = model.and_then(|model| embedders.embedder_of(&model)) else {
            return Ok(Speaker::Stranger(wanted.profile().id.clone()));
        };
        let profile = embedder.profile();
        let scale = self.catalog.cosine_scale(&profile.id).await?.unwrap_or(profile.cosine_scale);
        Ok(Speaker::Model(embedder, scale))
    }

    async fn key(
        &self,
        request: SearchRequest,
        speaker: &Speaker,
        reranking: &Reranking,
    ) -> Result<CacheKey> {
        Ok(CacheKey {
            request,
            generation: self.catalog.generation().await?,
            model: speaker.id().map(str::to_owned),
            reranker: reranking.profile().map(|profile| profile.id.clone()),
            candidates: self.options.candidates,
            second_round: self.options.second_round,
            only: self.options.only,
        })
    }

    /// The reranker that was waited for in vain, and until when it is not asked again.
    fn too_slow(&self) -> MutexGuard<'_, Option<(String, Instant)>> {
        self.too_slow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_left_alone(&self, reranker: &str) -> bool {
        self.too_slow().as_ref().is_some_and(|(id, until)| id == reranker && Instant::now() < *until)
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

    /// Answers a request in its normal form; `None` where the stored vectors are of another model now. The flag tells
    /// whether the answer will be the same until something changes.
    async fn answer(
        &self,
        request: SearchRequest,
        speaker: &Speaker,
        reranking: Reranking,
    ) -> Result<Option<(SearchResponse, bool)>> {
        let literals = Arc::new(Literals::of(&request.query));
        let words: Arc<[QueryTerm]> = query_terms(&request.query).into();
        let asked = Asked { words: Arc::clone(&words), literals: Arc::clone(&literals) };
        let sparse = SparseEncoder::default().query(&request.query);
        let voice = voice(&request.query, sparse, speaker, self.options.only).await;
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

fn warnings(request: &SearchRequest, voice: Voice, found: &Found) -> Vec<String> {
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

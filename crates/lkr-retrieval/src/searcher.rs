use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use futures_util::StreamExt;
use lkr_catalog::Catalog;
use lkr_models::{ChatModelSource, ChatPurpose, Embedder, RerankerSource, SparseEncoder};
use lkr_text::{Literals, QueryTerm, query_terms};
use lkr_vectors::VectorStore;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::spawn_blocking,
    time::timeout,
};

use crate::{
    CacheKey, CacheStatus, Error, Fusion, Mode, Result, SearchCache, SearchOptions, SearchRequest,
    SearchResponse, SummaryPart, SummaryStream,
    assemble::{Asked, assemble},
    find::{Found, Stores, find},
    look::{Look, Reranked, Reranking},
    summary::{Outcome, Part, Writer, replay},
    voice::{Voice, voice},
    warning,
};

/// Searches. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Searcher {
    inner: Arc<Inner>,
    rerankers: Option<Arc<dyn RerankerSource>>,
    chat_models: Option<Arc<dyn ChatModelSource>>,
}

#[derive(Debug)]
struct Inner {
    vectors: Arc<dyn VectorStore>,
    catalog: Catalog,
    embedder: Option<Arc<dyn Embedder>>,
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

/// A response whose summary, where one is wanted, comes after it.
#[expect(missing_debug_implementations, reason = "a stream has nothing to show")]
pub struct Begun {
    /// The response, without its summary.
    pub response: Arc<SearchResponse>,
    /// Where it came from.
    pub cache: CacheStatus,
    /// The summary, where one is wanted.
    pub summary: Option<SummaryStream>,
}

/// A response on its way.
struct Responded {
    response: SearchResponse,
    key: CacheKey,
    /// Who writes its summary, where one is wanted.
    writer: Option<Writer>,
    /// Whether it will be the same until something changes.
    lasting: bool,
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
        let too_slow = Mutex::default();
        let inner = Inner { vectors, catalog, embedder, cache, options, turns, too_slow };
        Self { inner: Arc::new(inner), rerankers: None, chat_models: None }
    }

    /// The same searcher with a reranker, which is asked for anew at each search.
    #[must_use]
    pub fn reranking(self, rerankers: Arc<dyn RerankerSource>) -> Self {
        Self { rerankers: Some(rerankers), ..self }
    }

    /// The same searcher with language models that write summaries, which are asked for anew at each search.
    #[must_use]
    pub fn summarizing(self, chat_models: Arc<dyn ChatModelSource>) -> Self {
        Self { chat_models: Some(chat_models), ..self }
    }

    /// Answers a request. The future may be dropped at any await.
    ///
    /// A response from the cache is answered as it is, its `took_ms` included. Responses that a passing failure made
    /// poorer are not kept.
    ///
    /// # Errors
    /// `Invalid` where the request is, `Overloaded` where too many searches are running, and what the stores fail
    /// with. A cache or a model that fails is no error.
    pub async fn search(&self, request: &SearchRequest) -> Result<Searched> {
        let started = Instant::now();
        let Responded { mut response, key, writer, mut lasting } = match self.respond(request).await? {
            Ok(response) => return Ok(Searched { response, cache: CacheStatus::Hit }),
            Err(responded) => *responded,
        };
        if let Some(writer) = writer {
            let found = Arc::new(response);
            let outcome = writer.write(&found, self.inner.options.summary_wait).await;
            lasting &= outcome.lasting;
            response = with_summary(found, &outcome);
        }
        response.took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let response = Arc::new(response);
        if lasting {
            self.inner.keep(&key, &response).await;
        }
        Ok(Searched { response, cache: CacheStatus::Miss })
    }

    /// Answers a request as soon as its results are there; the summary follows. It is what [`search`](Self::search)
    /// answers, and is kept like that when the summary was read to its end.
    ///
    /// # Errors
    /// Those of [`search`](Self::search).
    pub async fn begin(&self, request: &SearchRequest) -> Result<Begun> {
        let started = Instant::now();
        let Responded { mut response, key, writer, lasting } = match self.respond(request).await? {
            Ok(kept) => {
                let mut response = SearchResponse::clone(&kept);
                let summary = response.summary.take().map(replay);
                return Ok(Begun { response: Arc::new(response), cache: CacheStatus::Hit, summary });
            }
            Err(responded) => *responded,
        };
        let known = writer.as_ref().and_then(Writer::warning);
        response.warnings.extend(known.map(str::to_owned));
        response.took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let response = Arc::new(response);
        let begun = Begun { response: Arc::clone(&response), cache: CacheStatus::Miss, summary: None };
        let Some(writer) = writer else {
            if lasting {
                self.inner.keep(&key, &response).await;
            }
            return Ok(begun);
        };
        let parts = writer.stream(Arc::clone(&response), self.inner.options.summary_wait);
        let (inner, key) = (Arc::clone(&self.inner), Arc::new(key));
        let parts = parts.then(move |part| {
            let (inner, key, response) = (Arc::clone(&inner), Arc::clone(&key), Arc::clone(&response));
            async move {
                match part {
                    Part::Text(text) => SummaryPart::Text(text),
                    Part::End(outcome) => {
                        if lasting && outcome.lasting {
                            let whole = Arc::new(with_summary(response, &outcome));
                            inner.keep(&key, &whole).await;
                        }
                        outcome.into()
                    }
                }
            }
        });
        Ok(Begun { summary: Some(parts.boxed()), ..begun })
    }

    /// The response as it is kept, or else a new one, without its summary.
    async fn respond(
        &self,
        request: &SearchRequest,
    ) -> Result<std::result::Result<Arc<SearchResponse>, Box<Responded>>> {
        request.validate()?;
        let request = request.normalised();
        let reranking = self.reranker_for(&request).await;
        let writer = if request.summarize { Some(self.writer().await) } else { None };
        // Read before the retrieval: what changes during it leaves the entry under a number that no one asks for.
        let key = self.inner.key(request.clone(), &reranking, writer.as_ref()).await?;
        if let Some(response) = self.inner.cached(&key).await {
            return Ok(Ok(response));
        }
        let turn = self.inner.turn().await?;
        let (response, lasting) = self.inner.answer(request, reranking).await?;
        // What a language model takes its time for keeps nobody else from searching.
        drop(turn);
        Ok(Err(Box::new(Responded { response, key, writer, lasting })))
    }

    /// Who writes summaries now.
    async fn writer(&self) -> Writer {
        let Some(source) = &self.chat_models else { return Writer::Nobody };
        match source.chat_model(ChatPurpose::Summarize).await {
            Ok(model) => model.map_or(Writer::Nobody, Writer::By),
            Err(error) => {
                tracing::warn!(%error, "the language model cannot be had");
                Writer::Failed
            }
        }
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

/// A response with its summary, and what there is to say of that.
fn with_summary(response: Arc<SearchResponse>, outcome: &Outcome) -> SearchResponse {
    let mut response = Arc::unwrap_or_clone(response);
    response.summary = Some(outcome.summary.clone());
    response.warnings.extend_from_slice(&outcome.warnings);
    response
}

impl Inner {
    async fn key(
        &self,
        request: SearchRequest,
        reranking: &Reranking,
        writer: Option<&Writer>,
    ) -> Result<CacheKey> {
        Ok(CacheKey {
            request,
            generation: self.catalog.generation().await?,
            model: self.embedder.as_ref().map(|embedder| embedder.profile().id.clone()),
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

    /// Answers a request in its normal form. The flag tells whether the answer will be the same until something
    /// changes.
    async fn answer(&self, request: SearchRequest, reranking: Reranking) -> Result<(SearchResponse, bool)> {
        let literals = Arc::new(Literals::of(&request.query));
        let words: Arc<[QueryTerm]> = query_terms(&request.query).into();
        let asked = Asked { words: Arc::clone(&words), literals: Arc::clone(&literals) };
        let sparse = SparseEncoder::default().query(&request.query);
        let voice = voice(&request.query, sparse, self.embedder.as_deref(), self.options.only).await;
        let stores = Stores { vectors: &*self.vectors, catalog: &self.catalog };
        let reranker = reranking.profile().map(|profile| profile.id.clone());
        let has_headings = request.mode == Mode::Layered && request.fusion == Fusion::Graded;
        let look = Look { literals, words: has_headings.then_some(words), reranking };
        let mut found = find(stores, &request, &voice, &look, &self.options).await?;
        let reranked = matches!(found.reranked, Reranked::Not | Reranked::Done(_));
        if let (Reranked::TooSlow, Some(id)) = (&found.reranked, reranker) {
            *self.too_slow() = Some((id, Instant::now() + self.options.rerank_pause));
        }
        let lasting = found.settled && reranked && !voice.passing && !found.legs.other_model;
        let warnings = warnings(&request, voice, &found);
        let response = spawn_blocking(move || assemble(request, &mut found, &asked, warnings)).await??;
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
    match found.reranked {
        Reranked::Failed | Reranked::TooSlow => warnings.push(warning::RERANK_FAILED.to_owned()),
        Reranked::Not if request.rerank == Some(true) => warnings.push(warning::NO_RERANKER.to_owned()),
        Reranked::Not | Reranked::Done(_) => {}
    }
    warnings
}

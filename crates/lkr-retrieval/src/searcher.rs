use std::{sync::Arc, time::Instant};

use futures_util::{StreamExt, stream::poll_fn};
use lkr_catalog::Catalog;
use lkr_models::{ChatModelSource, Embedder, EmbedderSource, RerankerSource};
use lkr_vectors::VectorStore;
use tracing::{Instrument, Span, debug_span, field};

use crate::{
    CacheKey, CacheSize, CacheStatus, Mode, Result, SearchCache, SearchOptions, SearchProfile, SearchRequest,
    SearchResponse, SearchStage, SummaryPart, SummaryStream,
    model_sources::ModelSources,
    pipeline::{Answer, NewAnswer, answer},
    searcher_state::SearcherState,
    summary::{FinishedSummary, Summarizer, SummaryEvent, replay},
    validated_request::ValidatedRequest,
};

/// Searches a knowledge base. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Searcher {
    pub(crate) state: Arc<SearcherState>,
    pub(crate) sources: ModelSources,
}

/// A response and whether it came from the cache.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchOutcome {
    /// The response.
    pub response: Arc<SearchResponse>,
    /// Whether it came from the cache.
    pub cache: CacheStatus,
    /// Where the time went; `None` if the response came from the cache.
    pub profile: Option<SearchProfile>,
}

/// A response whose summary follows as a stream.
#[expect(missing_debug_implementations, reason = "a stream has no useful debug output")]
pub struct StreamedSearch {
    /// The response, without its summary.
    pub response: Arc<SearchResponse>,
    /// Whether it came from the cache.
    pub cache: CacheStatus,
    /// Where the time went; `None` if the response came from the cache.
    pub profile: Option<SearchProfile>,
    /// The summary, if the request wants one.
    pub summary: Option<SummaryStream>,
}

impl Searcher {
    /// A searcher over these stores. Without an embedder, or over vectors of another model, it searches by keyword
    /// only.
    #[must_use]
    pub fn new(
        vectors: Arc<dyn VectorStore>,
        catalog: Catalog,
        embedder: Option<Arc<dyn Embedder>>,
        cache: Arc<dyn SearchCache>,
        options: SearchOptions,
    ) -> Self {
        let embedders = embedder.map(|embedder| Arc::new(embedder) as Arc<dyn EmbedderSource>);
        let sources = ModelSources { embedders, ..ModelSources::default() };
        Self { state: Arc::new(SearcherState::new(vectors, catalog, cache, options)), sources }
    }

    /// Sets the source of embedders. It is consulted at each search, which uses the embedder that made the live
    /// vectors.
    #[must_use]
    pub fn with_embedders(mut self, embedders: Arc<dyn EmbedderSource>) -> Self {
        self.sources.embedders = Some(embedders);
        self
    }

    /// Sets the source of the reranker. It is consulted at each search.
    #[must_use]
    pub fn with_rerankers(mut self, rerankers: Arc<dyn RerankerSource>) -> Self {
        self.sources.rerankers = Some(rerankers);
        self
    }

    /// Sets the source of the language model that writes summaries. It is consulted at each search that wants a
    /// summary.
    #[must_use]
    pub fn with_chat_models(mut self, chat_models: Arc<dyn ChatModelSource>) -> Self {
        self.sources.chat_models = Some(chat_models);
        self
    }

    /// The size of its cache; `None` if the cache cannot tell.
    #[must_use]
    pub fn cache_size(&self) -> Option<CacheSize> {
        self.state.cache_size()
    }

    /// Answers a request. The future may be dropped at any await.
    ///
    /// A cached response is returned unchanged, its `took_ms` included. Responses that a temporary failure degraded are
    /// not cached.
    ///
    /// # Errors
    /// `Invalid` if the request is out of bounds, `Overloaded` if too many searches are running, and errors of the
    /// stores. A cache or a model that fails causes no error.
    pub async fn search(&self, request: &SearchRequest) -> Result<SearchOutcome> {
        self.complete(request).instrument(span(request)).await
    }

    async fn complete(&self, request: &SearchRequest) -> Result<SearchOutcome> {
        let started = Instant::now();
        let answer = match self.answer(request).await? {
            Answer::Cached(response) => {
                return Ok(SearchOutcome { response, cache: CacheStatus::Hit, profile: None });
            }
            Answer::New(answer) => *answer,
        };
        let NewAnswer { mut response, key, summarizer, mut cacheable, mut profile } = answer;
        if let Some(summarizer) = summarizer {
            let results = Arc::new(response);
            let summarizing = summarizer.summarize(&results, self.state.options.summary_timeout);
            let summary = profile.measure(SearchStage::Summarize, summarizing).await;
            cacheable &= summary.cacheable;
            response = with_summary(results, &summary);
        }
        response.took_ms = elapsed_ms(started);
        let response = Arc::new(response);
        if cacheable {
            self.state.cache(&key, &response).await;
        }
        Ok(SearchOutcome { response, cache: CacheStatus::Miss, profile: Some(profile) })
    }

    /// Answers a request as soon as its results are complete; the summary follows as a stream. The parts together are
    /// the response of [`search`](Self::search), which is cached if the stream is read to its end.
    ///
    /// # Errors
    /// Those of [`search`](Self::search).
    pub async fn search_stream(&self, request: &SearchRequest) -> Result<StreamedSearch> {
        self.begin(request).instrument(span(request)).await
    }

    async fn begin(&self, request: &SearchRequest) -> Result<StreamedSearch> {
        let started = Instant::now();
        let answer = match self.answer(request).await? {
            Answer::Cached(cached) => {
                let mut response = SearchResponse::clone(&cached);
                let summary = response.summary.take().map(replay);
                let response = Arc::new(response);
                return Ok(StreamedSearch { response, cache: CacheStatus::Hit, profile: None, summary });
            }
            Answer::New(answer) => *answer,
        };
        let NewAnswer { mut response, key, summarizer, cacheable, profile } = answer;
        let warning = summarizer.as_ref().and_then(Summarizer::warning);
        response.warnings.extend(warning.map(str::to_owned));
        response.took_ms = elapsed_ms(started);
        let response = Arc::new(response);
        let summary = match summarizer {
            Some(summarizer) => Some(self.stream_summary(summarizer, Arc::clone(&response), key, cacheable)),
            None => {
                if cacheable {
                    self.state.cache(&key, &response).await;
                }
                None
            }
        };
        Ok(StreamedSearch { response, cache: CacheStatus::Miss, profile: Some(profile), summary })
    }

    /// The summary of a response as a stream. At its end the response is cached with its summary.
    fn stream_summary(
        &self,
        summarizer: Summarizer,
        response: Arc<SearchResponse>,
        key: CacheKey,
        cacheable: bool,
    ) -> SummaryStream {
        let mut events = summarizer.stream(Arc::clone(&response), self.state.options.summary_timeout);
        // The stream is read after the search has ended, and still belongs to it.
        let span = debug_span!("summarize");
        let events = poll_fn(move |cx| span.in_scope(|| events.poll_next_unpin(cx)));
        let (state, key) = (Arc::clone(&self.state), Arc::new(key));
        let parts = events.then(move |event| {
            let (state, key, response) = (Arc::clone(&state), Arc::clone(&key), Arc::clone(&response));
            async move {
                match event {
                    SummaryEvent::Text(text) => SummaryPart::Text(text),
                    SummaryEvent::End(summary) => {
                        if cacheable && summary.cacheable {
                            let complete = Arc::new(with_summary(response, &summary));
                            state.cache(&key, &complete).await;
                        }
                        summary.into()
                    }
                }
            }
        });
        parts.boxed()
    }

    async fn answer(&self, request: &SearchRequest) -> Result<Answer> {
        let answer = answer(&self.state, &self.sources, ValidatedRequest::new(request)?).await?;
        Span::current().record("cached", matches!(answer, Answer::Cached(_)));
        Ok(answer)
    }
}

/// The span of a search. It tells nothing of the query but its length.
fn span(request: &SearchRequest) -> Span {
    debug_span!(
        "search",
        layered = request.mode == Mode::Layered,
        top_k = request.top_k,
        query_chars = request.query.chars().count(),
        cached = field::Empty
    )
}

pub(crate) fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A response with its summary and the summary's warnings.
fn with_summary(response: Arc<SearchResponse>, summary: &FinishedSummary) -> SearchResponse {
    let mut response = Arc::unwrap_or_clone(response);
    response.summary = Some(summary.summary.clone());
    response.warnings.extend_from_slice(&summary.warnings);
    response
}

use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

use futures_util::StreamExt;
use lkr_catalog::Catalog;
use lkr_models::{ChatModelSource, ChatPurpose, Embedder, EmbedderSource, RerankerSource};
use lkr_vectors::VectorStore;
use tokio::sync::Semaphore;

use crate::{
    CacheKey, CacheStatus, Result, SearchCache, SearchOptions, SearchRequest, SearchResponse, SummaryPart,
    SummaryStream,
    answering::Inner,
    encoded_query::Speaker,
    look::Reranking,
    summary::{Outcome, Part, Writer, replay},
};

/// How often a search begins anew because its model is not that of the documents any more, before it goes by words.
const SWITCHES: usize = 3;

/// Searches. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Searcher {
    inner: Arc<Inner>,
    embedders: Option<Arc<dyn EmbedderSource>>,
    rerankers: Option<Arc<dyn RerankerSource>>,
    chat_models: Option<Arc<dyn ChatModelSource>>,
}

/// A response and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchOutcome {
    /// The response.
    pub response: Arc<SearchResponse>,
    /// Where it came from.
    pub cache: CacheStatus,
}

/// A response whose summary, where one is wanted, comes after it.
#[expect(missing_debug_implementations, reason = "a stream has nothing to show")]
pub struct StreamedSearch {
    /// The response, without its summary.
    pub response: Arc<SearchResponse>,
    /// Where it came from.
    pub cache: CacheStatus,
    /// The summary, where one is wanted.
    pub summary: Option<SummaryStream>,
}

/// What came of a request before its summary.
enum Responded {
    /// The response as it is kept.
    Kept(Arc<SearchResponse>),
    /// A new one.
    New(Box<Response>),
}

/// A response on its way.
struct Response {
    response: SearchResponse,
    key: CacheKey,
    /// Who writes its summary, where one is wanted.
    writer: Option<Writer>,
    /// Whether it will be the same until something changes.
    lasting: bool,
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
        Self { inner: Arc::new(inner), embedders, rerankers: None, chat_models: None }
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
    pub async fn search(&self, request: &SearchRequest) -> Result<SearchOutcome> {
        let started = Instant::now();
        let Response { mut response, key, writer, mut lasting } = match self.respond(request).await? {
            Responded::Kept(response) => return Ok(SearchOutcome { response, cache: CacheStatus::Hit }),
            Responded::New(response) => *response,
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
        Ok(SearchOutcome { response, cache: CacheStatus::Miss })
    }

    /// Answers a request as soon as its results are there; the summary follows. It is what [`search`](Self::search)
    /// answers, and is kept like that when the summary was read to its end.
    ///
    /// # Errors
    /// Those of [`search`](Self::search).
    pub async fn begin(&self, request: &SearchRequest) -> Result<StreamedSearch> {
        let started = Instant::now();
        let Response { mut response, key, writer, lasting } = match self.respond(request).await? {
            Responded::Kept(kept) => {
                let mut response = SearchResponse::clone(&kept);
                let summary = response.summary.take().map(replay);
                return Ok(StreamedSearch { response: Arc::new(response), cache: CacheStatus::Hit, summary });
            }
            Responded::New(response) => *response,
        };
        let known = writer.as_ref().and_then(Writer::warning);
        response.warnings.extend(known.map(str::to_owned));
        response.took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let response = Arc::new(response);
        let begun =
            StreamedSearch { response: Arc::clone(&response), cache: CacheStatus::Miss, summary: None };
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
        Ok(StreamedSearch { summary: Some(parts.boxed()), ..begun })
    }

    /// The response as it is kept, or else a new one, without its summary.
    async fn respond(&self, request: &SearchRequest) -> Result<Responded> {
        request.validate()?;
        let request = request.normalised();
        let reranking = self.reranker_for(&request).await;
        let writer = if request.summarize { Some(self.writer().await) } else { None };
        let mut tries = SWITCHES;
        loop {
            let speaker = match tries {
                0 => Speaker::ModelMismatch(String::new()),
                _ => self.inner.speaker(self.embedders.as_deref()).await?,
            };
            if let Some(responded) = self.try_respond(&request, &speaker, &reranking, writer.as_ref()).await?
            {
                return Ok(responded);
            }
            tries = tries.saturating_sub(1);
        }
    }

    /// Responds to a request in its normal form; `None` where documents got vectors of another model meanwhile.
    async fn try_respond(
        &self,
        request: &SearchRequest,
        speaker: &Speaker,
        reranking: &Reranking,
        writer: Option<&Writer>,
    ) -> Result<Option<Responded>> {
        // Read before the retrieval: what changes during it leaves the entry under a number that no one asks for.
        let key = self.inner.key(request.clone(), speaker, reranking, writer).await?;
        if let Some(response) = self.inner.cached(&key).await {
            return Ok(Some(Responded::Kept(response)));
        }
        let turn = self.inner.turn().await?;
        let answer = self.inner.answer(request.clone(), speaker, reranking.clone()).await?;
        // What a language model takes its time for keeps nobody else from searching.
        drop(turn);
        let Some((response, lasting)) = answer else { return Ok(None) };
        Ok(Some(Responded::New(Box::new(Response { response, key, writer: writer.cloned(), lasting }))))
    }

    /// Who writes summaries now.
    async fn writer(&self) -> Writer {
        let Some(source) = &self.chat_models else { return Writer::Nobody };
        match source.chat_model(ChatPurpose::Summarize).await {
            Ok(model) => model.map_or(Writer::Nobody, Writer::Actor),
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
            Ok(reranker) => reranker.map_or(Reranking::No, |reranker| Reranking::Actor(reranker, patience)),
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

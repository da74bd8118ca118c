//! The steps of a search: cache lookup, admission, query encoding, retrieval and assembly.

use std::sync::Arc;

use futures_util::future::try_join;
use lkr_domain::SparseVector;
use lkr_models::SparseEncoder;
use lkr_text::{Literals, QueryTerm, consists_of_stop_words, query_terms};
use lkr_vectors::{may_block, on_blocking_thread};
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tracing::{Instrument as _, debug_span};

use crate::{
    CacheKey, Fusion, LegCandidates, LegKind, Mode, Result, SearchProfile, SearchRequest, SearchResponse,
    SearchStage,
    assemble::{QueryMarks, assemble},
    blocking::blocking,
    encoded_query::{DenseEncoder, EncodedQuery, encode_dense},
    legs::BegunLegs,
    model_sources::ModelSources,
    prepare::Prepared,
    profile::StageTimes,
    refine::Refinement,
    rerank::{RerankOutcome, Reranking},
    retrieve::{Begun, Retrieved, Stores, begin, retrieve},
    searcher_state::SearcherState,
    summary::Summarizer,
    validated_request::ValidatedRequest,
    warning,
};

/// How often a search starts again because the live vectors were switched to another model. After that it searches by
/// keyword only.
const MAX_MODEL_SWITCHES: usize = 3;

/// A response without its summary.
pub(crate) enum Answer {
    /// From the cache, with its summary if it has one.
    Cached(Arc<SearchResponse>),
    /// Retrieved for this request.
    New(Box<NewAnswer>),
}

/// A new response without its summary.
pub(crate) struct NewAnswer {
    pub(crate) response: SearchResponse,
    pub(crate) key: CacheKey,
    /// What makes its summary; `None` if the request wants none.
    pub(crate) summarizer: Option<Summarizer>,
    /// Whether it stays the same until a document changes, so that it may be cached.
    pub(crate) cacheable: bool,
    /// Where its time went.
    pub(crate) profile: SearchProfile,
}

/// Answers a request.
pub(crate) async fn answer(
    state: &Arc<SearcherState>,
    sources: &ModelSources,
    request: ValidatedRequest,
) -> Result<Answer> {
    let mut search = Search::new(state, request);
    let mut attempts = MAX_MODEL_SWITCHES;
    loop {
        // The generation is read before the models are opened: a change of the settings or of a document after that makes the key
        // obsolete.
        let generation = search.generation().await?;
        search.open_models(sources, attempts).await?;
        if let Some(answer) = search.try_answer(generation).await? {
            return Ok(answer);
        }
        attempts = attempts.saturating_sub(1);
    }
}

/// What a search found, before it is assembled.
pub(crate) struct Found {
    pub(crate) retrieved: Retrieved,
    pub(crate) marks: QueryMarks,
    pub(crate) warnings: Vec<String>,
    /// Whether it stays the same until a document changes.
    pub(crate) cacheable: bool,
    /// Where the time went so far.
    pub(crate) profile: SearchProfile,
}

/// Finds the results of a request, without the cache.
pub(crate) async fn find(
    state: &Arc<SearcherState>,
    sources: &ModelSources,
    request: ValidatedRequest,
) -> Result<Found> {
    let mut search = Search::new(state, request);
    let mut attempts = MAX_MODEL_SWITCHES;
    loop {
        search.open_models(sources, attempts).await?;
        if let Some(found) = search.run(None, Retrieval::find).await? {
            return Ok(found);
        }
        attempts = attempts.saturating_sub(1);
    }
}

/// One search with the models that it uses.
#[derive(Debug, Clone)]
struct Search {
    state: Arc<SearcherState>,
    request: ValidatedRequest,
    encoder: DenseEncoder,
    reranking: Reranking,
    summarizer: Option<Summarizer>,
    times: Arc<StageTimes>,
}

/// What is known of a query without its dense vector.
#[derive(Debug)]
struct BegunSparse {
    vector: SparseVector,
    /// The catalog's generation, if it was read, which must be before the legs.
    generation: Option<u64>,
    marks: QueryMarks,
    refinement: Refinement,
    begun: Option<Begun>,
}

/// What a search does once its query is encoded.
#[derive(Debug)]
struct Retrieval {
    state: Arc<SearcherState>,
    request: ValidatedRequest,
    /// The catalog's generation, if it was read already.
    generation: Option<u64>,
    query: EncodedQuery,
    /// What was begun while the query was encoded.
    begun: Option<Begun>,
    marks: QueryMarks,
    refinement: Refinement,
    times: Arc<StageTimes>,
}

impl Search {
    /// A search whose models are not opened yet.
    fn new(state: &Arc<SearcherState>, request: ValidatedRequest) -> Self {
        Self {
            state: Arc::clone(state),
            request,
            encoder: DenseEncoder::NoModel,
            reranking: Reranking::Off,
            summarizer: None,
            times: Arc::default(),
        }
    }

    /// Opens the models that are configured now.
    async fn open_models(&mut self, sources: &ModelSources, attempts: usize) -> Result<()> {
        self.encoder = self.encoder_of(sources, attempts).await?;
        self.reranking = sources.reranking(&self.request, &self.state).await;
        self.summarizer = sources.summarizer(&self.request).await;
        Ok(())
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit> {
        self.times.measure(SearchStage::Admission, self.state.permit()).await
    }

    /// The encoder of the live vectors; none when they were switched too often.
    async fn encoder_of(&self, sources: &ModelSources, attempts: usize) -> Result<DenseEncoder> {
        match attempts {
            0 => Ok(DenseEncoder::ModelMismatch(String::new())),
            _ => sources.dense_encoder(&self.state).await,
        }
    }

    /// Answers from the cache or the stores; `None` if the live vectors were switched to another model meanwhile.
    async fn try_answer(&self, generation: u64) -> Result<Option<Answer>> {
        let key = self.cache_key(generation);
        if let Some(response) = self.state.cached(&key).await {
            return Ok(Some(Answer::Cached(response)));
        }
        let answered = self.run(Some(generation), Retrieval::answer).await?;
        let Some((response, legs, cacheable)) = answered else { return Ok(None) };
        let summarizer = self.summarizer.clone();
        let profile = SearchProfile { stages: self.times.stages(), legs };
        Ok(Some(Answer::New(Box::new(NewAnswer { response, key, summarizer, cacheable, profile }))))
    }

    /// The catalog's generation.
    async fn generation(&self) -> Result<u64> {
        Ok(self.state.catalog.generation(&self.request.scope).await?)
    }

    fn cache_key(&self, generation: u64) -> CacheKey {
        let options = &self.state.options;
        CacheKey {
            request: self.request.shared(),
            generation,
            model: self.encoder.id().map(str::to_owned),
            reranker: self.reranking.profile().map(|profile| profile.id.clone()),
            summarizer: self.summarizer.as_ref().and_then(Summarizer::model_name).map(str::to_owned),
            candidates: options.candidates,
            second_round: options.second_round,
            only: options.only,
        }
    }

    /// Encodes the query, and does `work` once it is encoded, such as [`Retrieval::find`]. `generation` is the catalog's, if it was
    /// read already.
    ///
    /// Both ask the stores several times, one after another, so if their reads block, they run on one blocking thread as a whole, as
    /// far as they wait for no model but one that embeds a query within milliseconds. If the future of this call is dropped, the work
    /// ends at its next await. The search's permit is held until it has ended, and is released before a language model is called, so
    /// that a slow model blocks no other search. See docs/studies.md#begun-batches.
    async fn run<T, F>(
        &self,
        generation: Option<u64>,
        work: impl FnOnce(Retrieval) -> F + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send,
    {
        let permit = self.permit().await?;
        let reads_block = self.state.vectors.reads_block();
        let encodes_in_place = reads_block && !self.encoder.runs_elsewhere();
        let works_in_place = reads_block && !matches!(self.reranking, Reranking::Model(..));
        let search = self.clone();
        let encode = async move { (search.retrieval(generation).await, permit) };
        let work = |(retrieval, permit): (Result<Retrieval>, OwnedSemaphorePermit)| async move {
            let done = work(retrieval?).await;
            drop(permit);
            done
        };
        match (encodes_in_place, works_in_place) {
            (true, true) => on_blocking_thread(move || async move { work(encode.await).await }).await?,
            (true, false) => work(on_blocking_thread(move || encode).await?).await,
            (false, true) => {
                let encoded = encode.await;
                on_blocking_thread(move || work(encoded)).await?
            }
            (false, false) => work(encode.await).await,
        }
    }

    /// Encodes the query.
    async fn retrieval(&self, generation: Option<u64>) -> Result<Retrieval> {
        let Self { state, request, .. } = self;
        let encoded = Notify::new();
        let encoding = async {
            let dense = self.encode_dense().await;
            encoded.notify_one();
            dense
        };
        // The model is asked first, so that it works while the terms are found and the sparse legs begin.
        let encoding = self.times.measure(SearchStage::Encode, encoding);
        let (dense, begun) = try_join(encoding, self.begin(generation, &encoded)).await?;
        let BegunSparse { vector, generation, marks, refinement, begun } = begun;
        let is_asked = state.options.only != Some(LegKind::Dense);
        let query = EncodedQuery { sparse: if is_asked { vector } else { SparseVector::default() }, ..dense };
        Ok(Retrieval {
            state: Arc::clone(state),
            request: request.clone(),
            generation,
            query,
            begun,
            marks,
            refinement,
            times: Arc::clone(&self.times),
        })
    }

    /// Finds the terms of the query. On a thread of its own, the sparse legs run, too, if a model in this process embeds the query
    /// meanwhile.
    async fn begin(&self, mut generation: Option<u64>, encoded: &Notify) -> Result<BegunSparse> {
        let Self { state, request, .. } = self;
        let options = &state.options;
        let terms: Arc<[QueryTerm]> = query_terms(&request.query).into();
        let vector = SparseEncoder::default().terms(&terms);
        let literals = Arc::new(Literals::of(&request.query));
        let has_headings = request.mode == Mode::Layered && request.fusion == Fusion::Graded;
        let refinement = Refinement {
            literals: Arc::clone(&literals),
            terms: has_headings.then(|| Arc::clone(&terms)),
            reranking: self.reranking.clone(),
        };
        let mut begun = None;
        if options.only.is_none() && self.encoder.runs_in_process() && may_block() {
            if generation.is_none() {
                generation = Some(self.generation().await?);
            }
            if let Some(legs) = begin(&*state.vectors, request, &vector, options).await? {
                begun = self.prepare(legs, &refinement, encoded).await;
            }
        }
        let marks = QueryMarks { terms, literals };
        Ok(BegunSparse { vector, generation, marks, refinement, begun })
    }

    /// Runs the sparse legs until the query is `encoded`. If they end before, reads what is needed of their hits. `None` if they have
    /// failed, so that all legs are asked later.
    async fn prepare(&self, mut legs: BegunLegs, refinement: &Refinement, encoded: &Notify) -> Option<Begun> {
        let mut prepared = Prepared::default();
        let preparing = async {
            let hits = legs.sparse_hits().await.ok()?;
            let reading = prepared.read(&self.state, &self.request, refinement, &hits);
            // What fails here fails again later.
            let _ = reading.instrument(debug_span!("prepare")).await;
            Some(())
        };
        tokio::select! {
            biased;
            () = encoded.notified() => {}
            sparse_ended = preparing => sparse_ended?,
        }
        Some(Begun { legs, prepared })
    }

    async fn encode_dense(&self) -> Result<EncodedQuery> {
        let mut query = encode_dense(&self.request.query, &self.encoder, &self.state.options).await;
        if let Some(dense) = &mut query.dense
            && dense.cosine_scale.is_none()
        {
            dense.cosine_scale = self.state.catalog.cosine_scale(&dense.model).await?;
        }
        Ok(query)
    }
}

impl Retrieval {
    /// Finds the results and assembles the response; also returns the legs, and whether it may be cached. `None` if the
    /// live vectors were switched to another model meanwhile.
    async fn answer(self) -> Result<Option<(SearchResponse, Vec<LegCandidates>, bool)>> {
        let (request, times) = (self.request.clone(), Arc::clone(&self.times));
        let Some(found) = self.find().await? else { return Ok(None) };
        let Found { mut retrieved, marks, warnings, cacheable, profile } = found;
        let assembled = blocking(move || assemble(&request, &mut retrieved, &marks, warnings));
        let response = times.measure(SearchStage::Assemble, assembled).await??;
        Ok(Some((response, profile.legs, cacheable)))
    }

    /// Finds the results; `None` if the live vectors were switched to another model meanwhile.
    async fn find(self) -> Result<Option<Found>> {
        let Self { state, request, generation, query, begun, marks, refinement, times } = self;
        let stores = Stores { vectors: &*state.vectors, catalog: &state.catalog, times: &times };
        let query_and_legs = (&query, begun);
        let retrieved =
            retrieve(stores, (&request, generation), query_and_legs, &refinement, &state.options).await?;
        if retrieved.legs.model_mismatch {
            return Ok(None);
        }
        if let (RerankOutcome::TimedOut, Some(profile)) = (&retrieved.rerank, refinement.reranking.profile())
        {
            state.start_cooldown(profile.id.clone());
        }
        let rerank_succeeded = matches!(retrieved.rerank, RerankOutcome::Off | RerankOutcome::Done(_));
        let cacheable = retrieved.consistent && rerank_succeeded && !query.degraded;
        let warnings = warnings(&request, query, &retrieved);
        let profile = SearchProfile { stages: times.stages(), legs: retrieved.legs.candidates() };
        Ok(Some(Found { retrieved, marks, warnings, cacheable, profile }))
    }
}

fn warnings(request: &SearchRequest, query: EncodedQuery, retrieved: &Retrieved) -> Vec<String> {
    let mut warnings = query.warnings;
    if retrieved.legs.all.iter().all(|leg| !leg.queried) {
        warnings.push(warning::NO_WORDS.to_owned());
    } else if retrieved.lacks_quoted {
        warnings.push(warning::NO_QUOTED.to_owned());
    }
    if retrieved.lacks_documents {
        warnings.push(warning::FEW_DOCUMENTS.to_owned());
    }
    // Vectors find something for such words unless a filter lets nothing through, and that needs no explanation.
    let asks_vectors = retrieved.legs.all.iter().any(|leg| leg.kind == LegKind::Dense && leg.queried);
    if retrieved.ranked.candidates.is_empty() && !asks_vectors && consists_of_stop_words(&request.query) {
        warnings.push(warning::STOP_WORDS.to_owned());
    }
    match retrieved.rerank {
        RerankOutcome::Failed | RerankOutcome::TimedOut => warnings.push(warning::RERANK_FAILED.to_owned()),
        RerankOutcome::Off if request.rerank == Some(true) => warnings.push(warning::NO_RERANKER.to_owned()),
        RerankOutcome::Off | RerankOutcome::Done(_) => {}
    }
    warnings
}

//! Retrieval: rounds of querying the legs, checking hits against the records and ranking, until one round is
//! consistent.

mod again;

use lkr_catalog::Catalog;
use lkr_domain::{Chunk, Layer, PointId, SparseVector};
use lkr_models::REFERENCE_SCALE;
use lkr_vectors::{ErrorKind, Point, VectorStore};

use crate::{
    LegKind, Result, SearchOptions, SearchRequest, SearchStage,
    encoded_query::EncodedQuery,
    ids::IdMap,
    legs::{self, BegunLegs, Leg, LegLimits, Legs, LegsQuery, Selection},
    live::{self, Documents, Liveness},
    page::{page, shortlist},
    points,
    prepare::Prepared,
    profile::StageTimes,
    rank::{self, FusionParams, Ranked},
    refine::{Examined, ExaminedChunk, Refinement},
    rerank::{RerankOutcome, Reranking},
};

/// The most rounds of one search. A search starts another round if documents changed during one or if its candidates
/// were too few.
const MAX_ROUNDS: usize = 6;
/// The most candidates of a leg in a later batch or round, after many hits were stale or of few documents.
const MAX_CANDIDATES: usize = 6_400;

/// The outcome of a retrieval.
#[derive(Debug)]
pub(crate) struct Retrieved {
    /// The legs with their live hits.
    pub(crate) legs: Legs,
    /// The chunks in their final order.
    pub(crate) ranked: Ranked,
    /// The documents of the page.
    pub(crate) documents: Documents,
    /// The contents of the page.
    pub(crate) contents: PageContents,
    /// Whether the query has quoted phrases, and none of the best chunks contains all of them.
    pub(crate) lacks_quoted: bool,
    /// How reranking ended.
    pub(crate) rerank: RerankOutcome,
    /// Whether the page has too few documents although the legs may have hits of others.
    pub(crate) lacks_documents: bool,
    /// Whether it is a complete view of one state of the knowledge base.
    pub(crate) consistent: bool,
}

/// The chunks and nodes of a page; `None` for points that are gone.
#[derive(Debug)]
pub(crate) struct PageContents {
    /// The chunks of the candidates.
    pub(crate) chunks: IdMap<PointId, Chunk>,
    /// In the order of [`Ranked::parents`] for L2.
    pub(crate) l2: Vec<Option<Point>>,
    /// In the order of [`Ranked::parents`] for L3.
    pub(crate) l3: Vec<Option<Point>>,
}

/// The stores that are searched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stores<'a> {
    pub(crate) vectors: &'a dyn VectorStore,
    pub(crate) catalog: &'a Catalog,
    /// Where the durations of the stages are noted.
    pub(crate) times: &'a StageTimes,
}

/// What was begun of the first round while the query was embedded.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) legs: BegunLegs,
    /// What was read of the hits of the sparse ones; nothing if they have not ended.
    pub(crate) prepared: Prepared,
}

/// What the legs of the first round search, and their limits.
fn first_legs(request: &SearchRequest, options: &SearchOptions) -> (Selection, LegLimits) {
    let selection = Selection { scope: request.scope.clone(), filter: request.filters.to_filter() };
    (selection, LegLimits { hits: options.candidates.max(2 * request.top_k), excluded: Vec::new() })
}

/// Begins the first round of `request` before its dense vector is known. `None` if the store begins no batches, or if its
/// collections were switched meanwhile.
pub(crate) async fn begin(
    vectors: &dyn VectorStore,
    request: &SearchRequest,
    sparse: &SparseVector,
    options: &SearchOptions,
) -> Result<Option<BegunLegs>> {
    let (selection, limits) = first_legs(request, options);
    let query = EncodedQuery { sparse: sparse.clone(), ..EncodedQuery::default() };
    let legs_query = LegsQuery { mode: request.mode, query: &query, limits: &limits };
    match legs::begin(vectors, &selection, legs_query).await {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        begun => Ok(begun?),
    }
}

/// Retrieves the results of `request`. `generation` is the catalog's, if it was read since the search began, and before the legs
/// were begun. What was begun is for the first round.
pub(crate) async fn retrieve(
    stores: Stores<'_>,
    (request, generation): (&SearchRequest, Option<u64>),
    (query, mut begun): (&EncodedQuery, Option<Begun>),
    refinement: &Refinement,
    options: &SearchOptions,
) -> Result<Retrieved> {
    let (selection, mut limits) = first_legs(request, options);
    let mut round =
        Round { stores, request, generation, query, refinement, options, selection, is_last: false };
    let mut count = 1;
    loop {
        round.is_last = count >= MAX_ROUNDS;
        if let Some(retrieved) = round.run(&mut limits, begun.take()).await? {
            return Ok(retrieved);
        }
        round.generation = None;
        count += 1;
    }
}

/// One round. It returns `None` if its view is inconsistent and another round may follow; the last round returns what
/// it has.
#[derive(Debug)]
struct Round<'a> {
    stores: Stores<'a>,
    request: &'a SearchRequest,
    /// The catalog's generation before the round, if it was read already.
    generation: Option<u64>,
    query: &'a EncodedQuery,
    refinement: &'a Refinement,
    options: &'a SearchOptions,
    selection: Selection,
    is_last: bool,
}

/// The live hits of a round, ranked.
#[derive(Debug)]
struct RankedHits {
    legs: Legs,
    liveness: Liveness,
    ranked: Ranked,
    /// Chunks that were read before.
    examined: IdMap<PointId, ExaminedChunk>,
    /// Whether there are too few documents although the legs may have hits of others.
    lacks_documents: bool,
}

impl Round<'_> {
    async fn run(&self, limits: &mut LegLimits, begun: Option<Begun>) -> Result<Option<Retrieved>> {
        let generation = match self.generation {
            Some(generation) => generation,
            None => self.read_generation().await?,
        };
        let Some(mut hits) = self.query_legs(limits, begun).await? else { return Ok(None) };
        if !self.query_again(limits, &mut hits).await? {
            return Ok(None);
        }
        // Neither revision of a document that was replaced between the hits and the records would be shown, and hits of one that was
        // replaced between two batches are missing.
        let torn = hits.liveness.replaced && self.read_generation().await? != generation;
        let insufficient = extend(limits, &hits.liveness);
        if (torn || insufficient) && !self.is_last {
            return Ok(None);
        }
        let retrieved = self.finish(hits).await?;
        let consistent = retrieved.consistent && !torn && !insufficient;
        let retrieved = Retrieved { consistent, ..retrieved };
        Ok(Some(retrieved).filter(|retrieved| self.is_last || retrieved.consistent))
    }

    async fn read_generation(&self) -> Result<u64> {
        Ok(self.stores.catalog.generation(&self.request.scope).await?)
    }

    /// Queries the legs that were not begun, and ranks the live hits of all.
    async fn query_legs(&self, limits: &mut LegLimits, begun: Option<Begun>) -> Result<Option<RankedHits>> {
        let Stores { vectors, times, .. } = self.stores;
        let (begun, prepared) = begun.map(|begun| (begun.legs, begun.prepared)).unzip();
        let legs_query = LegsQuery { mode: self.request.mode, query: self.query, limits };
        let querying = async {
            match begun {
                Some(begun) => begun.finish(&self.selection, legs_query).await,
                None => {
                    let [legs] = legs::query(vectors, &self.selection, [legs_query]).await?;
                    Ok(legs)
                }
            }
        };
        let queried = times.measure(SearchStage::Legs, querying).await;
        let Some(legs) = self.unless_switched(queried)? else { return Ok(None) };
        times.measure(SearchStage::Fuse, self.rank_live(limits, legs, prepared)).await
    }

    /// Ranks the live hits of legs; `None` if another round is needed first.
    async fn rank_live(
        &self,
        limits: &mut LegLimits,
        mut legs: Legs,
        prepared: Option<Prepared>,
    ) -> Result<Option<RankedHits>> {
        let catalog = self.stores.catalog;
        let Prepared { records, examined } = self.if_current(prepared).await?;
        let liveness = live::retain_live(catalog, self.request, &mut legs, records).await?;
        // An excluded revision may have been published since; no revision of its document would be shown.
        let none_excluded = limits.excluded.is_empty();
        if !none_excluded
            && !live::retain_stale(catalog, self.request, &mut limits.excluded).await?
            && !self.is_last
        {
            return Ok(None);
        }
        let ranked = rank::rank(&legs, self.fusion_params());
        Ok(Some(RankedHits { legs, liveness, ranked, examined, lacks_documents: false }))
    }

    /// What was read early; nothing if documents have changed since, so that none is shown that was deleted meanwhile.
    async fn if_current(&self, prepared: Option<Prepared>) -> Result<Prepared> {
        let Some(prepared) = prepared else { return Ok(Prepared::default()) };
        let is_current = self.generation == Some(self.read_generation().await?);
        Ok(if is_current { prepared } else { Prepared::default() })
    }

    /// Refines the order of the best candidates, and reads the page. The result is consistent if no point of it is
    /// gone.
    async fn finish(&self, hits: RankedHits) -> Result<Retrieved> {
        let RankedHits { legs, liveness, mut ranked, examined, lacks_documents } = hits;
        let Stores { vectors, times, .. } = self.stores;
        let (refinement, request) = (self.refinement, self.request);
        let paging = (request.group_by, request.top_k);
        let literal = literal_candidates(refinement, &legs);
        let mut candidates = shortlist(&ranked.candidates, paging, refinement.depth(), &literal);
        let shortlisted = candidates.len();
        let titles = liveness.titles_of(&candidates)?;
        let examining = refinement.examine(vectors, &mut candidates, &titles, examined);
        let examined = times.measure(SearchStage::Read, examining).await?;
        let reranking = refinement.rerank(&request.query, &mut candidates, &examined, &titles);
        let rerank = match refinement.reranking {
            Reranking::Off | Reranking::Unavailable => reranking.await,
            Reranking::Model(..) => times.measure(SearchStage::Rerank, reranking).await,
        };
        let Examined { chunks, parent_share, lacks_quoted } = examined;
        ranked.scale_parents(parent_share);
        ranked.candidates = page(&candidates, request.group_by, request.top_k);
        let documents = liveness.documents_of(&ranked.candidates)?;
        let contents = times.measure(SearchStage::Read, read_page(vectors, &ranked, chunks)).await?;
        let consistent = candidates.len() == shortlisted && contents.is_complete();
        Ok(Retrieved { legs, ranked, documents, contents, lacks_quoted, rerank, lacks_documents, consistent })
    }

    /// The result of a store call; `None` if collections were switched after their aliases were resolved and another
    /// round follows.
    fn unless_switched<T>(&self, result: lkr_vectors::Result<T>) -> Result<Option<T>> {
        match result {
            Err(error) if error.kind() == ErrorKind::NotFound && !self.is_last => Ok(None),
            result => Ok(Some(result?)),
        }
    }

    fn fusion_params(&self) -> FusionParams {
        FusionParams {
            fusion: self.request.fusion,
            cosine_scale: self
                .query
                .dense
                .as_ref()
                .and_then(|dense| dense.cosine_scale)
                .unwrap_or(REFERENCE_SCALE),
        }
    }
}

/// The best keyword hits of a query with literals. They are examined even if fusion ranks them low.
fn literal_candidates(refinement: &Refinement, legs: &Legs) -> Vec<PointId> {
    let is_sparse = |leg: &&Leg| leg.layer == Layer::Chunks && leg.kind == LegKind::Sparse;
    let hits = legs.all.iter().find(is_sparse).map_or(&[][..], |leg| &leg.hits);
    refinement.literal_hits(hits).iter().map(|hit| hit.id).collect()
}

/// Raises the limits of the next round if this one lost so many stale hits that it may lack live ones, and returns whether it had.
fn extend(limits: &mut LegLimits, liveness: &Liveness) -> bool {
    if !liveness.starved {
        return false;
    }
    // Excluding the stale points of one large document is enough. Those of many small documents keep coming.
    if !limits.excluded.is_empty() {
        limits.hits = widened(limits.hits);
    }
    limits.excluded.extend(&liveness.stale);
    true
}

/// A larger number of hits for a leg.
fn widened(hits: usize) -> usize {
    (4 * hits).min(MAX_CANDIDATES).max(hits)
}

async fn read_page(
    vectors: &dyn VectorStore,
    ranked: &Ranked,
    chunks: IdMap<PointId, Chunk>,
) -> Result<PageContents> {
    let (l2, l3) = (ranked.parents(Layer::L2), ranked.parents(Layer::L3));
    let (l2, l3) = tokio::try_join!(
        points::read(vectors, Layer::L2, l2.iter().map(|node| node.id).collect()),
        points::read(vectors, Layer::L3, l3.iter().map(|node| node.id).collect()),
    )?;
    Ok(PageContents { chunks, l2, l3 })
}

impl PageContents {
    fn is_complete(&self) -> bool {
        [&self.l2, &self.l3].into_iter().flatten().all(Option::is_some)
    }
}

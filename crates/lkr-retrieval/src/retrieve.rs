//! Retrieval: rounds of querying the legs, checking hits against the records and ranking, until one round is
//! consistent.

use lkr_catalog::Catalog;
use lkr_domain::{Chunk, DocId, Layer, PointId, SparseVector};
use lkr_models::REFERENCE_SCALE;
use lkr_vectors::{ErrorKind, Point, VectorStore};

use crate::{
    GroupBy, LegKind, Mode, Result, SearchOptions, SearchRequest, SearchStage,
    candidate::Candidate,
    encoded_query::{DenseQuery, EncodedQuery},
    feedback,
    ids::{IdMap, IdSet},
    legs::{self, BegunLegs, Leg, LegLimits, Legs, LegsQuery, Selection},
    live::{self, Documents, Liveness, ReadRecords},
    page::{dominant_document, page, shortlist},
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
/// The most candidates a leg lists when results are documents and many chunks belong to one.
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
}

impl Round<'_> {
    async fn run(&self, limits: &mut LegLimits, begun: Option<Begun>) -> Result<Option<Retrieved>> {
        let generation = match self.generation {
            Some(generation) => generation,
            None => self.read_generation().await?,
        };
        let Some(mut hits) = self.query_legs(limits, begun).await? else { return Ok(None) };
        if !self.query_chunks_again(limits, &mut hits).await? {
            return Ok(None);
        }
        // Neither revision of a document that was replaced between the hits and the records would be shown.
        let torn = hits.liveness.replaced && self.read_generation().await? != generation;
        let insufficient = extend(limits, self.request, &hits);
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
        Ok(Some(RankedHits { legs, liveness, ranked, examined }))
    }

    /// What was read early; nothing if documents have changed since, so that none is shown that was deleted meanwhile.
    async fn if_current(&self, prepared: Option<Prepared>) -> Result<Prepared> {
        let Some(prepared) = prepared else { return Ok(Prepared::default()) };
        let is_current = self.generation == Some(self.read_generation().await?);
        Ok(if is_current { prepared } else { Prepared::default() })
    }

    /// Queries the legs of the chunks a second time, in one batch, if there is reason to: the second round asks with a
    /// query moved towards the first results, and if one document dominates the page, the others are asked for. Returns
    /// false if the collections were switched.
    async fn query_chunks_again(&self, limits: &LegLimits, hits: &mut RankedHits) -> Result<bool> {
        let Stores { vectors, times, .. } = self.stores;
        let moved = self.second_query(hits).await;
        let Some(moved) = self.unless_switched(moved)? else { return Ok(false) };
        let dominant = dominant(self.request, &hits.legs, &hits.ranked);
        if moved.is_none() && dominant.is_none() {
            return Ok(true);
        }
        let moved_query = EncodedQuery { dense: moved.clone(), ..EncodedQuery::default() };
        let others_query = match &dominant {
            Some(_) => {
                EncodedQuery { dense: moved.or_else(|| self.query.dense.clone()), ..self.query.clone() }
            }
            None => EncodedQuery::default(),
        };
        let excluded = limits.excluded.iter().copied().chain(dominant).collect();
        let others_limits = LegLimits { hits: self.request.top_k, excluded };
        let moved = LegsQuery { mode: Mode::Flat, query: &moved_query, limits };
        let others = LegsQuery { query: &others_query, limits: &others_limits, ..moved };
        let querying = legs::query(vectors, &self.selection, [moved, others]);
        let queried = times.measure(SearchStage::Legs, querying).await;
        let Some(queried) = self.unless_switched(queried)? else { return Ok(false) };
        times.measure(SearchStage::Fuse, self.rank_again(hits, queried)).await?;
        Ok(true)
    }

    /// Adds the live hits of a second batch, and ranks again.
    async fn rank_again(&self, hits: &mut RankedHits, mut queried: [Legs; 2]) -> Result<()> {
        for legs in &mut queried {
            let (catalog, read) = (self.stores.catalog, ReadRecords::default());
            hits.liveness.merge(live::retain_live(catalog, self.request, legs, read).await?);
        }
        let [moved, others] = queried;
        hits.legs.replace(moved);
        hits.legs.merge(others);
        hits.ranked = rank::rank(&hits.legs, self.fusion_params());
        Ok(())
    }

    /// The query of the second round; `None` if that is off, there is no dense query, or there are no results.
    async fn second_query(&self, hits: &RankedHits) -> lkr_vectors::Result<Option<DenseQuery>> {
        let Some(dense) = &self.query.dense else { return Ok(None) };
        if !self.options.second_round || self.request.mode == Mode::Flat {
            return Ok(None);
        }
        feedback::second_query(self.stores.vectors, &hits.legs, &hits.ranked, dense).await
    }

    /// Refines the order of the best candidates, and reads the page. The result is consistent if no point of it is
    /// gone.
    async fn finish(&self, hits: RankedHits) -> Result<Retrieved> {
        let RankedHits { legs, liveness, mut ranked, examined } = hits;
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
        Ok(Retrieved { legs, ranked, documents, contents, lacks_quoted, rerank, consistent })
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

/// The document that dominates the page, if the legs may have more hits of others.
fn dominant(request: &SearchRequest, legs: &Legs, ranked: &Ranked) -> Option<(DocId, u64)> {
    let single = request.filters.doc_ids.as_ref().is_some_and(|ids| ids.len() == 1);
    let more = has_more_chunks(legs);
    let chunks = request.group_by == GroupBy::Chunk;
    (chunks && more && !single).then(|| dominant_document(&ranked.candidates, request.top_k))?
}

fn has_more_chunks(legs: &Legs) -> bool {
    legs.all.iter().any(|leg| leg.layer == Layer::Chunks && leg.full)
}

/// The best keyword hits of a query with literals. They are examined even if fusion ranks them low.
fn literal_candidates(refinement: &Refinement, legs: &Legs) -> Vec<PointId> {
    let is_sparse = |leg: &&Leg| leg.layer == Layer::Chunks && leg.kind == LegKind::Sparse;
    let hits = legs.all.iter().find(is_sparse).map_or(&[][..], |leg| &leg.hits);
    refinement.literal_hits(hits).iter().map(|hit| hit.id).collect()
}

/// Raises the limits of the next round if this one had too few live hits, and returns whether it had.
fn extend(limits: &mut LegLimits, request: &SearchRequest, hits: &RankedHits) -> bool {
    let RankedHits { legs, liveness, ranked, .. } = hits;
    let few = request.group_by == GroupBy::Document && document_count(&ranked.candidates) < request.top_k;
    // Excluding the stale points of one large document is enough. Those of many small documents keep coming.
    let crowded = liveness.starved && !limits.excluded.is_empty();
    let wider = ((has_more_chunks(legs) && few) || crowded) && limits.hits < MAX_CANDIDATES;
    if wider {
        limits.hits = (4 * limits.hits).min(MAX_CANDIDATES);
    }
    if liveness.starved {
        limits.excluded.extend(&liveness.stale);
    }
    liveness.starved || wider
}

fn document_count(candidates: &[Candidate]) -> usize {
    candidates.iter().map(|candidate| candidate.origin.doc_id).collect::<IdSet<_>>().len()
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

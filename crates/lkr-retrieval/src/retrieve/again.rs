//! The further batches of a round: for the second round, for the documents beside one that dominates a page of chunks, and
//! for the documents behind those that fill the legs.

use lkr_domain::{DocId, Layer};

use crate::{
    GroupBy, Mode, Result, SearchRequest, SearchStage,
    candidate::Candidate,
    encoded_query::{DenseQuery, EncodedQuery},
    feedback,
    ids::IdSet,
    legs::{self, LegLimits, Legs, LegsQuery},
    live::{self, ReadRecords},
    page::dominant_document,
    rank::{self, Ranked},
    retrieve::{RankedHits, Round, widened},
};

/// The most batches in which a round looks for more documents. Each that finds live hits finds another document.
const MAX_DOCUMENT_BATCHES: usize = 8;

impl Round<'_> {
    /// Queries legs again if there is reason to, and adds their live hits. Returns false if the collections were switched.
    pub(super) async fn query_again(&self, limits: &LegLimits, hits: &mut RankedHits) -> Result<bool> {
        let moved = self.second_query(hits).await;
        let Some(moved) = self.unless_switched(moved)? else { return Ok(false) };
        let is_current = self.query_chunks_again(limits, hits, moved.as_ref()).await?;
        if !is_current || self.request.group_by == GroupBy::Chunk {
            return Ok(is_current);
        }
        self.query_more_documents(limits, hits, moved.as_ref()).await
    }

    /// Queries the legs of the chunks a second time, in one batch, if there is reason to: the second round asks with a
    /// query moved towards the first results, and if one document dominates the page, the others are asked for. Returns
    /// false if the collections were switched.
    async fn query_chunks_again(
        &self,
        limits: &LegLimits,
        hits: &mut RankedHits,
        moved: Option<&DenseQuery>,
    ) -> Result<bool> {
        let dominant = dominant(self.request, &hits.legs, &hits.ranked);
        if moved.is_none() && dominant.is_none() {
            return Ok(true);
        }
        let moved_query = EncodedQuery { dense: moved.cloned(), ..EncodedQuery::default() };
        let others_query = match &dominant {
            Some(_) => self.query_with(moved),
            None => EncodedQuery::default(),
        };
        let excluded = limits.excluded.iter().copied().chain(dominant).collect();
        let others_limits = LegLimits { hits: self.request.top_k, excluded };
        let moved = LegsQuery { mode: Mode::Flat, query: &moved_query, limits };
        let others = LegsQuery { query: &others_query, limits: &others_limits, ..moved };
        let Some(queried) = self.query_batch([moved, others]).await? else { return Ok(false) };
        self.stores.times.measure(SearchStage::Fuse, self.rank_again(hits, queried)).await?;
        Ok(true)
    }

    /// Queries the legs for documents that have no hit yet until the page is full or there are no more: the chunks of a large document
    /// can fill all legs. Returns false if the collections were switched.
    async fn query_more_documents(
        &self,
        limits: &LegLimits,
        hits: &mut RankedHits,
        moved: Option<&DenseQuery>,
    ) -> Result<bool> {
        let query = self.query_with(moved);
        // The query is moved for the legs of the chunks alone.
        let mode = if moved.is_some() { Mode::Flat } else { self.request.mode };
        let mut more_limits = limits.clone();
        let mut has_more = has_more_chunks(&hits.legs);
        for _ in 0..MAX_DOCUMENT_BATCHES {
            if !has_more || !self.lacks_documents(hits) {
                return Ok(true);
            }
            more_limits.hits = widened(more_limits.hits);
            more_limits.excluded = limits.excluded.iter().copied().chain(revisions(&hits.ranked)).collect();
            let others = LegsQuery { mode, query: &query, limits: &more_limits };
            let Some([others]) = self.query_batch([others]).await? else { return Ok(false) };
            has_more = has_more_chunks(&others);
            let ranking = self.rank_again(hits, [Legs::default(), others]);
            self.stores.times.measure(SearchStage::Fuse, ranking).await?;
        }
        hits.lacks_documents = has_more && self.lacks_documents(hits);
        Ok(true)
    }

    /// Whether the page has too few documents, and no other round follows that finds more by excluding stale hits.
    fn lacks_documents(&self, hits: &RankedHits) -> bool {
        let possible = self.request.filters.doc_ids.as_ref().map_or(usize::MAX, Vec::len);
        let wanted = self.request.top_k.min(possible);
        (self.is_last || !hits.liveness.starved) && document_count(&hits.ranked.candidates) < wanted
    }

    /// Queries legs in one batch; `None` if the collections were switched.
    async fn query_batch<const N: usize>(&self, queries: [LegsQuery<'_>; N]) -> Result<Option<[Legs; N]>> {
        let querying = legs::query(self.stores.vectors, &self.selection, queries);
        let queried = self.stores.times.measure(SearchStage::Legs, querying).await;
        self.unless_switched(queried)
    }

    /// Adds the live hits of a further batch, and ranks again. Its first legs replace those that were queried before.
    async fn rank_again(&self, hits: &mut RankedHits, mut queried: [Legs; 2]) -> Result<()> {
        for legs in &mut queried {
            let (catalog, read) = (self.stores.catalog, ReadRecords::default());
            hits.liveness.merge(live::retain_live(catalog, self.request, legs, read).await?);
        }
        let [moved, others] = queried;
        hits.legs.replace(moved);
        hits.legs.merge(others);
        hits.liveness.drop_replaced(&mut hits.legs);
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

    /// The query, with the vector of the second round if there is one.
    fn query_with(&self, moved: Option<&DenseQuery>) -> EncodedQuery {
        let dense = moved.or(self.query.dense.as_ref()).cloned();
        EncodedQuery { dense, ..self.query.clone() }
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

/// The documents that have hits, with their revisions.
fn revisions(ranked: &Ranked) -> IdSet<(DocId, u64)> {
    ranked.candidates.iter().map(|candidate| (candidate.origin.doc_id, candidate.origin.revision)).collect()
}

fn document_count(candidates: &[Candidate]) -> usize {
    candidates.iter().map(|candidate| candidate.origin.doc_id).collect::<IdSet<_>>().len()
}

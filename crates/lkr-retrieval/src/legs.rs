//! The legs of a search: their queries to the vector store and the hits that they listed.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use lkr_domain::{DocId, Layer, PointId, Scope};
use lkr_vectors::{
    BegunBatch, Collection, CollectionSpec, Condition, Error, ErrorKind, Filter, Hit, Query, QueryVector,
    Result, VectorStore,
};

use crate::{LegCandidates, LegKind, Mode, encoded_query::EncodedQuery, ids::IdSet};

/// One leg and its hits.
#[derive(Debug, Clone)]
pub(crate) struct Leg {
    /// The layer that it searches.
    pub(crate) layer: Layer,
    /// The collection behind the layer's alias.
    pub(crate) collection: Collection,
    /// Whether it searches dense or sparse vectors.
    pub(crate) kind: LegKind,
    /// Whether the store was queried for it.
    pub(crate) queried: bool,
    /// Whether it listed as many hits as its limit, so that there may be more.
    pub(crate) full: bool,
    /// Its hits, the best first.
    pub(crate) hits: Vec<Hit>,
}

/// The legs of one query.
#[derive(Debug, Clone, Default)]
pub(crate) struct Legs {
    /// All legs of the mode, from L1 down, dense before sparse.
    pub(crate) all: Vec<Leg>,
    /// How long the batches took.
    pub(crate) took: Duration,
    /// Whether a dense leg was left out because the layer's vectors were made by another model.
    pub(crate) model_mismatch: bool,
}

impl Legs {
    /// Adds the hits of other legs to the legs of the same layer and kind.
    pub(crate) fn merge(&mut self, others: Self) {
        for other in others.all {
            let Some(leg) = self.counterpart(&other) else { continue };
            let known: IdSet<PointId> = leg.hits.iter().map(|hit| hit.id).collect();
            leg.hits.extend(other.hits.into_iter().filter(|hit| !known.contains(&hit.id)));
            leg.hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        }
        self.took += others.took;
    }

    /// Replaces legs by those of `others` with the same layer and kind that were queried.
    pub(crate) fn replace(&mut self, others: Self) {
        for other in others.all.into_iter().filter(|other| other.queried) {
            if let Some(leg) = self.counterpart(&other) {
                *leg = other;
            }
        }
        self.took += others.took;
    }

    /// The number of candidates of each leg that was queried.
    pub(crate) fn candidates(&self) -> Vec<LegCandidates> {
        let queried = self.all.iter().filter(|leg| leg.queried);
        let counted =
            queried.map(|leg| LegCandidates { layer: leg.layer, kind: leg.kind, candidates: leg.hits.len() });
        counted.collect()
    }

    fn counterpart(&mut self, other: &Leg) -> Option<&mut Leg> {
        self.all.iter_mut().find(|leg| leg.layer == other.layer && leg.kind == other.kind)
    }
}

/// The limits of each leg's query.
#[derive(Debug, Clone, Default)]
pub(crate) struct LegLimits {
    /// How many hits each leg lists at most.
    pub(crate) hits: usize,
    /// Revisions of documents whose points are excluded.
    pub(crate) excluded: Vec<(DocId, u64)>,
}

/// The layers of a mode, from L1 down.
pub(crate) const fn layers(mode: Mode) -> &'static [Layer] {
    match mode {
        Mode::Layered => &Layer::ALL,
        Mode::Flat => &[Layer::Chunks],
    }
}

/// The points that legs search.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub(crate) scope: Scope,
    pub(crate) filter: Filter,
}

/// One query to all legs of a mode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LegsQuery<'a> {
    pub(crate) mode: Mode,
    pub(crate) query: &'a EncodedQuery,
    pub(crate) limits: &'a LegLimits,
}

/// Sends the queries of all legs to the store as one batch, and returns the legs of each query in order. A leg without
/// a vector, or with a vector of another model than the layer's, is not queried. The first legs carry the batch's time.
///
/// # Errors
/// `NotFound` if a collection was dropped meanwhile: the aliases then name others, and the call can be repeated.
pub(crate) async fn query<const N: usize>(
    store: &dyn VectorStore,
    selection: &Selection,
    legs_queries: [LegsQuery<'_>; N],
) -> Result<[Legs; N]> {
    let in_use = |layer: &Layer| legs_queries.iter().any(|it| layers(it.mode).contains(layer));
    let specs =
        try_join_all(Layer::ALL.into_iter().filter(in_use).map(|layer| describe(store, layer))).await?;
    let mut batch = Vec::new();
    let mut answered = legs_queries.map(|_| Legs::default());
    for (legs_query, legs) in legs_queries.iter().zip(&mut answered) {
        add_queries(legs_query, selection, &specs, &mut batch, legs);
    }
    let started = Instant::now();
    let lists = query_batch(store, &mut batch).await?;
    let took = started.elapsed();
    let queried = answered.iter_mut().flat_map(|legs| &mut legs.all).filter(|leg| leg.queried);
    for ((leg, query), hits) in queried.zip(&batch).zip(lists) {
        leg.full = hits.len() >= query.limit;
        leg.hits = hits;
    }
    if let Some(first) = answered.first_mut() {
        first.took = took;
    }
    Ok(answered)
}

/// The sparse legs of a query, which the store began to ask before the query's dense vector was known.
#[derive(Debug)]
pub(crate) struct BegunLegs {
    specs: Vec<(Layer, CollectionSpec)>,
    batch: Box<dyn BegunBatch>,
}

/// Begins to ask the sparse legs of a query, if the store does that.
pub(crate) async fn begin(
    store: &dyn VectorStore,
    selection: &Selection,
    legs_query: LegsQuery<'_>,
) -> Result<Option<BegunLegs>> {
    let layers = layers(legs_query.mode).iter().copied();
    let specs = try_join_all(layers.map(|layer| describe(store, layer))).await?;
    let (mut sparse, mut legs) = (Vec::new(), Legs::default());
    add_queries(&legs_query, selection, &specs, &mut sparse, &mut legs);
    sparse.reverse();
    Ok(store.begin_batch(&sparse)?.map(|batch| BegunLegs { specs, batch }))
}

impl BegunLegs {
    /// Waits for the hits of the sparse legs, by layer. The legs can be finished even if the future is dropped before.
    ///
    /// # Errors
    /// Those of [`query`]. The legs cannot be finished then.
    pub(crate) async fn sparse_hits(&mut self) -> Result<Vec<(Layer, Vec<Hit>)>> {
        let lists = self.batch.begun().await?;
        Ok(self.specs.iter().rev().map(|(layer, _)| *layer).zip(lists).collect())
    }

    /// Asks the dense legs, too, and returns all legs. `selection`, and `legs_query` but for the dense vector, are those that the
    /// legs were begun with.
    ///
    /// # Errors
    /// Those of [`query`].
    pub(crate) async fn finish(self, selection: &Selection, legs_query: LegsQuery<'_>) -> Result<Legs> {
        let (mut dense, mut legs) = (Vec::new(), Legs::default());
        add_queries(&legs_query, selection, &self.specs, &mut dense, &mut legs);
        dense.retain(|query| matches!(query.vector, QueryVector::Dense(_)));
        dense.reverse();
        let started = Instant::now();
        let mut lists = self.batch.finish(&dense).await?.into_iter();
        legs.took = started.elapsed();
        for kind in [LegKind::Sparse, LegKind::Dense] {
            let asked = legs.all.iter_mut().rev().filter(|leg| leg.queried && leg.kind == kind);
            for (leg, hits) in asked.zip(&mut lists) {
                leg.full = hits.len() >= legs_query.limits.hits;
                leg.hits = hits;
            }
        }
        Ok(legs)
    }
}

/// The hits of the queries, in their order. The store gets the queries of the lowest layer first: they take longest, so that
/// its threads end at about the same time.
async fn query_batch(store: &dyn VectorStore, batch: &mut [Query]) -> Result<Vec<Vec<Hit>>> {
    if batch.is_empty() {
        return Ok(Vec::new());
    }
    batch.reverse();
    let mut lists = store.query_batch(batch).await?;
    batch.reverse();
    lists.reverse();
    Ok(lists)
}

/// Adds the legs of a query, without hits, and to the batch one query for each leg that has a vector.
fn add_queries(
    legs_query: &LegsQuery<'_>,
    selection: &Selection,
    specs: &[(Layer, CollectionSpec)],
    batch: &mut Vec<Query>,
    legs: &mut Legs,
) {
    let LegsQuery { mode, query, limits } = *legs_query;
    let filter = limits.excluded.iter().fold(selection.filter.clone(), |filter, &(doc_id, revision)| {
        filter.and_not(Condition::Revision(doc_id, revision))
    });
    for (layer, spec) in specs.iter().filter(|(layer, _)| layers(mode).contains(layer)) {
        legs.model_mismatch |= query.dense.is_some() && dense(query, spec).is_none();
        for (kind, vector) in [(LegKind::Dense, dense(query, spec)), (LegKind::Sparse, sparse(query))] {
            let collection = spec.collection.clone();
            let queried = vector.is_some();
            legs.all.push(Leg { layer: *layer, collection, kind, queried, full: false, hits: Vec::new() });
            batch.extend(vector.map(|vector| Query {
                collection: spec.collection.clone(),
                vector,
                scope: selection.scope.clone(),
                filter: filter.clone(),
                limit: limits.hits,
            }));
        }
    }
}

/// The collection behind a layer's alias.
async fn describe(store: &dyn VectorStore, layer: Layer) -> Result<(Layer, CollectionSpec)> {
    let spec = store.describe(&Collection::from(layer)).await?;
    let missing = || Error::new(ErrorKind::NotFound, "describe", format!("collection not found: {layer}"));
    Ok((layer, spec.ok_or_else(missing)?))
}

/// The dense query, if the collection contains vectors of the same model.
fn dense(query: &EncodedQuery, spec: &CollectionSpec) -> Option<QueryVector> {
    let dense = query.dense.as_ref()?;
    let same =
        spec.dense.as_ref().is_some_and(|own| own.model == dense.model && own.dims == dense.vector.len());
    same.then(|| QueryVector::Dense(dense.vector.clone()))
}

fn sparse(query: &EncodedQuery) -> Option<QueryVector> {
    (!query.sparse.is_empty()).then(|| QueryVector::Sparse(query.sparse.clone()))
}

#[cfg(test)]
mod tests {
    use lkr_domain::SparseVector;
    use lkr_vectors::{MemoryVectors, Point, PointOrigin, Tags};

    use super::*;

    fn point(n: u8) -> Point {
        let doc_id = DocId::from_bytes([n; 16]);
        let origin = PointOrigin { doc_id, revision: 1, ordinal: 0, l2: None, l3: None };
        let sparse = SparseVector::from_pairs([(1, 1.0)]);
        let (id, payload) = (PointId::from_bytes([n; 16]), Default::default());
        Point { id, origin, tags: Tags::new(), dense: None, sparse, payload }
    }

    #[tokio::test]
    async fn hits_are_in_the_order_of_the_queries() {
        let store = MemoryVectors::new();
        let mut batch = Vec::new();
        for n in 1..4 {
            let collection = Collection::new(format!("points{n}")).unwrap();
            store.ensure(&CollectionSpec { collection: collection.clone(), dense: None }).await.unwrap();
            store.upsert(&collection, vec![point(n)]).await.unwrap();
            let vector = QueryVector::Sparse(SparseVector::from_pairs([(1, 1.0)]));
            batch.push(Query { collection, vector, scope: Scope::All, filter: Filter::all(), limit: 1 });
        }
        let before = batch.clone();
        let lists = query_batch(&store, &mut batch).await.unwrap();
        let ids: Vec<_> = lists.iter().map(|hits| hits[0].id.as_bytes()[0]).collect();
        assert_eq!((ids, batch), (vec![1, 2, 3], before));
    }
}

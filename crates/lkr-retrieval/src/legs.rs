//! The legs of a search: what is asked of the vector store, and what it lists.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use lkr_domain::{DocId, Layer};
use lkr_vectors::{
    Collection, CollectionSpec, Condition, Error, ErrorKind, Filter, Hit, Query, QueryVector, Result,
    VectorStore,
};

use crate::{LegKind, Mode, voice::Voice};

/// What one leg listed.
#[derive(Debug, Clone)]
pub(crate) struct Leg {
    /// Where it looked.
    pub(crate) layer: Layer,
    /// The collection behind the layer's name.
    pub(crate) collection: Collection,
    /// How it looked.
    pub(crate) kind: LegKind,
    /// Whether it was asked at all.
    pub(crate) asked: bool,
    /// Whether it listed as many as it was asked for, so that there may be more.
    pub(crate) full: bool,
    /// Its hits, the best first.
    pub(crate) hits: Vec<Hit>,
}

/// The legs of one batch.
#[derive(Debug, Clone)]
pub(crate) struct Legs {
    /// All legs of the mode, from L1 down, dense before sparse.
    pub(crate) all: Vec<Leg>,
    /// How long the batch took, and the second one where there was one.
    pub(crate) took: Duration,
    /// Whether a layer was not asked by meaning because its vectors are of another model.
    pub(crate) other_model: bool,
}

impl Legs {
    /// Adds what another batch listed of the same legs, farther down.
    pub(crate) fn join(&mut self, others: Self) {
        for other in others.all {
            let same = |leg: &&mut Leg| leg.layer == other.layer && leg.kind == other.kind;
            if let Some(leg) = self.all.iter_mut().find(same) {
                leg.hits.extend(other.hits);
            }
        }
        self.took += others.took;
    }

    /// Takes what the legs of another batch of the same mode listed in the place of what these did, where they were
    /// asked.
    pub(crate) fn take_over(&mut self, other: Self) {
        for (own, other) in self.all.iter_mut().zip(other.all).filter(|(_, other)| other.asked) {
            *own = other;
        }
        self.took += other.took;
    }
}

/// How far the legs look.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reach {
    /// How many each lists.
    pub(crate) limit: usize,
    /// Revisions of documents that are known not to be live.
    pub(crate) dead: Vec<(DocId, u64)>,
}

/// The layers of a mode, from L1 down.
pub(crate) const fn layers(mode: Mode) -> &'static [Layer] {
    match mode {
        Mode::Layered => &Layer::ALL,
        Mode::Flat => &[Layer::Chunks],
    }
}

/// Asks all legs of `mode` in one batch.
///
/// The collections behind the layers' names are looked up first and then asked by their own names, so that a vector
/// never meets those of another model, even where the names are switched meanwhile.
///
/// # Errors
/// `NotFound` where a collection was dropped meanwhile: the names then stand for others, and it can be tried again.
pub(crate) async fn ask(
    store: &dyn VectorStore,
    mode: Mode,
    voice: &Voice,
    filter: &Filter,
    reach: &Reach,
) -> Result<Legs> {
    let specs = try_join_all(layers(mode).iter().map(|&layer| describe(store, layer))).await?;
    let filter = reach.dead.iter().fold(filter.clone(), |filter, &(doc_id, revision)| {
        filter.and_not(Condition::Revision(doc_id, revision))
    });
    let mut queries = Vec::new();
    let mut all = Vec::new();
    for (&layer, spec) in layers(mode).iter().zip(&specs) {
        for (kind, vector) in [(LegKind::Dense, dense(voice, spec)), (LegKind::Sparse, sparse(voice))] {
            let collection = spec.collection.clone();
            all.push(Leg { layer, collection, kind, asked: vector.is_some(), full: false, hits: Vec::new() });
            queries.extend(vector.map(|vector| Query {
                collection: spec.collection.clone(),
                vector,
                filter: filter.clone(),
                limit: reach.limit,
            }));
        }
    }
    let started = Instant::now();
    let lists = if queries.is_empty() { Vec::new() } else { store.query_batch(&queries).await? };
    for (leg, hits) in all.iter_mut().filter(|leg| leg.asked).zip(lists) {
        leg.full = hits.len() >= reach.limit;
        leg.hits = hits;
    }
    let other_model = voice.dense.is_some() && specs.iter().any(|spec| dense(voice, spec).is_none());
    Ok(Legs { all, took: started.elapsed(), other_model })
}

async fn describe(store: &dyn VectorStore, layer: Layer) -> Result<CollectionSpec> {
    let spec = store.describe(&Collection::from(layer)).await?;
    spec.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "describe", format!("collection {layer} is not there"))
    })
}

/// The dense query, where the collection holds vectors of the same model.
fn dense(voice: &Voice, spec: &CollectionSpec) -> Option<QueryVector> {
    let dense = voice.dense.as_ref()?;
    let same =
        spec.dense.as_ref().is_some_and(|own| own.model == dense.model && own.dims == dense.vector.len());
    same.then(|| QueryVector::Dense(dense.vector.clone()))
}

fn sparse(voice: &Voice) -> Option<QueryVector> {
    (!voice.sparse.is_empty()).then(|| QueryVector::Sparse(voice.sparse.clone()))
}

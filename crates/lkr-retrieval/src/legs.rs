//! The legs of a search: what is asked of the vector store, and what it lists.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use futures_util::future::try_join_all;
use lkr_domain::{DocId, Layer, PointId};
use lkr_vectors::{
    Collection, CollectionSpec, Condition, Error, ErrorKind, Filter, Hit, Query, QueryVector, Result,
    VectorStore,
};

use crate::{LegKind, Mode, encoded_query::EncodedQuery};

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

/// The legs of one question.
#[derive(Debug, Clone, Default)]
pub(crate) struct Legs {
    /// All legs of the mode, from L1 down, dense before sparse.
    pub(crate) all: Vec<Leg>,
    /// How long the batches took.
    pub(crate) took: Duration,
    /// Whether a layer was not asked by meaning because its vectors are of another model.
    pub(crate) other_model: bool,
}

impl Legs {
    /// Adds what other legs of the same layers and kinds listed besides.
    pub(crate) fn join(&mut self, others: Self) {
        for other in others.all {
            let Some(leg) = self.like(&other) else { continue };
            let known: HashSet<PointId> = leg.hits.iter().map(|hit| hit.id).collect();
            leg.hits.extend(other.hits.into_iter().filter(|hit| !known.contains(&hit.id)));
            leg.hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        }
        self.took += others.took;
    }

    /// Takes what other legs of the same layers and kinds listed in the place of what these did, where they were asked.
    pub(crate) fn take_over(&mut self, others: Self) {
        for other in others.all.into_iter().filter(|other| other.asked) {
            if let Some(leg) = self.like(&other) {
                *leg = other;
            }
        }
        self.took += others.took;
    }

    fn like(&mut self, other: &Leg) -> Option<&mut Leg> {
        self.all.iter_mut().find(|leg| leg.layer == other.layer && leg.kind == other.kind)
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

/// What the legs of a mode are asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) mode: Mode,
    pub(crate) voice: &'a EncodedQuery,
    pub(crate) reach: &'a Reach,
}

/// Asks the legs all `questions` in one batch, and answers the legs of each; the first have the time that it took.
///
/// The collections behind the layers' names are looked up first and then asked by their own names, so that a vector
/// never meets those of another model, even where the names are switched meanwhile.
///
/// # Errors
/// `NotFound` where a collection was dropped meanwhile: the names then stand for others, and it can be tried again.
pub(crate) async fn ask<const N: usize>(
    store: &dyn VectorStore,
    filter: &Filter,
    questions: [Question<'_>; N],
) -> Result<[Legs; N]> {
    let named =
        Layer::ALL.into_iter().filter(|layer| questions.iter().any(|it| layers(it.mode).contains(layer)));
    let specs = try_join_all(named.map(|layer| describe(store, layer))).await?;
    let mut queries = Vec::new();
    let mut asked = questions.map(|_| Legs::default());
    for (question, legs) in questions.iter().zip(&mut asked) {
        put(question, filter, &specs, &mut queries, legs);
    }
    let started = Instant::now();
    let lists = if queries.is_empty() { Vec::new() } else { store.query_batch(&queries).await? };
    let took = started.elapsed();
    let wanted = asked.iter_mut().flat_map(|legs| &mut legs.all).filter(|leg| leg.asked);
    for ((leg, query), hits) in wanted.zip(&queries).zip(lists) {
        leg.full = hits.len() >= query.limit;
        leg.hits = hits;
    }
    if let Some(first) = asked.first_mut() {
        first.took = took;
    }
    Ok(asked)
}

/// Makes the legs of a question, which have not listed anything yet, and a query for each that is asked.
fn put(
    question: &Question<'_>,
    filter: &Filter,
    specs: &[(Layer, CollectionSpec)],
    queries: &mut Vec<Query>,
    legs: &mut Legs,
) {
    let Question { mode, voice, reach } = *question;
    let filter = reach.dead.iter().fold(filter.clone(), |filter, &(doc_id, revision)| {
        filter.and_not(Condition::Revision(doc_id, revision))
    });
    for (layer, spec) in specs.iter().filter(|(layer, _)| layers(mode).contains(layer)) {
        legs.other_model |= voice.dense.is_some() && dense(voice, spec).is_none();
        for (kind, vector) in [(LegKind::Dense, dense(voice, spec)), (LegKind::Sparse, sparse(voice))] {
            let collection = spec.collection.clone();
            let asked = vector.is_some();
            legs.all.push(Leg { layer: *layer, collection, kind, asked, full: false, hits: Vec::new() });
            queries.extend(vector.map(|vector| Query {
                collection: spec.collection.clone(),
                vector,
                filter: filter.clone(),
                limit: reach.limit,
            }));
        }
    }
}

/// The collection behind the name of a layer.
async fn describe(store: &dyn VectorStore, layer: Layer) -> Result<(Layer, CollectionSpec)> {
    let spec = store.describe(&Collection::from(layer)).await?;
    let missing = || Error::new(ErrorKind::NotFound, "describe", format!("collection {layer} is not there"));
    Ok((layer, spec.ok_or_else(missing)?))
}

/// The dense query, where the collection holds vectors of the same model.
fn dense(voice: &EncodedQuery, spec: &CollectionSpec) -> Option<QueryVector> {
    let dense = voice.dense.as_ref()?;
    let same =
        spec.dense.as_ref().is_some_and(|own| own.model == dense.model && own.dims == dense.vector.len());
    same.then(|| QueryVector::Dense(dense.vector.clone()))
}

fn sparse(voice: &EncodedQuery) -> Option<QueryVector> {
    (!voice.sparse.is_empty()).then(|| QueryVector::Sparse(voice.sparse.clone()))
}

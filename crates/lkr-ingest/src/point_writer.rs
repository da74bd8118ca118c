//! Which collections points are written to while the embedding model changes.
//!
//! Searches and writes use the aliases `l1`, `l2`, `l3` and `chunks`; the collections of the next model are filled beside
//! those of the live one. The phase of that change is a record ([`CollectionState`]), and the step that publishes a document
//! contains the record's version. So each document either was published before filling began, or is noted as an arrival, or
//! was not published, in whichever process.

use std::{sync::Arc, time::Duration};

use lkr_catalog::{ActiveTask, Catalog, CollectionPhase, CollectionState};
use lkr_domain::{DocId, Layer};
use lkr_models::Embedder;
use lkr_state::Write;
use lkr_vectors::Point;

use crate::{
    Error, ErrorKind, Ports, Result,
    collection_set::{CollectionSet, is_recorded},
    live_collections::align_aliases,
};

/// The pause before a document is tried again whose collections are being replaced.
const SWITCH_PAUSE: Duration = Duration::from_secs(1);

/// What the points of one document are written to. The collections are named, so a write never reaches those of another
/// model.
pub(crate) struct PointWriter {
    collections: CollectionSet,
    embedder: Option<Arc<dyn Embedder>>,
    /// The number of completed changes of the model when the writer was made.
    switches: u64,
    doc_id: DocId,
}

impl PointWriter {
    /// A writer for the points of a document.
    ///
    /// # Errors
    /// `Waiting` while the aliases are about to be switched, or if they name other collections than the record.
    pub(crate) async fn new(ports: &Ports, doc_id: DocId) -> Result<Self> {
        // Read before the collections, so that a switch in between is noticed.
        let state = ports.catalog.collection_state().await?;
        if !state.phase.allows_writes() {
            return Err(switching());
        }
        let live = async |layer: Layer| {
            let live = ports.vectors.describe(&layer.into()).await?.ok_or_else(switching)?;
            if is_recorded(state.live.as_ref(), layer, &live.collection)? {
                return Ok(live);
            }
            align_aliases(&*ports.vectors, &ports.catalog).await?;
            Err(switching())
        };
        let chunks = live(Layer::Chunks).await?;
        let embedder = chunks.dense.and_then(|dense| ports.embedders.embedder_of(&dense.model));
        let collections = CollectionSet {
            l1: live(Layer::L1).await?.collection,
            l2: live(Layer::L2).await?.collection,
            l3: live(Layer::L3).await?.collection,
            chunks: chunks.collection,
        };
        Ok(Self { collections, embedder, switches: state.switches, doc_id })
    }

    /// The model whose vectors searches use; `None` if they use none, or the model is unavailable.
    pub(crate) fn embedder(&self) -> Option<&dyn Embedder> {
        self.embedder.as_deref()
    }

    /// The collections that the points are written to.
    pub(crate) const fn collections(&self) -> &CollectionSet {
        &self.collections
    }

    /// Stores points of several layers, those of the last one after all others. Their dense vectors, if any, must be of
    /// [`embedder`](Self::embedder).
    ///
    /// # Errors
    /// `Waiting` if the collections were dropped meanwhile.
    pub(crate) async fn upsert(
        &self,
        ports: &Ports,
        points: impl IntoIterator<Item = (Layer, Vec<Point>)>,
    ) -> Result<()> {
        let collection = |(layer, points)| (self.collections.of(layer).clone(), points);
        match ports.vectors.upsert_all(points.into_iter().map(collection).collect()).await {
            Err(error) if error.kind() == lkr_vectors::ErrorKind::NotFound => Err(switching()),
            upserted => Ok(upserted?),
        }
    }

    /// What the step must contain that makes the points live.
    ///
    /// # Errors
    /// `Waiting` if the points are no longer in the live collections, or the aliases are about to be switched.
    pub(crate) async fn publishing(&self, catalog: &Catalog) -> Result<Vec<Write>> {
        let state = catalog.collection_state().await?;
        if state.switches != self.switches || !state.phase.allows_writes() {
            return Err(switching());
        }
        Ok(state.publishing(self.doc_id))
    }
}

fn switching() -> Error {
    Error::new(ErrorKind::Waiting(SWITCH_PAUSE), "write points", "the embedding model is being switched")
}

/// Creates the collections of a change unless they exist. Documents that are published from now on are noted.
///
/// A worker that is stalled, and whose task this one took over, can begin no further phase: it must not switch, because
/// documents are published again.
///
/// # Errors
/// `Superseded` if the task is not active.
pub(crate) async fn begin_filling(
    ports: &Ports,
    active: ActiveTask,
    next: &CollectionSet,
    embedder: &dyn Embedder,
) -> Result<CollectionState> {
    next.ensure(&*ports.vectors, embedder.profile()).await?;
    let catalog = &ports.catalog;
    let attempt = || async {
        if catalog.active(active.subject).await? != Some(active) {
            return Err(Error::new(ErrorKind::Superseded, "reembed", "the task was cancelled"));
        }
        let before = catalog.collection_state().await?;
        if before.phase == CollectionPhase::Switching && before.is_of(active) {
            // A worker that is stalled may switch at any moment.
            let reason = "the embedding model is being switched";
            return Err(Error::new(ErrorKind::Superseded, "reembed", reason));
        }
        Ok(catalog.begin_phase(before, CollectionPhase::Filling, active).await?)
    };
    catalog.retry_on_conflict("begin a phase of the change of the model", attempt).await
}

/// The write that ends the phase of a change that is cancelled.
///
/// # Errors
/// `Conflict` while the aliases are being switched: the change is about to be complete.
pub(crate) fn abandon(state: &CollectionState) -> Result<Write> {
    if state.phase == CollectionPhase::Switching {
        return Err(Error::new(ErrorKind::Conflict, "cancel task", "the embedding model is being switched"));
    }
    Ok(state.begin(CollectionPhase::Idle)?)
}

/// Ends the phase of a change whose task failed.
pub(crate) async fn end_abandoned_phase(catalog: &Catalog) -> Result<()> {
    let state = catalog.collection_state().await?;
    if state.phase == CollectionPhase::Idle || catalog.is_reembedding().await? {
        return Ok(());
    }
    match catalog.end_phase(state).await {
        // A task began another phase.
        Err(error) if error.kind() == lkr_catalog::ErrorKind::Conflict => Ok(()),
        begun => Ok(begun?),
    }
}

//! Which collections points are written to while the embedding model changes.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lkr_domain::{DocId, Layer};
use lkr_models::Embedder;
use lkr_vectors::{Point, VectorStore};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{
    Ports, Result,
    collections::{collection_spec, live_model, switch_to},
};

/// The live collections, and those of the next model while they are being filled.
///
/// Searches and writes use the aliases `l1`, `l2`, `l3` and `chunks`. Everything that writes a document's points holds a
/// [`PointWriter`] until the document is published. Filling begins and ends only while there is no writer, so each document
/// either exists when filling begins, or is in the [`ArrivalLog`] before it ends.
#[derive(Debug, Default)]
pub(crate) struct CollectionSets {
    /// The documents written since filling began; `None` while nothing is being filled. Writers share the lock.
    arrivals: RwLock<Option<Arc<Arrivals>>>,
}

/// Documents that the collections being filled may lack; `None` once filling has ended.
#[derive(Debug)]
struct Arrivals(Mutex<Option<BTreeSet<DocId>>>);

impl Arrivals {
    fn lock(&self) -> MutexGuard<'_, Option<BTreeSet<DocId>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The documents that are written while the collections of the next model are being filled.
#[derive(Debug)]
pub(crate) struct ArrivalLog(Arc<Arrivals>);

impl ArrivalLog {
    /// The documents written since the last call.
    pub(crate) fn take(&self) -> BTreeSet<DocId> {
        self.0.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }
}

impl Drop for ArrivalLog {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

/// The permission to write the points of one document.
pub(crate) struct PointWriter<'a> {
    arrivals: RwLockReadGuard<'a, Option<Arc<Arrivals>>>,
    doc_id: DocId,
    embedder: Option<Arc<dyn Embedder>>,
}

impl Drop for PointWriter<'_> {
    fn drop(&mut self) {
        // The lock is still held, so filling cannot end before this document is logged.
        if let Some(arrivals) = &*self.arrivals {
            arrivals.lock().as_mut().map(|arrivals| arrivals.insert(self.doc_id));
        }
    }
}

impl PointWriter<'_> {
    /// The model whose vectors searches use; `None` if they use none, or the model is unavailable.
    pub(crate) fn embedder(&self) -> Option<&dyn Embedder> {
        self.embedder.as_deref()
    }

    /// Stores points. Their dense vectors, if any, must be of [`embedder`](Self::embedder).
    pub(crate) async fn upsert(&self, ports: &Ports, layer: Layer, points: Vec<Point>) -> Result<()> {
        Ok(ports.vectors.upsert(&layer.into(), points).await?)
    }
}

/// While it exists, there is no [`PointWriter`].
pub(crate) struct WriteBarrier<'a> {
    arrivals: RwLockWriteGuard<'a, Option<Arc<Arrivals>>>,
}

impl WriteBarrier<'_> {
    /// Ends filling: searches and writes use the collections of `model` from now on.
    pub(crate) async fn switch_to(mut self, vectors: &dyn VectorStore, model: &str) -> Result<()> {
        switch_to(vectors, model).await?;
        *self.arrivals = None;
        Ok(())
    }
}

impl CollectionSets {
    /// Creates the collections of `embedder` unless they exist, and logs the documents that are written from now on.
    pub(crate) async fn begin_filling(
        &self,
        vectors: &dyn VectorStore,
        embedder: &dyn Embedder,
    ) -> Result<ArrivalLog> {
        for layer in Layer::ALL {
            vectors.ensure(&collection_spec(layer, Some(embedder))?).await?;
        }
        let arrivals = Arc::new(Arrivals(Mutex::new(Some(BTreeSet::new()))));
        *self.arrivals.write().await = Some(Arc::clone(&arrivals));
        Ok(ArrivalLog(arrivals))
    }

    /// Waits for all writers and blocks further ones; `None` if a document was written that was not taken from `log` yet.
    pub(crate) async fn block_writers_if_complete(&self, log: &ArrivalLog) -> Option<WriteBarrier<'_>> {
        let arrivals = self.arrivals.write().await;
        let is_complete = log.0.lock().as_ref().is_none_or(BTreeSet::is_empty);
        is_complete.then_some(WriteBarrier { arrivals })
    }

    /// Waits for all writers and blocks further ones.
    pub(crate) async fn block_writers(&self) -> WriteBarrier<'_> {
        WriteBarrier { arrivals: self.arrivals.write().await }
    }

    /// Waits until the points of a document may be written.
    pub(crate) async fn writer(&self, ports: &Ports, doc_id: DocId) -> Result<PointWriter<'_>> {
        let arrivals = self.arrivals.read().await;
        let live = live_model(&*ports.vectors).await?;
        let embedder = live.and_then(|live| ports.embedders.embedder_of(&live));
        Ok(PointWriter { arrivals, doc_id, embedder })
    }
}

//! Which collections points are written to.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lkr_domain::{DocId, Layer, hex};
use lkr_models::Embedder;
use lkr_vectors::{Collection, CollectionSpec, DenseSpec, Filter, Point, Tags, VectorStore};
use sha2::{Digest, Sha256};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{Error, ErrorKind, Ports, Result};

/// The collections of the four layers. Searches and writes use the aliases `l1`, `l2`, `l3` and `chunks`; while the
/// collections of a new model are being filled, whoever fills them hears of each document that was written meanwhile.
///
/// Whoever writes a document's points holds a [`CollectionSet`] until the document is published. Filling begins and ends only
/// while nobody does, so that every document is either there when filling begins or heard of before it ends.
#[derive(Debug, Default)]
pub(crate) struct CollectionSets {
    /// Documents that were written since filling began; `None` while nothing is being filled. Writers share the lock.
    filling: RwLock<Option<Arc<Arrivals>>>,
}

/// Documents that the collections being filled may lack; `None` when nobody fills them any more.
#[derive(Debug)]
struct Arrivals(Mutex<Option<BTreeSet<DocId>>>);

impl Arrivals {
    fn lock(&self) -> MutexGuard<'_, Option<BTreeSet<DocId>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is heard of as long as collections are being filled.
#[derive(Debug)]
pub(crate) struct Filling(Arc<Arrivals>);

impl Filling {
    /// The documents that arrived since this was asked last.
    pub(crate) fn arrived(&self) -> BTreeSet<DocId> {
        self.0.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

/// The right to write points of a document.
pub(crate) struct CollectionSet<'a> {
    filling: RwLockReadGuard<'a, Option<Arc<Arrivals>>>,
    doc_id: DocId,
    /// What makes the vectors that searches use; none where it cannot be had.
    embedder: Option<Arc<dyn Embedder>>,
}

impl Drop for CollectionSet<'_> {
    fn drop(&mut self) {
        // While the lock is still held: whoever ends filling hears of it.
        if let Some(arrivals) = &*self.filling {
            arrivals.lock().as_mut().map(|arrivals| arrivals.insert(self.doc_id));
        }
    }
}

/// That nobody writes points, and nothing arrives.
pub(crate) struct Stillness<'a> {
    filling: RwLockWriteGuard<'a, Option<Arc<Arrivals>>>,
}

/// What the name of a collection without dense vectors ends with.
const SPARSE: &str = "sparse";

/// How many hexadecimal digits stand for a model in the name of a collection.
const TAG: usize = 12;

/// The collections of one model.
pub(crate) fn collection(layer: Layer, model: Option<&str>) -> Result<Collection> {
    let name = match model {
        None => format!("{layer}.{SPARSE}"),
        Some(model) => {
            let digest = Sha256::digest(model.as_bytes());
            let tag: String = hex(&digest).chars().take(TAG).collect();
            format!("{layer}.{tag}")
        }
    };
    Collection::new(name.clone())
        .ok_or_else(|| Error::new(ErrorKind::Internal, "name collection", format!("{name} is no name")))
}

impl CollectionSets {
    /// Makes the collections and aliases of a new knowledge base, for vectors of `embedder`; leaves those of one that
    /// has them.
    pub(crate) async fn open(vectors: &dyn VectorStore, embedder: Option<&dyn Embedder>) -> Result<Self> {
        let mut aliases = Vec::new();
        for layer in Layer::ALL {
            if vectors.describe(&layer.into()).await?.is_none() {
                let spec = spec(layer, embedder)?;
                vectors.ensure(&spec).await?;
                aliases.push((layer.into(), spec.collection));
            }
        }
        if !aliases.is_empty() {
            vectors.switch(&aliases).await?;
        }
        Ok(Self::default())
    }

    /// The model whose vectors searches use; `None` where they use none.
    pub(crate) async fn live_model(vectors: &dyn VectorStore) -> Result<Option<String>> {
        let spec = vectors.describe(&Layer::Chunks.into()).await?;
        Ok(spec.and_then(|spec| spec.dense).map(|dense| dense.model))
    }

    /// Makes the collections of `embedder` unless they are there. Answers where to hear of what is written from now on.
    pub(crate) async fn begin_filling(
        &self,
        vectors: &dyn VectorStore,
        embedder: &dyn Embedder,
    ) -> Result<Filling> {
        for layer in Layer::ALL {
            vectors.ensure(&spec(layer, Some(embedder))?).await?;
        }
        let arrivals = Arc::new(Arrivals(Mutex::new(Some(BTreeSet::new()))));
        *self.filling.write().await = Some(Arc::clone(&arrivals));
        Ok(Filling(arrivals))
    }

    /// Waits until nobody writes points; `None` where something arrived that was not heard of yet.
    pub(crate) async fn still(&self, heard: &Filling) -> Option<Stillness<'_>> {
        let filling = self.filling.write().await;
        let nothing_more = heard.0.lock().as_ref().is_none_or(BTreeSet::is_empty);
        nothing_more.then_some(Stillness { filling })
    }

    /// Waits until nobody writes points, whatever is still to be heard of.
    pub(crate) async fn hold(&self) -> Stillness<'_> {
        Stillness { filling: self.filling.write().await }
    }

    /// Waits until points of a document may be written.
    pub(crate) async fn enter(&self, ports: &Ports, doc_id: DocId) -> Result<CollectionSet<'_>> {
        let filling = self.filling.read().await;
        let live = Self::live_model(&*ports.vectors).await?;
        let embedder = live.and_then(|live| ports.embedders.embedder_of(&live));
        Ok(CollectionSet { filling, doc_id, embedder })
    }
}

impl Stillness<'_> {
    /// From now on searches and writes use the collections of `model`, in one step.
    pub(crate) async fn switch(mut self, vectors: &dyn VectorStore, model: &str) -> Result<()> {
        let aliases = Layer::ALL.map(|layer| Ok((layer.into(), collection(layer, Some(model))?)));
        vectors.switch(&aliases.into_iter().collect::<Result<Vec<_>>>()?).await?;
        *self.filling = None;
        Ok(())
    }
}

/// Drops the collections that neither answer nor are of the model that they are being filled for.
pub(crate) async fn drop_leftovers(vectors: &dyn VectorStore, filling: Option<&str>) -> Result<()> {
    for layer in Layer::ALL {
        let live = vectors.describe(&layer.into()).await?.map(|spec| spec.collection);
        let next = filling.map(|model| collection(layer, Some(model))).transpose()?;
        for CollectionSpec { collection, .. } in vectors.collections().await? {
            let used = [&live, &next].into_iter().flatten().any(|used| *used == collection);
            if is_of_layer(&collection, layer) && !used {
                tracing::info!(%collection, "dropping a collection that is not in use");
                vectors.drop_collection(&collection).await?;
            }
        }
    }
    Ok(())
}

/// Removes points from every collection that has any, those included that an earlier process began to fill.
pub(crate) async fn delete_everywhere(vectors: &dyn VectorStore, filter: &Filter) -> Result<()> {
    for collection in all_of_ours(vectors).await? {
        unless_dropped(vectors.delete(&collection, filter).await)?;
    }
    Ok(())
}

/// Gives points these tags in every collection that has them.
pub(crate) async fn set_tags_everywhere(
    vectors: &dyn VectorStore,
    filter: &Filter,
    tags: &Tags,
) -> Result<()> {
    for collection in all_of_ours(vectors).await? {
        unless_dropped(vectors.set_tags(&collection, filter, tags).await)?;
    }
    Ok(())
}

/// The collections of the four layers, of whatever model, L1 first.
async fn all_of_ours(vectors: &dyn VectorStore) -> Result<Vec<Collection>> {
    let all = vectors.collections().await?;
    let mut ours = Vec::new();
    for layer in Layer::ALL {
        let live = vectors.describe(&layer.into()).await?.map(|spec| spec.collection);
        let holds = |name: &Collection| live.as_ref() == Some(name) || is_of_layer(name, layer);
        ours.extend(all.iter().map(|spec| spec.collection.clone()).filter(holds));
    }
    Ok(ours)
}

/// What was done in a collection, unless it was dropped meanwhile.
fn unless_dropped(done: lkr_vectors::Result<u64>) -> Result<()> {
    match done {
        Err(error) if error.kind() == lkr_vectors::ErrorKind::NotFound => Ok(()),
        done => Ok(done.map(drop)?),
    }
}

/// Whether the name is one that [`collection`] makes.
fn is_of_layer(collection: &Collection, layer: Layer) -> bool {
    let tag = collection.name().strip_prefix(&layer.to_string()).and_then(|rest| rest.strip_prefix('.'));
    tag.is_some_and(|tag| {
        tag == SPARSE || (tag.len() == TAG && tag.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
    })
}

impl CollectionSet<'_> {
    /// What makes the vectors that searches use; none where they use none, or it cannot be had.
    pub(crate) fn embedder(&self) -> Option<&dyn Embedder> {
        self.embedder.as_deref()
    }

    /// Stores points whose dense vectors, if any, are of this shelf's embedder.
    pub(crate) async fn upsert(&self, ports: &Ports, layer: Layer, points: Vec<Point>) -> Result<()> {
        Ok(ports.vectors.upsert(&layer.into(), points).await?)
    }
}

fn spec(layer: Layer, embedder: Option<&dyn Embedder>) -> Result<CollectionSpec> {
    let profile = embedder.map(Embedder::profile);
    Ok(CollectionSpec {
        collection: collection(layer, profile.map(|profile| profile.id.as_str()))?,
        dense: profile.map(|profile| DenseSpec { model: profile.id.clone(), dims: profile.dims }),
    })
}

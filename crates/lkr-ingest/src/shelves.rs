//! Which collections points are written to.

use lkr_domain::{Layer, hex};
use lkr_models::Embedder;
use lkr_vectors::{Collection, CollectionSpec, DenseSpec, Filter, Point, Tags, VectorStore};
use sha2::{Digest, Sha256};
use tokio::sync::{RwLock, RwLockReadGuard};

use crate::{Error, ErrorKind, Ports, Result};

/// The collections of the four layers. Searches and writes use the aliases `l1`, `l2`, `l3` and `chunks`; while
/// the collections of a new model are being filled, writes go there too.
///
/// Whoever writes a document's points holds a [`Shelf`] until the document is published. Filling begins and ends
/// only while nobody does, so that every document is either there when filling begins or written to both.
#[derive(Debug, Default)]
pub(crate) struct Shelves {
    /// The model of the collections that are being filled.
    filling: RwLock<Option<String>>,
}

/// The right to write points.
pub(crate) struct Shelf<'a> {
    filling: RwLockReadGuard<'a, Option<String>>,
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

impl Shelves {
    /// Makes the collections and aliases of a new knowledge base; leaves those of one that has them. Those that were
    /// being filled for another model than this, or were about to be dropped, go.
    pub(crate) async fn open(vectors: &dyn VectorStore, embedder: Option<&dyn Embedder>) -> Result<Self> {
        let mut aliases = Vec::new();
        for layer in Layer::ALL {
            drop_leftovers(vectors, layer, embedder).await?;
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

    /// From now on, writes go to the collections of `embedder` as well.
    pub(crate) async fn begin_filling(
        &self,
        vectors: &dyn VectorStore,
        embedder: &dyn Embedder,
    ) -> Result<()> {
        for layer in Layer::ALL {
            vectors.ensure(&spec(layer, Some(embedder))?).await?;
        }
        *self.filling.write().await = Some(embedder.profile().id.clone());
        Ok(())
    }

    /// Searches and writes use the collections of `embedder`, and the earlier ones go.
    pub(crate) async fn end_filling(&self, vectors: &dyn VectorStore, embedder: &dyn Embedder) -> Result<()> {
        let mut filling = self.filling.write().await;
        let model = &embedder.profile().id;
        let old = Self::live_model(vectors).await?;
        let aliases = Layer::ALL
            .into_iter()
            .map(|layer| Ok((layer.into(), collection(layer, Some(model))?)))
            .collect::<Result<Vec<_>>>()?;
        vectors.switch(&aliases).await?;
        *filling = None;
        drop(filling);
        for layer in Layer::ALL {
            vectors.drop_collection(&collection(layer, old.as_deref())?).await?;
        }
        Ok(())
    }

    /// Waits until points may be written.
    pub(crate) async fn enter(&self) -> Shelf<'_> {
        Shelf { filling: self.filling.read().await }
    }
}

/// Drops the collections of a layer that neither answer nor are the embedder's.
async fn drop_leftovers(
    vectors: &dyn VectorStore,
    layer: Layer,
    embedder: Option<&dyn Embedder>,
) -> Result<()> {
    let live = vectors.describe(&layer.into()).await?.map(|spec| spec.collection);
    let own = collection(layer, embedder.map(|embedder| embedder.profile().id.as_str()))?;
    for CollectionSpec { collection, .. } in vectors.collections().await? {
        if is_of_layer(&collection, layer) && live.as_ref() != Some(&collection) && collection != own {
            tracing::info!(%collection, "dropping a collection that is not in use");
            vectors.drop_collection(&collection).await?;
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

impl Shelf<'_> {
    /// Stores points whose dense vectors, if any, are of the embedder in use. Collections of another model get
    /// them without.
    pub(crate) async fn upsert(&self, ports: &Ports, layer: Layer, points: Vec<Point>) -> Result<()> {
        let vectors = &ports.vectors;
        if let Some(filling) = &*self.filling {
            vectors.upsert(&collection(layer, Some(filling))?, points.clone()).await?;
        }
        let points = match self.shows_vectors(ports).await? {
            true => points,
            false => points.into_iter().map(without_dense).collect(),
        };
        Ok(vectors.upsert(&layer.into(), points).await?)
    }

    /// Whether searches find points by the vectors of the embedder in use, rather than by another model's or none.
    pub(crate) async fn shows_vectors(&self, ports: &Ports) -> Result<bool> {
        let Some(embedder) = &ports.embedder else { return Ok(false) };
        let live = Shelves::live_model(&*ports.vectors).await?;
        Ok(live.as_deref() == Some(embedder.profile().id.as_str()))
    }
}

fn spec(layer: Layer, embedder: Option<&dyn Embedder>) -> Result<CollectionSpec> {
    let profile = embedder.map(Embedder::profile);
    Ok(CollectionSpec {
        collection: collection(layer, profile.map(|profile| profile.id.as_str()))?,
        dense: profile.map(|profile| DenseSpec { model: profile.id.clone(), dims: profile.dims }),
    })
}

fn without_dense(point: Point) -> Point {
    Point { dense: None, ..point }
}

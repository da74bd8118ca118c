//! The collections of the four layers that belong together.

use lkr_catalog::{ActiveTask, LiveCollections};
use lkr_domain::{Layer, hex};
use lkr_models::EmbedderProfile;
use lkr_vectors::{Collection, CollectionSpec, DenseSpec, VectorStore};
use sha2::{Digest, Sha256};

use crate::{Error, ErrorKind, Result};

/// The number of hexadecimal digits that identify a set of collections in the name of each.
pub(crate) const SET_DIGITS: usize = 12;

/// The suffix of the name of a collection without dense vectors.
pub(crate) const SPARSE: &str = "sparse";

/// The collection of a layer with this suffix.
pub(crate) fn named(layer: Layer, suffix: &str) -> Result<Collection> {
    let name = format!("{layer}.{suffix}");
    let invalid = || Error::new(ErrorKind::Internal, "name collection", format!("invalid name {name}"));
    Collection::new(name.clone()).ok_or_else(invalid)
}

/// The suffix of the names of collections that a digest identifies.
fn suffix(digest: &[u8]) -> String {
    hex(digest).chars().take(SET_DIGITS).collect()
}

/// The collections of a new knowledge base, for vectors of a model. Only a knowledge base without collections gets these: changes of
/// the model have other names.
pub(crate) fn first_collections(profile: Option<&EmbedderProfile>) -> LiveCollections {
    let suffix =
        profile.map_or_else(|| SPARSE.to_owned(), |profile| suffix(&Sha256::digest(profile.id.as_bytes())));
    LiveCollections { suffix, model: profile.map(|profile| (profile.id.clone(), profile.dims)) }
}

/// The collections that a task fills with vectors of a model. No other task has the same ones, so collections that are unused stay
/// unused, and it does no harm if they are dropped late. The exception is a task that failed and is tried again: it goes on in its
/// collections.
pub(crate) fn collections_of_change(active: ActiveTask, profile: &EmbedderProfile) -> LiveCollections {
    let suffix = suffix_of_change(active, &profile.id);
    LiveCollections { suffix, model: Some((profile.id.clone(), profile.dims)) }
}

fn suffix_of_change(active: ActiveTask, model: &str) -> String {
    suffix(&Sha256::new().chain_update(active.task_id.as_bytes()).chain_update(model).finalize())
}

/// One collection of each layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CollectionSet {
    pub(crate) l1: Collection,
    pub(crate) l2: Collection,
    pub(crate) l3: Collection,
    pub(crate) chunks: Collection,
}

impl CollectionSet {
    /// The collections of [`collections_of_change`].
    pub(crate) fn of_change(active: ActiveTask, model: &str) -> Result<Self> {
        Self::with_suffix(&suffix_of_change(active, model))
    }

    /// The collections whose names end like this.
    pub(crate) fn with_suffix(suffix: &str) -> Result<Self> {
        let of = |layer| named(layer, suffix);
        Ok(Self { l1: of(Layer::L1)?, l2: of(Layer::L2)?, l3: of(Layer::L3)?, chunks: of(Layer::Chunks)? })
    }

    /// The live collections, if all of them have vectors of `model`.
    pub(crate) async fn live_of(vectors: &dyn VectorStore, model: &str) -> Result<Option<Self>> {
        let live = async |layer: Layer| live_collection_of(vectors, layer, model).await;
        let (l1, l2) = (live(Layer::L1).await?, live(Layer::L2).await?);
        let (l3, chunks) = (live(Layer::L3).await?, live(Layer::Chunks).await?);
        let (Some(l1), Some(l2), Some(l3), Some(chunks)) = (l1, l2, l3, chunks) else { return Ok(None) };
        Ok(Some(Self { l1, l2, l3, chunks }))
    }

    pub(crate) const fn of(&self, layer: Layer) -> &Collection {
        match layer {
            Layer::L1 => &self.l1,
            Layer::L2 => &self.l2,
            Layer::L3 => &self.l3,
            Layer::Chunks => &self.chunks,
        }
    }

    /// Creates the collections unless they exist, for vectors of a model.
    pub(crate) async fn ensure(&self, vectors: &dyn VectorStore, profile: &EmbedderProfile) -> Result<()> {
        for layer in Layer::ALL {
            let dense = Some(DenseSpec { model: profile.id.clone(), dims: profile.dims });
            vectors.ensure(&CollectionSpec { collection: self.of(layer).clone(), dense }).await?;
        }
        Ok(())
    }
}

/// The live collection of a layer, if it has vectors of `model`.
pub(crate) async fn live_collection_of(
    vectors: &dyn VectorStore,
    layer: Layer,
    model: &str,
) -> Result<Option<Collection>> {
    let spec = vectors.describe(&layer.into()).await?;
    let is_of_model = |spec: &CollectionSpec| spec.dense.as_ref().is_some_and(|dense| dense.model == model);
    Ok(spec.filter(is_of_model).map(|spec| spec.collection))
}

/// Whether a collection is the one of its layer that the record names, or the record names none.
pub(crate) fn is_recorded(
    live: Option<&LiveCollections>,
    layer: Layer,
    collection: &Collection,
) -> Result<bool> {
    let Some(live) = live else { return Ok(true) };
    Ok(named(layer, &live.suffix)? == *collection)
}

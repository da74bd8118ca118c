//! Keeps the aliases of the layers in accordance with the record of the live collections.
//!
//! The state store compares and sets the record, and the vector store switches aliases without a condition. So the record decides:
//! which collections a new knowledge base gets, if several processes start on it at once, and which switch counts, if one of a
//! process that was stalled takes effect after a later one. A process that finds that the aliases name other collections switches
//! them back, unless the recorded ones lack documents.

use lkr_catalog::{Catalog, CollectionPhase, ErrorKind, LiveCollections};
use lkr_domain::Layer;
use lkr_models::Embedder;
use lkr_vectors::{Collection, CollectionSpec, DenseSpec, Filter, VectorStore};

use crate::{
    Result,
    collection_set::{CollectionSet, first_collections},
    collections::switch_to,
};

/// How often the aliases are switched, if the record changes meanwhile each time. The next round of the janitor goes on.
const ATTEMPTS: usize = 3;

/// Creates the collections and aliases of a new knowledge base: for vectors of `embedder`, unless another process was the first to
/// record others. Existing ones are left as they are.
pub(crate) async fn create_missing(
    vectors: &dyn VectorStore,
    catalog: &Catalog,
    embedder: Option<&dyn Embedder>,
) -> Result<()> {
    if missing(vectors).await?.is_empty() {
        return Ok(());
    }
    let first = first_collections(embedder.map(Embedder::profile));
    let LiveCollections { suffix, model } = catalog.record_first_collections(&first).await?;
    let (set, dense) = (CollectionSet::with_suffix(&suffix)?, model);
    let mut aliases = Vec::new();
    // Looked up again: another process may have created them before it recorded a change of the model.
    for layer in missing(vectors).await? {
        let collection = set.of(layer).clone();
        let dense = dense.clone().map(|(model, dims)| DenseSpec { model, dims });
        vectors.ensure(&CollectionSpec { collection: collection.clone(), dense }).await?;
        aliases.push((layer.into(), collection));
    }
    if !aliases.is_empty() {
        vectors.switch(&aliases).await?;
    }
    Ok(())
}

/// The layers without a collection.
async fn missing(vectors: &dyn VectorStore) -> Result<Vec<Layer>> {
    let mut missing = Vec::new();
    for layer in Layer::ALL {
        if vectors.describe(&layer.into()).await?.is_none() {
            missing.push(layer);
        }
    }
    Ok(missing)
}

/// Switches the aliases to the collections of the record if they name others. Recorded ones that have fewer documents than those of
/// the aliases were not complete when the points were copied that were restored since. Revisions that are yet to be collected count
/// too; without them, a later call switches.
pub(crate) async fn align_aliases(vectors: &dyn VectorStore, catalog: &Catalog) -> Result<()> {
    for _ in 0..ATTEMPTS {
        // Read again after each switch, which may itself have come after a later one.
        let state = catalog.collection_state().await?;
        let Some(live) = state.live.as_ref().filter(|_| state.phase != CollectionPhase::Switching) else {
            return Ok(());
        };
        let set = CollectionSet::with_suffix(&live.suffix)?;
        if names_all_of(vectors, &set).await? {
            return Ok(());
        }
        if !exist(vectors, &set).await? {
            tracing::warn!(
                suffix = live.suffix,
                "the recorded collections are gone; keeping the aliases as they are"
            );
            return match catalog.forget_live_collections(&state).await {
                Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
                forgotten => Ok(forgotten?),
            };
        }
        let recorded = documents(vectors, &set.l1).await?;
        let aliased = documents(vectors, &Layer::L1.into()).await?;
        if recorded < aliased {
            tracing::error!(
                suffix = live.suffix,
                recorded,
                aliased,
                "the recorded collections have fewer documents than those that searches use, which are kept; documents wait \
                 until the records are restored that belong to these points, or all documents are embedded with another model"
            );
            return Ok(());
        }
        tracing::warn!(
            suffix = live.suffix,
            "the aliases name other collections than the last change of the model recorded; switching them back"
        );
        switch_to(vectors, &set).await?;
    }
    Ok(())
}

/// The number of documents in a collection of L1; 0 if it does not exist.
async fn documents(vectors: &dyn VectorStore, l1: &Collection) -> Result<u64> {
    match vectors.count(l1, &Filter::all()).await {
        Err(error) if error.kind() == lkr_vectors::ErrorKind::NotFound => Ok(0),
        counted => Ok(counted?),
    }
}

/// Whether the aliases name the collections of the set.
pub(crate) async fn names_all_of(vectors: &dyn VectorStore, set: &CollectionSet) -> Result<bool> {
    for layer in Layer::ALL {
        let named = vectors.describe(&layer.into()).await?;
        if named.is_none_or(|named| named.collection != *set.of(layer)) {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn exist(vectors: &dyn VectorStore, set: &CollectionSet) -> Result<bool> {
    for collection in Layer::ALL.map(|layer| set.of(layer)) {
        if vectors.describe(collection).await?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

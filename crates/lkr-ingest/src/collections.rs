//! Names and contents of the collections of the four layers. Each change of the embedding model has collections of its own.

use lkr_catalog::Catalog;
use lkr_domain::Layer;
use lkr_vectors::{Collection, CollectionSpec, Filter, Tags, VectorStore};

use crate::{
    Error, ErrorKind, Result,
    collection_set::{CollectionSet, SET_DIGITS, SPARSE, is_recorded},
};

/// The id of the model whose vectors searches use; `None` if they use none.
pub(crate) async fn live_model(vectors: &dyn VectorStore) -> Result<Option<String>> {
    let spec = vectors.describe(&Layer::Chunks.into()).await?;
    Ok(spec.and_then(|spec| spec.dense).map(|dense| dense.model))
}

/// Switches the aliases to the collections of a set in one step.
///
/// # Errors
/// `Internal` if a collection is missing. Any other failure is retryable: the change must not fail, and documents be
/// published again, while another worker of the task may be about to switch.
pub(crate) async fn switch_to(vectors: &dyn VectorStore, next: &CollectionSet) -> Result<()> {
    let aliases = Layer::ALL.map(|layer| (layer.into(), next.of(layer).clone()));
    match vectors.switch(&aliases).await {
        Err(error) if error.kind() != lkr_vectors::ErrorKind::NotFound => {
            Err(Error::new(ErrorKind::StoreUnavailable, "switch collections", error))
        }
        switched => Ok(switched?),
    }
}

/// Drops the collections that are neither live nor filled by the unfinished change of the model. All are read anew before each
/// collection is dropped, because another process may change them. The list of collections is read before them, and a change
/// creates its collections after its task was accepted, so none of the list is used later, unless a change that failed is tried
/// again.
pub(crate) async fn drop_unused(vectors: &dyn VectorStore, catalog: &Catalog) -> Result<()> {
    let all = vectors.collections().await?;
    for layer in Layer::ALL {
        for CollectionSpec { collection: name, .. } in &all {
            if is_of_layer(name, layer) && !is_used(vectors, catalog, layer, name).await? {
                tracing::info!(collection = %name, "dropping an unused collection");
                vectors.drop_collection(name).await?;
            }
        }
    }
    Ok(())
}

/// Whether a collection of a layer is live, or is being filled, or may become live because the knowledge base is new. While the alias
/// and the record name different ones, each may be the only complete one.
async fn is_used(
    vectors: &dyn VectorStore,
    catalog: &Catalog,
    layer: Layer,
    name: &Collection,
) -> Result<bool> {
    if let Some(unfinished) = catalog.reembedding().await?
        && let Some(model) = &unfinished.task.input.model
        && CollectionSet::of_change(unfinished.active, &model.id)?.of(layer) == name
    {
        return Ok(true);
    }
    let recorded = catalog.collection_state().await?.live;
    let Some(live) = vectors.describe(&layer.into()).await? else { return Ok(true) };
    let is_certain = is_recorded(recorded.as_ref(), layer, &live.collection)?;
    Ok(!is_certain || live.collection == *name)
}

/// Deletes points from all collections, including those that an earlier process began to fill.
pub(crate) async fn delete_everywhere(vectors: &dyn VectorStore, filter: &Filter) -> Result<()> {
    for (_, collection) in all_collections(vectors).await? {
        ignore_dropped(vectors.delete(&collection, filter).await)?;
    }
    Ok(())
}

/// Sets the tags of points in all collections that hold them.
pub(crate) async fn set_tags_everywhere(
    vectors: &dyn VectorStore,
    filter: &Filter,
    tags: &Tags,
) -> Result<()> {
    for (_, collection) in all_collections(vectors).await? {
        ignore_dropped(vectors.set_tags(&collection, filter, tags).await)?;
    }
    Ok(())
}

/// The collections of the four layers, of every set, L1 first.
pub(crate) async fn all_collections(vectors: &dyn VectorStore) -> Result<Vec<(Layer, Collection)>> {
    let all = vectors.collections().await?;
    let mut found = Vec::new();
    for layer in Layer::ALL {
        let live = vectors.describe(&layer.into()).await?.map(|spec| spec.collection);
        let is_ours = |name: &Collection| live.as_ref() == Some(name) || is_of_layer(name, layer);
        let ours = all.iter().map(|spec| spec.collection.clone()).filter(is_ours);
        found.extend(ours.map(|collection| (layer, collection)));
    }
    Ok(found)
}

/// Treats a collection that was dropped in the meantime as empty.
fn ignore_dropped(result: lkr_vectors::Result<u64>) -> Result<()> {
    match result {
        Err(error) if error.kind() == lkr_vectors::ErrorKind::NotFound => Ok(()),
        result => Ok(result.map(drop)?),
    }
}

/// Whether the name is one that [`named`](crate::collection_set::named) makes of such a suffix.
fn is_of_layer(collection: &Collection, layer: Layer) -> bool {
    let suffix = collection.name().strip_prefix(&layer.to_string()).and_then(|rest| rest.strip_prefix('.'));
    suffix.is_some_and(|suffix| {
        let is_digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        suffix == SPARSE || (suffix.len() == SET_DIGITS && suffix.bytes().all(is_digit))
    })
}

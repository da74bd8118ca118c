//! Names and contents of the collections of the four layers. Each embedding model has collections of its own.

use lkr_catalog::Catalog;
use lkr_domain::{Layer, hex};
use lkr_models::Embedder;
use lkr_vectors::{Collection, CollectionSpec, DenseSpec, Filter, Tags, VectorStore};
use sha2::{Digest, Sha256};

use crate::{Error, ErrorKind, Result};

/// The suffix of the name of a collection without dense vectors.
const SPARSE: &str = "sparse";

/// The number of hexadecimal digits that identify a model in the name of a collection.
const MODEL_DIGITS: usize = 12;

/// The collection of a layer for the vectors of `model`; for `None`, the collection without dense vectors.
pub(crate) fn collection(layer: Layer, model: Option<&str>) -> Result<Collection> {
    let name = match model {
        None => format!("{layer}.{SPARSE}"),
        Some(model) => {
            let digest = Sha256::digest(model.as_bytes());
            let digits: String = hex(&digest).chars().take(MODEL_DIGITS).collect();
            format!("{layer}.{digits}")
        }
    };
    let invalid = || Error::new(ErrorKind::Internal, "name collection", format!("invalid name {name}"));
    Collection::new(name.clone()).ok_or_else(invalid)
}

/// The collection of a layer for the vectors of `embedder`, with their dimensions.
pub(crate) fn collection_spec(layer: Layer, embedder: Option<&dyn Embedder>) -> Result<CollectionSpec> {
    let profile = embedder.map(Embedder::profile);
    Ok(CollectionSpec {
        collection: collection(layer, profile.map(|profile| profile.id.as_str()))?,
        dense: profile.map(|profile| DenseSpec { model: profile.id.clone(), dims: profile.dims }),
    })
}

/// Creates the collections and aliases of a new knowledge base, for vectors of `embedder`. Existing ones are left as they
/// are.
pub(crate) async fn create_missing(vectors: &dyn VectorStore, embedder: Option<&dyn Embedder>) -> Result<()> {
    let mut aliases = Vec::new();
    for layer in Layer::ALL {
        if vectors.describe(&layer.into()).await?.is_none() {
            let spec = collection_spec(layer, embedder)?;
            vectors.ensure(&spec).await?;
            aliases.push((layer.into(), spec.collection));
        }
    }
    if !aliases.is_empty() {
        vectors.switch(&aliases).await?;
    }
    Ok(())
}

/// The id of the model whose vectors searches use; `None` if they use none.
pub(crate) async fn live_model(vectors: &dyn VectorStore) -> Result<Option<String>> {
    let spec = vectors.describe(&Layer::Chunks.into()).await?;
    Ok(spec.and_then(|spec| spec.dense).map(|dense| dense.model))
}

/// Switches the aliases to the collections of `model` in one step.
///
/// # Errors
/// `Internal` if a collection is missing. Any other failure is retryable: the change must not fail, and documents be
/// published again, while another worker of the task may be about to switch.
pub(crate) async fn switch_to(vectors: &dyn VectorStore, model: &str) -> Result<()> {
    let aliases = Layer::ALL.map(|layer| Ok((layer.into(), collection(layer, Some(model))?)));
    match vectors.switch(&aliases.into_iter().collect::<Result<Vec<_>>>()?).await {
        Err(error) if error.kind() != lkr_vectors::ErrorKind::NotFound => {
            Err(Error::new(ErrorKind::StoreUnavailable, "switch collections", error))
        }
        switched => Ok(switched?),
    }
}

/// Drops the collections that are neither live nor those of the model that documents are being re-embedded with. Both are
/// read anew before each collection is dropped, because another process may change them.
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

/// Whether a collection of a layer is live or is being filled.
async fn is_used(
    vectors: &dyn VectorStore,
    catalog: &Catalog,
    layer: Layer,
    name: &Collection,
) -> Result<bool> {
    let next_model = catalog.reembedding().await?.and_then(|unfinished| unfinished.task.input.model);
    let next = next_model.map(|model| collection(layer, Some(&model.id))).transpose()?;
    let live = vectors.describe(&layer.into()).await?.map(|spec| spec.collection);
    Ok(live.as_ref() == Some(name) || next.as_ref() == Some(name))
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

/// The collections of the four layers, of every model, L1 first.
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

/// Whether the name is one that [`collection`] makes.
fn is_of_layer(collection: &Collection, layer: Layer) -> bool {
    let suffix = collection.name().strip_prefix(&layer.to_string()).and_then(|rest| rest.strip_prefix('.'));
    suffix.is_some_and(|suffix| {
        let is_digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        suffix == SPARSE || (suffix.len() == MODEL_DIGITS && suffix.bytes().all(is_digit))
    })
}

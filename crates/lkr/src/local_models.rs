//! Opening the models in folders.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use lkr_models::{Embedder, Precision, Reranker};

use crate::{Error, ErrorKind, Result, blocking::blocking};

/// Opens the embedding model and the reranker in their folders, each with a precision; `None` for a folder that does not
/// exist.
///
/// # Errors
/// `Invalid` if one contains no usable model.
pub(crate) async fn open_models(
    (embedder, embedder_precision, dims): (PathBuf, Precision, Option<usize>),
    (reranker, reranker_precision): (PathBuf, Precision),
) -> Result<(Option<Arc<dyn Embedder>>, Option<Arc<dyn Reranker>>)> {
    let open = move || {
        Ok((open_model(&embedder, embedder_precision, dims)?, open_reranker(&reranker, reranker_precision)?))
    };
    blocking("open models", open).await
}

/// Opens the embedding model in a folder with a precision, and keeps `dims` numbers of each vector, or as many as the folder
/// says; `None` if the folder does not exist.
///
/// # Errors
/// `Invalid` if it contains no usable model, or its vectors have fewer numbers.
pub async fn open_embedder(
    dir: impl AsRef<Path>,
    precision: Precision,
    dims: Option<usize>,
) -> Result<Option<Arc<dyn Embedder>>> {
    let dir = dir.as_ref().to_path_buf();
    let open = move || if dir.exists() { open_model(&dir, precision, dims) } else { Ok(None) };
    blocking("open embedding model", open).await
}

#[cfg(feature = "local-models")]
fn open_model(dir: &Path, precision: Precision, dims: Option<usize>) -> Result<Option<Arc<dyn Embedder>>> {
    if !dir.exists() {
        tracing::warn!(dir = %dir.display(), "no embedding model found; searches use keywords only");
        return Ok(None);
    }
    let options = lkr_models_local::LocalOptions { precision, truncate_dim: dims, ..Default::default() };
    let embedder = lkr_models_local::LocalEmbedder::open(dir, options)
        .map_err(|error| Error::new(ErrorKind::Invalid, "open embedding model", error))?;
    Ok(Some(Arc::new(embedder)))
}

#[cfg(feature = "local-models")]
fn open_reranker(dir: &Path, precision: Precision) -> Result<Option<Arc<dyn Reranker>>> {
    if !dir.exists() {
        return Ok(None);
    }
    let options = lkr_models_local::RerankOptions { precision, ..Default::default() };
    let reranker = lkr_models_local::LocalReranker::open(dir, &options)
        .map_err(|error| Error::new(ErrorKind::Invalid, "open reranker", error))?;
    Ok(Some(Arc::new(reranker)))
}

#[cfg(not(feature = "local-models"))]
fn open_reranker(_: &Path, _: Precision) -> Result<Option<Arc<dyn Reranker>>> {
    Ok(None)
}

#[cfg(not(feature = "local-models"))]
fn open_model(_: &Path, _: Precision, _: Option<usize>) -> Result<Option<Arc<dyn Embedder>>> {
    Ok(None)
}

//! A knowledge base in a folder.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use lkr_models::Embedder;
use object_store::local::LocalFileSystem;

use crate::{Builder, Error, ErrorKind, IngestOptions, KnowledgeBase, Result, SearchOptions};

/// Where a knowledge base lies and how it works.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// The folder of the stores; made unless it is there.
    pub data_dir: PathBuf,
    /// The folder of the texts; `<data_dir>/blobs` unless another is named.
    pub blobs_dir: PathBuf,
    /// The folder of the embedding model. Where it does not exist, searches go by words alone.
    pub model_dir: PathBuf,
    /// How ingestion works.
    pub ingest: IngestOptions,
    /// How searches work.
    pub search: SearchOptions,
}

impl OpenOptions {
    /// The defaults for a folder.
    pub fn new(data_dir: impl AsRef<Path>) -> Self {
        let data_dir = data_dir.as_ref().to_path_buf();
        Self {
            blobs_dir: data_dir.join("blobs"),
            model_dir: data_dir.join("models").join("default"),
            data_dir,
            ingest: IngestOptions::default(),
            search: SearchOptions::default(),
        }
    }
}

impl KnowledgeBase {
    /// Opens the knowledge base in a folder, which is made unless it is there.
    ///
    /// # Errors
    /// `Conflict` where another process has it open.
    pub async fn open(data_dir: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(OpenOptions::new(data_dir)).await
    }

    /// Opens a knowledge base as told.
    ///
    /// # Errors
    /// `Conflict` where another process has it open, `Invalid` where the model's folder holds no usable model.
    pub async fn open_with(options: OpenOptions) -> Result<Self> {
        let OpenOptions { data_dir, blobs_dir, model_dir, ingest, search } = options;
        let opened = tokio::task::spawn_blocking(move || {
            let store = open_store(&data_dir)?;
            Ok::<_, Error>((store, open_blobs(&blobs_dir)?, open_model(&model_dir)?))
        });
        let (store, blobs, embedder) =
            opened.await.map_err(|e| Error::new(ErrorKind::Internal, "open knowledge base", e))??;
        let builder = Builder::default()
            .vectors(Arc::new(store.vectors()))
            .state(Arc::new(store.state()))
            .queue(Arc::new(store.queue()))
            .blobs(Arc::new(blobs))
            .ingest_options(ingest)
            .search_options(search);
        let builder = match embedder {
            Some(embedder) => builder.embedder(embedder),
            None => builder,
        };
        builder.build().await
    }
}

fn open_store(data_dir: &Path) -> Result<lkr_store_lmdb::LmdbStore> {
    let options = lkr_store_lmdb::LmdbOptions::default();
    lkr_store_lmdb::LmdbStore::open(&data_dir.join("store"), options).map_err(|error| {
        let kind = match error.kind() {
            lkr_store_lmdb::ErrorKind::Locked => ErrorKind::Conflict,
            _ => ErrorKind::Internal,
        };
        Error::new(kind, "open store", error)
    })
}

fn open_blobs(dir: &Path) -> Result<LocalFileSystem> {
    let failed = |error: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Internal, "open blobs", format!("{}: {error}", dir.display()))
    };
    std::fs::create_dir_all(dir).map_err(|e| failed(&e))?;
    remove_half_written(dir).map_err(|e| failed(&e))?;
    let blobs = LocalFileSystem::new_with_prefix(dir).map_err(|e| failed(&e))?;
    Ok(blobs.with_fsync(true).with_automatic_cleanup(false))
}

/// Removes what a process that was killed had begun to write. A blob is written under its name, `#` and a number, and
/// then renamed; the store's lock says that nobody is writing now.
fn remove_half_written(dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_half_written(&entry.path())?;
        } else if is_half_written(&entry.file_name().to_string_lossy()) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn is_half_written(name: &str) -> bool {
    let number = name.rsplit_once('#').map(|(_, number)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(feature = "local-models")]
fn open_model(dir: &Path) -> Result<Option<Arc<dyn Embedder>>> {
    if !dir.exists() {
        tracing::warn!(dir = %dir.display(), "no embedding model there: searches go by words alone");
        return Ok(None);
    }
    let options = lkr_models_local::LocalOptions::default();
    let embedder = lkr_models_local::LocalEmbedder::open(dir, options)
        .map_err(|error| Error::new(ErrorKind::Invalid, "open embedding model", error))?;
    Ok(Some(Arc::new(embedder)))
}

#[cfg(not(feature = "local-models"))]
fn open_model(_: &Path) -> Result<Option<Arc<dyn Embedder>>> {
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_written_blobs_are_told_by_their_names() {
        for (name, half) in
            [("0a-1#1", true), ("0a-1#12", true), ("0a-1", false), ("a#b", false), ("a#", false)]
        {
            assert_eq!(is_half_written(name), half, "{name}");
        }
    }

    #[test]
    fn only_half_written_blobs_go() {
        let dir = tempfile::tempdir().unwrap();
        let (kept, half) = (dir.path().join("texts/0a/x-1"), dir.path().join("texts/0a/x-2#1"));
        std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
        std::fs::write(&kept, "whole").unwrap();
        std::fs::write(&half, "ha").unwrap();
        open_blobs(dir.path()).unwrap();
        assert!(kept.exists() && !half.exists());
    }
}

use std::{path::Path, sync::Arc};

use anyhow::{Context, Result};
use lkr::{
    KnowledgeBase,
    ports::{Embedder, VectorStore},
};
use lkr_models_local::{LocalEmbedder, LocalOptions};
use lkr_store_lmdb::{LmdbOptions, LmdbStore};
use object_store::local::LocalFileSystem;

/// A knowledge base as the server opens it, and the two parts of it that are measured by themselves.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) kb: KnowledgeBase,
    pub(super) embedder: Arc<dyn Embedder>,
    pub(super) vectors: Arc<dyn VectorStore>,
}

impl Base {
    pub(super) async fn open(data_dir: &Path, model: &Path) -> Result<Self> {
        let store = LmdbStore::open(&data_dir.join("store"), LmdbOptions::default())?;
        let blobs = data_dir.join("blobs");
        std::fs::create_dir_all(&blobs).with_context(|| format!("make {}", blobs.display()))?;
        let blobs = LocalFileSystem::new_with_prefix(blobs)?.with_fsync(true);
        let embedder: Arc<dyn Embedder> = Arc::new(LocalEmbedder::open(model, LocalOptions::default())?);
        let vectors: Arc<dyn VectorStore> = Arc::new(store.vectors());
        let kb = KnowledgeBase::builder()
            .vectors(Arc::clone(&vectors))
            .state(Arc::new(store.state()))
            .queue(Arc::new(store.queue()))
            .blobs(Arc::new(blobs))
            .embedder(Arc::clone(&embedder))
            .build()
            .await?;
        Ok(Self { kb, embedder, vectors })
    }
}

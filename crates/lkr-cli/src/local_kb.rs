//! A knowledge base in this process.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use lkr::{
    Catalog, KnowledgeBase, MemoryCache, SearchOptions,
    ports::{Embedder, Precision, StateStore, VectorStore},
    retrieval::Searcher,
};
use lkr_models_local::{LocalEmbedder, LocalOptions};
use lkr_store_lmdb::{LmdbOptions, LmdbStore};
use object_store::local::LocalFileSystem;

/// A knowledge base as the server opens it, with the parts that are measured separately.
#[derive(Debug)]
pub(crate) struct LocalKnowledgeBase {
    pub(crate) kb: KnowledgeBase,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) vectors: Arc<dyn VectorStore>,
    pub(crate) state: Arc<dyn StateStore>,
    pub(crate) catalog: Catalog,
}

impl LocalKnowledgeBase {
    /// Creates a knowledge base in a folder that is empty or does not exist.
    pub(crate) async fn create(data_dir: &Path, embedder: Option<Arc<dyn Embedder>>) -> Result<Self> {
        if data_dir.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            bail!("{} is not empty", data_dir.display());
        }
        Self::open(data_dir, embedder).await
    }

    /// Opens the knowledge base in a folder, or creates it.
    pub(crate) async fn open(data_dir: &Path, embedder: Option<Arc<dyn Embedder>>) -> Result<Self> {
        Self::open_with(data_dir, embedder, LmdbOptions::default()).await
    }

    /// The same, with options of the store.
    pub(crate) async fn open_with(
        data_dir: &Path,
        embedder: Option<Arc<dyn Embedder>>,
        options: LmdbOptions,
    ) -> Result<Self> {
        let store = LmdbStore::open(&data_dir.join("store"), options)?;
        let blobs = data_dir.join("blobs");
        std::fs::create_dir_all(&blobs).with_context(|| format!("create {}", blobs.display()))?;
        let blobs = LocalFileSystem::new_with_prefix(blobs)?.with_fsync(true);
        let vectors: Arc<dyn VectorStore> = Arc::new(store.vectors());
        let state: Arc<dyn StateStore> = Arc::new(store.state());
        let catalog = Catalog::new(Arc::clone(&state));
        let builder = KnowledgeBase::builder()
            .vectors(Arc::clone(&vectors))
            .state(Arc::clone(&state))
            .queue(Arc::new(store.queue()))
            .blobs(Arc::new(blobs));
        let builder = match &embedder {
            Some(embedder) => builder.embedder(Arc::clone(embedder)),
            None => builder,
        };
        Ok(Self { kb: builder.build().await?, embedder, vectors, state, catalog })
    }

    /// Closes the knowledge base and its store, so that the folder can be opened again.
    pub(crate) async fn close(self) {
        self.kb.close().await;
    }

    /// A searcher like the server's, without a cache.
    pub(crate) fn searcher(&self, options: SearchOptions) -> Searcher {
        let no_cache = Arc::new(MemoryCache::new(0, Duration::ZERO));
        let (vectors, embedder) = (Arc::clone(&self.vectors), self.embedder.clone());
        Searcher::new(vectors, self.catalog.clone(), embedder, no_cache, options)
    }
}

/// Opens the embedding model in a folder.
pub(crate) fn embedder(model: &Path, precision: Precision, dims: Option<usize>) -> Result<Arc<dyn Embedder>> {
    let options = LocalOptions { precision, truncate_dim: dims, ..LocalOptions::default() };
    Ok(Arc::new(LocalEmbedder::open(model, options)?))
}

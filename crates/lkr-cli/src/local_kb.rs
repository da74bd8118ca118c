//! A knowledge base in this process.

use std::{collections::HashSet, path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use lkr::{
    Catalog, KnowledgeBase, ListFilter, MemoryCache, Scope, SearchOptions,
    ports::{Embedder, Precision, StateStore, VectorStore},
    retrieval::Searcher,
};
use lkr_models_local::{LocalEmbedder, LocalOptions};
use lkr_store_lmdb::{LmdbOptions, LmdbStore};
use object_store::local::LocalFileSystem;

use crate::{
    collection::Input,
    import::{PAGE, refuse_others},
};

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
        require_empty(data_dir)?;
        Self::open(data_dir, embedder).await
    }

    /// Opens the knowledge base of a collection, or creates it.
    ///
    /// # Errors
    /// If it contains documents of other sources.
    pub(crate) async fn of_collection(
        data_dir: &Path,
        inputs: &[Input],
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Result<Self> {
        let expected: HashSet<&str> = inputs.iter().map(|input| input.source.as_str()).collect();
        require_sources(data_dir, |source| expected.contains(source)).await?;
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

/// Fails if a folder contains anything.
pub(crate) fn require_empty(data_dir: &Path) -> Result<()> {
    if data_dir.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{} is not empty", data_dir.display());
    }
    Ok(())
}

/// Fails if the knowledge base in a folder contains documents of other sources than those that `is_expected`. Only its records are read:
/// opened with another model than its own, it would be embedded again.
pub(crate) async fn require_sources(data_dir: &Path, is_expected: impl Fn(&str) -> bool) -> Result<()> {
    let folder = data_dir.join("store");
    if !folder.exists() {
        return Ok(());
    }
    let store = LmdbStore::open(&folder, LmdbOptions::default())?;
    let catalog = Catalog::new(Arc::new(store.state()));
    let mut after = None;
    loop {
        let page = catalog.list(&Scope::All, &ListFilter::default(), after, PAGE).await?;
        refuse_others(page.items.iter().map(|document| document.source.as_str()), &is_expected)?;
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Opens the embedding model in a folder.
pub(crate) fn embedder(model: &Path, precision: Precision, dims: Option<usize>) -> Result<Arc<dyn Embedder>> {
    let options = LocalOptions { precision, truncate_dim: dims, ..LocalOptions::default() };
    Ok(Arc::new(LocalEmbedder::open(model, options)?))
}

#[cfg(test)]
mod tests {
    use lkr::{NewDocument, TaskKind, TaskLists};
    use lkr_models::MemoryEmbedder;

    use super::*;

    #[tokio::test]
    async fn folder_with_documents_of_others_is_refused_and_not_embedded_again() {
        let folder = tempfile::tempdir().unwrap();
        let theirs = LocalKnowledgeBase::open(folder.path(), None).await.unwrap();
        let document = NewDocument {
            title: "Moons".to_owned(),
            source: "moons.md".to_owned(),
            text: "Io is a moon.".to_owned(),
            metadata: lkr::Metadata::new(),
        };
        theirs.kb.add(document).await.unwrap();
        theirs.close().await;

        let embedder: Arc<dyn Embedder> = Arc::new(MemoryEmbedder::new());
        let opened = LocalKnowledgeBase::of_collection(folder.path(), &[], Some(embedder)).await;
        let refused = opened.map(|_| ()).unwrap_err().to_string();
        assert_eq!(refused, "the knowledge base contains \"moons.md\", which is not in this collection");

        let theirs = LocalKnowledgeBase::open(folder.path(), None).await.unwrap();
        let tasks = theirs.kb.tasks(&TaskLists::All, |_| true, None, 10).await.unwrap().items;
        assert!(tasks.iter().all(|task| task.kind == TaskKind::Ingest), "{tasks:?}");
        theirs.close().await;
    }
}

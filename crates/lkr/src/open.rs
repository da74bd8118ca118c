//! Opening a knowledge base in a folder.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use lkr_catalog::{Originals, Outbox};
use lkr_ingest::{DeletionPolicy, TaskObserver};
use lkr_models::{ChatModelSource, Embedder, Precision, Reranker, RerankerSource};
use lkr_state::{ContentionObserver, ObservedState, PeerOptions, Peers, StateStore, TaskQueue};
use lkr_store_lmdb::{LmdbOptions, LmdbStore};
use lkr_taxonomy::Taxonomy;
use lkr_vectors::VectorStore;
use object_store::{ObjectStore, local::LocalFileSystem};

use crate::{
    Builder, Error, ErrorKind, Folders, IngestOptions, KnowledgeBase, Result, SearchOptions,
    backup::{EmbeddedStore, remove_stale_copy},
    blocking::blocking,
    doctor::refuse_lost_records,
    error::During,
    text_files::{has_texts, remove_partial_texts},
};

/// The folders, models and options of a knowledge base.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// The folder of the stores; created if it does not exist.
    pub data_dir: PathBuf,
    /// The folder of the texts; `<data_dir>/blobs` by default.
    pub blobs_dir: PathBuf,
    /// The folder of the originals; `<data_dir>/uploads` by default.
    pub uploads_dir: PathBuf,
    /// The folder of the embedding model. If it does not exist, searches use keywords only.
    pub model_dir: PathBuf,
    /// The precision of that model. A change means another model: all documents are embedded again.
    pub model_precision: Precision,
    /// Whether the target embedding model is set after opening, by
    /// [`set_embedder_at_start`](KnowledgeBase::set_embedder_at_start), instead of being the one in `model_dir`.
    pub defer_embedder: bool,
    /// The folder of the reranker. If it does not exist, results are reranked only by `rerankers`.
    pub rerank_model_dir: PathBuf,
    /// Selects the reranker of each search; takes precedence over the one in the folder.
    pub rerankers: Option<Arc<dyn RerankerSource>>,
    /// Selects the language model of each call. Without it, no language model is used.
    pub chat_models: Option<Arc<dyn ChatModelSource>>,
    /// The categories that documents are classified into.
    pub taxonomy: Taxonomy,
    /// Receives events of ended tasks and deleted documents.
    pub outbox: Option<Arc<dyn Outbox>>,
    /// The rights of tasks that delete documents; by default they may delete everything.
    pub deletion: Option<Arc<dyn DeletionPolicy>>,
    /// Receives what happens to tasks, to count and trace it.
    pub observer: Option<Arc<dyn TaskObserver>>,
    /// Called for each operation that gave up because other writers kept changing its records.
    pub contention: Option<ContentionObserver>,
    /// The options of ingestion.
    pub ingest: IngestOptions,
    /// The options of searches.
    pub search: SearchOptions,
    /// The stores that are not in the folder.
    pub stores: OtherStores,
}

/// Stores that take the place of the embedded ones.
#[derive(Debug, Clone, Default)]
pub struct OtherStores {
    /// The store of points; embedded by default.
    pub vectors: Option<Arc<dyn VectorStore>>,
    /// The records, and the queue of tasks; embedded by default. Other processes may use them at the same time.
    pub state: Option<SharedState>,
    /// The store of texts and originals; two folders by default. A `put` of it must be durable when it returns.
    pub blobs: Option<Arc<dyn ObjectStore>>,
}

/// All stores of a knowledge base, opened without workers.
#[derive(Debug, Clone)]
pub struct AllStores {
    /// The points.
    pub vectors: Arc<dyn VectorStore>,
    /// The records.
    pub records: Arc<dyn StateStore>,
    /// The texts.
    pub blobs: Arc<dyn ObjectStore>,
    /// The originals.
    pub originals: Originals,
}

impl OtherStores {
    /// These stores, and the embedded ones in place of those that are missing. An embedded store is created if it does not
    /// exist, and stays locked until the last clone of its parts is dropped. `embedded` shares one that is open already.
    ///
    /// # Errors
    /// `Conflict` if another process has the folder open.
    pub async fn or_embedded(
        self,
        folders: &Folders,
        embedded: &mut Option<OpenFolder>,
    ) -> Result<AllStores> {
        let folders = folders.clone();
        if (self.vectors.is_none() || self.state.is_none()) && embedded.is_none() {
            let data_dir = folders.data_dir.clone();
            let opened = blocking("open store", move || open_store(&data_dir, inspection_options())).await?;
            *embedded = Some(OpenFolder(opened));
        }
        let store = embedded.as_ref().map(|OpenFolder(store)| store);
        let missing = || Error::new(ErrorKind::Internal, "open store", "no store is open");
        let vectors = match (self.vectors, store) {
            (Some(vectors), _) => vectors,
            (None, Some(store)) => Arc::new(store.vectors()),
            (None, None) => return Err(missing()),
        };
        let records = match (self.state, store) {
            (Some(state), _) => state.records,
            (None, Some(store)) => Arc::new(store.state()),
            (None, None) => return Err(missing()),
        };
        let (blobs, originals) = match self.blobs {
            Some(blobs) => (Arc::clone(&blobs), Originals::on(blobs)),
            None => {
                let folder = folders.blobs_dir;
                let blobs = blocking("open texts", move || open_blobs(&folder)).await?;
                (Arc::new(blobs) as Arc<dyn ObjectStore>, Originals::in_folder(folders.uploads_dir))
            }
        };
        Ok(AllStores { vectors, records, blobs, originals })
    }
}

/// An embedded store that is open for maintenance.
#[derive(Debug, Clone)]
pub struct OpenFolder(LmdbStore);

/// Records and tasks that several processes work on.
#[derive(Debug, Clone)]
pub struct SharedState {
    /// The records.
    pub records: Arc<dyn StateStore>,
    /// The tasks.
    pub queue: Arc<dyn TaskQueue>,
}

impl OpenOptions {
    /// The defaults for a folder.
    pub fn new(data_dir: impl AsRef<Path>) -> Self {
        let data_dir = data_dir.as_ref().to_path_buf();
        Self {
            blobs_dir: data_dir.join("blobs"),
            uploads_dir: data_dir.join("uploads"),
            model_dir: data_dir.join("models").join("default"),
            model_precision: Precision::default(),
            defer_embedder: false,
            rerank_model_dir: data_dir.join("models").join("reranker"),
            rerankers: None,
            chat_models: None,
            data_dir,
            taxonomy: Taxonomy::built_in(),
            outbox: None,
            deletion: None,
            observer: None,
            contention: None,
            ingest: IngestOptions::default(),
            search: SearchOptions::default(),
            stores: OtherStores::default(),
        }
    }
}

impl KnowledgeBase {
    /// Opens the knowledge base in a folder, which is created if it does not exist.
    ///
    /// # Errors
    /// `Conflict` if another process has it open.
    pub async fn open(data_dir: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(OpenOptions::new(data_dir)).await
    }

    /// Opens a knowledge base with options.
    ///
    /// # Errors
    /// `Conflict` if another process has it open, `Invalid` if a model's folder contains no usable model, `Unavailable` if the
    /// given state store [has lost its records](crate::doctor::has_lost_records).
    pub async fn open_with(options: OpenOptions) -> Result<Self> {
        let OpenOptions {
            data_dir,
            blobs_dir,
            uploads_dir,
            model_dir,
            model_precision,
            rerank_model_dir,
            stores: OtherStores { vectors, state, blobs },
            ..
        } = options;
        let needs_store = vectors.is_none() || state.is_none();
        let (has_state, has_blobs) = (state.is_none(), blobs.is_none());
        let opened = blocking("open knowledge base", move || {
            if has_state && has_blobs {
                refuse_texts_without_store(&data_dir, &blobs_dir)?;
            }
            let embedded = if needs_store { Some(open_embedded(data_dir)?) } else { None };
            let blobs = if has_blobs { Some(open_blobs(&blobs_dir)?) } else { None };
            let models = (open_model(&model_dir, model_precision)?, open_reranker(&rerank_model_dir)?);
            Ok((embedded, blobs, models))
        });
        let (embedded, folder, (embedder, reranker)) = opened.await?;
        let builder = Builder::default()
            .taxonomy(options.taxonomy)
            .ingest_options(options.ingest)
            .search_options(options.search)
            .defer_embedder(options.defer_embedder);
        let folder = folder.map(|folder| Arc::new(folder) as Arc<dyn ObjectStore>);
        let embedded_vectors =
            || -> Option<Arc<dyn VectorStore>> { Some(Arc::new(embedded.as_ref()?.store.vectors())) };
        let vectors_in_use = vectors.clone().or_else(embedded_vectors);
        if let (Some(state), Some(vectors), Some(blobs)) =
            (&state, &vectors_in_use, blobs.as_ref().or(folder.as_ref()))
        {
            refuse_lost_records(&state.records, &**vectors, blobs).await?;
        }
        let records_in_use: Option<Arc<dyn StateStore>> = match (&state, &embedded) {
            (Some(state), _) => Some(Arc::clone(&state.records)),
            (None, Some(embedded)) => Some(Arc::new(embedded.store.state())),
            (None, None) => None,
        };
        if let Some(records) = records_in_use {
            refuse_unfinished_migration(&*records).await?;
        }
        let builder = match (state, embedded.as_ref().map(|embedded| &embedded.store)) {
            (Some(SharedState { records, queue }), _) => {
                let peers = Peers::join(Arc::clone(&records), PeerOptions::default()).await;
                let peers = peers.map_err(lkr_catalog::Error::from).during("join the other processes")?;
                builder.state(with_observer(records, options.contention)).queue(queue).peers(peers)
            }
            (None, Some(store)) => {
                let records = with_observer(Arc::new(store.state()), options.contention);
                builder.state(records).queue(Arc::new(store.queue()))
            }
            (None, None) => builder,
        };
        let builder = set_if_some(builder, vectors_in_use, Builder::vectors);
        let builder = match (blobs, folder) {
            (Some(blobs), _) => builder.originals(Originals::on(Arc::clone(&blobs))).blobs(blobs),
            (None, Some(folder)) => builder.originals(Originals::in_folder(uploads_dir)).blobs(folder),
            (None, None) => builder,
        };
        // A backup is a copy of the whole embedded store and of two folders.
        let is_embedded = has_state && has_blobs && vectors.is_none();
        let builder = set_if_some(builder, embedded.filter(|_| is_embedded), Builder::embedded);
        let builder = set_if_some(builder, embedder, Builder::embedder);
        let builder = set_if_some(builder, reranker, Builder::reranker);
        let builder = set_if_some(builder, options.rerankers, Builder::reranker_source);
        let builder = set_if_some(builder, options.chat_models, Builder::chat_models);
        let builder = set_if_some(builder, options.deletion, Builder::deletion_policy);
        let builder = set_if_some(builder, options.observer, Builder::task_observer);
        set_if_some(builder, options.outbox, Builder::outbox).build().await
    }
}

/// Fails if the stores are being filled by a migration, or are the source of one that moves a part of them.
async fn refuse_unfinished_migration(records: &dyn StateStore) -> Result<()> {
    const OPEN: &str = "open knowledge base";
    let unfinished = lkr_migrate::unfinished_migration(records).await.map_err(|error| {
        let kind = if error.is_retryable() { ErrorKind::Unavailable } else { ErrorKind::Internal };
        Error::new(kind, OPEN, error)
    })?;
    let Some(unfinished) = unfinished else { return Ok(()) };
    let reason = format!(
        "a migration of {} is not complete: finish it with 'lkr migrate', or give it up with 'lkr migrate --discard'",
        unfinished.parts.names()
    );
    Err(Error::new(ErrorKind::Invalid, OPEN, reason))
}

/// Opens the embedded store in a data folder.
fn open_embedded(data_dir: PathBuf) -> Result<EmbeddedStore> {
    let store = open_store(&data_dir, LmdbOptions::default())?;
    if let Err(error) = remove_stale_copy(&data_dir) {
        tracing::warn!(%error, "store copy of an interrupted backup could not be removed");
    }
    Ok(EmbeddedStore { store, data_dir, backup_lock: Arc::default() })
}

/// Wraps the state store with the observer, if there is one.
fn with_observer(state: Arc<dyn StateStore>, observer: Option<ContentionObserver>) -> Arc<dyn StateStore> {
    match observer {
        Some(observer) => Arc::new(ObservedState::new(state, observer)),
        None => state,
    }
}

/// Applies a builder method if there is a value for it.
fn set_if_some<T>(builder: Builder, value: Option<T>, setter: fn(Builder, T) -> Builder) -> Builder {
    match value {
        Some(value) => setter(builder, value),
        None => builder,
    }
}

/// Opens the embedding model in a folder with a precision; `None` if the folder does not exist.
///
/// # Errors
/// `Invalid` if it contains no usable model.
pub async fn open_embedder(dir: impl AsRef<Path>, precision: Precision) -> Result<Option<Arc<dyn Embedder>>> {
    let dir = dir.as_ref().to_path_buf();
    let open = move || if dir.exists() { open_model(&dir, precision) } else { Ok(None) };
    blocking("open embedding model", open).await
}

/// Opens only the state store of the knowledge base in a folder, for offline maintenance. The store is closed when the
/// last clone of the returned value is dropped.
///
/// # Errors
/// `NotFound` if there is no knowledge base, `Conflict` if a process has it open.
pub async fn open_state(data_dir: impl AsRef<Path>) -> Result<Arc<dyn StateStore>> {
    let data_dir = data_dir.as_ref().to_path_buf();
    let open = move || Ok(Arc::new(open_existing(&data_dir)?.state()) as Arc<dyn StateStore>);
    blocking("open store", open).await
}

/// Store options without background work.
pub(crate) fn inspection_options() -> LmdbOptions {
    let mut options = LmdbOptions::default();
    options.build_threads = 0;
    options
}

/// Opens an existing store for inspection.
///
/// # Errors
/// `NotFound` if there is none, `Conflict` if a process has it open.
pub(crate) fn open_existing(data_dir: &Path) -> Result<LmdbStore> {
    if !LmdbStore::is_in(&data_dir.join("store")) {
        let reason = format!("no knowledge base in {}", data_dir.display());
        return Err(Error::new(ErrorKind::NotFound, "open store", reason));
    }
    open_store(data_dir, inspection_options())
}

/// Fails if there are texts but no store: a new store would treat all of them as garbage.
fn refuse_texts_without_store(data_dir: &Path, blobs_dir: &Path) -> Result<()> {
    let store = data_dir.join("store");
    if LmdbStore::is_in(&store) || !has_texts(blobs_dir) {
        return Ok(());
    }
    let reason = format!(
        "there are texts in {} but no store in {}: restore a backup, or move the texts away",
        blobs_dir.display(),
        store.display()
    );
    Err(Error::new(ErrorKind::Conflict, "open knowledge base", reason))
}

pub(crate) fn open_store(data_dir: &Path, options: LmdbOptions) -> Result<LmdbStore> {
    LmdbStore::open(&data_dir.join("store"), options).map_err(open_error)
}

pub(crate) fn open_error(error: lkr_store_lmdb::Error) -> Error {
    let kind = match error.kind() {
        lkr_store_lmdb::ErrorKind::Locked => ErrorKind::Conflict,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, "open store", error)
}

pub(crate) fn open_blobs(dir: &Path) -> Result<LocalFileSystem> {
    let open_blobs_error = |error: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Internal, "open blobs", format!("{}: {error}", dir.display()))
    };
    std::fs::create_dir_all(dir).map_err(|e| open_blobs_error(&e))?;
    remove_partial_texts(dir);
    let blobs = LocalFileSystem::new_with_prefix(dir).map_err(|e| open_blobs_error(&e))?;
    Ok(blobs.with_fsync(true).with_automatic_cleanup(false))
}

#[cfg(feature = "local-models")]
fn open_model(dir: &Path, precision: Precision) -> Result<Option<Arc<dyn Embedder>>> {
    if !dir.exists() {
        tracing::warn!(dir = %dir.display(), "no embedding model found; searches use keywords only");
        return Ok(None);
    }
    let options = lkr_models_local::LocalOptions { precision, ..Default::default() };
    let embedder = lkr_models_local::LocalEmbedder::open(dir, options)
        .map_err(|error| Error::new(ErrorKind::Invalid, "open embedding model", error))?;
    Ok(Some(Arc::new(embedder)))
}

#[cfg(feature = "local-models")]
fn open_reranker(dir: &Path) -> Result<Option<Arc<dyn Reranker>>> {
    if !dir.exists() {
        return Ok(None);
    }
    let reranker = lkr_models_local::LocalReranker::open(dir, &lkr_models_local::RerankOptions::default())
        .map_err(|error| Error::new(ErrorKind::Invalid, "open reranker", error))?;
    Ok(Some(Arc::new(reranker)))
}

#[cfg(not(feature = "local-models"))]
fn open_reranker(_: &Path) -> Result<Option<Arc<dyn Reranker>>> {
    Ok(None)
}

#[cfg(not(feature = "local-models"))]
fn open_model(_: &Path, _: Precision) -> Result<Option<Arc<dyn Embedder>>> {
    Ok(None)
}

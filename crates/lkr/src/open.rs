//! Opening a knowledge base in a folder.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use lkr_catalog::{Outbox, STORE_VERSION};
use lkr_ingest::{DeletionPolicy, TaskObserver};
use lkr_models::{ChatModelSource, Precision, RerankerSource};
use lkr_state::{
    ContentionObserver, FencedQueue, ObservedState, PeerOptions, Peers, Process, RecordsLost, StateStore,
    TaskQueue,
};
use lkr_store_lmdb::LmdbOptions;
use lkr_taxonomy::Taxonomy;
use tokio::runtime::Handle;

use crate::{
    AllStores, Builder, Error, ErrorKind, Folders, IngestOptions, KnowledgeBase, OpenFolder, OtherStores,
    Result, SearchOptions,
    backup::{BackupSource, remove_stale_copy},
    blocking::blocking,
    doctor::{refuse_lost_points, refuse_lost_records},
    embedded_store::{open_store, refuse_texts_without_store},
    error::During,
    local_models::open_models,
    waiting::until_available,
};

const OPEN: &str = "open knowledge base";

/// What a log line calls the stores of which an error names the one.
const A_STORE: &str = "a store";

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
    /// The numbers of each of its vectors that are kept, from the first on, instead of as many as its folder says. For models
    /// that were trained for it (matryoshka representations). A change means another model.
    pub model_dims: Option<usize>,
    /// Whether the target embedding model is set after opening, by
    /// [`set_embedder_at_start`](KnowledgeBase::set_embedder_at_start), instead of being the one in `model_dir`.
    pub defer_embedder: bool,
    /// The folder of the reranker. If it does not exist, results are reranked only by `rerankers`.
    pub rerank_model_dir: PathBuf,
    /// The precision of that reranker.
    pub rerank_precision: Precision,
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
    /// The runtime whose threads ingest; by default the current one.
    pub ingest_runtime: Option<Handle>,
    /// The options of searches.
    pub search: SearchOptions,
    /// The stores that are not in the folder.
    pub stores: OtherStores,
    /// Whether opening waits while one of `stores` is away, instead of failing with `Unavailable`.
    pub wait_for_stores: bool,
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
            model_dims: None,
            defer_embedder: false,
            rerank_model_dir: data_dir.join("models").join("reranker"),
            rerank_precision: Precision::default(),
            rerankers: None,
            chat_models: None,
            data_dir,
            taxonomy: Taxonomy::built_in(),
            outbox: None,
            deletion: None,
            observer: None,
            contention: None,
            ingest: IngestOptions::default(),
            ingest_runtime: None,
            search: SearchOptions::default(),
            stores: OtherStores::default(),
            wait_for_stores: false,
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
    /// `Conflict` if another process has it open, `Invalid` if a model's folder contains no usable model, a later version
    /// upgrades the given state store, that [has lost its records](crate::doctor::has_lost_records), or other processes use it
    /// and cannot reach what is in this folder; `Unavailable` if a store is away and opening does not wait for it.
    pub async fn open_with(options: OpenOptions) -> Result<Self> {
        let folders = Folders {
            data_dir: options.data_dir,
            blobs_dir: options.blobs_dir,
            uploads_dir: options.uploads_dir,
        };
        let stores = RunningStores::open(options.stores, &folders).await?;
        let waits = options.wait_for_stores && !stores.is_embedded;
        let is_away = |error: &Error| waits && error.is_retryable() && !RecordsLost::caused(error);
        until_available(A_STORE, || stores.check(), is_away).await?;
        let (embedder, reranker) = open_models(
            (options.model_dir, options.model_precision, options.model_dims),
            (options.rerank_model_dir, options.rerank_precision),
        )
        .await?;
        let builder = Builder::default()
            .taxonomy(options.taxonomy)
            .ingest_options(options.ingest)
            .search_options(options.search)
            .defer_embedder(options.defer_embedder);
        let builder = stores.on(builder, options.contention, is_away).await?;
        let builder = set_if_some(builder, embedder, Builder::embedder);
        let builder = set_if_some(builder, reranker, Builder::reranker);
        let builder = set_if_some(builder, options.rerankers, Builder::reranker_source);
        let builder = set_if_some(builder, options.chat_models, Builder::chat_models);
        let builder = set_if_some(builder, options.deletion, Builder::deletion_policy);
        let builder = set_if_some(builder, options.observer, Builder::task_observer);
        let builder = set_if_some(builder, options.outbox, Builder::outbox);
        let builder = set_if_some(builder, options.ingest_runtime, Builder::ingest_runtime);
        until_available(A_STORE, || builder.clone().build(), is_away).await
    }
}

/// The stores of a knowledge base that runs.
struct RunningStores {
    all: AllStores,
    /// The queue beside records that other processes may use, and how they know this one.
    shared: Option<(Arc<dyn TaskQueue>, Process)>,
    backup: BackupSource,
    /// Whether nothing is in other stores.
    is_embedded: bool,
}

impl RunningStores {
    /// Opens the embedded stores in place of those that are not given.
    async fn open(given: OtherStores, folders: &Folders) -> Result<Self> {
        let needs_store = given.vectors.is_none() || given.state.is_none();
        let has_texts_and_state = given.state.is_none() && given.blobs.is_none();
        let has_other_vectors = given.vectors.is_some();
        let is_embedded = has_texts_and_state && !has_other_vectors;
        // What is in the data folder of one process, no other one finds.
        let is_exclusive = given.vectors.is_none()
            || given.blobs.is_none() && folders.blobs_dir.starts_with(&folders.data_dir);
        let process = |id| Process { id, format: STORE_VERSION, is_exclusive };
        let shared = given.state.as_ref().map(|state| (Arc::clone(&state.queue), process(state.process)));
        let records = given.state.as_ref().map(|state| Arc::clone(&state.export));
        let Folders { data_dir, blobs_dir, .. } = folders.clone();
        let embedded = blocking(OPEN, move || {
            if has_texts_and_state {
                refuse_texts_without_store(&data_dir, &blobs_dir)?;
            }
            let store = match needs_store {
                true => Some(open_store(&data_dir, LmdbOptions::default())?),
                false => None,
            };
            if let Err(error) = remove_stale_copy(&data_dir) {
                tracing::warn!(%error, "store copy of an interrupted backup could not be removed");
            }
            Ok(store)
        })
        .await?;
        let mut folder = embedded.clone().map(OpenFolder);
        let all = given.or_embedded(folders, &mut folder).await?;
        let data_dir = folders.data_dir.clone();
        let backup = BackupSource { data_dir, embedded, records, has_other_vectors, lock: Arc::default() };
        Ok(Self { all, shared, backup, is_embedded })
    }

    /// Refuses stores that must not be worked on.
    async fn check(&self) -> Result<()> {
        let AllStores { vectors, records, blobs, .. } = &self.all;
        // A target that is being filled lacks records, too.
        refuse_unfinished_migration(&**records).await?;
        if self.shared.is_some() {
            refuse_lost_records(records, &**vectors, blobs).await?;
        }
        Ok(())
    }

    /// Gives the stores to a knowledge base, and tells the other processes of it.
    async fn on(
        self,
        builder: Builder,
        contention: Option<ContentionObserver>,
        is_away: impl Fn(&Error) -> bool,
    ) -> Result<Builder> {
        let AllStores { vectors, records, blobs, originals } = self.all;
        let builder = builder.vectors(Arc::clone(&vectors)).originals(originals).blobs(blobs);
        let builder = match (self.shared, &self.backup.embedded) {
            (Some((queue, process)), _) => {
                let join = || async {
                    let peers = Peers::join(Arc::clone(&records), process, PeerOptions::default()).await;
                    peers.map_err(lkr_catalog::Error::from).during("join the other processes")
                };
                let peers = until_available(A_STORE, join, &is_away).await?;
                // Once this process may work on the records: another one may have the points.
                let check = || refuse_lost_points(&records, &*vectors);
                if let Err(error) = until_available(A_STORE, check, is_away).await {
                    peers.leave().await;
                    return Err(error);
                }
                builder.queue(Arc::new(FencedQueue::new(queue, peers.clone()))).peers(peers)
            }
            (None, Some(store)) => builder.queue(Arc::new(store.queue())),
            (None, None) => builder,
        };
        Ok(builder.state(with_observer(records, contention)).backup_source(self.backup))
    }
}

/// Fails if the stores are being filled by a migration, or are the source of one that moves a part of them.
async fn refuse_unfinished_migration(records: &dyn StateStore) -> Result<()> {
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

//! Opening a knowledge base in a folder.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use lkr_catalog::{Originals, Outbox};
use lkr_ingest::{DeletionPolicy, TaskObserver};
use lkr_models::{ChatModelSource, Precision, RerankerSource};
use lkr_state::{ContentionObserver, ObservedState, PeerOptions, Peers, StateStore};
use lkr_taxonomy::Taxonomy;
use lkr_vectors::VectorStore;
use object_store::ObjectStore;

use crate::{
    Builder, Error, ErrorKind, Folders, IngestOptions, KnowledgeBase, OtherStores, Result, SearchOptions,
    SharedState,
    backup::EmbeddedStore,
    blocking::blocking,
    doctor::refuse_lost_records,
    embedded_store::{open_blobs, open_embedded, refuse_texts_without_store},
    error::During,
    local_models::open_models,
};

const OPEN: &str = "open knowledge base";

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
        let OpenOptions { data_dir, blobs_dir, uploads_dir, model_dir, rerank_model_dir, .. } = &options;
        let models = (model_dir.clone(), options.model_precision, rerank_model_dir.clone());
        let folders = Folders {
            data_dir: data_dir.clone(),
            blobs_dir: blobs_dir.clone(),
            uploads_dir: uploads_dir.clone(),
        };
        let stores = RunningStores::open(options.stores, &folders).await?;
        let (embedder, reranker) = open_models(models.0, models.1, models.2).await?;
        let builder = Builder::default()
            .taxonomy(options.taxonomy)
            .ingest_options(options.ingest)
            .search_options(options.search)
            .defer_embedder(options.defer_embedder);
        let builder = stores.on(builder, options.contention).await?;
        let builder = set_if_some(builder, embedder, Builder::embedder);
        let builder = set_if_some(builder, reranker, Builder::reranker);
        let builder = set_if_some(builder, options.rerankers, Builder::reranker_source);
        let builder = set_if_some(builder, options.chat_models, Builder::chat_models);
        let builder = set_if_some(builder, options.deletion, Builder::deletion_policy);
        let builder = set_if_some(builder, options.observer, Builder::task_observer);
        set_if_some(builder, options.outbox, Builder::outbox).build().await
    }
}

/// The stores of a knowledge base that runs.
struct RunningStores {
    given: OtherStores,
    embedded: Option<EmbeddedStore>,
    texts: Arc<dyn ObjectStore>,
    uploads_dir: PathBuf,
}

impl RunningStores {
    /// Opens the embedded stores in place of those that are not given, and refuses stores that must not be worked on.
    async fn open(given: OtherStores, folders: &Folders) -> Result<Self> {
        let Folders { data_dir, blobs_dir, uploads_dir } = folders.clone();
        let needs_store = given.vectors.is_none() || given.state.is_none();
        let (has_state, has_blobs) = (given.state.is_none(), given.blobs.is_none());
        let (embedded, folder) = blocking("open knowledge base", move || {
            if has_state && has_blobs {
                refuse_texts_without_store(&data_dir, &blobs_dir)?;
            }
            let embedded = if needs_store { Some(open_embedded(data_dir)?) } else { None };
            Ok((embedded, if has_blobs { Some(open_blobs(&blobs_dir)?) } else { None }))
        })
        .await?;
        let folder = folder.map(|folder| Arc::new(folder) as Arc<dyn ObjectStore>);
        let missing = || Error::new(ErrorKind::Internal, OPEN, "no store of texts is open");
        let texts = given.blobs.clone().or(folder).ok_or_else(missing)?;
        let stores = Self { given, embedded, texts, uploads_dir };
        if let (Some(state), Some(vectors)) = (&stores.given.state, stores.vectors()) {
            refuse_lost_records(&state.records, &*vectors, &stores.texts).await?;
        }
        if let Some(records) = stores.records() {
            refuse_unfinished_migration(&*records).await?;
        }
        Ok(stores)
    }

    fn vectors(&self) -> Option<Arc<dyn VectorStore>> {
        let embedded = || Some(Arc::new(self.embedded.as_ref()?.store.vectors()) as _);
        self.given.vectors.clone().or_else(embedded)
    }

    fn records(&self) -> Option<Arc<dyn StateStore>> {
        let embedded = || Some(Arc::new(self.embedded.as_ref()?.store.state()) as _);
        self.given.state.as_ref().map(|state| Arc::clone(&state.records)).or_else(embedded)
    }

    /// Gives the stores to a knowledge base, and tells the other processes of it.
    async fn on(self, builder: Builder, contention: Option<ContentionObserver>) -> Result<Builder> {
        // A backup is a copy of the whole embedded store and of two folders.
        let is_embedded =
            self.given.state.is_none() && self.given.vectors.is_none() && self.given.blobs.is_none();
        let builder = set_if_some(builder, self.vectors(), Builder::vectors);
        let builder = match (self.given.state, &self.embedded) {
            (Some(SharedState { records, queue }), _) => {
                let peers = Peers::join(Arc::clone(&records), PeerOptions::default()).await;
                let peers = peers.map_err(lkr_catalog::Error::from).during("join the other processes")?;
                builder.state(with_observer(records, contention)).queue(queue).peers(peers)
            }
            (None, Some(EmbeddedStore { store, .. })) => {
                let records = with_observer(Arc::new(store.state()), contention);
                builder.state(records).queue(Arc::new(store.queue()))
            }
            (None, None) => builder,
        };
        let originals = match self.given.blobs {
            Some(blobs) => Originals::on(blobs),
            None => Originals::in_folder(self.uploads_dir),
        };
        let builder = builder.originals(originals).blobs(self.texts);
        Ok(set_if_some(builder, self.embedded.filter(|_| is_embedded), Builder::embedded))
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

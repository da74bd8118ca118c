use std::{
    sync::{Arc, Mutex, atomic::AtomicBool},
    time::Duration,
};

use lkr_catalog::{Catalog, Originals, Outbox, TextOwner, Texts};
use lkr_domain::Clock;
use lkr_ingest::{DeletionPolicy, IngestOptions, Ingestor, Ports, ReembedTrigger, TaskObserver};
use lkr_models::{ChatModelSource, Embedder, Reranker, RerankerSource};
use lkr_parsers::{Markdown, Parser};
use lkr_retrieval::{MemoryCache, SearchCache, SearchOptions, Searcher};
use lkr_spaces::Spaces;
use lkr_state::{MemoryQueue, MemoryState, Peers, StateStore, StoreClock, TaskQueue, TracedState};
use lkr_taxonomy::{ChatClassifier, Classifier, Taxonomy};
use lkr_vectors::{MemoryVectors, TracedVectors, VectorStore};
use object_store::{ObjectStore, memory::InMemory};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::{
    Error, ErrorKind, KnowledgeBase, Result, blocking::current_runtime, embedders::Embedders, error::During,
    evaluate::SearchEvaluator, kb::KnowledgeBaseShared, rerankers::Rerankers,
    similarity::EmbeddingClassifier, spaces::StoredSpaces,
};

/// Builds a knowledge base. Stores that are not given are in memory; there are no models by default.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    vectors: Option<Arc<dyn VectorStore>>,
    state: Option<Arc<dyn StateStore>>,
    queue: Option<Arc<dyn TaskQueue>>,
    blobs: Option<Arc<dyn ObjectStore>>,
    originals: Option<Originals>,
    embedder: Option<Arc<dyn Embedder>>,
    defer_embedder: bool,
    rerankers: Rerankers,
    chat_models: Option<Arc<dyn ChatModelSource>>,
    parser: Option<Arc<dyn Parser>>,
    taxonomy: Option<Taxonomy>,
    classifier: Option<Arc<dyn Classifier>>,
    cache: Option<Arc<dyn SearchCache>>,
    outbox: Option<Arc<dyn Outbox>>,
    deletion: Option<Arc<dyn DeletionPolicy>>,
    observer: Option<Arc<dyn TaskObserver>>,
    peers: Peers,
    clock: Option<Arc<dyn Clock>>,
    ingest: IngestOptions,
    ingest_runtime: Option<Handle>,
    search: SearchOptions,
    #[cfg(feature = "lmdb")]
    backup_source: Option<crate::backup::BackupSource>,
}

impl Builder {
    /// The store of points.
    #[must_use]
    pub fn vectors(mut self, vectors: Arc<dyn VectorStore>) -> Self {
        self.vectors = Some(vectors);
        self
    }

    /// The store of records.
    #[must_use]
    pub fn state(mut self, state: Arc<dyn StateStore>) -> Self {
        self.state = Some(state);
        self
    }

    /// The task queue.
    #[must_use]
    pub fn queue(mut self, queue: Arc<dyn TaskQueue>) -> Self {
        self.queue = Some(queue);
        self
    }

    /// The store of texts. A `put` must be durable when it returns.
    #[must_use]
    pub fn blobs(mut self, blobs: Arc<dyn ObjectStore>) -> Self {
        self.blobs = Some(blobs);
        self
    }

    /// The store of originals; the store of texts by default.
    #[must_use]
    pub fn originals(mut self, originals: Originals) -> Self {
        self.originals = Some(originals);
        self
    }

    /// The embedding model. If documents have vectors of another model, a task re-embeds them.
    #[must_use]
    pub fn embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }

    /// Whether the target embedding model is set after opening, by
    /// [`set_embedder_at_start`](KnowledgeBase::set_embedder_at_start). The given embedder is then only available, not
    /// the target.
    #[must_use]
    pub fn defer_embedder(mut self, defer: bool) -> Self {
        self.defer_embedder = defer;
        self
    }

    /// The reranker of the best results; none by default.
    #[must_use]
    pub fn reranker(mut self, reranker: Arc<dyn Reranker>) -> Self {
        self.rerankers.fallback = Some(reranker);
        self
    }

    /// Selects the reranker of each search. If it selects none, the one from [`reranker`](Self::reranker) is used.
    #[must_use]
    pub fn reranker_source(mut self, source: Arc<dyn RerankerSource>) -> Self {
        self.rerankers.source = Some(source);
        self
    }

    /// Selects the language model of each call. Language models write summaries and keywords, and find categories.
    /// Without one, summaries are extracted from the texts. An `Arc<dyn ChatModel>` is a source that always selects
    /// that model.
    #[must_use]
    pub fn chat_models(mut self, source: Arc<dyn ChatModelSource>) -> Self {
        self.chat_models = Some(source);
        self
    }

    /// The parser of submitted texts; Markdown by default.
    #[must_use]
    pub fn parser(mut self, parser: Arc<dyn Parser>) -> Self {
        self.parser = Some(parser);
        self
    }

    /// The categories that documents are classified into; the built-in ones by default.
    #[must_use]
    pub fn taxonomy(mut self, taxonomy: Taxonomy) -> Self {
        self.taxonomy = Some(taxonomy);
        self
    }

    /// The classifier of documents. By default the language model classifies; without one, embedding similarity to the
    /// descriptions of the categories decides; without an embedding model, documents have no category.
    #[must_use]
    pub fn classifier(mut self, classifier: Arc<dyn Classifier>) -> Self {
        self.classifier = Some(classifier);
        self
    }

    /// The cache of search responses; in memory by default.
    #[must_use]
    pub fn cache(mut self, cache: Arc<dyn SearchCache>) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Receives events of ended tasks and deleted documents, in the step that ends or deletes them; none by default.
    #[must_use]
    pub fn outbox(mut self, outbox: Arc<dyn Outbox>) -> Self {
        self.outbox = Some(outbox);
        self
    }

    /// The rights of tasks that delete documents; by default they may delete everything.
    #[must_use]
    pub fn deletion_policy(mut self, policy: Arc<dyn DeletionPolicy>) -> Self {
        self.deletion = Some(policy);
        self
    }

    /// Receives what happens to tasks, to count and trace it; none by default.
    #[must_use]
    pub fn task_observer(mut self, observer: Arc<dyn TaskObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The processes that work on these stores; this one alone by default.
    #[must_use]
    pub fn peers(mut self, peers: Peers) -> Self {
        self.peers = peers;
        self
    }

    /// Where the times and ids of documents, tasks and spaces come from; the clock of the state store by default. It must not be
    /// ahead of that, because stored texts have its timestamps.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The options of ingestion.
    #[must_use]
    pub fn ingest_options(mut self, options: IngestOptions) -> Self {
        self.ingest = options;
        self
    }

    /// The runtime whose threads ingest, so that they can have a lower priority than those that search; by default the
    /// current one. It must live until the knowledge base is closed.
    #[must_use]
    pub fn ingest_runtime(mut self, runtime: Handle) -> Self {
        self.ingest_runtime = Some(runtime);
        self
    }

    /// The options of searches.
    #[must_use]
    pub fn search_options(mut self, options: SearchOptions) -> Self {
        self.search = options;
        self
    }

    /// What is behind the ports, for backups.
    #[cfg(feature = "lmdb")]
    pub(crate) fn backup_source(mut self, source: crate::backup::BackupSource) -> Self {
        self.backup_source = Some(source);
        self
    }

    /// Opens the knowledge base and starts its workers. A clone can try again after a failure.
    ///
    /// # Errors
    /// `Unavailable` if a store is away; `Internal` outside of a tokio runtime; those of [`Ingestor::open`].
    pub async fn build(self) -> Result<KnowledgeBase> {
        let current = current_runtime("open knowledge base")?;
        let stores = self.stores();
        claim_texts(&stores.catalog, &stores.texts).await?;
        let taxonomy = self.taxonomy.clone().unwrap_or_else(Taxonomy::built_in);
        let embedders = self.embedders();
        let ingestor = self.open_ingestor(&stores, &taxonomy, &embedders, &current).await?;
        let runtime = self.ingest_runtime.clone().unwrap_or(current);
        let workers = ingestor.start_on(&runtime).await.during("start workers")?;
        let cache = self.cache.clone().unwrap_or_else(|| Arc::new(MemoryCache::default()));
        let searcher = self.searcher(&stores, &embedders, cache);
        let Stores { vectors, state, queue, catalog, texts, originals, spaces } = stores;
        let shared = KnowledgeBaseShared {
            vectors,
            state,
            queue,
            catalog,
            texts,
            originals,
            spaces,
            embedder: self.embedder,
            embedders,
            reranker: self.rerankers.fallback,
            taxonomy,
            ingestor,
            searcher,
            workers: Mutex::new(Some(workers)),
            is_stopped: AtomicBool::new(false),
            stopping: tokio::sync::Mutex::default(),
            peers: self.peers,
            #[cfg(feature = "lmdb")]
            backup_source: self.backup_source,
        };
        Ok(KnowledgeBase { shared: Arc::new(shared) })
    }

    /// The given stores, and in-memory ones for the others. Their operations run in spans.
    fn stores(&self) -> Stores {
        let state = self.state.clone().unwrap_or_else(|| Arc::new(MemoryState::default()));
        let state: Arc<dyn StateStore> = Arc::new(TracedState::new(state));
        let vectors = self.vectors.clone().unwrap_or_else(|| Arc::new(MemoryVectors::default()));
        let blobs = self.blobs.clone().unwrap_or_else(|| Arc::new(InMemory::new()));
        let clock = self.clock.clone().unwrap_or_else(|| Arc::new(StoreClock::new(Arc::clone(&state))));
        let catalog = Catalog::new(Arc::clone(&state)).with_clock(Arc::clone(&clock));
        let catalog = match &self.outbox {
            Some(outbox) => catalog.with_outbox(Arc::clone(outbox)),
            None => catalog,
        };
        Stores {
            vectors: Arc::new(TracedVectors::new(vectors)),
            spaces: Spaces::new(Arc::clone(&state)).with_clock(clock),
            state,
            queue: self.queue.clone().unwrap_or_else(|| Arc::new(MemoryQueue::default())),
            catalog,
            originals: self.originals.clone().unwrap_or_else(|| Originals::on(Arc::clone(&blobs))),
            texts: Texts::new(blobs),
        }
    }

    fn embedders(&self) -> Arc<Embedders> {
        let target = self.embedder.clone().filter(|_| !self.defer_embedder);
        let embedders = Embedders::new(target);
        if let Some(embedder) = &self.embedder {
            embedders.add(Arc::clone(embedder));
        }
        Arc::new(embedders)
    }

    fn searcher(&self, stores: &Stores, embedders: &Arc<Embedders>, cache: Arc<dyn SearchCache>) -> Searcher {
        let (vectors, catalog) = (Arc::clone(&stores.vectors), stores.catalog.clone());
        let searcher = Searcher::new(vectors, catalog, None, cache, self.search.clone())
            .with_embedders(Arc::<Embedders>::clone(embedders))
            .with_rerankers(Arc::new(self.rerankers.clone()));
        match &self.chat_models {
            Some(source) => searcher.with_chat_models(Arc::clone(source)),
            None => searcher,
        }
    }

    async fn open_ingestor(
        &self,
        stores: &Stores,
        taxonomy: &Taxonomy,
        embedders: &Arc<Embedders>,
        current: &Handle,
    ) -> Result<Ingestor> {
        // An evaluation neither reads nor fills the cache of searches.
        let no_cache = Arc::new(MemoryCache::new(0, Duration::ZERO));
        let searcher = self.searcher(stores, embedders, no_cache);
        let evaluator = SearchEvaluator { searcher, runtime: self.evaluation_runtime(current) };
        let ports = Ports {
            vectors: Arc::clone(&stores.vectors),
            catalog: stores.catalog.clone(),
            queue: Arc::clone(&stores.queue),
            texts: stores.texts.clone(),
            originals: stores.originals.clone(),
            embedders: Arc::<Embedders>::clone(embedders),
            parser: self.parser.clone().unwrap_or_else(|| Arc::new(Markdown)),
            classifier: Some(self.classifier_for(taxonomy, embedders)),
            chat_models: self.chat_models.clone(),
            evaluator: Some(Arc::new(evaluator)),
            deletion: self.deletion.clone(),
            spaces: Some(Arc::new(StoredSpaces(stores.spaces.clone()))),
            observer: self.observer.clone(),
            peers: self.peers.clone(),
        };
        let ingestor = Ingestor::open(ports, self.ingest.clone()).await.during("open knowledge base")?;
        if !self.defer_embedder {
            let profile = self.embedder.as_ref().map(|embedder| embedder.profile());
            ingestor.embed_by(profile, ReembedTrigger::AtStart).await.during("open knowledge base")?;
        }
        Ok(ingestor)
    }

    /// The current runtime, whose threads do not give way, as those of ingestion may. One with the current thread alone may wait until
    /// the program asks for something, so evaluations go on without it.
    fn evaluation_runtime(&self, current: &Handle) -> Handle {
        match (current.runtime_flavor(), &self.ingest_runtime) {
            (RuntimeFlavor::CurrentThread, Some(ingestion)) => ingestion.clone(),
            _ => current.clone(),
        }
    }

    /// The given classifier or the default one.
    fn classifier_for(&self, taxonomy: &Taxonomy, embedders: &Arc<Embedders>) -> Arc<dyn Classifier> {
        if let Some(classifier) = &self.classifier {
            return Arc::clone(classifier);
        }
        let by_similarity: Arc<dyn Classifier> =
            Arc::new(EmbeddingClassifier::new(taxonomy.clone(), Arc::<Embedders>::clone(embedders)));
        match &self.chat_models {
            Some(models) => {
                Arc::new(ChatClassifier::new(taxonomy.clone(), Arc::clone(models), Some(by_similarity)))
            }
            None => by_similarity,
        }
    }
}

/// Refuses the texts of another knowledge base: each would remove those of the other as left over. While the texts cannot be reached,
/// none are removed either.
async fn claim_texts(catalog: &Catalog, texts: &Texts) -> Result<()> {
    match catalog.claim_texts(texts).await {
        Ok(TextOwner::Other) => {
            let reason = format!(
                "the texts belong to another knowledge base ({}): give this one a folder or prefix of its own, or, if the other one was \
                 given up, remove the object 'knowledge-base' beside the folder 'texts'",
                texts.place()
            );
            Err(Error::new(ErrorKind::Invalid, "open knowledge base", reason))
        }
        Ok(TextOwner::Missing) => {
            let reason = format!(
                "there are documents, but no texts at all where they should be ({}): name the folder or prefix that has them, or mount \
                 its disk; if they are lost, restore a backup, or put an empty object 'knowledge-base' there to go on without them",
                texts.place()
            );
            Err(Error::new(ErrorKind::Invalid, "open knowledge base", reason))
        }
        Ok(TextOwner::This | TextOwner::Unknown) => Ok(()),
        Err(error) => {
            tracing::warn!(%error, "cannot tell whether the texts belong to this knowledge base");
            Ok(())
        }
    }
}

struct Stores {
    vectors: Arc<dyn VectorStore>,
    state: Arc<dyn StateStore>,
    queue: Arc<dyn TaskQueue>,
    catalog: Catalog,
    texts: Texts,
    originals: Originals,
    spaces: Spaces,
}

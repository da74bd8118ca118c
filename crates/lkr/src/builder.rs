use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lkr_catalog::{Catalog, Originals, Outbox, Texts};
use lkr_ingest::{IngestOptions, Ingestor, Ports, ReembedTrigger};
use lkr_models::{ChatModelSource, Embedder, EmbedderSource, Reranker, RerankerSource};
use lkr_parsers::{Markdown, Parser};
use lkr_retrieval::{MemoryCache, SearchCache, SearchOptions, Searcher};
use lkr_state::{MemoryQueue, MemoryState, StateStore, TaskQueue};
use lkr_taxonomy::{ChatClassifier, Classifier, Taxonomy};
use lkr_vectors::{MemoryVectors, VectorStore};
use object_store::{ObjectStore, memory::InMemory};

use crate::{
    KnowledgeBase, Result, categories::NearCategories, embedders::Embedders, error::During,
    evaluate::SearchEvaluator, kb::Parts, rerankers::Rerankers,
};

/// Puts a knowledge base together. What is not given lies in memory, and there are no models.
#[derive(Debug, Default)]
pub struct Builder {
    vectors: Option<Arc<dyn VectorStore>>,
    state: Option<Arc<dyn StateStore>>,
    queue: Option<Arc<dyn TaskQueue>>,
    blobs: Option<Arc<dyn ObjectStore>>,
    originals: Option<Originals>,
    embedder: Option<Arc<dyn Embedder>>,
    embedder_is_named_later: bool,
    rerankers: Rerankers,
    chat_models: Option<Arc<dyn ChatModelSource>>,
    parser: Option<Arc<dyn Parser>>,
    taxonomy: Option<Taxonomy>,
    classifier: Option<Arc<dyn Classifier>>,
    cache: Option<Arc<dyn SearchCache>>,
    outbox: Option<Arc<dyn Outbox>>,
    ingest: IngestOptions,
    search: SearchOptions,
    #[cfg(feature = "lmdb")]
    embedded: Option<crate::backup::Embedded>,
}

impl Builder {
    /// Where points are stored.
    #[must_use]
    pub fn vectors(mut self, vectors: Arc<dyn VectorStore>) -> Self {
        self.vectors = Some(vectors);
        self
    }

    /// Where records are stored.
    #[must_use]
    pub fn state(mut self, state: Arc<dyn StateStore>) -> Self {
        self.state = Some(state);
        self
    }

    /// Where tasks wait.
    #[must_use]
    pub fn queue(mut self, queue: Arc<dyn TaskQueue>) -> Self {
        self.queue = Some(queue);
        self
    }

    /// Where texts are stored. What it answers to a `put` must be durable.
    #[must_use]
    pub fn blobs(mut self, blobs: Arc<dyn ObjectStore>) -> Self {
        self.blobs = Some(blobs);
        self
    }

    /// Where the files are stored that documents come as; beside the texts unless another place is given.
    #[must_use]
    pub fn originals(mut self, originals: Originals) -> Self {
        self.originals = Some(originals);
        self
    }

    /// The embedding model. Where documents have vectors of another, a task embeds them anew.
    #[must_use]
    pub fn embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }

    /// The embedding model that all documents are to have vectors of is named later, by
    /// [`start_embedder`](KnowledgeBase::start_embedder); the one that is given is merely there.
    #[must_use]
    pub fn embedder_is_named_later(mut self, later: bool) -> Self {
        self.embedder_is_named_later = later;
        self
    }

    /// What ranks the best results again; nothing unless one is given.
    #[must_use]
    pub fn reranker(mut self, reranker: Arc<dyn Reranker>) -> Self {
        self.rerankers.own = Some(reranker);
        self
    }

    /// What names a reranker anew at each search. Where it names none, the one that was given stands in.
    #[must_use]
    pub fn reranker_source(mut self, source: Arc<dyn RerankerSource>) -> Self {
        self.rerankers.named = Some(source);
        self
    }

    /// What names the language models anew whenever one is asked: they write summaries and keywords, and find categories.
    /// Without any, summaries are picked from the texts. A model that stays is a source as well:
    /// `Arc<dyn ChatModel>`.
    #[must_use]
    pub fn chat_models(mut self, source: Arc<dyn ChatModelSource>) -> Self {
        self.chat_models = Some(source);
        self
    }

    /// What reads structure out of a text; Markdown unless another is given.
    #[must_use]
    pub fn parser(mut self, parser: Arc<dyn Parser>) -> Self {
        self.parser = Some(parser);
        self
    }

    /// The categories that documents are classified into; the built-in ones unless others are given.
    #[must_use]
    pub fn taxonomy(mut self, taxonomy: Taxonomy) -> Self {
        self.taxonomy = Some(taxonomy);
        self
    }

    /// What finds the category of a document; unless one is given, the language model where there is one, else its
    /// nearness to the categories' descriptions, where there is an embedding model.
    #[must_use]
    pub fn classifier(mut self, classifier: Arc<dyn Classifier>) -> Self {
        self.classifier = Some(classifier);
        self
    }

    /// Where answers to searches are kept.
    #[must_use]
    pub fn cache(mut self, cache: Arc<dyn SearchCache>) -> Self {
        self.cache = Some(cache);
        self
    }

    /// What is told of tasks that ended and documents that were deleted, in the very step in which they did; nobody
    /// unless one is given.
    #[must_use]
    pub fn outbox(mut self, outbox: Arc<dyn Outbox>) -> Self {
        self.outbox = Some(outbox);
        self
    }

    /// How ingestion works.
    #[must_use]
    pub fn ingest_options(mut self, options: IngestOptions) -> Self {
        self.ingest = options;
        self
    }

    /// How searches work.
    #[must_use]
    pub fn search_options(mut self, options: SearchOptions) -> Self {
        self.search = options;
        self
    }

    /// The embedded store that the ports are of.
    #[cfg(feature = "lmdb")]
    pub(crate) fn embedded(mut self, embedded: crate::backup::Embedded) -> Self {
        self.embedded = Some(embedded);
        self
    }

    /// Opens the knowledge base and starts its workers.
    pub async fn build(self) -> Result<KnowledgeBase> {
        let vectors = self.vectors.unwrap_or_else(|| Arc::new(MemoryVectors::default()));
        let state = self.state.unwrap_or_else(|| Arc::new(MemoryState::default()));
        let queue = self.queue.unwrap_or_else(|| Arc::new(MemoryQueue::default()));
        let blobs = self.blobs.unwrap_or_else(|| Arc::new(InMemory::new()));
        let parser = self.parser.unwrap_or_else(|| Arc::new(Markdown));
        let cache = self.cache.unwrap_or_else(|| Arc::new(MemoryCache::default()));
        let taxonomy = self.taxonomy.unwrap_or_else(Taxonomy::built_in);
        let (own, later) = (self.embedder, self.embedder_is_named_later);
        let embedders = Arc::new(Embedders::new(own.clone().filter(|_| !later)));
        own.iter().for_each(|own| embedders.know(Arc::clone(own)));
        let source: Arc<dyn EmbedderSource> = Arc::<Embedders>::clone(&embedders);
        let classifier = self.classifier.unwrap_or_else(|| {
            let near: Arc<dyn Classifier> =
                Arc::new(NearCategories::new(taxonomy.clone(), Arc::clone(&source)));
            match &self.chat_models {
                Some(models) => {
                    let (taxonomy, models) = (taxonomy.clone(), Arc::clone(models));
                    Arc::new(ChatClassifier::new(taxonomy, models, Some(near)))
                }
                None => near,
            }
        });
        let originals = self.originals.unwrap_or_else(|| Originals::on(Arc::clone(&blobs)));
        let (catalog, texts) = (Catalog::new(Arc::clone(&state)), Texts::new(blobs));
        let catalog = match self.outbox {
            Some(outbox) => catalog.with_outbox(outbox),
            None => catalog,
        };
        let (reranker, rerankers) = (self.rerankers.own.clone(), Arc::new(self.rerankers));
        let searcher = |cache: Arc<dyn SearchCache>, search| {
            let searcher = Searcher::new(Arc::clone(&vectors), catalog.clone(), None, cache, search)
                .with_embedders(Arc::clone(&source))
                .with_rerankers(Arc::clone(&rerankers) as Arc<dyn RerankerSource>);
            match &self.chat_models {
                Some(source) => searcher.with_chat_models(Arc::clone(source)),
                None => searcher,
            }
        };
        // Judging neither uses what is cached nor crowds it out.
        let no_cache = Arc::new(MemoryCache::new(0, Duration::ZERO));
        let evaluator = SearchEvaluator { searcher: searcher(no_cache, self.search.clone()) };
        let searcher = searcher(cache, self.search);
        let ports = Ports {
            vectors: Arc::clone(&vectors),
            catalog: catalog.clone(),
            queue: Arc::clone(&queue),
            texts: texts.clone(),
            originals: originals.clone(),
            embedders: Arc::clone(&source),
            parser,
            classifier: Some(classifier),
            chat_models: self.chat_models.clone(),
            evaluator: Some(Arc::new(evaluator)),
        };
        let ingestor = Ingestor::open(ports, self.ingest).await.during("open knowledge base")?;
        if !later {
            let profile = own.as_ref().map(|own| own.profile());
            ingestor.embed_by(profile, ReembedTrigger::AtStart).await.during("open knowledge base")?;
        }
        let workers = ingestor.start().await.during("start workers")?;
        let workers = Mutex::new(Some(workers));
        let parts = Parts {
            vectors,
            state,
            queue,
            catalog,
            texts,
            originals,
            embedder: own,
            embedders,
            reranker,
            taxonomy,
            ingestor,
            searcher,
            workers,
            #[cfg(feature = "lmdb")]
            embedded: self.embedded,
        };
        Ok(KnowledgeBase { parts: Arc::new(parts) })
    }
}

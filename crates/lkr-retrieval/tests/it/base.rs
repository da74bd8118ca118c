//! A knowledge base in memory with the points and records that ingestion would write.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use lkr_catalog::{Acceptance, Catalog, Task, TaskInput, l1_id, points_of, tags_of};
use lkr_domain::{Counts, DocId, Document, Layer, Layered, Metadata, SpaceName, SystemClock};
use lkr_layers::{LayerOptions, indexed_text, layer};
use lkr_models::{
    EmbedKind, Embedder, EmbedderProfile, Error, ErrorKind, Precision, Result, SparseEncoder, average_terms,
    term_id,
};
use lkr_parsers::{Markdown, Parser, Source};
use lkr_retrieval::{MemoryCache, SearchOptions, SearchRequest, SearchResponse, Searcher};
use lkr_state::MemoryState;
use lkr_text::{Analyzer, Language};
use lkr_vectors::{Collection, CollectionSpec, DenseSpec, MemoryVectors, Point, VectorStore};
use time::OffsetDateTime;
use tokio::sync::Semaphore;

const DIMS: usize = 256;

/// Embeds each word as a direction of its own; a few synonyms share one.
#[derive(Debug)]
pub(crate) struct WordEmbedder {
    profile: EmbedderProfile,
    pub(crate) fails: AtomicBool,
}

impl WordEmbedder {
    pub(crate) fn new(id: &str) -> Arc<Self> {
        Self::of_precision(id, None)
    }

    /// A model that says that it runs in this process.
    pub(crate) fn in_process(id: &str) -> Arc<Self> {
        Self::of_precision(id, Some(Precision::Float32))
    }

    fn of_precision(id: &str, precision: Option<Precision>) -> Arc<Self> {
        let profile = EmbedderProfile {
            id: id.to_owned(),
            name: id.to_owned(),
            dims: DIMS,
            max_tokens: 256,
            cosine_scale: Some(30.5),
            precision,
        };
        Arc::new(Self { profile, fails: AtomicBool::new(false) })
    }
}

#[async_trait]
impl Embedder for WordEmbedder {
    fn profile(&self) -> &EmbedderProfile {
        &self.profile
    }

    async fn embed(&self, _: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Unavailable, "embed", "made to fail"));
        }
        Ok(texts.iter().map(|text| embed(text)).collect())
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        Some(if text.is_ascii() { 4.0 } else { 1.0 })
    }
}

/// A model that waits for permission before it answers.
#[derive(Debug)]
pub(crate) struct BlockedEmbedder {
    inner: Arc<WordEmbedder>,
    /// Has a permit for each call.
    pub(crate) entered: Semaphore,
    /// A call waits for a permit.
    pub(crate) released: Semaphore,
}

impl BlockedEmbedder {
    pub(crate) fn new(inner: Arc<WordEmbedder>) -> Self {
        Self { inner, entered: Semaphore::new(0), released: Semaphore::new(0) }
    }
}

#[async_trait]
impl Embedder for BlockedEmbedder {
    fn profile(&self) -> &EmbedderProfile {
        self.inner.profile()
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        self.entered.add_permits(1);
        let _pass = self.released.acquire().await.unwrap();
        self.inner.embed(kind, texts).await
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.inner.letters_per_piece(text)
    }
}

fn embed(text: &str) -> Vec<f32> {
    let mut vector = vec![0.01; DIMS];
    for token in Analyzer::new(Some(Language::ENGLISH)).analyze(text) {
        let synonym = match token.term.as_str() {
            "felin" => "cat",
            "physician" => "doctor",
            other => other,
        };
        vector[term_id(synonym) as usize % DIMS] += 1.0;
    }
    normalise(vector)
}

fn normalise(vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|v| v * v).sum::<f32>().sqrt();
    vector.into_iter().map(|v| v / length).collect()
}

/// The contents of a test document.
#[derive(Debug, Clone, Default)]
pub(crate) struct TestDocument<'a> {
    pub(crate) title: &'a str,
    pub(crate) text: &'a str,
    pub(crate) source: &'a str,
    pub(crate) category: &'a str,
    pub(crate) metadata: &'a [(&'a str, &'a str)],
}

/// The stores of a knowledge base.
#[derive(Debug, Clone)]
pub(crate) struct TestBase {
    pub(crate) vectors: Arc<MemoryVectors>,
    pub(crate) catalog: Catalog,
    pub(crate) embedder: Option<Arc<WordEmbedder>>,
}

impl TestBase {
    /// An empty knowledge base whose vectors `embedder` makes.
    pub(crate) async fn new(embedder: Option<Arc<WordEmbedder>>) -> Self {
        let vectors = Arc::new(MemoryVectors::new());
        for layer in Layer::ALL {
            let collection = Collection::new(format!("{layer}.first")).unwrap();
            let dense = embedder.as_ref().map(|e| DenseSpec { model: e.profile.id.clone(), dims: DIMS });
            vectors.ensure(&CollectionSpec { collection: collection.clone(), dense }).await.unwrap();
            vectors.switch(&[(layer.into(), collection)]).await.unwrap();
        }
        Self { vectors, catalog: Catalog::new(Arc::new(MemoryState::new())), embedder }
    }

    /// An empty knowledge base with an embedder.
    pub(crate) async fn embedded() -> Self {
        Self::new(Some(WordEmbedder::new("words"))).await
    }

    /// A searcher with its own cache.
    pub(crate) fn searcher(&self) -> Searcher {
        self.searcher_over(self.vectors.clone())
    }

    /// A searcher that reads points through `vectors`.
    pub(crate) fn searcher_over(&self, vectors: Arc<dyn VectorStore>) -> Searcher {
        self.searcher_with(vectors, SearchOptions::default())
    }

    /// A searcher that reads points through `vectors`, with these options.
    pub(crate) fn searcher_with(&self, vectors: Arc<dyn VectorStore>, options: SearchOptions) -> Searcher {
        let embedder = self.embedder.clone().map(|e| e as Arc<dyn Embedder>);
        let cache = Arc::new(MemoryCache::default());
        Searcher::new(vectors, self.catalog.clone(), embedder, cache, options)
    }

    /// Writes a document's points without publishing them.
    pub(crate) async fn write(
        &self,
        doc_id: DocId,
        revision: u64,
        input: &TestDocument<'_>,
    ) -> (Document, Layered) {
        let parsed = Markdown.parse(&Source::from(input.text)).unwrap();
        let layered =
            layer(&parsed, input.title, &LayerOptions { chunk_tokens: 40, ..LayerOptions::default() });
        let document = document(doc_id, revision, input, &layered);
        let points = self.points(&document, &layered, input.text);
        for (layer, points) in points {
            self.vectors.upsert(&layer.into(), points).await.unwrap();
        }
        (document, layered)
    }

    /// Publishes a written document.
    pub(crate) async fn publish(&self, document: &Document) {
        let input = TaskInput {
            revision: document.revision,
            title: String::new(),
            source: String::new(),
            metadata: Metadata::new(),
            warnings: Vec::new(),
            ..TaskInput::default()
        };
        let task =
            Task::ingest(&SystemClock, document.doc_id, document.space.clone(), "tester".into(), input);
        let state = self.catalog.document_state(document.doc_id).await.unwrap();
        let acceptance = Acceptance { task: task.clone(), existing: Some(state) };
        self.catalog.accept(&[acceptance], Vec::new()).await.unwrap();
        let state = self.catalog.document_state(document.doc_id).await.unwrap();
        self.catalog.publish(&state, document, &task, self.embedder.is_some(), Vec::new()).await.unwrap();
    }

    /// Writes and publishes a document.
    pub(crate) async fn add(&self, input: TestDocument<'_>) -> (Document, Layered) {
        let (document, layered) = self.write(DocId::new(), 1, &input).await;
        self.publish(&document).await;
        (document, layered)
    }

    /// Deletes a document. Its points remain, as they do until garbage collection.
    pub(crate) async fn delete(&self, doc_id: DocId) {
        let state = self.catalog.document_state(doc_id).await.unwrap();
        self.catalog.remove(&state, Vec::new()).await.unwrap();
    }

    fn points(&self, document: &Document, layered: &Layered, text: &str) -> HashMap<Layer, Vec<Point>> {
        let sources = points_of(document, layered);
        let chars: Vec<char> = text.chars().collect();
        let cut = |start: u32, end: u32| chars[start as usize..end as usize].iter().collect::<String>();
        let title = &layered.root.indexed_title;
        let whole = std::iter::once(indexed_text(title, &[], text));
        let nodes = layered.l2.iter().chain(&layered.l3);
        let nodes = nodes.map(|n| indexed_text(title, &n.path, &cut(n.span.start, n.span.end)));
        let chunks = layered.chunks.iter().map(|c| indexed_text(title, &c.path, &c.text));
        let language = Language::from_code(&document.language);
        let mut by_layer: HashMap<Layer, Vec<Point>> = HashMap::new();
        for (source, text) in sources.into_iter().zip(whole.chain(nodes).chain(chunks)) {
            let layer = source.layer;
            let sparse = SparseEncoder::default().passage(&text, language, average_terms(layer));
            let dense = self.embedder.is_some().then(|| embed(&text));
            let point = source.point(&tags_of(document), sparse, dense);
            by_layer.entry(layer).or_default().push(point);
        }
        assert_eq!(by_layer[&Layer::L1][0].id, l1_id(document.doc_id, document.revision));
        by_layer
    }
}

fn document(doc_id: DocId, revision: u64, input: &TestDocument<'_>, layered: &Layered) -> Document {
    let count = |len: usize| len as u64;
    Document {
        doc_id,
        space: SpaceName::default(),
        revision,
        title: layered.root.title.clone(),
        source: input.source.to_owned(),
        summary: layered.root.summary.clone(),
        keywords: layered.root.keywords.clone(),
        category: input.category.to_owned(),
        language: layered.root.language.clone(),
        metadata: input.metadata.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect(),
        counts: Counts {
            l1: 1,
            l2: count(layered.l2.len()),
            l3: count(layered.l3.len()),
            chunks: count(layered.chunks.len()),
        },
        char_count: layered.root.char_count,
        content_sha256: String::new(),
        created_at: OffsetDateTime::UNIX_EPOCH,
        updated_at: OffsetDateTime::UNIX_EPOCH,
        created_by: "tester".into(),
        category_by_hand: false,
        original: None,
        fingerprint: None,
    }
}

/// The response to a request that succeeds.
pub(crate) async fn respond(searcher: &Searcher, request: &SearchRequest) -> Arc<SearchResponse> {
    searcher.search(request).await.unwrap().response
}

/// The titles of the results, in order.
pub(crate) fn titles(response: &SearchResponse) -> Vec<&str> {
    response.results.iter().map(|result| result.title.as_str()).collect()
}

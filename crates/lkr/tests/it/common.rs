//! Stores that outlive a knowledge base, and an embedder and a classifier that tests control.

use std::{
    collections::BTreeMap,
    io::Write as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use lkr::{
    ExtractedText, IngestOptions, KnowledgeBase, Metadata, NewDocument, NewFile, Task, TaskId,
    stem_and_suffix,
};
use lkr_models::{EmbedKind, Embedder, EmbedderProfile, Error, ErrorKind, MemoryEmbedder};
use lkr_parsers::{Markdown, Parser as _, Source, encode_blocks};
use lkr_state::{MemoryQueue, MemoryState, StateStore, TaskQueue};
use lkr_taxonomy::{Classification, Classifier, ClassifierInput, ClassifierOutput};
use lkr_vectors::{MemoryVectors, VectorStore};
use object_store::{ObjectStore, memory::InMemory};
use tokio::sync::Semaphore;

/// The stores of a knowledge base, which outlive it.
#[derive(Debug, Clone)]
pub(crate) struct TestStores {
    pub(crate) vectors: Arc<dyn VectorStore>,
    pub(crate) state: Arc<dyn StateStore>,
    pub(crate) blobs: Arc<dyn ObjectStore>,
    pub(crate) classifier: Arc<TitleClassifier>,
}

impl Default for TestStores {
    fn default() -> Self {
        Self {
            vectors: Arc::new(MemoryVectors::default()),
            state: Arc::new(MemoryState::default()),
            blobs: Arc::new(InMemory::new()),
            classifier: Arc::default(),
        }
    }
}

impl TestStores {
    /// The number of stored texts, blocks and notes.
    pub(crate) async fn stored_blobs(&self) -> usize {
        count_blobs(&*self.blobs).await
    }

    /// Opens a knowledge base on these stores with an empty queue, as after a crash between two steps.
    pub(crate) async fn open(&self, embedder: Option<Arc<ScriptedEmbedder>>) -> KnowledgeBase {
        self.open_with(
            embedder.map(|embedder| embedder as Arc<dyn Embedder>),
            Arc::new(MemoryQueue::default()),
        )
        .await
    }

    pub(crate) async fn open_with(
        &self,
        embedder: Option<Arc<dyn Embedder>>,
        queue: Arc<dyn TaskQueue>,
    ) -> KnowledgeBase {
        let options = IngestOptions {
            batch: 4,
            backoff: Duration::from_millis(1),
            store_pause: Duration::from_millis(5),
            ..IngestOptions::default()
        };
        let builder = KnowledgeBase::builder()
            .vectors(Arc::clone(&self.vectors))
            .state(Arc::clone(&self.state))
            .blobs(Arc::clone(&self.blobs))
            .queue(queue)
            .classifier(Arc::clone(&self.classifier) as Arc<dyn Classifier>)
            .ingest_options(options);
        let builder = match embedder {
            Some(embedder) => builder.embedder(embedder),
            None => builder,
        };
        builder.build().await.unwrap()
    }
}

/// Classifies documents that have a vector by their titles.
#[derive(Debug, Default)]
pub(crate) struct TitleClassifier {
    categories: Mutex<BTreeMap<String, String>>,
    pub(crate) fails: AtomicBool,
}

impl TitleClassifier {
    pub(crate) fn learn(&self, title: &str, category: &str) {
        self.categories.lock().unwrap().insert(title.to_owned(), category.to_owned());
    }
}

#[async_trait]
impl Classifier for TitleClassifier {
    fn id(&self) -> String {
        "by title".to_owned()
    }

    async fn classify(&self, input: &ClassifierInput<'_>) -> lkr_taxonomy::Result<ClassifierOutput> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(lkr_taxonomy::Error::new(
                lkr_taxonomy::ErrorKind::ModelUnavailable,
                "classify",
                "the test made it fail",
            ));
        }
        let categories = self.categories.lock().unwrap();
        let name = input.vector.and_then(|_| categories.get(input.title).cloned());
        let needs_vector = input.vector.is_none();
        Ok(ClassifierOutput { needs_vector, ..name.map(|name| Classification { name, score: 1.0 }).into() })
    }
}

/// An embedder that waits for permits and fails as often as a test wants.
#[derive(Debug)]
pub(crate) struct ScriptedEmbedder {
    inner: MemoryEmbedder,
    profile: EmbedderProfile,
    pub(crate) permits: Semaphore,
    pub(crate) failures: AtomicU64,
    pub(crate) retryable: AtomicBool,
    pub(crate) panics: AtomicBool,
    pub(crate) texts: Mutex<Vec<String>>,
}

impl ScriptedEmbedder {
    /// An embedder for `permits` batches of passages. Queries need no permit.
    pub(crate) fn new(permits: usize) -> Arc<Self> {
        Self::named("scripted", permits)
    }

    pub(crate) fn named(id: &str, permits: usize) -> Arc<Self> {
        let inner = MemoryEmbedder::default();
        Arc::new(Self {
            profile: EmbedderProfile { id: id.to_owned(), ..inner.profile().clone() },
            inner,
            permits: Semaphore::new(permits),
            failures: AtomicU64::new(0),
            retryable: AtomicBool::new(true),
            panics: AtomicBool::new(false),
            texts: Mutex::default(),
        })
    }

    pub(crate) fn unlimited() -> Arc<Self> {
        Self::new(Semaphore::MAX_PERMITS)
    }

    fn takes_failure(&self) -> bool {
        self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok()
    }
}

#[async_trait]
impl Embedder for ScriptedEmbedder {
    fn profile(&self) -> &EmbedderProfile {
        &self.profile
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> lkr_models::Result<Vec<Vec<f32>>> {
        if kind == EmbedKind::Passage {
            self.permits.acquire().await.unwrap().forget();
            assert!(!self.panics.load(Ordering::SeqCst), "the test made it panic");
            if self.takes_failure() {
                let retryable = self.retryable.load(Ordering::SeqCst);
                let kind = if retryable { ErrorKind::Unavailable } else { ErrorKind::Internal };
                return Err(Error::new(kind, "embed", "the test made it fail"));
            }
            self.texts.lock().unwrap().extend_from_slice(texts);
        }
        self.inner.embed(kind, texts).await
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.inner.letters_per_piece(text)
    }
}

/// A text of `sections` sections of a few sentences each.
pub(crate) fn text(name: &str, sections: usize) -> String {
    let section = |n| format!("## Part {n} of {name}\n\nThe {name} number {n} rests. Its colour is grey.\n");
    format!("# {name}\n\n{}", (0..sections).map(section).collect::<Vec<_>>().join("\n"))
}

/// A Markdown file as its upload gives it.
pub(crate) fn markdown_file(file_name: &str, text: &str) -> NewFile {
    let parsed = Markdown.parse(&Source::from(text)).unwrap();
    let blocks = encode_blocks(&parsed.blocks).unwrap();
    let (mut file, mut extracted) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    file.write_all(text.as_bytes()).unwrap();
    extracted.write_all(parsed.text.as_bytes()).unwrap();
    extracted.write_all(&blocks).unwrap();
    let (text_bytes, blocks_bytes) = (parsed.text.len() as u64, blocks.len() as u64);
    NewFile {
        file_name: file_name.to_owned(),
        file,
        size_bytes: text.len() as u64,
        extracted: ExtractedText { file: extracted, text_bytes, blocks_bytes },
        title: stem_and_suffix(file_name).0.to_owned(),
        source: format!("file:{file_name}"),
        metadata: Metadata::new(),
    }
}

pub(crate) fn document(name: &str, sections: usize) -> NewDocument {
    NewDocument { text: text(name, sections), ..NewDocument::default() }
}

/// The number of texts, blocks and notes on a store, without the object that tells whose they are.
pub(crate) async fn count_blobs(blobs: &dyn ObjectStore) -> usize {
    use futures_util::StreamExt as _;
    let is_text = |path: &str| path != "knowledge-base";
    let listed = blobs.list(None).map(|meta| meta.is_ok_and(|meta| is_text(meta.location.as_ref())));
    listed.filter(|is_text| std::future::ready(*is_text)).count().await
}

/// Waits until a condition is true, for a minute at most.
pub(crate) async fn wait_until(condition: &str, mut is_true: impl AsyncFnMut() -> bool) {
    for _ in 0..6000 {
        if is_true().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("timed out waiting for: {condition}");
}

/// Waits until a task has ended, and returns it.
pub(crate) async fn wait_for_task(kb: &KnowledgeBase, task_id: TaskId) -> Task {
    wait_until("the task ended", async || kb.task(task_id).await.unwrap().unwrap().status.has_ended()).await;
    kb.task(task_id).await.unwrap().unwrap()
}

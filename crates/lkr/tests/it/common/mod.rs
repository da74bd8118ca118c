//! Stores that outlive a knowledge base, and an embedder and a classifier that do as they are told.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use lkr::{IngestOptions, KnowledgeBase, NewDocument, Task, TaskId};
use lkr_models::{EmbedKind, Embedder, EmbedderProfile, Error, ErrorKind, MemoryEmbedder};
use lkr_state::{MemoryQueue, MemoryState, StateStore, TaskQueue};
use lkr_taxonomy::{Classification, Classified, Classifier, ClassifierInput};
use lkr_vectors::{MemoryVectors, VectorStore};
use object_store::{ObjectStore, memory::InMemory};
use tokio::sync::Semaphore;

/// Everything that lasts.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    pub(crate) vectors: Arc<dyn VectorStore>,
    pub(crate) state: Arc<dyn StateStore>,
    pub(crate) blobs: Arc<dyn ObjectStore>,
    pub(crate) classifier: Arc<ByTitle>,
}

impl Default for Ground {
    fn default() -> Self {
        Self {
            vectors: Arc::new(MemoryVectors::default()),
            state: Arc::new(MemoryState::default()),
            blobs: Arc::new(InMemory::new()),
            classifier: Arc::default(),
        }
    }
}

impl Ground {
    /// A knowledge base on this ground, with a queue that remembers nothing, as after a crash between the steps.
    pub(crate) async fn open(&self, embedder: Option<Arc<Scripted>>) -> KnowledgeBase {
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

/// Knows the categories of titles, for documents that have a vector.
#[derive(Debug, Default)]
pub(crate) struct ByTitle {
    known: Mutex<BTreeMap<String, String>>,
    pub(crate) fails: AtomicBool,
}

impl ByTitle {
    #[allow(dead_code, reason = "not every test that shares this needs it")]
    pub(crate) fn learn(&self, title: &str, category: &str) {
        self.known.lock().unwrap().insert(title.to_owned(), category.to_owned());
    }
}

#[async_trait]
impl Classifier for ByTitle {
    fn id(&self) -> String {
        "by title".to_owned()
    }

    async fn classify(&self, digest: &ClassifierInput<'_>) -> lkr_taxonomy::Result<Classified> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(lkr_taxonomy::Error::new(
                lkr_taxonomy::ErrorKind::ModelAway,
                "classify",
                "told to fail",
            ));
        }
        let known = self.known.lock().unwrap();
        let name = digest.vector.and_then(|_| known.get(digest.title).cloned());
        let blind = digest.vector.is_none();
        Ok(Classified { blind, ..name.map(|name| Classification { name, score: 1.0 }).into() })
    }
}

/// Embeds while it has permits, and fails as often as it is told.
#[derive(Debug)]
pub(crate) struct Scripted {
    inner: MemoryEmbedder,
    profile: EmbedderProfile,
    pub(crate) permits: Semaphore,
    pub(crate) failures: AtomicU64,
    pub(crate) retryable: AtomicBool,
    pub(crate) panics: AtomicBool,
    pub(crate) texts: Mutex<Vec<String>>,
}

impl Scripted {
    /// An embedder that embeds `permits` batches of passages; queries are free.
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

    pub(crate) fn free() -> Arc<Self> {
        Self::new(Semaphore::MAX_PERMITS)
    }

    fn fails(&self) -> bool {
        self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok()
    }
}

#[async_trait]
impl Embedder for Scripted {
    fn profile(&self) -> &EmbedderProfile {
        &self.profile
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> lkr_models::Result<Vec<Vec<f32>>> {
        if kind == EmbedKind::Passage {
            self.permits.acquire().await.unwrap().forget();
            assert!(!self.panics.load(Ordering::SeqCst), "told to panic");
            if self.fails() {
                let retryable = self.retryable.load(Ordering::SeqCst);
                let kind = if retryable { ErrorKind::Unavailable } else { ErrorKind::Internal };
                return Err(Error::new(kind, "embed", "told to fail"));
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

pub(crate) fn document(name: &str, sections: usize) -> NewDocument {
    NewDocument { text: text(name, sections), ..NewDocument::default() }
}

/// Waits until something holds, for a minute at the most.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..6000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never came to hold: {what}");
}

pub(crate) async fn ended(kb: &KnowledgeBase, task_id: TaskId) -> Task {
    until("the task ended", async || kb.task(task_id).await.unwrap().unwrap().status.has_ended()).await;
    kb.task(task_id).await.unwrap().unwrap()
}

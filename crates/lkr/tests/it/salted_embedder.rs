//! Models whose vectors differ for the same texts, and what tests of re-embedding share.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use lkr::{DocId, Document, KnowledgeBase, Layer, SearchRequest, SearchResult, Task};
use lkr_models::{EmbedKind, Embedder, EmbedderProfile, Error, ErrorKind, MemoryEmbedder};
use lkr_state::MemoryQueue;
use lkr_store_lmdb::{LmdbOptions, LmdbStore};
use lkr_vectors::{Filter, Include};
use tokio::sync::Semaphore;

use crate::common::{TestStores, document, wait_until};

/// A model that hashes words with its id as salt, so that two models have different cosines for the same texts.
#[derive(Debug)]
pub(crate) struct SaltedEmbedder {
    pub(crate) profile: EmbedderProfile,
    pub(crate) inner: MemoryEmbedder,
    /// The length of a component that all vectors share, beside their own part of length 1. With one, the scale of the
    /// cosines is unknown.
    pub(crate) common_length: f32,
    /// The number of calls for passages that succeed.
    pub(crate) permits: Semaphore,
    pub(crate) is_unavailable: AtomicBool,
    /// Whether it fails with a configuration error, which no retry can overcome.
    pub(crate) is_broken: AtomicBool,
    /// It refuses passages that contain this word.
    pub(crate) refused_word: Mutex<Option<&'static str>>,
}

impl SaltedEmbedder {
    pub(crate) fn new(id: &str, permits: usize) -> Arc<Self> {
        Self::of(id, permits, MemoryEmbedder::default(), 0.0)
    }

    pub(crate) fn unlimited(id: &str) -> Arc<Self> {
        Self::new(id, Semaphore::MAX_PERMITS)
    }

    pub(crate) fn of(id: &str, permits: usize, inner: MemoryEmbedder, common_length: f32) -> Arc<Self> {
        let mut profile =
            EmbedderProfile { id: id.to_owned(), name: id.to_owned(), ..inner.profile().clone() };
        if common_length > 0.0 {
            profile.cosine_scale = None;
        }
        Arc::new(Self {
            profile,
            inner,
            common_length,
            permits: Semaphore::new(permits),
            is_unavailable: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
            refused_word: Mutex::default(),
        })
    }

    pub(crate) fn salt(&self, text: &str) -> String {
        text.split_whitespace().map(|word| format!("{word}{} ", self.profile.id)).collect()
    }
}

#[async_trait]
impl Embedder for SaltedEmbedder {
    fn profile(&self) -> &EmbedderProfile {
        &self.profile
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> lkr_models::Result<Vec<Vec<f32>>> {
        if kind == EmbedKind::Passage {
            self.permits.acquire().await.unwrap().forget();
            if self.is_unavailable.load(Ordering::SeqCst) {
                return Err(Error::new(ErrorKind::Unavailable, "embed", "the test made it unavailable"));
            }
            if self.is_broken.load(Ordering::SeqCst) {
                return Err(Error::new(ErrorKind::Config, "embed", "the test broke it"));
            }
            let refused_word = *self.refused_word.lock().unwrap();
            if refused_word.is_some_and(|word| texts.iter().any(|text| text.contains(word))) {
                return Err(Error::new(ErrorKind::Input, "embed", "the test made it refuse"));
            }
        }
        let salted: Vec<String> = texts.iter().map(|text| self.salt(text)).collect();
        let mut vectors = self.inner.embed(kind, &salted).await?;
        for vector in &mut vectors {
            vector[0] += self.common_length;
            let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
            vector.iter_mut().for_each(|value| *value /= length);
        }
        Ok(vectors)
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.inner.letters_per_piece(text)
    }
}

/// Stores in memory, and on LMDB with their folder.
pub(crate) fn memory_and_lmdb_stores() -> [(TestStores, Option<tempfile::TempDir>); 2] {
    let folder = tempfile::tempdir().unwrap();
    let store = LmdbStore::open(&folder.path().join("store"), LmdbOptions::default()).unwrap();
    let lmdb = TestStores {
        vectors: Arc::new(store.vectors()),
        state: Arc::new(store.state()),
        ..TestStores::default()
    };
    [(TestStores::default(), None), (lmdb, Some(folder))]
}

pub(crate) async fn open(stores: &TestStores, embedder: &Arc<SaltedEmbedder>) -> KnowledgeBase {
    let embedder = Arc::clone(embedder) as Arc<dyn Embedder>;
    stores.open_with(Some(embedder), Arc::new(MemoryQueue::default())).await
}

pub(crate) async fn set_embedder(kb: &KnowledgeBase, to: &Arc<SaltedEmbedder>) -> Option<Task> {
    let to = Arc::clone(to) as Arc<dyn Embedder>;
    kb.set_embedder(Some(to), &"eva".into()).await.unwrap()
}

pub(crate) async fn live_model(kb: &KnowledgeBase) -> String {
    kb.embedding().await.unwrap().live.unwrap()
}

/// Documents of one section each.
pub(crate) async fn add_some(kb: &KnowledgeBase, names: &[&str]) -> Vec<Document> {
    let mut documents = Vec::new();
    for name in names {
        documents.push(kb.add(document(name, 2)).await.unwrap());
    }
    documents
}

pub(crate) const NAMES: [&str; 5] = ["gypsum", "marl", "loess", "talc", "basalt"];

pub(crate) async fn results(kb: &KnowledgeBase, query: &str) -> Vec<SearchResult> {
    let found = kb.search(&SearchRequest::new(query)).await.unwrap();
    assert_eq!(found.response.warnings, Vec::<String>::new());
    found.response.results.clone()
}

/// Waits until every collection has exactly the points of these documents, with vectors of the model.
pub(crate) async fn assert_embedded(stores: &TestStores, model: &str, documents: &[Document]) {
    wait_until("only the collections in use remain", async || {
        stores.vectors.collections().await.unwrap().len() == 4
    })
    .await;
    let collections = stores.vectors.collections().await.unwrap();
    assert!(collections.iter().all(|spec| spec.dense.as_ref().unwrap().model == model), "{collections:?}");
    for layer in Layer::ALL {
        let stored: u64 = documents.iter().map(|document| document.counts.of(layer)).sum();
        assert_eq!(stores.vectors.count(&layer.into(), &Filter::all()).await.unwrap(), stored, "{layer}");
        let page =
            stores.vectors.scroll(&layer.into(), &Filter::all(), None, 1_000, Include::All).await.unwrap();
        assert!(page.points.iter().all(|point| point.dense.is_some()), "{layer}");
        let owners: BTreeSet<DocId> = page.points.iter().map(|point| point.origin.doc_id).collect();
        assert_eq!(owners, documents.iter().map(|document| document.doc_id).collect(), "{layer}");
    }
}

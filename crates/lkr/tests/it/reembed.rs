//! Re-embedding over both kinds of stores, with models whose vectors differ for the same texts.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use lkr::{
    Catalog, DocId, Document, DocumentChange, IngestOptions, KnowledgeBase, Layer, NewDocument,
    SearchRequest, SearchResult, Stage, Submission, Task, TaskKind, TaskResult, TaskStatus,
};
use lkr_models::{EmbedKind, Embedder, EmbedderProfile, Error, ErrorKind, MemoryEmbedder};
use lkr_state::{FailingState, MemoryQueue, StateStore};
use lkr_store_lmdb::{LmdbOptions, LmdbStore};
use lkr_vectors::{Condition, FailingVectors, Filter, Include, VectorStore};
use tokio::sync::Semaphore;

use crate::common::{TestStores, document, text, wait_for_task, wait_until};

/// A model that hashes words with its id as salt, so that two models have different cosines for the same texts.
#[derive(Debug)]
struct SaltedEmbedder {
    profile: EmbedderProfile,
    inner: MemoryEmbedder,
    /// The length of a component that all vectors share, beside their own part of length 1.
    common_length: f32,
    /// The number of calls for passages that succeed.
    permits: Semaphore,
    is_unavailable: AtomicBool,
    /// Whether it fails with a configuration error, which no retry can overcome.
    is_broken: AtomicBool,
    /// It refuses passages that contain this word.
    refused_word: Mutex<Option<&'static str>>,
}

impl SaltedEmbedder {
    fn new(id: &str, permits: usize) -> Arc<Self> {
        Self::of(id, permits, MemoryEmbedder::default(), 0.0)
    }

    fn unlimited(id: &str) -> Arc<Self> {
        Self::new(id, Semaphore::MAX_PERMITS)
    }

    fn of(id: &str, permits: usize, inner: MemoryEmbedder, common_length: f32) -> Arc<Self> {
        let profile = EmbedderProfile { id: id.to_owned(), name: id.to_owned(), ..inner.profile().clone() };
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

    fn salt(&self, text: &str) -> String {
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
fn memory_and_lmdb_stores() -> [(TestStores, Option<tempfile::TempDir>); 2] {
    let folder = tempfile::tempdir().unwrap();
    let store = LmdbStore::open(&folder.path().join("store"), LmdbOptions::default()).unwrap();
    let lmdb = TestStores {
        vectors: Arc::new(store.vectors()),
        state: Arc::new(store.state()),
        ..TestStores::default()
    };
    [(TestStores::default(), None), (lmdb, Some(folder))]
}

async fn open(stores: &TestStores, embedder: &Arc<SaltedEmbedder>) -> KnowledgeBase {
    let embedder = Arc::clone(embedder) as Arc<dyn Embedder>;
    stores.open_with(Some(embedder), Arc::new(MemoryQueue::default())).await
}

async fn set_embedder(kb: &KnowledgeBase, to: &Arc<SaltedEmbedder>) -> Option<Task> {
    let to = Arc::clone(to) as Arc<dyn Embedder>;
    kb.set_embedder(Some(to), &"eva".into()).await.unwrap()
}

async fn live_model(kb: &KnowledgeBase) -> String {
    kb.embedding().await.unwrap().live.unwrap()
}

/// Documents of one section each.
async fn add_some(kb: &KnowledgeBase, names: &[&str]) -> Vec<Document> {
    let mut documents = Vec::new();
    for name in names {
        documents.push(kb.add(document(name, 2)).await.unwrap());
    }
    documents
}

const NAMES: [&str; 5] = ["gypsum", "marl", "loess", "talc", "basalt"];

async fn results(kb: &KnowledgeBase, query: &str) -> Vec<SearchResult> {
    let found = kb.search(&SearchRequest::new(query)).await.unwrap();
    assert_eq!(found.response.warnings, Vec::<String>::new());
    found.response.results.clone()
}

/// Waits until every collection has exactly the points of these documents, with vectors of the model.
async fn assert_embedded(stores: &TestStores, model: &str, documents: &[Document]) {
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

/// Every search during re-embedding returns the complete answer of the old model or of the new one, and never the old
/// one's after the new one's.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lesson_12_search_during_reembedding_uses_one_model_only() {
    for (stores, _folder) in memory_and_lmdb_stores() {
        let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
        let documents = add_some(&kb, &NAMES).await;
        let query = "the marl number rests, its colour";
        let before = results(&kb, query).await;
        let second = SaltedEmbedder::new("second", 2);
        let stop = Arc::new(AtomicBool::new(false));
        let searching = tokio::spawn({
            let (kb, stop) = (kb.clone(), Arc::clone(&stop));
            async move {
                let mut answers: Vec<Vec<SearchResult>> = Vec::new();
                let mut count = 0;
                while !stop.load(Ordering::SeqCst) {
                    // The varying `top_k` keeps answers out of the cache.
                    let request = SearchRequest { top_k: 10 + count % 50, ..SearchRequest::new(query) };
                    let found = kb.search(&request).await.unwrap();
                    assert_eq!(found.response.warnings, Vec::<String>::new());
                    if answers.last() != Some(&found.response.results) {
                        answers.push(found.response.results.clone());
                    }
                    count += 1;
                }
                (answers, count)
            }
        });
        let task = set_embedder(&kb, &second).await.unwrap();
        assert_eq!((task.kind, task.created_by.name.as_str()), (TaskKind::Reembed, "eva"));
        wait_until("the task is embedding", async || {
            let task = kb.task(task.task_id).await.unwrap().unwrap();
            task.progress.total == 5 && task.stage == Stage::Embed && task.status == TaskStatus::Running
        })
        .await;
        assert_eq!(live_model(&kb).await, "first");
        assert_eq!(results(&kb, query).await, before, "searches use the old vectors");
        second.permits.add_permits(1_000);
        let task = wait_for_task(&kb, task.task_id).await;
        let Some(TaskResult::Reembedded(result)) = task.result else { panic!("{task:?}") };
        assert_eq!((result.model.as_str(), result.reembedded, task.progress.done), ("second", 5, 5));
        let after = results(&kb, query).await;
        assert_ne!(after, before, "the models return different results");
        stop.store(true, Ordering::SeqCst);
        let (answers, count) = searching.await.unwrap();
        assert!(count > 10, "{count}");
        assert!(
            answers == [before.clone(), after.clone()] || answers == [before],
            "{} answers",
            answers.len()
        );
        assert_embedded(&stores, "second", &documents).await;
        kb.close().await;
    }
}

#[tokio::test]
async fn writes_during_reembedding_are_in_both_collection_sets() {
    for (stores, _folder) in memory_and_lmdb_stores() {
        let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
        let mut documents = add_some(&kb, &NAMES).await;
        // The first documents are embedded, and one is in progress.
        let second = SaltedEmbedder::new("second", 3);
        let task = set_embedder(&kb, &second).await.unwrap();
        wait_until("two batches are embedded", async || second.permits.available_permits() == 0).await;
        let added = kb.add(document("obsidian", 3)).await.unwrap();
        assert_eq!(
            results(&kb, "obsidian").await[0].doc_id,
            added.doc_id,
            "the new document is found at once"
        );
        let replaced = documents[0].doc_id;
        let other = NewDocument { text: text("pumice", 4), ..NewDocument::default() };
        let replacing = kb
            .replace(replaced, other, Submission::by("eva".into()))
            .await
            .unwrap()
            .expect("the document is live");
        assert_eq!(wait_for_task(&kb, replacing.task_id).await.status, TaskStatus::Done);
        let deleted = documents.remove(3);
        kb.delete(deleted.doc_id).await.unwrap();
        let marked = documents[1].doc_id;
        let manual = DocumentChange { category: Some("stones".to_owned()), ..DocumentChange::default() };
        kb.change(marked, manual).await.unwrap().expect("the document is live");
        second.permits.add_permits(1_000);
        assert_eq!(wait_for_task(&kb, task.task_id).await.status, TaskStatus::Done);
        documents[0] = kb.document(replaced).await.unwrap().unwrap();
        documents.push(added);
        wait_until("the deleted document is collected", async || {
            let filter = Filter::only(Condition::Docs(vec![deleted.doc_id]));
            stores.vectors.count(&Layer::Chunks.into(), &filter).await.unwrap() == 0
                && stores.vectors.count(&Layer::L1.into(), &Filter::all()).await.unwrap() == 5
        })
        .await;
        wait_until("only the live revisions remain", async || {
            let chunks = documents.iter().map(|document| document.counts.chunks).sum::<u64>();
            stores.vectors.count(&Layer::Chunks.into(), &Filter::all()).await.unwrap() == chunks
        })
        .await;
        assert_embedded(&stores, "second", &documents).await;
        let mut request = SearchRequest::new("number");
        request.filters.category = Some("stones".to_owned());
        let found = kb.search(&request).await.unwrap();
        assert!(!found.response.results.is_empty());
        assert!(found.response.results.iter().all(|result| result.doc_id == marked));
        kb.close().await;
    }
}

/// Documents arrive faster than the new model embeds them, and re-embedding still ends.
#[tokio::test]
async fn reembedding_ends_while_documents_keep_arriving() {
    let stores = TestStores::default();
    let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
    add_some(&kb, &NAMES).await;
    let second = SaltedEmbedder::new("second", 0);
    let task = set_embedder(&kb, &second).await.unwrap();
    let slowly = tokio::spawn({
        let second = Arc::clone(&second);
        async move {
            loop {
                tokio::time::sleep(Duration::from_millis(20)).await;
                second.permits.add_permits(1);
            }
        }
    });
    let mut count = 0;
    while !kb.task(task.task_id).await.unwrap().unwrap().status.has_ended() {
        kb.add(document(&format!("stone{count}"), 1)).await.unwrap();
        count += 1;
        assert!(count < 500, "re-embedding does not end");
    }
    slowly.abort();
    let listed = kb.list(&Default::default(), None, 1_000).await.unwrap().items;
    assert_eq!(listed.len(), 5 + count);
    assert_embedded(&stores, "second", &listed).await;
}

#[tokio::test]
async fn cancelled_reembedding_leaves_nothing_and_starts_only_on_request() {
    for (stores, _folder) in memory_and_lmdb_stores() {
        let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
        let documents = add_some(&kb, &NAMES).await;
        let before = results(&kb, "marl").await;
        let second = SaltedEmbedder::new("second", 2);
        let task = set_embedder(&kb, &second).await.unwrap();
        wait_until("two batches are embedded", async || second.permits.available_permits() == 0).await;
        kb.cancel(task.task_id).await.unwrap();
        let cancelled = wait_for_task(&kb, task.task_id).await;
        assert!(cancelled.error.is_some_and(|error| error.is_cancelled()));
        wait_until("its collections are dropped", async || {
            stores.vectors.collections().await.unwrap().len() == 4
        })
        .await;
        assert_embedded(&stores, "first", &documents).await;
        assert_eq!(results(&kb, "marl").await, before);
        let embedding = kb.embedding().await.unwrap();
        assert_eq!((embedding.live_name.as_deref(), embedding.live_is_available), (Some("first"), true));
        assert_eq!(embedding.target.unwrap().profile().name, "second");
        kb.close().await;

        // A start does not begin it again.
        second.permits.add_permits(1_000);
        let kb = open(&stores, &second).await;
        assert_eq!(live_model(&kb).await, "first");
        let tasks = kb.tasks(None, None, 100).await.unwrap().items;
        assert_eq!(tasks.iter().filter(|task| task.kind == TaskKind::Reembed).count(), 1);
        kb.add_embedder(SaltedEmbedder::unlimited("first"));
        assert_eq!(results(&kb, "marl").await, before, "the old model is used if it is available");
        let again = set_embedder(&kb, &second).await.unwrap();
        assert_eq!(wait_for_task(&kb, again.task_id).await.status, TaskStatus::Done);
        assert_embedded(&stores, "second", &documents).await;
        kb.close().await;
    }
}

#[tokio::test]
async fn later_reembedding_replaces_the_unfinished_one() {
    let stores = TestStores::default();
    let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
    let documents = add_some(&kb, &NAMES).await;
    let second = SaltedEmbedder::new("second", 2);
    let task = set_embedder(&kb, &second).await.unwrap();
    wait_until("two batches are embedded", async || second.permits.available_permits() == 0).await;
    let same = set_embedder(&kb, &second).await.unwrap();
    assert_eq!(same.task_id, task.task_id, "the same change continues");
    let other = set_embedder(&kb, &SaltedEmbedder::unlimited("third")).await.unwrap();
    assert!(wait_for_task(&kb, task.task_id).await.error.is_some_and(|error| error.is_cancelled()));
    assert_eq!(wait_for_task(&kb, other.task_id).await.status, TaskStatus::Done);
    wait_until("only the third model's collections remain", async || {
        stores.vectors.collections().await.unwrap().len() == 4
    })
    .await;
    assert_embedded(&stores, "third", &documents).await;

    // A change back to the live model needs no task and cancels the unfinished one.
    let fourth = SaltedEmbedder::new("fourth", 0);
    let task = set_embedder(&kb, &fourth).await.unwrap();
    assert_eq!(set_embedder(&kb, &SaltedEmbedder::unlimited("third")).await, None);
    assert!(wait_for_task(&kb, task.task_id).await.error.is_some_and(|error| error.is_cancelled()));
    wait_until("only the third model's collections remain", async || {
        stores.vectors.collections().await.unwrap().len() == 4
    })
    .await;
    assert_embedded(&stores, "third", &documents).await;
    assert_eq!(
        set_embedder(&kb, &SaltedEmbedder::unlimited("third")).await,
        None,
        "a change to the live model needs no task"
    );
}

#[tokio::test]
async fn unavailable_model_delays_reembedding_without_using_attempts() {
    let stores = TestStores::default();
    let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
    let documents = add_some(&kb, &NAMES).await;
    let second = SaltedEmbedder::unlimited("second");
    second.is_unavailable.store(true, Ordering::SeqCst);
    let task = set_embedder(&kb, &second).await.unwrap();
    let used = || Semaphore::MAX_PERMITS - second.permits.available_permits();
    // More calls than a task has attempts.
    wait_until("the model was called many times", async || used() > 8).await;
    let waiting = kb.task(task.task_id).await.unwrap().unwrap();
    assert!(!waiting.status.has_ended() && waiting.attempts == 0, "{waiting:?}");
    assert!(!results(&kb, "marl").await.is_empty());
    second.is_unavailable.store(false, Ordering::SeqCst);
    assert_eq!(wait_for_task(&kb, task.task_id).await.status, TaskStatus::Done);
    assert_embedded(&stores, "second", &documents).await;
}

#[tokio::test]
async fn retried_reembedding_continues_where_it_failed() {
    let stores = TestStores::default();
    let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
    let documents = add_some(&kb, &NAMES).await;
    let second = SaltedEmbedder::new("second", 3);
    let task = set_embedder(&kb, &second).await.unwrap();
    wait_until("two batches are embedded", async || second.permits.available_permits() == 0).await;
    second.is_broken.store(true, Ordering::SeqCst);
    second.permits.add_permits(1_000);
    let failed = wait_for_task(&kb, task.task_id).await;
    let error = failed.error.expect("the task failed");
    assert!(error.message.contains("the test broke it") && !error.is_cancelled(), "{error:?}");
    assert_eq!((live_model(&kb).await.as_str(), error.stage), ("first", Stage::Embed));
    second.is_broken.store(false, Ordering::SeqCst);
    kb.retry(task.task_id).await.unwrap().expect("the task exists");
    let Some(TaskResult::Reembedded(result)) = wait_for_task(&kb, task.task_id).await.result else {
        panic!()
    };
    assert!(result.embedded < 10, "embedded documents are not embedded again: {result:?}");
    assert_embedded(&stores, "second", &documents).await;
}

/// If the provider refuses one document, the others get vectors of the new model. If it refuses many, the old model
/// stays.
#[tokio::test]
async fn lesson_12_document_refused_by_the_model_is_found_by_its_words() {
    for (stores, _folder) in memory_and_lmdb_stores() {
        let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
        let documents = add_some(&kb, &NAMES).await;
        let second = SaltedEmbedder::unlimited("second");
        let refuse = |word| *second.refused_word.lock().unwrap() = word;
        refuse(Some("number"));
        let task = set_embedder(&kb, &second).await.unwrap();
        let error = wait_for_task(&kb, task.task_id).await.error.expect("the task failed");
        assert!(error.message.contains("the test made it refuse"), "{error:?}");
        assert_eq!(live_model(&kb).await, "first");

        refuse(Some("talc"));
        kb.retry(task.task_id).await.unwrap().expect("the task exists");
        let Some(TaskResult::Reembedded(result)) = wait_for_task(&kb, task.task_id).await.result else {
            panic!()
        };
        assert_eq!((result.reembedded, result.left_out, result.warnings.len()), (4, 1, 1), "{result:?}");
        let left_out = documents[3].doc_id;
        assert!(result.warnings[0].contains(&left_out.to_string()), "{result:?}");
        assert!(result.warnings[0].contains("the test made it refuse"), "{result:?}");
        assert_eq!(live_model(&kb).await, "second");
        assert_eq!(results(&kb, "talc").await[0].doc_id, left_out, "it is found by its words");
        kb.close().await;

        refuse(None);
        let kb = open(&stores, &second).await;
        let model = results(&kb, "marl").await[0].scores.dense.is_some();
        assert!(model, "the other documents have vectors");
        wait_until("the next start embeds it", async || {
            // The vector of L1 is written last.
            let l1 = stores
                .vectors
                .scroll(&Layer::L1.into(), &Filter::all(), None, 10, Include::All)
                .await
                .unwrap();
            l1.points.iter().all(|point| point.dense.is_some())
        })
        .await;
        assert_embedded(&stores, "second", &documents).await;
        kb.close().await;
    }
}

/// With one worker, documents are ingested during re-embedding, and a shutdown does not wait for it.
#[tokio::test]
async fn reembedding_does_not_block_ingestion_or_shutdown() {
    let stores = TestStores::default();
    let open = async |embedder: Arc<SaltedEmbedder>| {
        let options = IngestOptions { workers: 1, batch: 4, ..IngestOptions::default() };
        let builder = KnowledgeBase::builder()
            .vectors(Arc::clone(&stores.vectors))
            .state(Arc::clone(&stores.state))
            .blobs(Arc::clone(&stores.blobs))
            .ingest_options(options);
        builder.embedder(embedder).build().await.unwrap()
    };
    let kb = open(SaltedEmbedder::unlimited("first")).await;
    let mut documents = add_some(&kb, &NAMES).await;
    let second = SaltedEmbedder::new("second", 2);
    let task = set_embedder(&kb, &second).await.unwrap();
    wait_until("two batches are embedded", async || second.permits.available_permits() == 0).await;
    documents.extend(add_some(&kb, &["obsidian"]).await);
    assert!(!kb.task(task.task_id).await.unwrap().unwrap().status.has_ended());
    // The task itself would wait for the model forever.
    kb.shutdown(Duration::MAX).await;
    second.permits.add_permits(1_000);
    let kb = open(second).await;
    assert_eq!(wait_for_task(&kb, task.task_id).await.status, TaskStatus::Done);
    assert_embedded(&stores, "second", &documents).await;
}

/// After a start without the model, the task waits until the model is set. Searches use the old model once it is known.
#[tokio::test]
async fn reembedding_without_its_model_waits_for_it() {
    let stores = TestStores::default();
    let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
    let documents = add_some(&kb, &NAMES).await;
    let before = results(&kb, "marl").await;
    let second = SaltedEmbedder::new("second", 2);
    let task = set_embedder(&kb, &second).await.unwrap();
    wait_until("two batches are embedded", async || second.permits.available_permits() == 0).await;
    kb.shutdown(Duration::ZERO).await;

    let builder = KnowledgeBase::builder()
        .vectors(Arc::clone(&stores.vectors))
        .state(Arc::clone(&stores.state))
        .blobs(Arc::clone(&stores.blobs))
        .ingest_options(IngestOptions { batch: 4, ..IngestOptions::default() })
        .defer_embedder(true);
    let kb = builder.build().await.unwrap();
    let found = kb.search(&SearchRequest::new("marl")).await.unwrap();
    assert!(
        !found.response.results.is_empty() && !found.response.warnings.is_empty(),
        "the search used keywords only"
    );
    kb.add_embedder(SaltedEmbedder::unlimited("first"));
    assert_eq!(results(&kb, "marl").await, before);
    assert!(!kb.task(task.task_id).await.unwrap().unwrap().status.has_ended());
    second.permits.add_permits(1_000);
    let resumed = kb.set_embedder_at_start(Some(second)).await.unwrap().expect("the task is unfinished");
    assert_eq!(resumed.task_id, task.task_id);
    let Some(TaskResult::Reembedded(result)) = wait_for_task(&kb, task.task_id).await.result else {
        panic!()
    };
    assert!(result.embedded < 10, "embedded documents are not embedded again: {result:?}");
    assert_embedded(&stores, "second", &documents).await;
}

/// The process ends before each write to a store in turn; the next one completes the task and loses or repeats nothing.
#[tokio::test]
async fn kill_between_any_two_writes_of_reembedding_loses_nothing() {
    let mut steps = 0;
    loop {
        let stores = TestStores::default();
        let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
        let mut documents = add_some(&kb, &["gypsum", "marl"]).await;
        documents.push(kb.add(document("loess", 9)).await.unwrap());
        kb.close().await;

        let left = Arc::new(AtomicI64::new(steps));
        let stores_failing_after = stores_failing_after(&stores, &left);
        let survived = try_change(&stores_failing_after, &documents).await;
        assert!(left.load(Ordering::SeqCst) <= 0 || survived, "{steps} steps");

        let second = SaltedEmbedder::unlimited("second");
        let kb = open(&stores, &second).await;
        wait_until("searches use the new model", async || live_model(&kb).await == "second").await;
        wait_until("every task ended", async || {
            kb.tasks(None, None, 100).await.unwrap().items.iter().all(|task| task.status.has_ended())
        })
        .await;
        assert_eq!(results(&kb, "marl").await[0].doc_id, documents[1].doc_id);
        wait_until("the earlier collections are dropped", async || {
            stores.vectors.collections().await.unwrap().len() == 4
        })
        .await;
        assert_embedded(&stores, "second", &documents).await;
        kb.close().await;
        if survived {
            assert!(steps > 20, "{steps}");
            return;
        }
        steps += 1;
    }
}

/// The same stores, which fail after this many writes.
fn stores_failing_after(stores: &TestStores, left: &Arc<AtomicI64>) -> TestStores {
    let is_write = |operation: &str| {
        ["ensure", "switch", "drop_collection", "upsert", "delete", "set_tags", "apply"].contains(&operation)
    };
    let has_ended = move |left: &AtomicI64, operation: &str| {
        if is_write(operation) {
            left.fetch_sub(1, Ordering::SeqCst) <= 0
        } else {
            left.load(Ordering::SeqCst) < 0
        }
    };
    let (for_vectors, for_state) = (Arc::clone(left), Arc::clone(left));
    let vectors = FailingVectors::new(Arc::clone(&stores.vectors), move |operation| {
        has_ended(&for_vectors, operation).then_some(lkr_vectors::ErrorKind::Unavailable)
    });
    let state = FailingState::new(Arc::clone(&stores.state), move |operation| {
        has_ended(&for_state, operation).then_some(lkr_state::ErrorKind::Unavailable)
    });
    TestStores {
        vectors: Arc::new(vectors) as Arc<dyn VectorStore>,
        state: Arc::new(state) as Arc<dyn StateStore>,
        ..stores.clone()
    }
}

/// Opens with another model and waits until re-embedding is complete or the stores fail. Returns whether it is
/// complete.
async fn try_change(stores: &TestStores, documents: &[Document]) -> bool {
    let options = IngestOptions {
        batch: 4,
        backoff: Duration::from_millis(1),
        store_pause: Duration::from_millis(5),
        ..IngestOptions::default()
    };
    let builder = KnowledgeBase::builder()
        .vectors(Arc::clone(&stores.vectors))
        .state(Arc::clone(&stores.state))
        .blobs(Arc::clone(&stores.blobs))
        .ingest_options(options)
        .embedder(SaltedEmbedder::unlimited("second"));
    let Ok(kb) = builder.build().await else { return false };
    let survived = loop {
        let live_model = kb.embedding().await.map(|embedding| embedding.live);
        let collections = stores.vectors.collections().await;
        let catalog = Catalog::new(Arc::clone(&stores.state));
        let notes = catalog.unembedded(None, documents.len() + 1).await;
        match (live_model, collections, notes) {
            (Ok(live_model), Ok(collections), Ok(notes)) => {
                if live_model.as_deref() == Some("second") && collections.len() == 4 && notes.is_empty() {
                    break true;
                }
            }
            _ => break false,
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    kb.shutdown(Duration::ZERO).await;
    survived
}

#[tokio::test]
async fn cosine_scale_of_a_narrow_model_is_larger_and_stored() {
    let stores = TestStores::default();
    let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
    add_some(&kb, &NAMES).await;
    kb.add(document("granite", 60)).await.unwrap();
    let (inner, common_length) = (MemoryEmbedder::with_dims(96), 3.0);
    let narrow = SaltedEmbedder::of("narrow", 1_000, inner, common_length);
    let task = set_embedder(&kb, &narrow).await.unwrap();
    let Some(TaskResult::Reembedded(result)) = wait_for_task(&kb, task.task_id).await.result else {
        panic!()
    };
    assert!(result.cosine_scale > 2.0 * 30.5, "{result:?}");
    let catalog = Catalog::new(Arc::clone(&stores.state));
    assert_eq!(catalog.cosine_scale("narrow").await.unwrap(), Some(result.cosine_scale));
    assert_eq!(results(&kb, "granite").await[0].title, "granite");
}

#[tokio::test]
async fn reclassification_after_reembedding_uses_the_new_model() {
    let stores = TestStores::default();
    let builder = || {
        KnowledgeBase::builder()
            .vectors(Arc::clone(&stores.vectors))
            .state(Arc::clone(&stores.state))
            .blobs(Arc::clone(&stores.blobs))
    };
    let kb = builder().embedder(SaltedEmbedder::unlimited("first")).build().await.unwrap();
    add_some(&kb, &NAMES).await;
    let other = SaltedEmbedder::of("wide", 1_000_000, MemoryEmbedder::with_dims(128), 0.0);
    let task = set_embedder(&kb, &other).await.unwrap();
    assert_eq!(wait_for_task(&kb, task.task_id).await.status, TaskStatus::Done);
    let task = kb.reclassify(&"eva".into()).await.unwrap();
    let Some(TaskResult::Reclassified(result)) = wait_for_task(&kb, task.task_id).await.result else {
        panic!()
    };
    assert_eq!((result.documents, result.warnings), (5, vec![]));
}

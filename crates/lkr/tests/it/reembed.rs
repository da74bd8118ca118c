//! What a change of the embedding model promises, over both kinds of stores, with models whose vectors tell which of
//! them made them.

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

use crate::common::{Ground, document, ended, text, until};

/// A model of hashed words, salted: of two, each has its own cosines for the same texts.
#[derive(Debug)]
struct Salted {
    profile: EmbedderProfile,
    inner: MemoryEmbedder,
    /// What all vectors have in common, beside their own part of length 1.
    common: f32,
    /// How many calls for passages are answered.
    permits: Semaphore,
    away: AtomicBool,
    /// Whether it is set up wrongly, so that another try is of no use.
    broken: AtomicBool,
    /// It has no vectors for passages with this word.
    refused: Mutex<Option<&'static str>>,
}

impl Salted {
    fn new(id: &str, permits: usize) -> Arc<Self> {
        Self::of(id, permits, MemoryEmbedder::default(), 0.0)
    }

    fn free(id: &str) -> Arc<Self> {
        Self::new(id, Semaphore::MAX_PERMITS)
    }

    fn of(id: &str, permits: usize, inner: MemoryEmbedder, common: f32) -> Arc<Self> {
        let profile = EmbedderProfile { id: id.to_owned(), name: id.to_owned(), ..inner.profile().clone() };
        Arc::new(Self {
            profile,
            inner,
            common,
            permits: Semaphore::new(permits),
            away: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            refused: Mutex::default(),
        })
    }

    fn salt(&self, text: &str) -> String {
        text.split_whitespace().map(|word| format!("{word}{} ", self.profile.id)).collect()
    }
}

#[async_trait]
impl Embedder for Salted {
    fn profile(&self) -> &EmbedderProfile {
        &self.profile
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> lkr_models::Result<Vec<Vec<f32>>> {
        if kind == EmbedKind::Passage {
            self.permits.acquire().await.unwrap().forget();
            if self.away.load(Ordering::SeqCst) {
                return Err(Error::new(ErrorKind::Unavailable, "embed", "told to be away"));
            }
            if self.broken.load(Ordering::SeqCst) {
                return Err(Error::new(ErrorKind::Config, "embed", "told to be broken"));
            }
            let refused = *self.refused.lock().unwrap();
            if refused.is_some_and(|word| texts.iter().any(|text| text.contains(word))) {
                return Err(Error::new(ErrorKind::Input, "embed", "told to refuse"));
            }
        }
        let salted: Vec<String> = texts.iter().map(|text| self.salt(text)).collect();
        let mut vectors = self.inner.embed(kind, &salted).await?;
        for vector in &mut vectors {
            vector[0] += self.common;
            let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
            vector.iter_mut().for_each(|value| *value /= length);
        }
        Ok(vectors)
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.inner.letters_per_piece(text)
    }
}

/// Stores in memory, and on LMDB with the folder that they lie in.
fn grounds() -> [(Ground, Option<tempfile::TempDir>); 2] {
    let folder = tempfile::tempdir().unwrap();
    let store = LmdbStore::open(&folder.path().join("store"), LmdbOptions::default()).unwrap();
    let lmdb =
        Ground { vectors: Arc::new(store.vectors()), state: Arc::new(store.state()), ..Ground::default() };
    [(Ground::default(), None), (lmdb, Some(folder))]
}

async fn open(ground: &Ground, embedder: &Arc<Salted>) -> KnowledgeBase {
    let embedder = Arc::clone(embedder) as Arc<dyn Embedder>;
    ground.open_with(Some(embedder), Arc::new(MemoryQueue::default())).await
}

async fn change(kb: &KnowledgeBase, to: &Arc<Salted>) -> Option<Task> {
    let to = Arc::clone(to) as Arc<dyn Embedder>;
    kb.set_embedder(Some(to), &"eva".into()).await.unwrap()
}

async fn live(kb: &KnowledgeBase) -> String {
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

/// In the end every collection has exactly the points of these documents, with vectors of the model.
async fn assert_embedded(ground: &Ground, model: &str, documents: &[Document]) {
    until("only the collections in use are there", async || {
        ground.vectors.collections().await.unwrap().len() == 4
    })
    .await;
    let collections = ground.vectors.collections().await.unwrap();
    assert!(collections.iter().all(|spec| spec.dense.as_ref().unwrap().model == model), "{collections:?}");
    for layer in Layer::ALL {
        let stored: u64 = documents.iter().map(|document| document.counts.of(layer)).sum();
        assert_eq!(ground.vectors.count(&layer.into(), &Filter::all()).await.unwrap(), stored, "{layer}");
        let page =
            ground.vectors.scroll(&layer.into(), &Filter::all(), None, 1_000, Include::All).await.unwrap();
        assert!(page.points.iter().all(|point| point.dense.is_some()), "{layer}");
        let owners: BTreeSet<DocId> = page.points.iter().map(|point| point.origin.doc_id).collect();
        assert_eq!(owners, documents.iter().map(|document| document.doc_id).collect(), "{layer}");
    }
}

/// Searches all the time; each answer is the old model's or the new one's whole, and never the old one's after that.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lesson_12_searches_see_one_model_s_vectors_while_documents_are_embedded_anew() {
    for (ground, _folder) in grounds() {
        let kb = open(&ground, &Salted::free("first")).await;
        let documents = add_some(&kb, &NAMES).await;
        let query = "the marl number rests, its colour";
        let before = results(&kb, query).await;
        let second = Salted::new("second", 2);
        let stop = Arc::new(AtomicBool::new(false));
        let searching = tokio::spawn({
            let (kb, stop) = (kb.clone(), Arc::clone(&stop));
            async move {
                let mut seen: Vec<Vec<SearchResult>> = Vec::new();
                let mut count = 0;
                while !stop.load(Ordering::SeqCst) {
                    // Nothing of it comes from the cache.
                    let request = SearchRequest { top_k: 10 + count % 50, ..SearchRequest::new(query) };
                    let found = kb.search(&request).await.unwrap();
                    assert_eq!(found.response.warnings, Vec::<String>::new());
                    if seen.last() != Some(&found.response.results) {
                        seen.push(found.response.results.clone());
                    }
                    count += 1;
                }
                (seen, count)
            }
        });
        let task = change(&kb, &second).await.unwrap();
        assert_eq!((task.kind, task.created_by.name.as_str()), (TaskKind::Reembed, "eva"));
        until("a part is done", async || {
            let task = kb.task(task.task_id).await.unwrap().unwrap();
            task.progress.total == 5 && task.stage == Stage::Embed && task.status == TaskStatus::Running
        })
        .await;
        assert_eq!(live(&kb).await, "first");
        assert_eq!(results(&kb, query).await, before, "the old vectors serve");
        second.permits.add_permits(1_000);
        let task = ended(&kb, task.task_id).await;
        let Some(TaskResult::Reembedded(result)) = task.result else { panic!("{task:?}") };
        assert_eq!((result.model.as_str(), result.reembedded, task.progress.done), ("second", 5, 5));
        let after = results(&kb, query).await;
        assert_ne!(after, before, "the models differ");
        stop.store(true, Ordering::SeqCst);
        let (seen, count) = searching.await.unwrap();
        assert!(count > 10, "{count}");
        assert!(seen == [before.clone(), after.clone()] || seen == [before], "{} answers", seen.len());
        assert_embedded(&ground, "second", &documents).await;
        kb.close().await;
    }
}

#[tokio::test]
async fn what_comes_changes_and_goes_meanwhile_is_right_in_both() {
    for (ground, _folder) in grounds() {
        let kb = open(&ground, &Salted::free("first")).await;
        let mut documents = add_some(&kb, &NAMES).await;
        // The first documents are done, and one is under work.
        let second = Salted::new("second", 3);
        let task = change(&kb, &second).await.unwrap();
        until("it is at work", async || second.permits.available_permits() == 0).await;
        let late = kb.add(document("obsidian", 3)).await.unwrap();
        assert_eq!(results(&kb, "obsidian").await[0].doc_id, late.doc_id, "it is found at once");
        let replaced = documents[0].doc_id;
        let other = NewDocument { text: text("pumice", 4), ..NewDocument::default() };
        let replacing =
            kb.replace(replaced, other, Submission::by("eva".into())).await.unwrap().expect("it is live");
        assert_eq!(ended(&kb, replacing.task_id).await.status, TaskStatus::Done);
        let gone = documents.remove(3);
        kb.delete(gone.doc_id).await.unwrap();
        let marked = documents[1].doc_id;
        let by_hand = DocumentChange { category: Some("stones".to_owned()), ..DocumentChange::default() };
        kb.change(marked, by_hand).await.unwrap().expect("it is live");
        second.permits.add_permits(1_000);
        assert_eq!(ended(&kb, task.task_id).await.status, TaskStatus::Done);
        documents[0] = kb.document(replaced).await.unwrap().unwrap();
        documents.push(late);
        until("what went is collected", async || {
            let filter = Filter::only(Condition::Docs(vec![gone.doc_id]));
            ground.vectors.count(&Layer::Chunks.into(), &filter).await.unwrap() == 0
                && ground.vectors.count(&Layer::L1.into(), &Filter::all()).await.unwrap() == 5
        })
        .await;
        until("only the present revision is there", async || {
            let chunks = documents.iter().map(|document| document.counts.chunks).sum::<u64>();
            ground.vectors.count(&Layer::Chunks.into(), &Filter::all()).await.unwrap() == chunks
        })
        .await;
        assert_embedded(&ground, "second", &documents).await;
        let mut request = SearchRequest::new("number");
        request.filters.category = Some("stones".to_owned());
        let found = kb.search(&request).await.unwrap();
        assert!(!found.response.results.is_empty());
        assert!(found.response.results.iter().all(|result| result.doc_id == marked));
        kb.close().await;
    }
}

/// Documents keep coming faster than the new model embeds them: the change comes to its end all the same.
#[tokio::test]
async fn documents_that_keep_coming_cannot_keep_it_from_ending() {
    let ground = Ground::default();
    let kb = open(&ground, &Salted::free("first")).await;
    add_some(&kb, &NAMES).await;
    let second = Salted::new("second", 0);
    let task = change(&kb, &second).await.unwrap();
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
        assert!(count < 500, "it never ends");
    }
    slowly.abort();
    let listed = kb.list(&Default::default(), None, 1_000).await.unwrap().items;
    assert_eq!(listed.len(), 5 + count);
    assert_embedded(&ground, "second", &listed).await;
}

#[tokio::test]
async fn a_change_that_is_cancelled_leaves_nothing_and_stays_so_until_it_is_asked_for_again() {
    for (ground, _folder) in grounds() {
        let kb = open(&ground, &Salted::free("first")).await;
        let documents = add_some(&kb, &NAMES).await;
        let before = results(&kb, "marl").await;
        let second = Salted::new("second", 2);
        let task = change(&kb, &second).await.unwrap();
        until("it is at work", async || second.permits.available_permits() == 0).await;
        kb.cancel(task.task_id).await.unwrap();
        let cancelled = ended(&kb, task.task_id).await;
        assert!(cancelled.error.is_some_and(|error| error.is_cancelled()));
        until("its collections go", async || ground.vectors.collections().await.unwrap().len() == 4).await;
        assert_embedded(&ground, "first", &documents).await;
        assert_eq!(results(&kb, "marl").await, before);
        let embedding = kb.embedding().await.unwrap();
        assert_eq!((embedding.live_name.as_deref(), embedding.speaks), (Some("first"), true));
        assert_eq!(embedding.wanted.unwrap().profile().name, "second");
        kb.close().await;

        // A start does not begin it by itself.
        second.permits.add_permits(1_000);
        let kb = open(&ground, &second).await;
        assert_eq!(live(&kb).await, "first");
        let tasks = kb.tasks(None, None, 100).await.unwrap().items;
        assert_eq!(tasks.iter().filter(|task| task.kind == TaskKind::Reembed).count(), 1);
        kb.know_embedder(Salted::free("first"));
        assert_eq!(results(&kb, "marl").await, before, "the old model still serves where it can be had");
        let again = change(&kb, &second).await.unwrap();
        assert_eq!(ended(&kb, again.task_id).await.status, TaskStatus::Done);
        assert_embedded(&ground, "second", &documents).await;
        kb.close().await;
    }
}

#[tokio::test]
async fn another_change_takes_the_place_of_the_one_under_way() {
    let ground = Ground::default();
    let kb = open(&ground, &Salted::free("first")).await;
    let documents = add_some(&kb, &NAMES).await;
    let second = Salted::new("second", 2);
    let task = change(&kb, &second).await.unwrap();
    until("it is at work", async || second.permits.available_permits() == 0).await;
    let same = change(&kb, &second).await.unwrap();
    assert_eq!(same.task_id, task.task_id, "the same change goes on");
    let other = change(&kb, &Salted::free("third")).await.unwrap();
    assert!(ended(&kb, task.task_id).await.error.is_some_and(|error| error.is_cancelled()));
    assert_eq!(ended(&kb, other.task_id).await.status, TaskStatus::Done);
    until("only the third's are there", async || ground.vectors.collections().await.unwrap().len() == 4)
        .await;
    assert_embedded(&ground, "third", &documents).await;

    // Back to where it is: nothing is to be done, and what is under way ends.
    let fourth = Salted::new("fourth", 0);
    let task = change(&kb, &fourth).await.unwrap();
    assert_eq!(change(&kb, &Salted::free("third")).await, None);
    assert!(ended(&kb, task.task_id).await.error.is_some_and(|error| error.is_cancelled()));
    until("only the third's are there", async || ground.vectors.collections().await.unwrap().len() == 4)
        .await;
    assert_embedded(&ground, "third", &documents).await;
    assert_eq!(change(&kb, &Salted::free("third")).await, None, "its vectors stay the same");
}

/// A provider that is away has the task wait, and costs it nothing.
#[tokio::test]
async fn a_model_that_is_away_is_waited_for() {
    let ground = Ground::default();
    let kb = open(&ground, &Salted::free("first")).await;
    let documents = add_some(&kb, &NAMES).await;
    let second = Salted::free("second");
    second.away.store(true, Ordering::SeqCst);
    let task = change(&kb, &second).await.unwrap();
    let used = || Semaphore::MAX_PERMITS - second.permits.available_permits();
    // More often than a task may fail.
    until("it was tried many times", async || used() > 8).await;
    let waiting = kb.task(task.task_id).await.unwrap().unwrap();
    assert!(!waiting.status.has_ended() && waiting.attempts == 0, "{waiting:?}");
    assert!(!results(&kb, "marl").await.is_empty());
    second.away.store(false, Ordering::SeqCst);
    assert_eq!(ended(&kb, task.task_id).await.status, TaskStatus::Done);
    assert_embedded(&ground, "second", &documents).await;
}

#[tokio::test]
async fn a_change_that_failed_goes_on_when_it_is_tried_again() {
    let ground = Ground::default();
    let kb = open(&ground, &Salted::free("first")).await;
    let documents = add_some(&kb, &NAMES).await;
    let second = Salted::new("second", 3);
    let task = change(&kb, &second).await.unwrap();
    until("it is at work", async || second.permits.available_permits() == 0).await;
    second.broken.store(true, Ordering::SeqCst);
    second.permits.add_permits(1_000);
    let failed = ended(&kb, task.task_id).await;
    let error = failed.error.expect("it failed");
    assert!(error.message.contains("told to be broken") && !error.is_cancelled(), "{error:?}");
    assert_eq!((live(&kb).await.as_str(), error.stage), ("first", Stage::Embed));
    second.broken.store(false, Ordering::SeqCst);
    kb.retry(task.task_id).await.unwrap().expect("it is known");
    let Some(TaskResult::Reembedded(result)) = ended(&kb, task.task_id).await.result else { panic!() };
    assert!(result.embedded < 10, "what was done is not done again: {result:?}");
    assert_embedded(&ground, "second", &documents).await;
}

/// One document that a provider refuses keeps no other from the new model; that it refuses many keeps the earlier one.
#[tokio::test]
async fn lesson_12_a_document_that_the_model_refuses_is_left_to_its_words() {
    for (ground, _folder) in grounds() {
        let kb = open(&ground, &Salted::free("first")).await;
        let documents = add_some(&kb, &NAMES).await;
        let second = Salted::free("second");
        let refuse = |word| *second.refused.lock().unwrap() = word;
        refuse(Some("number"));
        let task = change(&kb, &second).await.unwrap();
        let error = ended(&kb, task.task_id).await.error.expect("all were refused");
        assert!(error.message.contains("told to refuse"), "{error:?}");
        assert_eq!(live(&kb).await, "first");

        refuse(Some("talc"));
        kb.retry(task.task_id).await.unwrap().expect("it is known");
        let Some(TaskResult::Reembedded(result)) = ended(&kb, task.task_id).await.result else { panic!() };
        assert_eq!((result.reembedded, result.left_out, result.warnings.len()), (4, 1, 1), "{result:?}");
        let left_out = documents[3].doc_id;
        assert!(result.warnings[0].contains(&left_out.to_string()), "{result:?}");
        assert!(result.warnings[0].contains("told to refuse"), "{result:?}");
        assert_eq!(live(&kb).await, "second");
        assert_eq!(results(&kb, "talc").await[0].doc_id, left_out, "its words find it");
        kb.close().await;

        refuse(None);
        let kb = open(&ground, &second).await;
        let model = results(&kb, "marl").await[0].scores.dense.is_some();
        assert!(model, "the others have vectors");
        until("the next start tries it again", async || {
            // The document's own vector is written last.
            let l1 = ground
                .vectors
                .scroll(&Layer::L1.into(), &Filter::all(), None, 10, Include::All)
                .await
                .unwrap();
            l1.points.iter().all(|point| point.dense.is_some())
        })
        .await;
        assert_embedded(&ground, "second", &documents).await;
        kb.close().await;
    }
}

/// With one worker, documents come in while all of them are embedded anew; a stop waits for nothing.
#[tokio::test]
async fn a_change_keeps_no_worker_from_documents() {
    let ground = Ground::default();
    let open = async |embedder: Arc<Salted>| {
        let options = IngestOptions { workers: 1, batch: 4, ..IngestOptions::default() };
        let builder = KnowledgeBase::builder()
            .vectors(Arc::clone(&ground.vectors))
            .state(Arc::clone(&ground.state))
            .blobs(Arc::clone(&ground.blobs))
            .ingest_options(options);
        builder.embedder(embedder).build().await.unwrap()
    };
    let kb = open(Salted::free("first")).await;
    let mut documents = add_some(&kb, &NAMES).await;
    let second = Salted::new("second", 2);
    let task = change(&kb, &second).await.unwrap();
    until("it is at work", async || second.permits.available_permits() == 0).await;
    documents.extend(add_some(&kb, &["obsidian"]).await);
    assert!(!kb.task(task.task_id).await.unwrap().unwrap().status.has_ended());
    // It would wait for ever for the model.
    kb.shutdown(Duration::MAX).await;
    second.permits.add_permits(1_000);
    let kb = open(second).await;
    assert_eq!(ended(&kb, task.task_id).await.status, TaskStatus::Done);
    assert_embedded(&ground, "second", &documents).await;
}

/// After a start without it, the task waits until the model is named; the old one serves as soon as it can be had.
#[tokio::test]
async fn a_task_whose_model_is_not_there_waits_for_it() {
    let ground = Ground::default();
    let kb = open(&ground, &Salted::free("first")).await;
    let documents = add_some(&kb, &NAMES).await;
    let before = results(&kb, "marl").await;
    let second = Salted::new("second", 2);
    let task = change(&kb, &second).await.unwrap();
    until("it is at work", async || second.permits.available_permits() == 0).await;
    kb.shutdown(Duration::ZERO).await;

    let builder = KnowledgeBase::builder()
        .vectors(Arc::clone(&ground.vectors))
        .state(Arc::clone(&ground.state))
        .blobs(Arc::clone(&ground.blobs))
        .ingest_options(IngestOptions { batch: 4, ..IngestOptions::default() })
        .embedder_is_named_later(true);
    let kb = builder.build().await.unwrap();
    let found = kb.search(&SearchRequest::new("marl")).await.unwrap();
    assert!(!found.response.results.is_empty() && !found.response.warnings.is_empty(), "by words alone");
    kb.know_embedder(Salted::free("first"));
    assert_eq!(results(&kb, "marl").await, before);
    assert!(!kb.task(task.task_id).await.unwrap().unwrap().status.has_ended());
    second.permits.add_permits(1_000);
    let resumed = kb.start_embedder(Some(second)).await.unwrap().expect("it is not done");
    assert_eq!(resumed.task_id, task.task_id);
    let Some(TaskResult::Reembedded(result)) = ended(&kb, task.task_id).await.result else { panic!() };
    assert!(result.embedded < 10, "what was done is not done again: {result:?}");
    assert_embedded(&ground, "second", &documents).await;
}

/// The process ends before any one write to a store; the next one comes to the end, and loses and doubles nothing.
#[tokio::test]
async fn kills_between_any_two_steps_lose_nothing() {
    let mut steps = 0;
    loop {
        let ground = Ground::default();
        let kb = open(&ground, &Salted::free("first")).await;
        let mut documents = add_some(&kb, &["gypsum", "marl"]).await;
        documents.push(kb.add(document("loess", 9)).await.unwrap());
        kb.close().await;

        let left = Arc::new(AtomicI64::new(steps));
        let dying = dying(&ground, &left);
        let survived = try_change(&dying, &documents).await;
        assert!(left.load(Ordering::SeqCst) <= 0 || survived, "{steps} steps");

        let second = Salted::free("second");
        let kb = open(&ground, &second).await;
        until("searches use the new model", async || live(&kb).await == "second").await;
        until("every task ended", async || {
            kb.tasks(None, None, 100).await.unwrap().items.iter().all(|task| task.status.has_ended())
        })
        .await;
        assert_eq!(results(&kb, "marl").await[0].doc_id, documents[1].doc_id);
        until("the earlier ones are gone", async || ground.vectors.collections().await.unwrap().len() == 4)
            .await;
        assert_embedded(&ground, "second", &documents).await;
        kb.close().await;
        if survived {
            assert!(steps > 20, "{steps}");
            return;
        }
        steps += 1;
    }
}

/// The same ground, of which no store does anything any more after so many writes.
fn dying(ground: &Ground, left: &Arc<AtomicI64>) -> Ground {
    let is_write = |operation: &str| {
        ["ensure", "switch", "drop_collection", "upsert", "delete", "set_tags", "apply"].contains(&operation)
    };
    let is_over = move |left: &AtomicI64, operation: &str| {
        if is_write(operation) {
            left.fetch_sub(1, Ordering::SeqCst) <= 0
        } else {
            left.load(Ordering::SeqCst) < 0
        }
    };
    let (for_vectors, for_state) = (Arc::clone(left), Arc::clone(left));
    let vectors = FailingVectors::new(Arc::clone(&ground.vectors), move |operation| {
        is_over(&for_vectors, operation).then_some(lkr_vectors::ErrorKind::Unavailable)
    });
    let state = FailingState::new(Arc::clone(&ground.state), move |operation| {
        is_over(&for_state, operation).then_some(lkr_state::ErrorKind::Unavailable)
    });
    Ground {
        vectors: Arc::new(vectors) as Arc<dyn VectorStore>,
        state: Arc::new(state) as Arc<dyn StateStore>,
        ..ground.clone()
    }
}

/// Opens with another model and waits until all is done, or nothing is done any more. Answers whether it was done.
async fn try_change(ground: &Ground, documents: &[Document]) -> bool {
    let options = IngestOptions {
        batch: 4,
        backoff: Duration::from_millis(1),
        store_pause: Duration::from_millis(5),
        ..IngestOptions::default()
    };
    let builder = KnowledgeBase::builder()
        .vectors(Arc::clone(&ground.vectors))
        .state(Arc::clone(&ground.state))
        .blobs(Arc::clone(&ground.blobs))
        .ingest_options(options)
        .embedder(Salted::free("second"));
    let Ok(kb) = builder.build().await else { return false };
    let survived = loop {
        let live = kb.embedding().await.map(|embedding| embedding.live);
        let collections = ground.vectors.collections().await;
        let catalog = Catalog::new(Arc::clone(&ground.state));
        let notes = catalog.unembedded(None, documents.len() + 1).await;
        match (live, collections, notes) {
            (Ok(live), Ok(collections), Ok(notes)) => {
                if live.as_deref() == Some("second") && collections.len() == 4 && notes.is_empty() {
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

/// Cosines that lie close together count more, and the scale outlives the process.
#[tokio::test]
async fn the_scale_of_a_model_follows_its_cosines() {
    let ground = Ground::default();
    let kb = open(&ground, &Salted::free("first")).await;
    add_some(&kb, &NAMES).await;
    kb.add(document("granite", 60)).await.unwrap();
    let (inner, common) = (MemoryEmbedder::with_dims(96), 3.0);
    let narrow = Salted::of("narrow", 1_000, inner, common);
    let task = change(&kb, &narrow).await.unwrap();
    let Some(TaskResult::Reembedded(result)) = ended(&kb, task.task_id).await.result else { panic!() };
    assert!(result.cosine_scale > 2.0 * 30.5, "{result:?}");
    let catalog = Catalog::new(Arc::clone(&ground.state));
    assert_eq!(catalog.cosine_scale("narrow").await.unwrap(), Some(result.cosine_scale));
    assert_eq!(results(&kb, "granite").await[0].title, "granite");
}

/// A program that comes with a category classifier of its own changes nothing: nearness follows the model.
#[tokio::test]
async fn categories_are_found_with_the_new_model() {
    let ground = Ground::default();
    let builder = || {
        KnowledgeBase::builder()
            .vectors(Arc::clone(&ground.vectors))
            .state(Arc::clone(&ground.state))
            .blobs(Arc::clone(&ground.blobs))
    };
    let kb = builder().embedder(Salted::free("first")).build().await.unwrap();
    add_some(&kb, &NAMES).await;
    let other = Salted::of("wide", 1_000_000, MemoryEmbedder::with_dims(128), 0.0);
    let task = change(&kb, &other).await.unwrap();
    assert_eq!(ended(&kb, task.task_id).await.status, TaskStatus::Done);
    let task = kb.reclassify(&"eva".into()).await.unwrap();
    let Some(TaskResult::Reclassified(result)) = ended(&kb, task.task_id).await.result else { panic!() };
    assert_eq!((result.documents, result.warnings), (5, vec![]));
}

//! What ingestion promises, on stores in memory and with an embedder that does as it is told.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::common::{Ground, Scripted, document, ended, until};
use lkr::{
    FailureReason, IngestOptions, KnowledgeBase, Layer, ListFilter, NewDocument, Parsed, SearchRequest,
    Stage, Submission, TaskStatus,
};
use lkr_models::{AdaptiveBatch, AdaptiveBatchOptions, Embedder};
use lkr_parsers::{Parser, Source};
use lkr_state::{ErrorKind, FailingQueue, FailingState, MemoryQueue, MemoryState};
use lkr_vectors::{Filter, Include};
use object_store::{ObjectStore, local::LocalFileSystem};

async fn points(ground: &Ground) -> Vec<u64> {
    let mut counts = Vec::new();
    for layer in Layer::ALL {
        counts.push(ground.vectors.count(&layer.into(), &Filter::all()).await.unwrap());
    }
    counts
}

async fn texts(ground: &Ground) -> usize {
    use futures_util::StreamExt as _;
    ground.blobs.list(None).count().await
}

/// A provider that is away for a while, or asks to be asked less, costs a document no attempt.
#[tokio::test]
async fn lesson_04_refusals_fail_no_document() {
    let (ground, embedder) = (Ground::default(), Scripted::free());
    let options = AdaptiveBatchOptions { pause: Duration::from_millis(1), ..AdaptiveBatchOptions::default() };
    let paced = AdaptiveBatch::new(Arc::clone(&embedder) as Arc<dyn Embedder>, options);
    let kb = ground.open_with(Some(Arc::new(paced)), Arc::new(MemoryQueue::default())).await;
    embedder.failures.store(12, Ordering::SeqCst);
    let mut tasks = Vec::new();
    for name in ["basalt", "gneiss", "marble"] {
        tasks.push(kb.submit(document(name, 9), Submission::default()).await.unwrap());
    }
    for task in tasks {
        let task = ended(&kb, task.task_id).await;
        assert_eq!((task.status, task.attempts), (TaskStatus::Done, 1), "{:?}", task.error);
    }
    assert_eq!(embedder.failures.load(Ordering::SeqCst), 0);
    assert_eq!(points(&ground).await, [3, 27, 27, 27]);
}

#[tokio::test]
async fn what_is_done_is_searchable() {
    let ground = Ground::default();
    ground.classifier.learn("basalt", "volcanic");
    let kb = ground.open(Some(Scripted::free())).await;
    let done = kb.add(document("basalt", 5)).await.unwrap();
    assert_eq!((done.title.as_str(), done.category.as_str()), ("basalt", "volcanic"));
    assert_eq!(points(&ground).await, [1, 5, 5, 5]);
    assert_eq!((done.counts.l2, done.counts.chunks), (5, 5));
    let found = kb.search(&SearchRequest::new("the basalt number 3")).await.unwrap();
    assert!(found.response.results[0].text.contains("basalt number 3"), "{:?}", found.response.results[0]);
    assert!(found.response.warnings.is_empty(), "{:?}", found.response.warnings);
    let text = kb.text(done.doc_id).await.unwrap().unwrap();
    assert_eq!(text, crate::common::text("basalt", 5));
}

#[tokio::test]
async fn reserved_metadata_is_dropped_with_a_warning() {
    let kb = Ground::default().open(None).await;
    let metadata = [("raw_file_path", "/etc/passwd"), ("kind", "stone")];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let task = kb
        .submit(NewDocument { metadata, ..document("gneiss", 1) }, Submission::by("eva".into()))
        .await
        .unwrap();
    let task = ended(&kb, task.task_id).await;
    let warnings = task.result.clone().unwrap().document().unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("raw_file_path")), "{warnings:?}");
    let document = kb.document(task.doc_id().unwrap()).await.unwrap().unwrap();
    assert_eq!(document.metadata.keys().collect::<Vec<_>>(), ["kind"]);
}

#[tokio::test]
async fn a_delete_leaves_nothing() {
    let ground = Ground::default();
    let kb = ground.open(Some(Scripted::free())).await;
    let (gone, stays) =
        (kb.add(document("granite", 7)).await.unwrap(), kb.add(document("slate", 2)).await.unwrap());
    assert_eq!(kb.delete(gone.doc_id).await.unwrap(), gone.counts);
    assert!(kb.document(gone.doc_id).await.unwrap().is_none());
    assert_eq!(kb.delete(gone.doc_id).await.unwrap().total(), 0);
    let found = kb.search(&SearchRequest::new("granite")).await.unwrap();
    assert!(found.response.results.iter().all(|result| result.doc_id == stays.doc_id));
    until("its points are collected", async || points(&ground).await == [1, 2, 2, 2]).await;
    until("its text is collected", async || texts(&ground).await == 1).await;
    assert_eq!(kb.stats().await.unwrap().counts, stays.counts);
}

#[tokio::test]
async fn a_delete_ends_the_task_that_runs() {
    let (ground, embedder) = (Ground::default(), Scripted::new(2));
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    let task = kb.submit(document("marble", 20), Submission::by("eva".into())).await.unwrap();
    until("two batches are stored", async || points(&ground).await[3] == 8).await;
    assert_eq!(kb.delete(task.doc_id().unwrap()).await.unwrap().total(), 0);
    let task = kb.task(task.task_id).await.unwrap().unwrap();
    let error = task.error.clone().unwrap();
    assert_eq!(
        (task.status, error.reason, error.retryable),
        (TaskStatus::Failed, FailureReason::Cancelled, false)
    );
    assert_eq!(error.message, "cancelled");
    embedder.permits.add_permits(1000);
    until("nothing of it stays", async || points(&ground).await == [0; 4] && texts(&ground).await == 0).await;
    until("it left the queue", async || kb.queued().await.unwrap() == 0).await;
    assert_eq!(points(&ground).await, [0; 4]);
    assert!(kb.document(task.doc_id().unwrap()).await.unwrap().is_none());
}

#[tokio::test]
async fn an_attempt_that_fails_is_tried_again() {
    let (ground, embedder) = (Ground::default(), Scripted::free());
    embedder.failures.store(4, Ordering::SeqCst);
    let kb = ground.open(Some(embedder)).await;
    let task = kb.submit(document("tuff", 1), Submission::by("eva".into())).await.unwrap();
    let task = ended(&kb, task.task_id).await;
    assert_eq!((task.status, task.attempts), (TaskStatus::Done, 5));
}

#[tokio::test]
async fn the_fifth_failed_attempt_is_the_last() {
    let (ground, embedder) = (Ground::default(), Scripted::free());
    embedder.failures.store(u64::MAX, Ordering::SeqCst);
    let kb = ground.open(Some(embedder)).await;
    let task = kb.submit(document("chalk", 1), Submission::by("eva".into())).await.unwrap();
    let task = ended(&kb, task.task_id).await;
    let error = task.error.unwrap();
    assert_eq!((task.status, task.attempts, error.reason), (TaskStatus::Failed, 5, FailureReason::Internal));
    assert!(error.retryable && error.message.contains("told to fail"), "{error:?}");
    assert_eq!(error.stage, Stage::Embed);
    until("nothing of it stays", async || points(&ground).await == [0; 4]).await;
}

#[tokio::test]
async fn a_reason_that_stays_fails_at_once() {
    let (ground, embedder) = (Ground::default(), Scripted::free());
    embedder.failures.store(u64::MAX, Ordering::SeqCst);
    embedder.retryable.store(false, Ordering::SeqCst);
    let kb = ground.open(Some(embedder)).await;
    let task = kb.submit(document("flint", 1), Submission::by("eva".into())).await.unwrap();
    let task = ended(&kb, task.task_id).await;
    assert_eq!((task.status, task.attempts), (TaskStatus::Failed, 1));
    assert!(!task.error.unwrap().retryable);
}

#[tokio::test]
async fn a_panic_fails_its_document_alone() {
    let (ground, embedder) = (Ground::default(), Scripted::free());
    embedder.panics.store(true, Ordering::SeqCst);
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    let task = kb.submit(document("opal", 1), Submission::by("eva".into())).await.unwrap();
    let task = ended(&kb, task.task_id).await;
    assert_eq!(task.status, TaskStatus::Failed);
    embedder.panics.store(false, Ordering::SeqCst);
    kb.add(document("quartz", 1)).await.unwrap();
}

#[tokio::test]
async fn a_restart_goes_on_where_the_last_process_was() {
    let (ground, embedder) = (Ground::default(), Scripted::new(3));
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    let task = kb.submit(document("schist", 20), Submission::by("eva".into())).await.unwrap();
    until("three batches are stored", async || points(&ground).await[3] == 12).await;
    kb.shutdown(Duration::ZERO).await;
    assert_eq!(embedder.texts.lock().unwrap().len(), 12);
    assert!(kb.document(task.doc_id().unwrap()).await.unwrap().is_none(), "half a document is none");

    embedder.permits.add_permits(1000);
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    let task = ended(&kb, task.task_id).await;
    assert_eq!((task.status, task.attempts), (TaskStatus::Done, 1));
    assert_eq!(embedder.texts.lock().unwrap().len(), 20, "what was stored is not embedded again");
    assert_eq!(points(&ground).await, [1, 20, 20, 20]);
}

#[tokio::test]
async fn a_store_that_is_away_uses_no_attempt() {
    let ground = Ground::default();
    let away = Arc::new(AtomicBool::new(true));
    let fault = Arc::clone(&away);
    let queue = FailingQueue::new(Arc::new(MemoryQueue::default()), move |operation| {
        (operation == "claim" && fault.load(Ordering::SeqCst)).then_some(ErrorKind::Unavailable)
    });
    let kb = ground.open_with(Some(Scripted::free()), Arc::new(queue)).await;
    let task = kb.submit(document("shale", 1), Submission::by("eva".into())).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(kb.task(task.task_id).await.unwrap().unwrap().status, TaskStatus::Pending);
    away.store(false, Ordering::SeqCst);
    let task = ended(&kb, task.task_id).await;
    assert_eq!((task.status, task.attempts), (TaskStatus::Done, 1));
}

#[tokio::test]
async fn what_cannot_be_queued_at_once_is_queued_later() {
    let ground = Ground::default();
    let full = Arc::new(AtomicBool::new(true));
    let fault = Arc::clone(&full);
    let queue = FailingQueue::new(Arc::new(MemoryQueue::default()), move |operation| {
        (operation == "push" && fault.load(Ordering::SeqCst)).then_some(ErrorKind::Unavailable)
    });
    let kb = ground.open_with(Some(Scripted::free()), Arc::new(queue)).await;
    // It is recorded, and so it will end, whatever becomes of the queue.
    let task = kb.submit(document("marl", 1), Submission::by("eva".into())).await.unwrap();
    assert_eq!(kb.queued().await.unwrap(), 0);
    full.store(false, Ordering::SeqCst);
    // What comes next wakes the janitor.
    kb.add(document("loam", 1)).await.unwrap();
    assert_eq!(ended(&kb, task.task_id).await.status, TaskStatus::Done);
    kb.close().await;
    let kb = ground.open(Some(Scripted::free())).await;
    let listed = kb.list(&ListFilter::default(), None, 10).await.unwrap();
    assert_eq!(listed.items.iter().filter(|item| item.title == "marl").count(), 1);
}

#[tokio::test]
async fn what_cannot_be_recorded_leaves_no_text() {
    let full = Arc::new(AtomicBool::new(false));
    let fault = Arc::clone(&full);
    let state = FailingState::new(Arc::new(MemoryState::default()), move |operation| {
        (operation == "apply" && fault.load(Ordering::SeqCst)).then_some(ErrorKind::Unavailable)
    });
    let ground = Ground { state: Arc::new(state), ..Ground::default() };
    let kb = ground.open(None).await;
    full.store(true, Ordering::SeqCst);
    assert!(kb.submit(document("marl", 1), Submission::by("eva".into())).await.is_err());
    assert_eq!(texts(&ground).await, 0);
    full.store(false, Ordering::SeqCst);
    kb.add(document("marl", 1)).await.unwrap();
    assert_eq!(texts(&ground).await, 1);
}

/// Parses what is not named basalt at once; basalt takes as long as it is told.
#[derive(Debug, Default)]
struct Slow {
    inner: lkr_parsers::Markdown,
    begun: AtomicBool,
    released: AtomicBool,
}

impl Parser for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn parse(&self, source: &Source<'_>) -> lkr_parsers::Result<Parsed> {
        let parsed = self.inner.parse(source)?;
        while parsed.text.contains("basalt") && !self.released.load(Ordering::SeqCst) {
            self.begun.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(parsed)
    }
}

#[tokio::test]
async fn a_delete_frees_the_worker_of_a_long_step() {
    let (ground, parser) = (Ground::default(), Arc::new(Slow::default()));
    let kb = KnowledgeBase::builder()
        .vectors(Arc::clone(&ground.vectors))
        .state(Arc::clone(&ground.state))
        .blobs(Arc::clone(&ground.blobs))
        .queue(Arc::new(MemoryQueue::default()))
        .parser(Arc::clone(&parser) as Arc<dyn Parser>)
        .ingest_options(IngestOptions { workers: 1, ..IngestOptions::default() })
        .build()
        .await
        .unwrap();
    let task = kb.submit(document("basalt", 3), Submission::by("eva".into())).await.unwrap();
    until("it is under work", async || parser.begun.load(Ordering::SeqCst)).await;
    kb.delete(task.doc_id().unwrap()).await.unwrap();
    // The only worker is free again, although the step is not at its end.
    kb.add(document("slate", 1)).await.unwrap();
    parser.released.store(true, Ordering::SeqCst);
    until("nothing of it stays", async || points(&ground).await == [1; 4] && texts(&ground).await == 1).await;
}

#[tokio::test]
async fn a_text_that_cannot_be_read_ends_its_task() {
    let folder = tempfile::tempdir().unwrap();
    let files = LocalFileSystem::new_with_prefix(folder.path()).unwrap();
    let ground = Ground { blobs: Arc::new(files), ..Ground::default() };
    let kb = ground.open(Some(Scripted::new(0))).await;
    let task = kb.submit(document("dolerite", 1), Submission::by("eva".into())).await.unwrap();
    kb.shutdown(Duration::ZERO).await;
    let text = files_below(folder.path()).pop().unwrap();
    std::fs::remove_file(&text).unwrap();
    std::os::unix::fs::symlink(&text, &text).unwrap();

    let kb = ground.open(Some(Scripted::free())).await;
    kb.add(document("peat", 1)).await.unwrap();
    let task = ended(&kb, task.task_id).await;
    let error = task.error.unwrap();
    assert_eq!((task.status, task.attempts, error.stage), (TaskStatus::Failed, 5, Stage::Parse));
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn what_came_in_without_a_model_is_embedded_when_there_is_one() {
    let ground = Ground::default();
    let kb = ground.open(None).await;
    let early = kb.add(document("pumice", 9)).await.unwrap();
    let found = kb.search(&SearchRequest::new("pumice")).await.unwrap();
    assert!(found.response.warnings.iter().any(|w| w.contains("no embedding model")));
    kb.close().await;

    let embedder = Scripted::free();
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    let late = kb.add(document("obsidian", 3)).await.unwrap();
    until("searches use vectors", async || {
        let found = kb.search(&SearchRequest::new("pumice")).await.unwrap();
        found.response.warnings.is_empty() && found.response.results[0].scores.dense.is_some()
    })
    .await;
    for document in [&early, &late] {
        let id = lkr_catalog::l1_id(document.doc_id, 1);
        let l1 = ground.vectors.get(&Layer::L1.into(), &[id], Include::All).await.unwrap();
        assert!(l1[0].as_ref().unwrap().dense.is_some());
    }
    assert_eq!(points(&ground).await, [2, 12, 12, 12]);
    let collections = ground.vectors.collections().await.unwrap();
    assert_eq!(collections.len(), 4, "the earlier collections went: {collections:?}");
}

#[tokio::test]
async fn vectors_of_two_models_never_meet() {
    let ground = Ground::default();
    let kb = ground.open(Some(Scripted::named("first", 1000))).await;
    kb.add(document("gypsum", 3)).await.unwrap();
    kb.close().await;

    let second = Scripted::named("second", 0);
    let kb = ground.open(Some(Arc::clone(&second))).await;
    let found = kb.search(&SearchRequest::new("gypsum")).await.unwrap();
    assert!(found.response.results.iter().all(|result| result.scores.dense.is_none()));
    assert!(!found.response.warnings.is_empty());
    second.permits.add_permits(1000);
    until("the second model's vectors serve", async || {
        let found = kb.search(&SearchRequest::new("gypsum")).await.unwrap();
        found.response.results[0].scores.dense.is_some()
    })
    .await;
    assert_eq!(points(&ground).await, [1, 3, 3, 3]);
}

#[tokio::test]
async fn collections_that_were_not_filled_to_the_end_leave_nothing() {
    let ground = Ground::default();
    let kb = ground.open(Some(Scripted::named("first", 1000))).await;
    let (gone, stays) =
        (kb.add(document("gypsum", 6)).await.unwrap(), kb.add(document("marl", 6)).await.unwrap());
    kb.close().await;
    let second = || Scripted::named("second", 2);
    let kb = ground.open(Some(second())).await;
    until("a part is filled", async || filled(&ground).await > 0).await;
    kb.shutdown(Duration::ZERO).await;

    // With the same model, filling goes on: without what is deleted meanwhile.
    let again = Scripted::named("second", 0);
    let kb = ground.open(Some(Arc::clone(&again))).await;
    kb.delete(gone.doc_id).await.unwrap();
    kb.delete(stays.doc_id).await.unwrap();
    until("no collection has points of it", async || {
        points(&ground).await == [0; 4] && filled(&ground).await == 0
    })
    .await;
    again.permits.add_permits(1000);
    kb.add(document("loess", 2)).await.unwrap();
    until("the second model's collections serve", async || collections(&ground).await == 4).await;
    until("and hold one document", async || points(&ground).await == [1, 2, 2, 2]).await;
    kb.close().await;

    // With another model, a beginning of the third's is of no use.
    let kb = ground.open(Some(Scripted::named("third", 0))).await;
    until("the third's are made", async || collections(&ground).await == 8).await;
    kb.shutdown(Duration::ZERO).await;
    ground.open(Some(again)).await;
    assert_eq!(collections(&ground).await, 4);
}

/// How many chunks lie in collections that do not answer.
async fn filled(ground: &Ground) -> u64 {
    let live = ground.vectors.describe(&Layer::Chunks.into()).await.unwrap().unwrap().collection;
    let mut count = 0;
    for spec in ground.vectors.collections().await.unwrap() {
        if spec.collection != live && spec.collection.name().starts_with("chunks.") {
            count += ground.vectors.count(&spec.collection, &Filter::all()).await.unwrap();
        }
    }
    count
}

async fn collections(ground: &Ground) -> usize {
    ground.vectors.collections().await.unwrap().len()
}

#[tokio::test]
async fn a_model_that_returns_embeds_what_came_in_for_another() {
    let ground = Ground::default();
    let kb = ground.open(Some(Scripted::named("first", 1000))).await;
    kb.add(document("gypsum", 100)).await.unwrap();
    kb.close().await;
    let second = Scripted::named("second", 1);
    let kb = ground.open(Some(Arc::clone(&second))).await;
    let task = kb.submit(document("marl", 1), Submission::by("eva".into())).await.unwrap();
    until("it is there", async || {
        second.permits.add_permits(1);
        kb.task(task.task_id).await.unwrap().unwrap().status == TaskStatus::Done
    })
    .await;
    assert_eq!(collections(&ground).await, 8, "the first model's still answer");
    kb.shutdown(Duration::ZERO).await;

    let _open = ground.open(Some(Scripted::named("first", 1000))).await;
    let l1 = lkr_catalog::l1_id(task.doc_id().unwrap(), 1);
    until("it has the first model's vectors", async || {
        let found = ground.vectors.get(&Layer::L1.into(), &[l1], Include::All).await.unwrap();
        found[0].as_ref().unwrap().dense.is_some()
    })
    .await;
}

#[tokio::test]
async fn a_text_that_belongs_to_nothing_is_collected_at_the_next_start() {
    let ground = Ground::default();
    let kb = ground.open(None).await;
    let kept = kb.add(document("talc", 1)).await.unwrap();
    kb.close().await;
    let texts_of = lkr_catalog::Texts::new(Arc::clone(&ground.blobs));
    texts_of.put(lkr::DocId::new(), 1, "of a process that ended".to_owned()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let kb = ground.open(None).await;
    until("the stray text went", async || texts(&ground).await == 1).await;
    assert!(kb.text(kept.doc_id).await.unwrap().is_some());
}

#[tokio::test]
async fn twins_in_a_document_are_embedded_once() {
    let (ground, embedder) = (Ground::default(), Scripted::free());
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    let text = "# Twins\n\n## One\n\nThe same words stand here.\n\n## One\n\nThe same words stand here.\n";
    let text = text.to_owned();
    let task = kb
        .submit(NewDocument { text, ..NewDocument::default() }, Submission::by("eva".into()))
        .await
        .unwrap();
    let result = ended(&kb, task.task_id).await.result.unwrap().document().unwrap();
    assert_eq!((result.counts.chunks, result.embedded), (2, 1));
    assert_eq!(embedder.texts.lock().unwrap().len(), 1);
}

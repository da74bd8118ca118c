//! Ingestion on stores in memory, with an embedder that tests control.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lkr::{
    FailureReason, IngestOptions, KnowledgeBase, Layer, ListFilter, NewDocument, Parsed, Scope,
    SearchRequest, Stage, Submission, TaskStatus,
};
use lkr_models::{AdaptiveBatch, AdaptiveBatchOptions, Embedder};
use lkr_parsers::{Parser, Source};
use lkr_state::{ErrorKind, FailingQueue, FailingState, MemoryQueue, MemoryState};
use lkr_vectors::Filter;
use object_store::local::LocalFileSystem;

use crate::common::{ScriptedEmbedder, TestStores, document, wait_for_task, wait_until};

pub(crate) async fn points(stores: &TestStores) -> Vec<u64> {
    let mut counts = Vec::new();
    for layer in Layer::ALL {
        counts.push(stores.vectors.count(&layer.into(), &Filter::all()).await.unwrap());
    }
    counts
}

pub(crate) async fn texts(stores: &TestStores) -> usize {
    stores.stored_blobs().await
}

#[tokio::test]
async fn lesson_04_provider_refusals_use_no_attempt() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::unlimited());
    let options =
        AdaptiveBatchOptions { initial_backoff: Duration::from_millis(1), ..AdaptiveBatchOptions::default() };
    let adaptive = AdaptiveBatch::new(Arc::clone(&embedder) as Arc<dyn Embedder>, options);
    let kb = stores.open_with(Some(Arc::new(adaptive)), Arc::new(MemoryQueue::default())).await;
    embedder.failures.store(12, Ordering::SeqCst);
    let mut tasks = Vec::new();
    for name in ["basalt", "gneiss", "marble"] {
        tasks.push(kb.submit(document(name, 9), Submission::default()).await.unwrap());
    }
    for task in tasks {
        let task = wait_for_task(&kb, task.task_id).await;
        assert_eq!((task.status, task.attempts), (TaskStatus::Done, 1), "{:?}", task.error);
    }
    assert_eq!(embedder.failures.load(Ordering::SeqCst), 0);
    assert_eq!(points(&stores).await, [3, 27, 27, 27]);
}

#[tokio::test]
async fn done_document_is_searchable() {
    let stores = TestStores::default();
    stores.classifier.learn("basalt", "volcanic");
    let kb = stores.open(Some(ScriptedEmbedder::unlimited())).await;
    let done = kb.add(document("basalt", 5)).await.unwrap();
    assert_eq!((done.title.as_str(), done.category.as_str()), ("basalt", "volcanic"));
    assert_eq!(points(&stores).await, [1, 5, 5, 5]);
    assert_eq!((done.counts.l2, done.counts.chunks), (5, 5));
    let found = kb.search(&SearchRequest::new("the basalt number 3")).await.unwrap();
    assert!(found.response.results[0].text.contains("basalt number 3"), "{:?}", found.response.results[0]);
    assert!(found.response.warnings.is_empty(), "{:?}", found.response.warnings);
    let text = kb.text(done.doc_id).await.unwrap().unwrap();
    assert_eq!(text, crate::common::text("basalt", 5));
}

#[tokio::test]
async fn reserved_metadata_is_dropped_with_a_warning() {
    let kb = TestStores::default().open(None).await;
    let metadata = [("raw_file_path", "/etc/passwd"), ("kind", "stone")];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let task = kb
        .submit(NewDocument { metadata, ..document("gneiss", 1) }, Submission::by("eva".into()))
        .await
        .unwrap();
    let task = wait_for_task(&kb, task.task_id).await;
    let warnings = task.result.clone().unwrap().document().unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("raw_file_path")), "{warnings:?}");
    let document = kb.document(task.doc_id().unwrap()).await.unwrap().unwrap();
    assert_eq!(document.metadata.keys().collect::<Vec<_>>(), ["kind"]);
}

#[tokio::test]
async fn delete_removes_points_and_text() {
    let stores = TestStores::default();
    let kb = stores.open(Some(ScriptedEmbedder::unlimited())).await;
    let (deleted, kept) =
        (kb.add(document("granite", 7)).await.unwrap(), kb.add(document("slate", 2)).await.unwrap());
    assert_eq!(kb.delete(deleted.doc_id).await.unwrap(), deleted.counts);
    assert!(kb.document(deleted.doc_id).await.unwrap().is_none());
    assert_eq!(kb.delete(deleted.doc_id).await.unwrap().total(), 0);
    let found = kb.search(&SearchRequest::new("granite")).await.unwrap();
    assert!(found.response.results.iter().all(|result| result.doc_id == kept.doc_id));
    wait_until("its points are collected", async || points(&stores).await == [1, 2, 2, 2]).await;
    wait_until("its text is collected", async || texts(&stores).await == 1).await;
    assert_eq!(kb.stats(&Scope::All).await.unwrap().counts, kept.counts);
}

#[tokio::test]
async fn delete_cancels_the_running_task() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::new(2));
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let task = kb.submit(document("marble", 20), Submission::by("eva".into())).await.unwrap();
    wait_until("two batches are stored", async || points(&stores).await[3] == 8).await;
    assert_eq!(kb.delete(task.doc_id().unwrap()).await.unwrap().total(), 0);
    let task = kb.task(task.task_id).await.unwrap().unwrap();
    let error = task.error.clone().unwrap();
    assert_eq!(
        (task.status, error.reason, error.retryable),
        (TaskStatus::Failed, FailureReason::Cancelled, false)
    );
    assert_eq!(error.message, "cancelled");
    embedder.permits.add_permits(1000);
    wait_until("its points and its text are collected", async || {
        points(&stores).await == [0; 4] && texts(&stores).await == 0
    })
    .await;
    wait_until("the queue is empty", async || kb.queued_tasks().await.unwrap() == 0).await;
    assert_eq!(points(&stores).await, [0; 4]);
    assert!(kb.document(task.doc_id().unwrap()).await.unwrap().is_none());
}

#[tokio::test]
async fn failed_attempts_are_repeated_until_success() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::unlimited());
    embedder.failures.store(4, Ordering::SeqCst);
    let kb = stores.open(Some(embedder)).await;
    let task = kb.submit(document("tuff", 1), Submission::by("eva".into())).await.unwrap();
    let task = wait_for_task(&kb, task.task_id).await;
    assert_eq!((task.status, task.attempts), (TaskStatus::Done, 5));
}

#[tokio::test]
async fn task_fails_after_the_fifth_attempt() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::unlimited());
    embedder.failures.store(u64::MAX, Ordering::SeqCst);
    let kb = stores.open(Some(embedder)).await;
    let task = kb.submit(document("chalk", 1), Submission::by("eva".into())).await.unwrap();
    let task = wait_for_task(&kb, task.task_id).await;
    let error = task.error.unwrap();
    assert_eq!((task.status, task.attempts, error.reason), (TaskStatus::Failed, 5, FailureReason::Internal));
    assert!(error.retryable && error.message.contains("the test made it fail"), "{error:?}");
    assert_eq!(error.stage, Stage::Embed);
    wait_until("its points are collected", async || points(&stores).await == [0; 4]).await;
}

#[tokio::test]
async fn permanent_error_fails_at_the_first_attempt() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::unlimited());
    embedder.failures.store(u64::MAX, Ordering::SeqCst);
    embedder.retryable.store(false, Ordering::SeqCst);
    let kb = stores.open(Some(embedder)).await;
    let task = kb.submit(document("flint", 1), Submission::by("eva".into())).await.unwrap();
    let task = wait_for_task(&kb, task.task_id).await;
    assert_eq!((task.status, task.attempts), (TaskStatus::Failed, 1));
    assert!(!task.error.unwrap().retryable);
}

#[tokio::test]
async fn panic_fails_only_its_own_document() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::unlimited());
    embedder.panics.store(true, Ordering::SeqCst);
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let task = kb.submit(document("opal", 1), Submission::by("eva".into())).await.unwrap();
    let task = wait_for_task(&kb, task.task_id).await;
    assert_eq!(task.status, TaskStatus::Failed);
    embedder.panics.store(false, Ordering::SeqCst);
    kb.add(document("quartz", 1)).await.unwrap();
}

#[tokio::test]
async fn restart_continues_without_embedding_stored_batches_again() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::new(3));
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let task = kb.submit(document("schist", 20), Submission::by("eva".into())).await.unwrap();
    wait_until("three batches are stored", async || points(&stores).await[3] == 12).await;
    kb.shutdown(Duration::ZERO).await;
    assert_eq!(embedder.texts.lock().unwrap().len(), 12);
    assert!(
        kb.document(task.doc_id().unwrap()).await.unwrap().is_none(),
        "a partial document is not visible"
    );

    embedder.permits.add_permits(1000);
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let task = wait_for_task(&kb, task.task_id).await;
    assert_eq!((task.status, task.attempts), (TaskStatus::Done, 1));
    assert_eq!(embedder.texts.lock().unwrap().len(), 20, "stored batches are not embedded again");
    assert_eq!(points(&stores).await, [1, 20, 20, 20]);
}

#[tokio::test]
async fn unavailable_queue_uses_no_attempt() {
    let stores = TestStores::default();
    let is_unavailable = Arc::new(AtomicBool::new(true));
    let fault = Arc::clone(&is_unavailable);
    let queue = FailingQueue::new(Arc::new(MemoryQueue::default()), move |operation| {
        (operation == "claim" && fault.load(Ordering::SeqCst)).then_some(ErrorKind::Unavailable)
    });
    let kb = stores.open_with(Some(ScriptedEmbedder::unlimited()), Arc::new(queue)).await;
    let task = kb.submit(document("shale", 1), Submission::by("eva".into())).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(kb.task(task.task_id).await.unwrap().unwrap().status, TaskStatus::Pending);
    is_unavailable.store(false, Ordering::SeqCst);
    let task = wait_for_task(&kb, task.task_id).await;
    assert_eq!((task.status, task.attempts), (TaskStatus::Done, 1));
}

#[tokio::test]
async fn task_that_could_not_be_queued_is_queued_by_the_janitor() {
    let stores = TestStores::default();
    let is_full = Arc::new(AtomicBool::new(true));
    let fault = Arc::clone(&is_full);
    let queue = FailingQueue::new(Arc::new(MemoryQueue::default()), move |operation| {
        (operation == "push" && fault.load(Ordering::SeqCst)).then_some(ErrorKind::Unavailable)
    });
    let kb = stores.open_with(Some(ScriptedEmbedder::unlimited()), Arc::new(queue)).await;
    // The task is recorded, so it will end although the queue refused it.
    let task = kb.submit(document("marl", 1), Submission::by("eva".into())).await.unwrap();
    assert_eq!(kb.queued_tasks().await.unwrap(), 0);
    is_full.store(false, Ordering::SeqCst);
    // The janitor may have tried in vain before.
    assert_eq!(wait_for_task(&kb, task.task_id).await.status, TaskStatus::Done);
    kb.close().await;
    let kb = stores.open(Some(ScriptedEmbedder::unlimited())).await;
    let listed = kb.list(&Scope::All, &ListFilter::default(), None, 10).await.unwrap();
    assert_eq!(listed.items.iter().filter(|item| item.title == "marl").count(), 1);
}

#[tokio::test]
async fn submission_that_cannot_be_recorded_leaves_no_text() {
    let is_full = Arc::new(AtomicBool::new(false));
    let fault = Arc::clone(&is_full);
    let state = FailingState::new(Arc::new(MemoryState::default()), move |operation| {
        (operation == "apply" && fault.load(Ordering::SeqCst)).then_some(ErrorKind::Unavailable)
    });
    let stores = TestStores { state: Arc::new(state), ..TestStores::default() };
    let kb = stores.open(None).await;
    is_full.store(true, Ordering::SeqCst);
    assert!(kb.submit(document("marl", 1), Submission::by("eva".into())).await.is_err());
    assert_eq!(texts(&stores).await, 0);
    is_full.store(false, Ordering::SeqCst);
    kb.add(document("marl", 1)).await.unwrap();
    assert_eq!(texts(&stores).await, 1);
}

/// A parser that keeps texts about basalt until it is released.
#[derive(Debug, Default)]
struct BlockingParser {
    inner: lkr_parsers::Markdown,
    begun: AtomicBool,
    released: AtomicBool,
}

impl Parser for BlockingParser {
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
async fn delete_frees_the_worker_of_a_long_parse() {
    let (stores, parser) = (TestStores::default(), Arc::new(BlockingParser::default()));
    let kb = KnowledgeBase::builder()
        .vectors(Arc::clone(&stores.vectors))
        .state(Arc::clone(&stores.state))
        .blobs(Arc::clone(&stores.blobs))
        .queue(Arc::new(MemoryQueue::default()))
        .parser(Arc::clone(&parser) as Arc<dyn Parser>)
        .ingest_options(IngestOptions { workers: 1, ..IngestOptions::default() })
        .build()
        .await
        .unwrap();
    let task = kb.submit(document("basalt", 3), Submission::by("eva".into())).await.unwrap();
    wait_until("the parser has begun", async || parser.begun.load(Ordering::SeqCst)).await;
    kb.delete(task.doc_id().unwrap()).await.unwrap();
    // The only worker is free, although the parser has not returned.
    kb.add(document("slate", 1)).await.unwrap();
    parser.released.store(true, Ordering::SeqCst);
    wait_until("the deleted document's data is collected", async || {
        points(&stores).await == [1; 4] && texts(&stores).await == 1
    })
    .await;
}

#[tokio::test]
async fn unreadable_text_fails_its_task() {
    let folder = tempfile::tempdir().unwrap();
    let files = LocalFileSystem::new_with_prefix(folder.path()).unwrap();
    let stores = TestStores { blobs: Arc::new(files), ..TestStores::default() };
    let kb = stores.open(Some(ScriptedEmbedder::new(0))).await;
    let task = kb.submit(document("dolerite", 1), Submission::by("eva".into())).await.unwrap();
    kb.shutdown(Duration::ZERO).await;
    let text = files_below(&folder.path().join("texts")).pop().unwrap();
    std::fs::remove_file(&text).unwrap();
    std::os::unix::fs::symlink(&text, &text).unwrap();

    let kb = stores.open(Some(ScriptedEmbedder::unlimited())).await;
    kb.add(document("peat", 1)).await.unwrap();
    let task = wait_for_task(&kb, task.task_id).await;
    let error = task.error.unwrap();
    assert_eq!((task.status, task.attempts, error.stage), (TaskStatus::Failed, 5, Stage::Parse));
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn document_added_to_a_closed_knowledge_base_is_ingested_after_the_next_opening() {
    let stores = TestStores::default();
    let kb = stores.open(None).await;
    kb.clone().close().await;
    let adding = tokio::time::timeout(Duration::from_secs(60), kb.add(document("basalt", 1)));
    let error = adding.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), lkr::ErrorKind::Conflict);
    assert!(error.to_string().contains("closed before the document was searchable"), "{error}");
    let kb = stores.open(None).await;
    wait_until("the document is ingested", async || points(&stores).await[0] == 1).await;
    kb.close().await;
}

#[tokio::test]
async fn orphaned_text_is_collected_at_the_next_start() {
    let stores = TestStores::default();
    let kb = stores.open(None).await;
    let kept = kb.add(document("talc", 1)).await.unwrap();
    kb.close().await;
    let texts_of = lkr_catalog::Texts::new(Arc::clone(&stores.blobs));
    texts_of.put(lkr::DocId::new(), 1, "of an ended process".to_owned()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let kb = stores.open(None).await;
    wait_until("the orphaned text is collected", async || texts(&stores).await == 1).await;
    assert!(kb.text(kept.doc_id).await.unwrap().is_some());
}

/// A program may end its process once any of the calls has returned.
#[tokio::test]
async fn second_shutdown_waits_for_the_documents_that_the_first_one_waits_for() {
    let embedder = ScriptedEmbedder::new(0);
    let kb = TestStores::default().open(Some(Arc::clone(&embedder))).await;
    let task = kb.submit(document("opal", 1), Submission::default()).await.unwrap().task_id;
    wait_until("it is processed", async || {
        kb.task(task).await.unwrap().unwrap().status == TaskStatus::Running
    })
    .await;
    let shutdown = |grace_period| {
        let kb = kb.clone();
        tokio::spawn(async move { kb.shutdown(grace_period).await })
    };
    let first = shutdown(Duration::from_secs(30));
    tokio::task::yield_now().await;
    let second = shutdown(Duration::ZERO);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!second.is_finished());
    embedder.permits.add_permits(10);
    second.await.unwrap();
    assert!(first.is_finished());
    assert_eq!(kb.task(task).await.unwrap().unwrap().status, TaskStatus::Done);
}

//! Ingestion through its public interface, on stores in memory.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use lkr_catalog::{Catalog, Originals, Texts};
use lkr_domain::{Creator, Document, MAX_NEW_TEXT_BYTES, NewDocument, Parsed};
use lkr_ingest::{DocumentChange, ErrorKind, IngestOptions, Ingestor, Ports, Submission};
use lkr_models::{Embedder, MemoryEmbedder};
use lkr_parsers::{Markdown, Parser, Source};
use lkr_state::{
    ContentionObserver, Expect, FailingState, MAX_ATTEMPTS, MemoryQueue, MemoryState, ObservedState, Peers,
    StateStore, StateStoreExt, Write,
};
use lkr_vectors::MemoryVectors;
use object_store::memory::InMemory;

fn ports(state: Arc<dyn StateStore>, uploads: &Path) -> Ports {
    let embedder: Arc<dyn Embedder> = Arc::new(MemoryEmbedder::default());
    Ports {
        vectors: Arc::new(MemoryVectors::default()),
        catalog: Catalog::new(state),
        queue: Arc::new(MemoryQueue::default()),
        texts: Texts::new(Arc::new(InMemory::new())),
        originals: Originals::in_folder(uploads.to_owned()),
        embedders: Arc::new(embedder),
        parser: Arc::new(Markdown),
        classifier: None,
        chat_models: None,
        evaluator: None,
        deletion: None,
        spaces: None,
        observer: None,
        peers: Peers::alone(),
    }
}

fn document(title: &str) -> NewDocument {
    let text = "# Basalt\n\nBasalt is a dark volcanic rock.".to_owned();
    NewDocument { text, title: title.to_owned(), ..NewDocument::default() }
}

fn by_eva() -> Submission {
    Submission::by(Creator::from("eva"))
}

/// Submits a document and waits until it is live.
async fn ingest(ingestor: &Ingestor, catalog: &Catalog, document: NewDocument) -> Document {
    let task = ingestor.submit(document, by_eva()).await.unwrap();
    loop {
        let now = catalog.task(task.task_id).await.unwrap().unwrap();
        if now.status.has_ended() {
            let live = catalog.document(now.doc_id().unwrap()).await.unwrap();
            return live.unwrap_or_else(|| panic!("{now:?}")).value;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn delete_that_loses_every_compare_and_set_reports_contention_and_ends() {
    let uploads = tempfile::tempdir().unwrap();
    let (loses, writes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let (lost, written) = (Arc::clone(&loses), Arc::clone(&writes));
    let failing = FailingState::new(Arc::new(MemoryState::default()), move |operation| {
        if operation != "apply" || !lost.load(Ordering::SeqCst) {
            return None;
        }
        written.fetch_add(1, Ordering::SeqCst);
        Some(lkr_state::ErrorKind::Conflict)
    });
    let observed: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let observer = {
        let observed = Arc::clone(&observed);
        ContentionObserver::new(move |operation| observed.lock().unwrap().push(operation))
    };
    let ports = ports(Arc::new(ObservedState::new(Arc::new(failing), observer)), uploads.path());
    let catalog = ports.catalog.clone();
    let ingestor = Ingestor::open(ports, IngestOptions::default()).await.unwrap();
    let workers = ingestor.start().await.unwrap();
    let live = ingest(&ingestor, &catalog, document("Basalt")).await;
    workers.shutdown(std::time::Duration::from_secs(10)).await;

    loses.store(true, Ordering::SeqCst);
    let error = ingestor.delete(live.doc_id, Vec::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Contention, "{error}");
    assert!(error.is_retryable());
    assert_eq!(writes.load(Ordering::SeqCst), MAX_ATTEMPTS);
    assert_eq!(*observed.lock().unwrap(), ["delete document"]);

    loses.store(false, Ordering::SeqCst);
    ingestor.delete(live.doc_id, Vec::new()).await.unwrap();
    assert!(catalog.document(live.doc_id).await.unwrap().is_none());
}

/// Notes the names of the threads that parse.
#[derive(Debug, Default)]
struct NotesThreads(Mutex<Vec<String>>);

impl Parser for NotesThreads {
    fn name(&self) -> &'static str {
        Markdown.name()
    }

    fn parse(&self, source: &Source<'_>) -> lkr_parsers::Result<Parsed> {
        let thread = std::thread::current();
        self.0.lock().unwrap().push(thread.name().unwrap_or_default().to_owned());
        Markdown.parse(source)
    }
}

#[tokio::test]
async fn workers_compute_on_the_threads_of_their_runtime() {
    let uploads = tempfile::tempdir().unwrap();
    let parser = Arc::new(NotesThreads::default());
    let ports = Ports {
        parser: Arc::clone(&parser) as Arc<dyn Parser>,
        ..ports(Arc::new(MemoryState::default()), uploads.path())
    };
    let catalog = ports.catalog.clone();
    let ingestor = Ingestor::open(ports, IngestOptions::default()).await.unwrap();
    let other = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .thread_name("ingestion")
        .build()
        .unwrap();
    let workers = ingestor.start_on(other.handle()).await.unwrap();
    ingest(&ingestor, &catalog, document("Basalt")).await;
    workers.shutdown(std::time::Duration::from_secs(10)).await;
    assert_eq!(*parser.0.lock().unwrap(), ["ingestion"]);
    other.shutdown_background();
}

#[tokio::test]
async fn document_beyond_a_limit_is_refused() {
    let uploads = tempfile::tempdir().unwrap();
    let ports = ports(Arc::new(MemoryState::default()), uploads.path());
    let catalog = ports.catalog.clone();
    let ingestor = Ingestor::open(ports, IngestOptions::default()).await.unwrap();
    let keys = |count: usize| (0..count).map(|n| (n.to_string(), String::new())).collect();
    let refused = [
        (document(&"t".repeat(5_000)), "title has 5000 characters, at most 4096 are allowed"),
        (
            NewDocument { source: "s".repeat(4_097), ..document("") },
            "source has 4097 characters, at most 4096 are allowed",
        ),
        (NewDocument { metadata: keys(65), ..document("") }, "metadata has 65 keys, at most 64 are allowed"),
        (
            NewDocument { metadata: [("key".to_owned(), "v".repeat(256 * 1024))].into(), ..document("") },
            "title, source and metadata have 262162 bytes of JSON, at most 262144 are allowed",
        ),
        (
            NewDocument { text: "x".repeat(MAX_NEW_TEXT_BYTES + 1), ..document("") },
            "text has 16777217 bytes of UTF-8, at most 16777216 are allowed",
        ),
        (
            NewDocument { text: " \n\u{a0}".to_owned(), ..document("") },
            "text is blank: at least one character other than white space is required",
        ),
    ];
    for (document, message) in refused {
        let error = ingestor.submit(document, by_eva()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(message), "{error}");
    }
    assert!(catalog.unfinished(None, 10).await.unwrap().0.is_empty());
    // The limits themselves are allowed, and count code points.
    let longest =
        NewDocument { metadata: keys(64), source: "é".repeat(4_096), ..document(&"é".repeat(4_096)) };
    ingestor.submit(longest, by_eva()).await.unwrap();
}

#[tokio::test]
async fn document_stored_beyond_a_limit_can_be_read_changed_and_deleted() {
    let uploads = tempfile::tempdir().unwrap();
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let ports = ports(Arc::clone(&state), uploads.path());
    let catalog = ports.catalog.clone();
    let ingestor = Ingestor::open(ports, IngestOptions::default()).await.unwrap();
    let _workers = ingestor.start().await.unwrap();
    let doc_id = ingest(&ingestor, &catalog, document("Basalt")).await.doc_id;
    let key = format!("doc/{doc_id}");
    let record = state.get(&key).await.unwrap().unwrap();
    let mut record: serde_json::Value = serde_json::from_slice(&record.value).unwrap();
    let long = "t".repeat(5_000);
    record["title"] = long.clone().into();
    state.apply(vec![Write::put(key, Expect::Any, record.to_string())]).await.unwrap();

    assert_eq!(catalog.document(doc_id).await.unwrap().unwrap().value.title, long);
    let change = DocumentChange { category: Some("stone".to_owned()), ..DocumentChange::default() };
    let changed = ingestor.change(doc_id, change, Vec::new()).await.unwrap().unwrap();
    assert_eq!((changed.title, changed.category.as_str()), (long.clone(), "stone"));
    let change = DocumentChange { title: Some(long), ..DocumentChange::default() };
    let error = ingestor.change(doc_id, change, Vec::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    ingestor.delete(doc_id, Vec::new()).await.unwrap();
    assert!(catalog.document(doc_id).await.unwrap().is_none());
}

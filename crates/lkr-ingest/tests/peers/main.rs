//! Several processes on one set of stores: each is an `Ingestor` of its own, joined as a peer.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{
    collections::BTreeSet,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use lkr_catalog::{Catalog, ChangeNote, Originals, STORE_VERSION, Task, TaskResult, TaskStatus, Texts};
use lkr_domain::{Creator, Dedup, DocId, Document, Layer, NewDocument, TaskId};
use lkr_ingest::{DocumentChange, IngestOptions, Ingestor, Ports, ReembedTrigger, Submission, Workers};
use lkr_models::{Embedder, EmbedderSource, MemoryEmbedder};
use lkr_parsers::Markdown;
use lkr_state::{
    Expect, MemoryQueue, MemoryState, PeerOptions, Peers, ProcessId, StateStore, StateStoreExt, TaskQueue,
    Write,
};
use lkr_vectors::{Filter, Include, MemoryVectors, VectorStore};
use object_store::memory::InMemory;
use tempfile::TempDir;

mod first_start;
mod near;
mod stalls;

/// So short that a process that left is noticed soon, so long that a renewal is not late on a busy machine.
const PEERS: PeerOptions =
    PeerOptions { process_ttl: Duration::from_secs(3), leader_ttl: Duration::from_millis(1_500) };

/// The stores that the processes share.
#[derive(Clone)]
struct Stores {
    vectors: Arc<dyn VectorStore>,
    state: Arc<dyn StateStore>,
    queue: Arc<dyn TaskQueue>,
    texts: Texts,
    uploads: Arc<TempDir>,
    /// The models of the processes that are opened, in the order of their preference.
    models: Models,
}

impl Stores {
    fn new() -> Self {
        Self {
            vectors: Arc::new(MemoryVectors::default()),
            state: Arc::new(MemoryState::default()),
            queue: Arc::new(MemoryQueue::default()),
            texts: Texts::new(Arc::new(InMemory::new())),
            uploads: Arc::new(tempfile::tempdir().unwrap()),
            models: Models(vec![8, 16]),
        }
    }

    fn catalog(&self) -> Catalog {
        Catalog::new(Arc::clone(&self.state))
    }

    /// A process with this many workers.
    async fn process(&self, workers: usize) -> Process {
        self.process_with(IngestOptions { workers, ..IngestOptions::default() }).await
    }

    async fn process_with(&self, options: IngestOptions) -> Process {
        let peers = Peers::join(Arc::clone(&self.state), peer(STORE_VERSION), PEERS).await.unwrap();
        let ports = self.ports(peers.clone(), self.uploads.path());
        let ingestor = Ingestor::open(ports, options).await.unwrap();
        let workers = ingestor.start().await.unwrap();
        Process { ingestor, peers, workers }
    }

    fn ports(&self, peers: Peers, uploads: &Path) -> Ports {
        Ports {
            vectors: Arc::clone(&self.vectors),
            catalog: self.catalog(),
            queue: Arc::clone(&self.queue),
            texts: self.texts.clone(),
            originals: Originals::in_folder(uploads.to_owned()),
            embedders: Arc::new(self.models.clone()),
            parser: Arc::new(Markdown),
            classifier: None,
            chat_models: None,
            evaluator: None,
            deletion: None,
            spaces: None,
            observer: None,
            peers,
        }
    }
}

/// What a process tells the others.
fn peer(format: u64) -> lkr_state::Process {
    lkr_state::Process { id: ProcessId::new(), format, is_exclusive: false }
}

struct Process {
    ingestor: Ingestor,
    peers: Peers,
    workers: Workers,
}

/// Models with so many dimensions.
#[derive(Debug, Clone)]
struct Models(Vec<usize>);

impl EmbedderSource for Models {
    fn embedders(&self) -> Vec<Arc<dyn Embedder>> {
        let model = |dims: &usize| Arc::new(MemoryEmbedder::with_dims(*dims)) as Arc<dyn Embedder>;
        self.0.iter().map(model).collect()
    }
}

fn text(n: usize) -> NewDocument {
    let text = format!("# Rock {n}\n\nRock number {n} was found in layer {} of the quarry.", n * 7);
    NewDocument { text, title: format!("Rock {n}"), ..NewDocument::default() }
}

fn by_eva() -> Submission {
    Submission::by(Creator::from("eva"))
}

async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !condition().await {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn ended(catalog: &Catalog, task: TaskId) -> Task {
    eventually("the task does not end", async || {
        catalog.task(task).await.unwrap().is_some_and(|task| task.status.has_ended())
    })
    .await;
    catalog.task(task).await.unwrap().unwrap()
}

async fn live(catalog: &Catalog, task: &Task) -> Document {
    let task = ended(catalog, task.task_id).await;
    let document = catalog.document(task.doc_id().unwrap()).await.unwrap();
    document.unwrap_or_else(|| panic!("{task:?}")).value
}

#[tokio::test(flavor = "multi_thread")]
async fn process_without_workers_accepts_what_another_ingests() {
    let stores = Stores::new();
    let api = stores.process(0).await;
    let task = api.ingestor.submit(text(1), by_eva()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let waiting = stores.catalog().task(task.task_id).await.unwrap().unwrap();
    assert_eq!(waiting.status, TaskStatus::Pending);
    assert_eq!(api.workers.status().workers, 0);

    let worker = stores.process(2).await;
    assert_eq!(live(&stores.catalog(), &task).await.title, "Rock 1");
    assert!(!api.peers.leads("janitor").await.unwrap(), "a process without workers leads nothing");
    drop(worker);
}

/// A process that accepted a task and ended before it queued it loses nothing: the leader queues it.
#[tokio::test(flavor = "multi_thread")]
async fn task_that_was_accepted_and_not_queued_is_queued_by_another_process() {
    let stores = Stores::new();
    let api = stores.process(0).await;
    let task = api.ingestor.submit(text(1), by_eva()).await.unwrap();
    assert!(stores.queue.remove(task.task_id).await.unwrap());
    let idle = stores.process(2).await;
    assert_eq!(live(&stores.catalog(), &task).await.title, "Rock 1");
    drop(idle);
}

/// The claim of a process that was killed does not keep others from ingesting the text.
#[tokio::test(flavor = "multi_thread")]
async fn claim_of_a_process_that_ended_does_not_count() {
    let stores = Stores::new();
    let catalog = stores.catalog();
    let process = stores.process(2).await;
    let submission = || Submission { dedup: Dedup::Simhash { threshold: 3 }, ..by_eva() };
    let pending = Task::ingest(
        catalog.clock(),
        DocId::new(),
        lkr_domain::SpaceName::default(),
        Creator::from("eva"),
        lkr_catalog::TaskInput::default(),
    );
    let fingerprint = lkr_ingest::fingerprint(&text(1).text);
    let dead = lkr_catalog::StoredTextClaim::new(pending.task_id, Peers::alone().id(), &fingerprint);
    let space = lkr_domain::SpaceName::default();
    let before = catalog.text_claims(&space).await.unwrap();
    catalog.replace_text_claims(&space, &before, &[dead]).await.unwrap();
    let task = process.ingestor.submit(text(1), submission()).await.unwrap();
    assert_eq!(live(&catalog, &task).await.title, "Rock 1");
}

/// A store is upgraded once the processes of the earlier version have ended, which they are asked to. From then on none can join.
#[tokio::test(flavor = "multi_thread")]
async fn store_is_upgraded_once_processes_of_the_earlier_version_have_ended() {
    let stores = Stores::new();
    let join = async |format| Peers::join(Arc::clone(&stores.state), peer(format), PEERS).await;
    let earlier = join(STORE_VERSION - 1).await.unwrap();
    let version = Write::put("version", Expect::Absent, (STORE_VERSION - 1).to_string());
    stores.state.apply(vec![version]).await.unwrap();
    let opening = tokio::spawn({
        let stores = stores.clone();
        async move { stores.process(1).await }
    });
    earlier.superseded().await;
    assert_eq!(stores.catalog().version().await.unwrap(), STORE_VERSION - 1);
    assert!(!opening.is_finished());
    earlier.leave().await;
    let later = opening.await.unwrap();
    assert_eq!(stores.catalog().version().await.unwrap(), STORE_VERSION);
    let error = join(STORE_VERSION - 1).await.unwrap_err();
    assert!(error.to_string().contains("a later lkr"), "{error}");
    let task = later.ingestor.submit(text(1), by_eva()).await.unwrap();
    assert_eq!(live(&stores.catalog(), &task).await.title, "Rock 1");
}

/// A note of a change in a process that runs is left alone; once the process is gone, another repairs the document.
#[tokio::test(flavor = "multi_thread")]
async fn changes_are_repaired_once_their_process_is_gone() {
    let stores = Stores::new();
    let catalog = stores.catalog();
    let worker = stores.process(2).await;
    let document = live(&catalog, &worker.ingestor.submit(text(1), by_eva()).await.unwrap()).await;
    let gone = Peers::join(Arc::clone(&stores.state), peer(STORE_VERSION), PEERS).await.unwrap();
    let note = ChangeNote::new(catalog.clock(), document.doc_id, gone.id());
    catalog.note_change(&note).await.unwrap();
    // A change through the worker wakes its janitor.
    let change = DocumentChange { title: Some("Renamed".to_owned()), ..DocumentChange::default() };
    worker.ingestor.change(document.doc_id, change, Vec::new()).await.unwrap().unwrap();
    worker.ingestor.delete(DocId::new(), Vec::new()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(catalog.unfinished_changes(None, 9).await.unwrap(), std::slice::from_ref(&note));

    drop(gone);
    eventually("the note is not taken up", async || {
        worker.ingestor.delete(DocId::new(), Vec::new()).await.unwrap();
        catalog.unfinished_changes(None, 9).await.unwrap().is_empty()
    })
    .await;
    assert_eq!(catalog.document(document.doc_id).await.unwrap().unwrap().value.title, "Renamed");
}

/// While one process changes the embedding model, others publish, replace and delete documents. Afterwards every live
/// document has all of its points with vectors of the new model, and nothing else is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn documents_that_other_processes_write_during_a_change_of_the_model_get_its_vectors() {
    let stores = Stores::new();
    let catalog = stores.catalog();
    let (one, other) = (stores.process(2).await, stores.process(2).await);
    let mut documents = Vec::new();
    for n in 0..30 {
        documents.push(live(&catalog, &one.ingestor.submit(text(n), by_eva()).await.unwrap()).await.doc_id);
    }
    let next: Arc<dyn Embedder> = Arc::new(MemoryEmbedder::with_dims(16));
    let task = one
        .ingestor
        .embed_by(Some(next.profile()), ReembedTrigger::Actor(Creator::from("eva")))
        .await
        .unwrap();
    let task = task.unwrap();
    let mut tasks = Vec::new();
    for n in 30..90 {
        let process = if n % 2 == 0 { &one } else { &other };
        tasks.push(process.ingestor.submit(text(n), by_eva()).await.unwrap());
        if n % 5 == 0 {
            let replaced = documents[(n - 30) / 5];
            tasks.extend(process.ingestor.replace(replaced, text(n + 1_000), by_eva()).await.unwrap());
            process.ingestor.delete(documents[29 - (n - 30) / 5], Vec::new()).await.unwrap();
        }
    }
    for task in &tasks {
        let task = ended(&catalog, task.task_id).await;
        assert!(task.status == TaskStatus::Done, "{:?}", task.error);
    }
    let changed = ended(&catalog, task.task_id).await;
    assert_eq!(changed.status, TaskStatus::Done, "{:?}", changed.error);
    assert_eq!(one.ingestor.live_model().await.unwrap().as_deref(), Some("memory-16"));

    let mut points = [0_u64; 4];
    let mut after = None;
    let mut count = 0;
    loop {
        let page = catalog.stored_documents(after, 100).await.unwrap();
        for document in &page {
            count += 1;
            for (sum, layer) in points.iter_mut().zip(Layer::ALL) {
                *sum += document.value.counts.of(layer);
            }
        }
        match page.last() {
            Some(last) if page.len() == 100 => after = Some(last.value.doc_id),
            _ => break,
        }
    }
    assert_eq!(count, 78, "30 and 60 documents, 12 of which were deleted");
    for (expected, layer) in points.into_iter().zip(Layer::ALL) {
        eventually("points of earlier revisions are not collected", async || {
            other.ingestor.delete(DocId::new(), Vec::new()).await.unwrap();
            stores.vectors.count(&layer.into(), &Filter::all()).await.unwrap() == expected
        })
        .await;
        let page =
            stores.vectors.scroll(&layer.into(), &Filter::all(), None, 10_000, Include::All).await.unwrap();
        for point in page.points {
            assert_eq!(point.dense.map(|dense| dense.len()), Some(16), "{layer} {:?}", point.origin);
        }
    }
}

/// What was stored before a sweep began cannot be accepted after it, because the sweep may have removed it.
#[tokio::test(flavor = "multi_thread")]
async fn acceptance_that_a_sweep_overtakes_is_repeated() {
    let stores = Stores::new();
    let catalog = stores.catalog();
    let no_sweep = catalog.no_sweep().await.unwrap();
    catalog.begin_sweep().await.unwrap();
    let late = vec![no_sweep, Write::put("task/late", Expect::Any, "")];
    let error = stores.state.apply(late).await.unwrap_err();
    assert_eq!(error.kind(), lkr_state::ErrorKind::Conflict);
    assert!(stores.state.get("task/late").await.unwrap().is_none());
    let current = catalog.no_sweep().await.unwrap();
    stores.state.apply(vec![current]).await.unwrap();

    // Submissions and sweeps at once.
    let process = stores.process(2).await;
    let sweeping = tokio::spawn({
        let catalog = catalog.clone();
        async move {
            for _ in 0..50 {
                catalog.begin_sweep().await.unwrap();
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    });
    for n in 0..20 {
        let task = process.ingestor.submit(text(n), by_eva()).await.unwrap();
        assert_eq!(live(&catalog, &task).await.title, format!("Rock {n}"));
    }
    sweeping.await.unwrap();
}

//! A process is stalled while it changes the embedding model, gives vectors to a document, publishes or moves it, and others go on
//! without it.

use std::{
    io::Write as _,
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use lkr_catalog::ExtractedText;
use lkr_domain::{Metadata, SpaceName};
use lkr_ingest::NewFile;
use lkr_parsers::{Parser as _, Source, encode_blocks};
use lkr_state::{Key, Op, Record, Scan, ScanOrder};
use lkr_vectors::{Collection, Condition, FailingVectors, Point};

use super::*;

/// So short that another process takes a task over soon from one that is stalled.
const LEASE: Duration = Duration::from_millis(300);

/// A point at which a process stops, with all that the same task of the runtime does, until it may go on. It stops once.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Whether it was reached, and whether it is open.
    state: Mutex<(bool, bool)>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn pass(&self) {
        tokio::task::block_in_place(|| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.0 = true;
            while !state.1 {
                state = self.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        });
    }

    pub(crate) fn is_reached(&self) -> bool {
        self.state.lock().unwrap().0
    }

    pub(crate) fn open(&self) {
        self.state.lock().unwrap().1 = true;
        self.opened.notify_all();
    }
}

/// Opens a gate when a test ends, even if it fails: the runtime waits for its threads.
pub(crate) struct OpenAtEnd(pub(crate) Arc<Gate>);

impl Drop for OpenAtEnd {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// A step before or after which a process stops.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// The phase of a change of the model becomes this one.
    Phase(&'static str),
    /// A document becomes live.
    Publication,
}

impl Step {
    fn contains(self, write: &Write) -> bool {
        let Op::Put { value, .. } = &write.op else { return false };
        match self {
            Self::Phase(phase) => {
                let phase = format!("\"phase\":\"{phase}\"");
                write.key == "collections" && String::from_utf8_lossy(value).contains(&phase)
            }
            Self::Publication => write.key.starts_with("doc/"),
        }
    }
}

/// Stops before a step, or after it.
#[derive(Debug)]
struct StallingState {
    inner: Arc<dyn StateStore>,
    step: Step,
    is_after: bool,
    gate: Arc<Gate>,
}

#[async_trait]
impl StateStore for StallingState {
    async fn get_many(&self, keys: &[Key]) -> lkr_state::Result<Vec<Option<Record>>> {
        self.inner.get_many(keys).await
    }

    async fn apply(&self, writes: Vec<Write>) -> lkr_state::Result<()> {
        let is_watched = writes.iter().any(|write| self.step.contains(write));
        if is_watched && !self.is_after {
            self.gate.pass();
        }
        let applied = self.inner.apply(writes).await;
        if is_watched && self.is_after {
            self.gate.pass();
        }
        applied
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> lkr_state::Result<Vec<(Key, Record)>> {
        self.inner.scan(prefix, after, order, limit).await
    }

    async fn scan_many(&self, scans: &[Scan]) -> lkr_state::Result<Vec<Vec<(Key, Record)>>> {
        self.inner.scan_many(scans).await
    }

    async fn snapshot(&self, to: &Path) -> lkr_state::Result<()> {
        self.inner.snapshot(to).await
    }

    async fn health(&self) -> lkr_state::Result<()> {
        self.inner.health().await
    }
}

/// A process that stops before or after a step, and where it stops.
pub(crate) async fn stalling(
    stores: &Stores,
    step: Step,
    is_after: bool,
    options: IngestOptions,
) -> (Process, OpenAtEnd) {
    let gate = Arc::new(Gate::default());
    let inner = Arc::clone(&stores.state);
    let state = Arc::new(StallingState { inner, step, is_after, gate: Arc::clone(&gate) });
    let stores = Stores { state, ..stores.clone() };
    (stores.process_with(options).await, OpenAtEnd(gate))
}

fn two_workers(lease: Duration) -> IngestOptions {
    IngestOptions { workers: 2, lease, ..IngestOptions::default() }
}

async fn change_to(process: &Process, dims: usize) -> Task {
    let next: Arc<dyn Embedder> = Arc::new(MemoryEmbedder::with_dims(dims));
    let eva = ReembedTrigger::Actor(Creator::from("eva"));
    process.ingestor.embed_by(Some(next.profile()), eva).await.unwrap().unwrap()
}

/// Every document has all of its points in the live collections, with vectors of so many dimensions.
async fn assert_complete(stores: &Stores, documents: usize, dims: usize) {
    let stored = stores.catalog().stored_documents(None, 100).await.unwrap();
    assert_eq!(stored.len(), documents);
    for layer in Layer::ALL {
        let page =
            stores.vectors.scroll(&layer.into(), &Filter::all(), None, 10_000, Include::All).await.unwrap();
        for document in &stored {
            let points = page.points.iter().filter(|point| point.origin.doc_id == document.value.doc_id);
            let dense = points.map(|point| point.dense.as_ref().map(Vec::len)).collect::<Vec<_>>();
            assert_eq!(dense.len() as u64, document.value.counts.of(layer), "{layer} {:?}", document.value);
            assert!(dense.iter().all(|of| *of == Some(dims)), "{layer} {dense:?}");
        }
    }
}

/// A worker that is stalled just before, or just after, it begins to switch loses its lease; its successor lets a document be
/// published. Then the stalled worker goes on.
async fn publish_while_the_first_worker_is_stalled(is_after: bool) {
    let stores = Stores::new();
    let catalog = stores.catalog();
    let (first, stalled) = stalling(&stores, Step::Phase("switching"), is_after, two_workers(LEASE)).await;
    for n in 0..4 {
        live(&catalog, &first.ingestor.submit(text(n), by_eva()).await.unwrap()).await;
    }
    let task = change_to(&first, 16).await;
    eventually("the first worker is not stalled", async || stalled.0.is_reached()).await;
    let lease = IngestOptions::default().lease;
    let (second, waiting) = stalling(&stores, Step::Phase("draining"), false, two_workers(lease)).await;
    let has_ended = async || catalog.task(task.task_id).await.unwrap().unwrap().status.has_ended();
    eventually("nobody takes over", async || waiting.0.is_reached() || has_ended().await).await;

    let late = second.ingestor.submit(text(9), by_eva()).await.unwrap();
    live(&catalog, &late).await;
    stalled.0.open();
    eventually("the first worker does not go on", async || first.workers.status().busy == 0).await;
    waiting.0.open();
    assert_eq!(ended(&catalog, task.task_id).await.status, TaskStatus::Done);
    eventually("the second worker does not end", async || second.workers.status().busy == 0).await;
    assert_complete(&stores, 5, 16).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn worker_that_is_stalled_before_switching_loses_no_document_of_its_successor() {
    publish_while_the_first_worker_is_stalled(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn worker_that_is_stalled_before_the_aliases_are_switched_loses_no_document_of_its_successor() {
    publish_while_the_first_worker_is_stalled(true).await;
}

/// A process is stalled when it drops the collections of the first model, and another process changes back to that model.
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn process_that_is_stalled_while_it_drops_collections_drops_none_that_are_live_again() {
    let stores = Stores::new();
    let catalog = stores.catalog();
    let stalled = OpenAtEnd(Arc::new(Gate::default()));
    let (gate, inner) = (Arc::clone(&stalled.0), Arc::clone(&stores.vectors));
    let vectors = Arc::new(FailingVectors::new(inner, move |operation| {
        if operation == "drop_collection" {
            gate.pass();
        }
        None
    }));
    let first = Stores { vectors, ..stores.clone() }.process(2).await;
    for n in 0..5 {
        live(&catalog, &first.ingestor.submit(text(n), by_eva()).await.unwrap()).await;
    }
    let forth = change_to(&first, 16).await;
    assert_eq!(ended(&catalog, forth.task_id).await.status, TaskStatus::Done);
    eventually("the first process is not stalled", async || stalled.0.is_reached()).await;
    let second = stores.process(2).await;
    let back = change_to(&second, 8).await;
    assert_eq!(ended(&catalog, back.task_id).await.status, TaskStatus::Done);
    stalled.0.open();
    for process in [&first, &second] {
        eventually("a process does not go on", async || process.workers.status().busy == 0).await;
    }
    assert_complete(&stores, 5, 8).await;
    assert_eq!(stores.vectors.collections().await.unwrap().len(), 4, "the others are dropped");
}

/// The collections that the aliases of the layers name.
async fn live_collections(stores: &Stores) -> Vec<Collection> {
    let mut live = Vec::new();
    for layer in Layer::ALL {
        live.push(stores.vectors.describe(&layer.into()).await.unwrap().unwrap().collection);
    }
    live
}

/// A process is stalled when it switches the aliases. Another one does it, changes the model again, and ends before it has dropped
/// the collections of the first change. Then the first switch takes effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn switch_that_takes_effect_after_a_later_change_is_undone() {
    let stores = Stores::new();
    let catalog = stores.catalog();
    let stalled = OpenAtEnd(Arc::new(Gate::default()));
    let is_armed = Arc::new(AtomicBool::new(false));
    let (gate, armed, inner) = (Arc::clone(&stalled.0), Arc::clone(&is_armed), Arc::clone(&stores.vectors));
    let vectors = Arc::new(FailingVectors::new(inner, move |operation| {
        if operation == "switch" && armed.load(Ordering::Relaxed) {
            gate.pass();
        }
        None
    }));
    let first = Stores { vectors, ..stores.clone() }.process_with(two_workers(LEASE)).await;
    for n in 0..4 {
        live(&catalog, &first.ingestor.submit(text(n), by_eva()).await.unwrap()).await;
    }
    is_armed.store(true, Ordering::Relaxed);
    let forth = change_to(&first, 16).await;
    eventually("the first process is not stalled", async || stalled.0.is_reached()).await;

    let drops_nothing = FailingVectors::new(Arc::clone(&stores.vectors), |operation| {
        (operation == "drop_collection").then_some(lkr_vectors::ErrorKind::Unavailable)
    });
    let second = Stores { vectors: Arc::new(drops_nothing), ..stores.clone() }.process(2).await;
    assert_eq!(ended(&catalog, forth.task_id).await.status, TaskStatus::Done);
    let of_forth = live_collections(&stores).await;
    let back = change_to(&second, 8).await;
    assert_eq!(ended(&catalog, back.task_id).await.status, TaskStatus::Done);
    let of_back = live_collections(&stores).await;

    // As if its request was still on its way when it ended: who publishes a document notices.
    let aliases: Vec<_> = Layer::ALL.map(Collection::from).into_iter().zip(of_forth).collect();
    stores.vectors.switch(&aliases).await.unwrap();
    live(&catalog, &second.ingestor.submit(text(9), by_eva()).await.unwrap()).await;
    assert_eq!(live_collections(&stores).await, of_back);
    // It goes on, and notices itself.
    stalled.0.open();
    eventually("the first process does not go on", async || first.workers.status().busy == 0).await;
    eventually("the late switch is not undone", async || live_collections(&stores).await == of_back).await;
    assert_complete(&stores, 5, 8).await;
}

/// The collections that a document's points are missing from are not dropped: the change fails instead.
#[tokio::test(flavor = "multi_thread")]
async fn change_of_the_model_fails_if_points_of_a_document_are_missing() {
    let stores = Stores::new();
    let options = IngestOptions { workers: 2, max_attempts: 1, ..IngestOptions::default() };
    let process = stores.process_with(options).await;
    let document = live(&stores.catalog(), &process.ingestor.submit(text(1), by_eva()).await.unwrap()).await;
    let points = Filter::only(Condition::Docs(vec![document.doc_id]));
    stores.vectors.delete(&Layer::Chunks.into(), &points).await.unwrap();
    let task = change_to(&process, 16).await;
    let failed = ended(&stores.catalog(), task.task_id).await;
    assert_eq!(failed.status, TaskStatus::Failed);
    let message = failed.error.unwrap().message;
    assert!(message.contains("lacks 1 points of chunks"), "{message}");
    assert_eq!(process.ingestor.live_model().await.unwrap().as_deref(), Some("memory-8"));
    assert_eq!(stores.vectors.count(&Layer::L1.into(), &points).await.unwrap(), 1);
}

fn move_away() -> DocumentChange {
    DocumentChange { space: SpaceName::new("elsewhere"), ..DocumentChange::default() }
}

fn file() -> NewFile {
    let text = "# Basalt\n\nBasalt comes from volcanoes.";
    let parsed = Markdown.parse(&Source::from(text)).unwrap();
    let blocks = encode_blocks(&parsed.blocks).unwrap();
    let (mut file, mut extracted) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    file.write_all(text.as_bytes()).unwrap();
    extracted.write_all(parsed.text.as_bytes()).unwrap();
    extracted.write_all(&blocks).unwrap();
    let (text_bytes, blocks_bytes) = (parsed.text.len() as u64, blocks.len() as u64);
    NewFile {
        file_name: "basalt.md".to_owned(),
        file,
        size_bytes: text.len() as u64,
        extracted: ExtractedText { file: extracted, text_bytes, blocks_bytes },
        title: "Basalt".to_owned(),
        source: "file:basalt.md".to_owned(),
        metadata: Metadata::new(),
    }
}

/// A worker is stalled just before it publishes a file. Its successor publishes it, and the document is moved: it keeps its file.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn worker_that_lost_its_lease_keeps_the_original_of_a_document_that_was_moved() {
    let stores = Stores::new();
    let catalog = stores.catalog();
    // Its only worker is the one that stops.
    let options = IngestOptions { workers: 1, lease: LEASE, ..IngestOptions::default() };
    let (first, stalled) = stalling(&stores, Step::Publication, false, options).await;
    let task = first.ingestor.submit_file(file(), by_eva()).await.unwrap();
    eventually("the first process is not stalled", async || stalled.0.is_reached()).await;
    let second = stores.process(2).await;
    let document = live(&catalog, &task).await;
    let moved = second.ingestor.change(document.doc_id, move_away(), Vec::new()).await.unwrap().unwrap();
    assert_ne!(moved.revision, document.revision);
    stalled.0.open();
    eventually("the first process does not go on", async || first.workers.status().busy == 0).await;
    let originals = Originals::in_folder(stores.uploads.path().to_owned());
    let path = moved.original.unwrap().path;
    assert!(originals.get(&path).await.unwrap().is_some(), "the original is gone");
}

/// The stores for a process that stops before the upsert of points with this number, counted from when `is_armed` is set.
fn stopping_at_upsert(stores: &Stores, number: usize, is_armed: &Arc<AtomicBool>) -> (Stores, OpenAtEnd) {
    let stalled = OpenAtEnd(Arc::new(Gate::default()));
    let (gate, armed, inner) = (Arc::clone(&stalled.0), Arc::clone(is_armed), Arc::clone(&stores.vectors));
    let upserts = AtomicUsize::new(0);
    let vectors = FailingVectors::new(inner, move |operation| {
        let counts = operation == "upsert" && armed.load(Ordering::Relaxed);
        if counts && upserts.fetch_add(1, Ordering::Relaxed) + 1 == number {
            gate.pass();
        }
        None
    });
    (Stores { vectors: Arc::new(vectors), ..stores.clone() }, stalled)
}

/// A document is deleted while it gets vectors and a backup is made. The backup needs its points.
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn points_of_a_document_that_is_deleted_while_it_gets_vectors_stay_while_collection_is_paused() {
    let stores = Stores::new();
    let catalog = stores.catalog();
    let is_armed = Arc::new(AtomicBool::new(false));
    let (stopping, stalled) = stopping_at_upsert(&stores, 1, &is_armed);
    let (filling, other) = (stopping.process(1).await, stores.process(0).await);
    let document = live(&catalog, &other.ingestor.submit(text(1), by_eva()).await.unwrap()).await;
    // As if there had been no model when it was ingested.
    let points = Filter::only(Condition::Docs(vec![document.doc_id]));
    let l1 = stores.vectors.scroll(&Layer::L1.into(), &points, None, 9, Include::All).await.unwrap();
    let without_vector = l1.points.into_iter().map(|point| Point { dense: None, ..point }).collect();
    stores.vectors.upsert(&Layer::L1.into(), without_vector).await.unwrap();
    is_armed.store(true, Ordering::Relaxed);
    catalog.mark_unembedded(&[document.doc_id]).await.unwrap();
    let model = MemoryEmbedder::with_dims(8);
    eventually("the document gets no vectors", async || {
        // The model is in use already, so this only wakes who embeds what lacks vectors.
        let task = filling.ingestor.embed_by(Some(model.profile()), ReembedTrigger::AtStart).await.unwrap();
        assert!(task.is_none());
        stalled.0.is_reached()
    })
    .await;

    let pause = other.ingestor.pause_gc().await.unwrap();
    other.ingestor.delete(document.doc_id, Vec::new()).await.unwrap();
    stalled.0.open();
    eventually("the filling does not end", async || {
        catalog.unfinished_changes(None, 9).await.unwrap().is_empty()
    })
    .await;
    // Long enough to remove what may be removed.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let count = async || stores.vectors.count(&Layer::Chunks.into(), &points).await.unwrap();
    assert_eq!(count().await, document.counts.of(Layer::Chunks));
    drop(pause);
    eventually("the points are not collected", async || {
        filling.ingestor.delete(DocId::new(), Vec::new()).await.unwrap();
        count().await == 0
    })
    .await;
}

/// A document is filled into the collections of the next model while it is moved. The other points have been read there before,
/// the L1 point not yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn document_that_is_moved_while_it_is_filled_gets_all_of_its_points() {
    let stores = Stores::new();
    let catalog = stores.catalog();
    let section = |rock: &str| format!("## {rock}\n\nOf {rock}, and what it is for.\n");
    let sections = ["granite", "marble", "slate"].map(section);
    let rocks = NewDocument { text: format!("# Rocks\n\n{}", sections.join("\n")), ..NewDocument::default() };
    let ingesting = stores.process(1).await;
    let document = live(&catalog, &ingesting.ingestor.submit(rocks, by_eva()).await.unwrap()).await;
    assert!(document.counts.of(Layer::L2) > 0);
    drop(ingesting);

    let is_armed = Arc::new(AtomicBool::new(true));
    let (filling, before_filling) = stopping_at_upsert(&stores, 1, &is_armed);
    let (moving, amid_move) = stopping_at_upsert(&stores, 2, &is_armed);
    // When all points are written, the record of the document is.
    let lease = IngestOptions::default().lease;
    let (first, filled) = stalling(&filling, Step::Publication, false, two_workers(lease)).await;
    let second = moving.process(0).await;
    let task = change_to(&first, 16).await;
    eventually("nobody fills", async || before_filling.0.is_reached()).await;
    let doc_id = document.doc_id;
    let moved = tokio::spawn(async move { second.ingestor.change(doc_id, move_away(), Vec::new()).await });
    eventually("nobody moves", async || amid_move.0.is_reached()).await;
    before_filling.0.open();
    eventually("the document is not filled", async || filled.0.is_reached()).await;
    amid_move.0.open();
    let moved = moved.await.unwrap().unwrap().unwrap();
    filled.0.open();
    let changed = ended(&catalog, task.task_id).await;
    assert_eq!(changed.status, TaskStatus::Done, "{:?}", changed.error);
    let points = Filter::only(Condition::Revision(doc_id, moved.revision));
    for layer in Layer::ALL {
        let page = stores.vectors.scroll(&layer.into(), &points, None, 99, Include::All).await.unwrap();
        let dense = page.points.iter().map(|point| point.dense.as_ref().map(Vec::len)).collect::<Vec<_>>();
        assert_eq!(dense.len() as u64, moved.counts.of(layer), "{layer}");
        assert!(dense.iter().all(|dims| *dims == Some(16)), "{layer} {dense:?}");
    }
}

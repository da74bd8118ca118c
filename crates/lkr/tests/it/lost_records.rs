//! A state store that lost records, all of them or the latest ones: the doctor restores them from points and texts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lkr::{
    Creator, DocId, Document, DocumentChange, ErrorKind, Folders, KnowledgeBase, Layer, ListFilter,
    NewDocument, NewFile, OpenOptions, OtherStores, Scope, SearchRequest, SharedState, SpaceName, Submission,
    doctor::{
        DoctorOptions, DoctorReport, RepairOutcome, StoresDoctorOptions, examine_stores, has_lost_records,
    },
    spaces::{NewSpace, ReadPolicy, Spaces, WritePolicy},
};
use lkr_catalog::{Originals, STORE_VERSION, Texts, l1_id};
use lkr_state::{
    Expect, FailingState, MemoryQueue, MemoryState, PeerOptions, Peers, Process, ProcessId, ScanOrder,
    StateStore, StateStoreExt, TaskQueue, Write,
};
use lkr_vectors::{Condition, Filter, Include};
use tempfile::TempDir;

use crate::{
    common::{ScriptedEmbedder, TestStores, document, markdown_file, text, wait_for_task, wait_until},
    ingest::texts,
    replace::wait_until_only_live_data_remains,
};

/// What the program puts into a restored store.
const MARK: &str = "auth/initialised";

/// Stores, and the folder to which a repair moves data.
struct Case {
    stores: TestStores,
    folder: TempDir,
}

fn space(name: &str) -> SpaceName {
    SpaceName::new(name).unwrap()
}

fn eva() -> Creator {
    Creator { name: "eva".to_owned(), id: "id of eva".to_owned() }
}

/// Reads the test's records that prove deletions: the document is the value.
fn read_deletion(key: &str, value: &[u8]) -> Option<DocId> {
    std::str::from_utf8(value).ok()?.parse().ok().filter(|_| key.starts_with("audit/"))
}

async fn add(kb: &KnowledgeBase, new: NewDocument, into: &str) -> Document {
    let submission = Submission { space: space(into), ..Submission::by(eva()) };
    let task = kb.submit(new, submission).await.unwrap();
    let doc_id = wait_for_task(kb, task.task_id).await.doc_id().unwrap();
    kb.document(doc_id).await.unwrap().unwrap()
}

async fn add_file(kb: &KnowledgeBase, name: &str) -> Document {
    let metadata = [("kind".to_owned(), "file".to_owned())].into();
    let new = NewFile { metadata, ..markdown_file(&format!("notes on {name}.md"), &text(name, 3)) };
    let task = kb.submit_file(new, Submission::by(eva())).await.unwrap();
    let doc_id = wait_for_task(kb, task.task_id).await.doc_id().unwrap();
    kb.document(doc_id).await.unwrap().unwrap()
}

async fn replace(kb: &KnowledgeBase, doc_id: DocId, new: NewDocument) {
    let task = kb.replace(doc_id, new, Submission::by("otto".into())).await.unwrap().unwrap();
    wait_for_task(kb, task.task_id).await;
}

fn change(category: &str) -> DocumentChange {
    DocumentChange {
        title: Some("another title".to_owned()),
        category: Some(category.to_owned()),
        metadata: [("reviewed.by".to_owned(), Some("otto, \"é\"".to_owned()))].into(),
        ..DocumentChange::default()
    }
}

async fn create_space(kb: &KnowledgeBase, name: &str) {
    let new = NewSpace {
        name: space(name),
        title: "a title".to_owned(),
        description: String::new(),
        read: ReadPolicy::Everyone,
        write: WritePolicy::Accounts,
        created_by: "eva".to_owned(),
    };
    kb.spaces().create(new, Vec::new()).await.unwrap();
}

/// All live documents, by their ids.
async fn documents(kb: &KnowledgeBase) -> Vec<Document> {
    let page = kb.list(&Scope::All, &ListFilter::default(), None, 100).await.unwrap();
    let mut documents = page.items;
    documents.sort_by_key(|document| document.doc_id);
    documents
}

/// What searches answer: the documents and texts, in order.
async fn answers(kb: &KnowledgeBase) -> Vec<(DocId, String)> {
    let mut answers = Vec::new();
    for query in ["granite number 2", "basalt", "opal rests", "number 1 of what is moved", "colour grey"] {
        let found = kb.search(&SearchRequest { top_k: 20, ..SearchRequest::new(query) }).await.unwrap();
        answers.extend(found.response.results.iter().map(|result| (result.doc_id, result.text.clone())));
    }
    assert!(!answers.is_empty());
    answers
}

impl Case {
    fn new() -> Self {
        Self { stores: TestStores::default(), folder: tempfile::tempdir().unwrap() }
    }

    /// The same points and texts with other records.
    fn with_state(&self, state: Arc<dyn StateStore>) -> Self {
        Self { stores: TestStores { state, ..self.stores.clone() }, folder: tempfile::tempdir().unwrap() }
    }

    async fn open(&self) -> KnowledgeBase {
        self.stores.open(Some(ScriptedEmbedder::unlimited())).await
    }

    /// The records at this moment.
    async fn snapshot(&self) -> Arc<dyn StateStore> {
        let to = self.folder.path().join("snapshot");
        self.stores.state.snapshot(&to).await.unwrap();
        Arc::new(MemoryState::open_snapshot(&to).unwrap())
    }

    fn options(&self, repair: bool) -> StoresDoctorOptions {
        let TestStores { vectors, state, blobs, .. } = self.stores.clone();
        let queue: Arc<dyn TaskQueue> = Arc::new(MemoryQueue::default());
        StoresDoctorOptions {
            doctor: DoctorOptions { folders: Folders::new(self.folder.path()), repair, readers: Vec::new() },
            stores: OtherStores {
                vectors: Some(vectors),
                state: Some(SharedState {
                    records: state,
                    queue,
                    process: ProcessId::new(),
                    export: Arc::new(MemoryState::default()),
                }),
                blobs: Some(blobs),
            },
            deletions: vec![read_deletion],
            marks: vec![Write::put(MARK, Expect::Any, "1")],
            force: false,
        }
    }

    async fn examine(&self, repair: bool) -> DoctorReport {
        examine_stores(self.options(repair)).await.unwrap()
    }

    async fn findings(&self) -> Vec<String> {
        self.examine(false).await.report.findings.into_iter().map(|finding| finding.what).collect()
    }

    /// Repairs, and asserts that everything is repaired and that a second check finds nothing.
    async fn assert_repairs(&self) -> DoctorReport {
        let repaired = self.examine(true).await;
        let left: Vec<_> =
            repaired.report.findings.iter().filter(|finding| finding.is_unrepaired()).collect();
        assert!(left.is_empty(), "{left:#?}");
        assert_eq!(self.findings().await, Vec::<String>::new());
        repaired
    }

    async fn records(&self, prefix: &str) -> Vec<String> {
        let records = self.stores.state.scan(prefix, None, ScanOrder::Ascending, 10_000).await.unwrap();
        records.into_iter().map(|(key, _)| key).collect()
    }

    async fn forget(&self, keys: impl IntoIterator<Item = String>) {
        let writes = keys.into_iter().map(|key| Write::delete(key, Expect::Any));
        self.stores.state.apply(writes.collect()).await.unwrap();
    }
}

/// A knowledge base with a document of each kind: plain, a file, replaced, changed by hand, moved, deleted.
async fn fill(case: &Case) -> KnowledgeBase {
    let kb = case.open().await;
    case.stores.classifier.learn("granite", "stone");
    create_space(&kb, "papers").await;
    let metadata = [("price".to_owned(), String::new()), ("k".repeat(300), "v".repeat(3_000))].into();
    let plain = NewDocument { source: "a source".to_owned(), metadata, ..document("granite", 6) };
    add(&kb, plain, "default").await;
    add_file(&kb, "basalt").await;
    let replaced = add(&kb, document("marble", 2), "papers").await;
    replace(&kb, replaced.doc_id, document("opal", 9)).await;
    let changed = add(&kb, document("tuff", 2), "default").await;
    kb.change(changed.doc_id, change("by hand")).await.unwrap().unwrap();
    let moved = add(&kb, document("of what is moved", 2), "default").await;
    let to = DocumentChange { space: Some(space("papers")), ..DocumentChange::default() };
    kb.change(moved.doc_id, to).await.unwrap().unwrap();
    let deleted = add(&kb, document("slate", 2), "default").await;
    kb.delete(deleted.doc_id).await.unwrap();
    wait_until("garbage is collected", async || case.records("trash/").await.is_empty()).await;
    kb
}

/// The documents with the times of changes to the microsecond, which the tags of points have.
fn to_micros(documents: Vec<Document>) -> Vec<Document> {
    let rounded = |at: time::OffsetDateTime| at.replace_microsecond(at.microsecond()).unwrap();
    documents
        .into_iter()
        .map(|document| Document { updated_at: rounded(document.updated_at), ..document })
        .collect()
}

#[tokio::test]
async fn lesson_43_store_that_lost_all_records_is_restored_from_points_and_texts() {
    let case = Case::new();
    let kb = fill(&case).await;
    let (before, found) = (documents(&kb).await, answers(&kb).await);
    let generation = case.stores.state.counter("generation").await.unwrap();
    kb.close().await;
    let lost = case.with_state(Arc::new(MemoryState::new()));
    let TestStores { vectors, state, blobs, .. } = &lost.stores;
    assert!(has_lost_records(state, &**vectors, blobs).await.unwrap());
    let opened = OpenOptions { stores: lost.options(false).stores, ..OpenOptions::new(lost.folder.path()) };
    let refused = KnowledgeBase::open_with(opened).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("lkr doctor --shared --repair"), "{refused}");

    let checked = lost.examine(false).await;
    assert!(checked.report.findings.iter().all(|finding| finding.outcome == RepairOutcome::Unrepaired));
    let findings = lost.findings().await.join("\n");
    for document in &before {
        assert!(
            findings.contains(&format!("document {} has points and a text", document.doc_id)),
            "{findings}"
        );
    }
    assert!(findings.contains("the space papers, which does not exist"), "{findings}");
    assert!(findings.contains("its records are lost") && !findings.contains("orphaned"), "{findings}");
    assert_eq!(lost.records("").await, Vec::<String>::new(), "a check changes nothing");

    let repaired = lost.assert_repairs().await;
    assert_eq!((repaired.report.documents, repaired.aside), (before.len() as u64, None));
    assert!(!has_lost_records(state, &**vectors, blobs).await.unwrap());
    assert!(state.counter("generation").await.unwrap() > generation + 1_000_000);
    assert!(state.get(MARK).await.unwrap().is_some(), "the program's marks are written");
    let directory = Spaces::new(Arc::clone(state)).directory().await.unwrap();
    for name in ["default", "papers"] {
        let found = directory.space(&space(name)).unwrap();
        assert_eq!((found.read, found.write), (ReadPolicy::Members, WritePolicy::Members), "{name}");
    }

    let kb = lost.open().await;
    let restored = documents(&kb).await;
    assert_eq!(to_micros(restored), to_micros(before.clone()));
    assert_eq!(answers(&kb).await, found);
    kb.spaces().ensure_default().await.unwrap();
    let directory = kb.spaces().directory().await.unwrap();
    assert_eq!(directory.space(&space("default")).unwrap().read, ReadPolicy::Members, "it stays closed");
    let file = before.iter().find(|document| document.original.is_some()).unwrap();
    assert_eq!(kb.original(file).await.unwrap().unwrap().size_bytes, text("basalt", 3).len() as u64);
    // The indexes of equal texts are there, too.
    let again = kb.submit(document("granite", 6), Submission::by(eva())).await.unwrap();
    let again = wait_for_task(&kb, again.task_id).await.result.unwrap().document().unwrap();
    assert!(again.duplicate_of.is_some());
    kb.close().await;
}

#[tokio::test]
async fn lesson_43_records_of_the_last_moment_are_restored_after_a_failover() {
    let case = Case::new();
    let kb = case.open().await;
    create_space(&kb, "papers").await;
    let unchanged = add(&kb, document("granite", 6), "default").await;
    let replaced = add(&kb, document("marble", 2), "default").await;
    let changed = add(&kb, document("tuff", 2), "default").await;
    let moved = add(&kb, document("of what is moved", 2), "default").await;
    let deleted = add(&kb, document("slate", 2), "default").await;
    let earlier = case.snapshot().await;

    replace(&kb, replaced.doc_id, document("opal", 9)).await;
    kb.change(changed.doc_id, change("by hand")).await.unwrap().unwrap();
    let to = DocumentChange { space: Some(space("papers")), ..DocumentChange::default() };
    kb.change(moved.doc_id, to).await.unwrap().unwrap();
    kb.delete(deleted.doc_id).await.unwrap();
    let added = add(&kb, document("basalt", 3), "papers").await;
    wait_until("garbage is collected", async || case.records("trash/").await.is_empty()).await;
    let (before, found) = (documents(&kb).await, answers(&kb).await);
    kb.close().await;

    let failed_over = case.with_state(earlier);
    let findings = failed_over.findings().await;
    let has =
        |what: String| assert!(findings.iter().any(|found| found.contains(&what)), "{what}: {findings:#?}");
    has(format!("document {} has points and a text, but its record is lost", added.doc_id));
    for doc_id in [replaced.doc_id, moved.doc_id] {
        has(format!("document {doc_id} has points and a text of revision"));
    }
    has(format!("points of document {} were changed later than its record", changed.doc_id));
    // Nothing tells a deletion from a loss of points and text, so the record stays.
    has(format!("the text of document {} cannot be read", deleted.doc_id));

    let repaired = failed_over.examine(true).await;
    let left = repaired.report.findings.iter().filter(|finding| finding.is_unrepaired());
    assert!(left.clone().all(|finding| finding.what.contains(&deleted.doc_id.to_string())), "{repaired:#?}");
    let kb = failed_over.open().await;
    kb.delete(deleted.doc_id).await.unwrap();
    wait_until_only_live_data_remains(&failed_over.stores, &kb).await;
    assert_eq!(to_micros(documents(&kb).await), to_micros(before));
    assert_eq!(kb.document(unchanged.doc_id).await.unwrap().unwrap(), unchanged);
    assert_eq!(answers(&kb).await, found);
    kb.close().await;
    assert_eq!(failed_over.findings().await, Vec::<String>::new());
}

#[tokio::test]
async fn lesson_43_worker_whose_task_the_state_store_lost_keeps_what_was_accepted() {
    let (case, embedder) = (Case::new(), ScriptedEmbedder::new(2));
    let kb = case.stores.open(Some(Arc::clone(&embedder))).await;
    let task = kb.submit(document("marble", 20), Submission::by(eva())).await.unwrap();
    let id = task.doc_id().unwrap().to_string();
    wait_until("two batches are embedded", async || embedder.texts.lock().unwrap().len() == 8).await;
    let mut keys = case.records("").await;
    keys.retain(|key| key.contains(&id) || key.contains(&task.task_id.to_string()));
    assert!(keys.contains(&format!("task/{}", task.task_id)), "{keys:?}");
    case.forget(keys).await;
    embedder.permits.add_permits(1_000);
    wait_until("the worker gives up", async || kb.queued_tasks().await.unwrap() == 0).await;
    kb.close().await;
    // Its points may be complete by then, or there is only the text.
    let findings = case.findings().await;
    assert!(findings.iter().any(|found| found.contains(&id)), "{findings:#?}");
    assert_eq!(texts(&case.stores).await, 1);
}

#[tokio::test]
async fn single_lost_record_is_restored_with_its_index_entries() {
    let case = Case::new();
    let kb = fill(&case).await;
    let before = documents(&kb).await;
    kb.close().await;
    for document in &before {
        let id = document.doc_id.to_string();
        let mut keys = case.records("").await;
        keys.retain(|key| key.contains(&id));
        assert!(keys.len() >= 3, "{keys:?}");
        case.forget(keys).await;
        case.assert_repairs().await;
    }
    let kb = case.open().await;
    assert_eq!(to_micros(documents(&kb).await), to_micros(before));
    kb.close().await;
}

#[tokio::test]
async fn deleted_document_is_not_restored_where_a_record_proves_the_deletion() {
    let case = Case::new();
    let kb = case.open().await;
    create_space(&kb, "closed").await;
    let audited = add(&kb, document("granite", 2), "default").await;
    let in_space = add(&kb, document("basalt", 2), "closed").await;
    let collected = add(&kb, document("opal", 2), "default").await;
    kb.close().await;
    for document in [&audited, &in_space, &collected] {
        let mut keys = case.records("").await;
        keys.retain(|key| key.contains(&document.doc_id.to_string()));
        case.forget(keys).await;
    }
    let spaces = Spaces::new(Arc::clone(&case.stores.state));
    spaces.delete_empty(&space("closed"), Vec::new()).await.unwrap();
    let entry = Write::put("audit/1", Expect::Any, audited.doc_id.to_string());
    let garbage = format!("trash/{}/{}", collected.doc_id, collected.revision);
    case.stores.state.apply(vec![entry, Write::put(garbage, Expect::Any, "")]).await.unwrap();

    let findings = case.findings().await.join("\n");
    assert!(findings.contains(&format!("document {}", audited.doc_id)), "{findings}");
    assert!(findings.contains("the document was deleted"), "{findings}");
    case.assert_repairs().await;
    let kb = case.open().await;
    assert_eq!(documents(&kb).await, Vec::new());
    wait_until_only_live_data_remains(&case.stores, &kb).await;
    kb.close().await;
}

/// A repair that is cut off at any write and repeated gives the same as one that is not.
#[tokio::test]
async fn repair_that_is_killed_at_any_step_is_completed_by_the_next() {
    let case = Case::new();
    let kb = fill(&case).await;
    let before = documents(&kb).await;
    kb.close().await;
    let mut kills = 0;
    for steps in 0.. {
        let state: Arc<dyn StateStore> = Arc::new(MemoryState::new());
        let done = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&done);
        let failing = FailingState::new(Arc::clone(&state), move |operation| {
            let is_write = operation == "apply";
            let earlier = if is_write {
                counted.fetch_add(1, Ordering::SeqCst)
            } else {
                counted.load(Ordering::SeqCst)
            };
            let is_killed = if is_write { earlier >= steps } else { earlier > steps };
            is_killed.then_some(lkr_state::ErrorKind::Unavailable)
        });
        let killed = case.with_state(Arc::new(failing));
        let repaired = killed.examine(true).await;
        let is_killed = done.load(Ordering::SeqCst) > steps;
        assert_eq!(is_killed, repaired.report.findings.iter().any(lkr::doctor::Finding::is_unrepaired));
        assert!(repaired.aside.is_none(), "nothing is moved aside before all records are restored");
        let case = case.with_state(Arc::clone(&state));
        let TestStores { vectors, blobs, .. } = &case.stores;
        assert_eq!(
            has_lost_records(&state, &**vectors, blobs).await.unwrap(),
            is_killed,
            "after {steps} writes"
        );
        if !is_killed {
            break;
        }
        kills += 1;
        case.assert_repairs().await;
        let catalog = lkr_catalog::Catalog::new(Arc::clone(&state));
        for document in &before {
            let restored = catalog.document(document.doc_id).await.unwrap().unwrap().value;
            assert_eq!(to_micros(vec![restored]), to_micros(vec![document.clone()]), "after {steps} writes");
        }
        let directory = Spaces::new(state).directory().await.unwrap();
        assert_eq!(directory.space(&SpaceName::default()).unwrap().read, ReadPolicy::Members);
    }
    assert!(kills > before.len() as u64, "{kills}");
}

#[tokio::test]
async fn document_of_an_earlier_version_is_restored_without_what_was_not_kept() {
    let case = Case::new();
    let kb = case.open().await;
    let before = add(&kb, document("granite", 6), "default").await;
    kb.close().await;
    let l1 = [l1_id(before.doc_id, before.revision)];
    let points = case.stores.vectors.get(&Layer::L1.into(), &l1, Include::All).await.unwrap();
    let mut point = points.into_iter().next().flatten().unwrap();
    point.payload.as_object_mut().unwrap().remove("record").unwrap();
    case.stores.vectors.upsert(&Layer::L1.into(), vec![point]).await.unwrap();
    let lost = case.with_state(Arc::new(MemoryState::new()));
    let repaired = lost.assert_repairs().await;
    assert!(repaired.report.findings.iter().any(|finding| finding.remedy.contains("without keywords")));
    let kb = lost.open().await;
    let after = kb.document(before.doc_id).await.unwrap().unwrap();
    assert_eq!(after.created_by, Creator::from("eva"));
    assert_eq!(after.keywords, Vec::<String>::new());
    let created_at = after.created_at;
    assert!((before.created_at - created_at) < Duration::from_micros(1));
    let (created_by, keywords) = (before.created_by.clone(), before.keywords.clone());
    let completed = Document { created_by, keywords, created_at: before.created_at, ..after };
    assert_eq!(to_micros(vec![completed]), to_micros(vec![before]));
    kb.close().await;
}

#[tokio::test]
async fn document_with_missing_points_is_restored_and_ingested_again() {
    let case = Case::new();
    let kb = case.open().await;
    let before = add(&kb, document("granite", 6), "default").await;
    kb.close().await;
    let chunk = lkr::PointId::derive(before.doc_id, before.revision, Layer::Chunks, 1);
    let filter = Filter::only(Condition::Ids(vec![chunk]));
    assert_eq!(case.stores.vectors.delete(&Layer::Chunks.into(), &filter).await.unwrap(), 1);
    let lost = case.with_state(Arc::new(MemoryState::new()));
    let repaired = lost.examine(true).await;
    assert!(repaired.report.findings.iter().any(|finding| finding.outcome == RepairOutcome::Queued));
    let kb = lost.open().await;
    let now = async || kb.document(before.doc_id).await.unwrap().unwrap();
    wait_until("it is ingested again", async || now().await.revision > before.revision).await;
    let after = now().await;
    assert_eq!(
        (after.counts, after.created_by, after.created_at),
        (before.counts, before.created_by, before.created_at)
    );
    wait_until_only_live_data_remains(&lost.stores, &kb).await;
    kb.close().await;
    assert_eq!(lost.findings().await, Vec::<String>::new());
}

#[tokio::test]
async fn text_without_points_is_kept_aside_and_points_without_text_are_kept() {
    let case = Case::new();
    let kb = case.open().await;
    let without_text = add(&kb, document("granite", 2), "default").await;
    kb.close().await;
    let texts = Texts::new(Arc::clone(&case.stores.blobs));
    texts.delete(without_text.doc_id, without_text.revision).await.unwrap();
    let accepted = DocId::new();
    texts.put(accepted, 7, "a text that was accepted").await.unwrap();
    let lost = case.with_state(Arc::new(MemoryState::new()));
    let repaired = lost.examine(true).await;
    let left: Vec<_> = repaired.report.findings.iter().filter(|finding| finding.is_unrepaired()).collect();
    assert!(
        matches!(&*left, [finding] if finding.what.contains(&without_text.doc_id.to_string())),
        "{left:#?}"
    );
    let aside = repaired.aside.unwrap();
    let [path, ..] = Texts::paths(accepted, 7);
    assert_eq!(std::fs::read_to_string(aside.join("blobs").join(path)).unwrap(), "a text that was accepted");
    let [found] = &*lost.findings().await else { panic!("only the points without a text are left") };
    assert!(found.contains("cannot be restored"), "{found}");
    let of_document = Filter::only(Condition::Docs(vec![without_text.doc_id]));
    assert!(lost.stores.vectors.count(&Layer::Chunks.into(), &of_document).await.unwrap() > 0);
}

#[tokio::test]
async fn repair_is_refused_while_processes_run_unless_it_is_forced() {
    let case = Case::new();
    let kb = fill(&case).await;
    let peers = Peers::join(
        Arc::clone(&case.stores.state),
        Process { id: ProcessId::new(), format: STORE_VERSION, is_exclusive: false },
        PeerOptions::default(),
    )
    .await
    .unwrap();
    let checked = case.examine(false).await;
    assert_eq!((checked.running_processes, checked.report.findings.len()), (1, 0), "{checked:#?}");
    let refused = examine_stores(case.options(true)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains("1 processes may be running"), "{refused}");
    kb.close().await;
    let forced = StoresDoctorOptions { force: true, ..case.options(true) };
    assert_eq!(examine_stores(forced).await.unwrap().report.findings, Vec::new());
    peers.leave().await;
    assert_eq!(examine_stores(case.options(true)).await.unwrap().running_processes, 0);
}

#[tokio::test]
async fn empty_stores_are_not_lost_records() {
    let case = Case::new();
    let TestStores { vectors, state, blobs, .. } = &case.stores;
    assert!(!has_lost_records(state, &**vectors, blobs).await.unwrap());
    assert_eq!(case.assert_repairs().await.report.findings, Vec::new());
    assert_eq!(case.records("").await, Vec::<String>::new());
    assert!(Originals::on(Arc::clone(blobs)).stored().await.unwrap().is_empty());
}

#[tokio::test]
async fn sweep_keeps_the_text_of_a_document_that_has_points_and_no_record() {
    let case = Case::new();
    let kb = case.open().await;
    let before = add(&kb, document("granite", 2), "default").await;
    kb.close().await;
    let mut keys = case.records("").await;
    keys.retain(|key| key.contains(&before.doc_id.to_string()));
    case.forget(keys).await;
    let (texts, cut_off) = (Texts::new(Arc::clone(&case.stores.blobs)), DocId::new());
    texts.put(cut_off, 1, "a text that was not accepted").await.unwrap();
    // The sweep leaves what is not older than the process.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let kb = case.open().await;
    wait_until("the sweep has passed both", async || {
        let stored = texts.stored().await.unwrap();
        !stored.contains(&(cut_off, 1))
    })
    .await;
    kb.close().await;
    assert!(texts.stored().await.unwrap().contains(&(before.doc_id, before.revision)));
    case.assert_repairs().await;
}

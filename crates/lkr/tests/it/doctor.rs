//! Each kind of damage: it is named, mended, not found again, and the knowledge base answers as before.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use lkr::{
    DocId, Document, ErrorKind, Folders, IngestOptions, KnowledgeBase, Layer, NewDocument, PointId,
    SearchRequest,
    doctor::{DoctorReport, Options, RepairOutcome, examine},
    ports::{
        object_store::{ObjectStore, local::LocalFileSystem},
        state::{Expect, StateStore, TaskQueue, Write},
        vectors::{Collection, CollectionSpec, Condition, Filter, Include, Tags, VectorStore},
    },
};
use lkr_catalog::{Originals, Task, TaskInput, Texts};
use lkr_models::MemoryEmbedder;
use lkr_store_lmdb::{LmdbOptions, LmdbStore};

const DOCUMENTS: u32 = 6;

/// A folder with a knowledge base that is closed.
struct Ground {
    folder: tempfile::TempDir,
    documents: Vec<Document>,
}

fn text(n: u32) -> String {
    let section = |part: u32| {
        format!("## Part {part} of {n}\n\nThe whale number {n} rests at place {part}. It sings.\n")
    };
    format!("# Whale {n}\n\n{}", (0..5).map(section).collect::<Vec<_>>().join("\n"))
}

impl Ground {
    async fn new() -> Self {
        let mut ground = Self { folder: tempfile::tempdir().unwrap(), documents: Vec::new() };
        let kb = ground.open().await;
        for n in 0..DOCUMENTS {
            let document =
                NewDocument { text: text(n), source: format!("source {n}"), ..NewDocument::default() };
            ground.documents.push(kb.add(document).await.unwrap());
        }
        kb.close().await;
        ground
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn store(&self) -> LmdbStore {
        // What was closed a moment ago may have reads under way.
        for _ in 0..1_000 {
            match LmdbStore::open(&self.path("store"), LmdbOptions::default()) {
                Err(error) if error.is_retryable() => std::thread::sleep(Duration::from_millis(10)),
                opened => return opened.unwrap(),
            }
        }
        unreachable!("the store stays locked")
    }

    async fn open(&self) -> KnowledgeBase {
        let store = self.store();
        fs::create_dir_all(self.path("blobs")).unwrap();
        let blobs = LocalFileSystem::new_with_prefix(self.path("blobs")).unwrap();
        let options = IngestOptions { batch: 4, ..IngestOptions::default() };
        KnowledgeBase::builder()
            .vectors(Arc::new(store.vectors()))
            .state(Arc::new(store.state()))
            .queue(Arc::new(store.queue()))
            .blobs(Arc::new(blobs) as Arc<dyn ObjectStore>)
            .originals(Originals::in_folder(self.path("uploads")))
            .embedder(Arc::new(MemoryEmbedder::default()))
            .ingest_options(options)
            .build()
            .await
            .unwrap()
    }

    async fn examined(&self, repair: bool) -> DoctorReport {
        drop(self.store());
        let options = Options { folders: Folders::new(self.folder.path()), repair, readers: Vec::new() };
        examine(options).await.unwrap()
    }

    async fn findings(&self) -> Vec<String> {
        self.examined(false).await.report.findings.into_iter().map(|finding| finding.what).collect()
    }

    /// The damage is named; mending it, and letting the workers do what is left to them, leaves nothing to be found,
    /// and all documents as they were.
    async fn heals(&self, says: &str) {
        let before = self.findings().await;
        assert!(before.iter().any(|what| what.contains(says)), "{says}: {before:?}");
        let mended = self.examined(true).await;
        let left: Vec<_> = mended.report.findings.iter().filter(|finding| finding.is_left()).collect();
        assert!(left.is_empty(), "{left:?}");
        let kb = self.open().await;
        while kb.queued().await.unwrap() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for (n, document) in (0..).zip(&self.documents) {
            let id = document.doc_id;
            assert_eq!(kb.text(id).await.unwrap().unwrap(), text(n));
            let chunks = kb.chunks(id, 0, 100).await.unwrap().unwrap();
            assert_eq!(chunks.items.len() as u64, document.counts.chunks);
            let found = kb.search(&SearchRequest::new(format!("whale number {n}"))).await.unwrap();
            assert!(found.response.results.iter().any(|result| result.doc_id == id), "{n}");
        }
        kb.close().await;
        assert_eq!(self.findings().await, Vec::<String>::new(), "after {says}");
    }

    fn first(&self) -> &Document {
        &self.documents[0]
    }

    fn text_path(&self, document: &Document) -> PathBuf {
        let id = document.doc_id.to_string();
        self.path(&format!("blobs/texts/{}/{id}-{}", id.get(30..).unwrap(), document.revision))
    }
}

fn only(id: PointId) -> Filter {
    Filter::only(Condition::Ids(vec![id]))
}

fn point(document: &Document, layer: Layer, n: u32) -> PointId {
    PointId::derive(document.doc_id, document.revision, layer, n)
}

#[tokio::test]
async fn what_is_whole_is_left_as_it_is() {
    let ground = Ground::new().await;
    assert_eq!(ground.findings().await, Vec::<String>::new());
    let mended = ground.examined(true).await;
    assert_eq!((mended.report.documents, mended.report.findings.len()), (u64::from(DOCUMENTS), 0));
    assert!(mended.aside.is_none());
    let open = ground.open().await;
    let options = Options { folders: Folders::new(ground.folder.path()), repair: true, readers: Vec::new() };
    assert_eq!(examine(options).await.unwrap_err().kind(), ErrorKind::Conflict);
    open.close().await;
}

#[tokio::test]
async fn missing_points_are_made_again_in_every_layer() {
    for layer in Layer::ALL {
        let ground = Ground::new().await;
        let vectors = ground.store().vectors();
        vectors.delete(&layer.into(), &only(point(ground.first(), layer, 0))).await.unwrap();
        drop(vectors);
        ground.heals(&format!("1 points of document {} in {layer} are missing", ground.first().doc_id)).await;
    }
}

#[tokio::test]
async fn points_that_say_something_else_are_made_again() {
    let ground = Ground::new().await;
    let vectors = ground.store().vectors();
    let chunks = Collection::from(Layer::Chunks);
    let ids: Vec<_> = ground.documents.iter().map(|document| point(document, Layer::Chunks, 0)).collect();
    let mut points: Vec<_> =
        vectors.get(&chunks, &ids, Include::All).await.unwrap().into_iter().map(Option::unwrap).collect();
    points[0].payload["text"] = "what never stood there".into();
    points[1].dense = None;
    points[2].origin.ordinal += 1;
    points[3].tags = Tags::new();
    points[4].payload = "nothing".into();
    vectors.upsert(&chunks, points).await.unwrap();
    drop(vectors);
    let findings = ground.findings().await.join("\n");
    for says in
        ["are not what stands in the text", "have no dense vectors", "are of another place", "other tags"]
    {
        assert!(findings.contains(says), "{says}: {findings}");
    }
    ground.heals("cannot be read").await;
}

#[tokio::test]
async fn lesson_05_what_belongs_to_nothing_is_found_and_removed() {
    let ground = Ground::new().await;
    let (store, stranger) = (ground.store(), DocId::new());
    let chunks = Collection::from(Layer::Chunks);
    let own =
        store.vectors().get(&chunks, &[point(ground.first(), Layer::Chunks, 0)], Include::All).await.unwrap();
    let mut planted = own[0].clone().unwrap();
    planted.id = PointId::derive(stranger, 1, Layer::Chunks, 0);
    planted.origin.doc_id = stranger;
    store.vectors().upsert(&chunks, vec![planted]).await.unwrap();
    store
        .state()
        .apply(vec![
            Write::put(format!("content/{}/{stranger}", "0".repeat(64)), Expect::Any, ""),
            Write::put(format!("simhash/{stranger}"), Expect::Any, "0123456789abcdef"),
            Write::put(format!("active/{}", DocId::new()), Expect::Any, lkr::TaskId::new().to_string()),
        ])
        .await
        .unwrap();
    drop(store);
    let blobs = Arc::new(LocalFileSystem::new_with_prefix(ground.path("blobs")).unwrap());
    Texts::new(blobs).put(stranger, 1, "a text").await.unwrap();
    let file = format!("uploads/2026/11/{stranger}_a.txt");
    fs::create_dir_all(ground.path(&file).parent().unwrap()).unwrap();
    fs::write(ground.path(&file), "a file").unwrap();
    fs::write(ground.path("uploads/mine.txt"), "not lkr's").unwrap();
    let half = ground.text_path(ground.first()).with_extension("").display().to_string() + "#1";
    fs::write(&half, "half").unwrap();
    let findings = ground.findings().await;
    assert_eq!(findings.len(), 7, "{findings:?}");
    ground.heals("there are points of document").await;
    assert!(!ground.path(&file).exists() && !Path::new(&half).exists());
    // They lie aside: they may have been somebody's all the same.
    let aside = fs::read_dir(ground.path("lost+found")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_to_string(aside.join(&file)).unwrap(), "a file");
    let text = format!("blobs/texts/{}/{stranger}-1", stranger.to_string().get(30..).unwrap());
    assert_eq!(fs::read_to_string(aside.join(text)).unwrap(), "a text");
    assert!(ground.path("uploads/mine.txt").exists());
}

#[tokio::test]
async fn indexes_and_tasks_are_put_right() {
    let ground = Ground::new().await;
    let first = ground.first();
    let store = ground.store();
    let fingerprint = first.fingerprint.clone().unwrap();
    store
        .state()
        .apply(vec![
            Write::delete(format!("content/{}/{}", fingerprint.sha256, first.doc_id), Expect::Any),
            Write::put(format!("simhash/{}", ground.documents[1].doc_id), Expect::Any, "0000000000000000"),
        ])
        .await
        .unwrap();
    // A task that nobody would work on: its text is the first document's.
    let input = TaskInput { revision: first.revision + 1, ..TaskInput::default() };
    let task = Task::replace(first.doc_id, first.created_by.clone(), input);
    let record = serde_json::json!({
        "task_id": task.task_id,
        "doc_id": first.doc_id,
        "kind": "replace",
        "status": "pending",
        "stage": task.stage,
        "progress": { "done": 0, "total": 0 },
        "attempts": 0,
        "created_at": "2026-01-02T03:04:05Z",
        "updated_at": "2026-01-02T03:04:05Z",
        "created_by": "eva",
        "input": { "revision": first.revision + 1, "title": "", "source": "", "metadata": {} },
    });
    let record = record.to_string();
    store
        .state()
        .apply(vec![Write::put(format!("task/{}", task.task_id), Expect::Any, record)])
        .await
        .unwrap();
    let blobs = Arc::new(LocalFileSystem::new_with_prefix(ground.path("blobs")).unwrap());
    Texts::new(blobs).put(first.doc_id, first.revision + 1, text(0)).await.unwrap();
    drop(store);
    let findings = ground.findings().await.join("\n");
    assert!(findings.contains("is not in the indexes of texts"), "{findings}");
    ground.heals("has not ended, and nobody would work on it").await;
}

/// A record that cannot be read is kept aside, and so is what may have been its document's.
#[tokio::test]
async fn what_lost_its_record_is_moved_aside() {
    let ground = Ground::new().await;
    let first = ground.first().clone();
    let store = ground.store();
    let key = format!("doc/{}", first.doc_id);
    store.state().apply(vec![Write::put(key.clone(), Expect::Any, "what is no record")]).await.unwrap();
    drop(store);
    let mended = ground.examined(true).await;
    let aside = mended.aside.unwrap();
    assert_eq!(fs::read_to_string(aside.join("records").join(&key)).unwrap(), "what is no record");
    let id = first.doc_id.to_string();
    let kept = aside.join(format!("blobs/texts/{}/{id}-{}", id.get(30..).unwrap(), first.revision));
    assert_eq!(fs::read_to_string(kept).unwrap(), text(0));
    assert_eq!(ground.findings().await, Vec::<String>::new());
    let kb = ground.open().await;
    assert!(kb.document(first.doc_id).await.unwrap().is_none());
    assert_eq!(kb.stats().await.unwrap().counts.l1, u64::from(DOCUMENTS) - 1);
    kb.close().await;
}

/// Mending leaves the collections as they are, also those that somebody has begun to fill.
#[tokio::test]
async fn collections_are_neither_made_nor_dropped() {
    let ground = Ground::new().await;
    let vectors = ground.store().vectors();
    for layer in Layer::ALL {
        let collection = Collection::new(format!("{layer}.0123456789ab")).unwrap();
        vectors.ensure(&CollectionSpec { collection, dense: None }).await.unwrap();
    }
    vectors.delete(&Layer::L1.into(), &only(point(ground.first(), Layer::L1, 0))).await.unwrap();
    let before = vectors.collections().await.unwrap();
    drop(vectors);
    let mended = ground.examined(true).await;
    assert!(
        mended.report.findings.iter().all(|finding| finding.outcome == RepairOutcome::Queued),
        "{mended:?}"
    );
    let store = ground.store();
    assert_eq!(store.vectors().collections().await.unwrap(), before);
    assert_eq!(store.queue().len().await.unwrap(), 1);
}

/// Changes the file of the closed store where these bytes stand, in pages with rows of tables.
fn change(ground: &Ground, wanted: &[u8], change: impl Fn(&mut [u8], usize)) {
    drop(ground.store());
    let data = ground.path("store/kb/data.mdb");
    let mut bytes = fs::read(&data).unwrap();
    let found = bytes.windows(wanted.len()).enumerate().filter(|(_, found)| *found == wanted);
    let found: Vec<_> = found.map(|(at, _)| at).filter(|at| bytes[at / 4_096 * 4_096 + 10] == 2).collect();
    assert!(!found.is_empty());
    found.into_iter().for_each(|at| change(&mut bytes, at));
    fs::write(&data, bytes).unwrap();
}

/// Damages the value of the row with this key beyond what its checksum can tell.
fn tear(ground: &Ground, key: &str) {
    change(ground, key.as_bytes(), |bytes, at| {
        // Before the key stand the lengths of the value and of the key.
        let length = |at| usize::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]));
        if length(at - 2) == key.len() {
            let end = at + key.len() + length(at - 8);
            bytes[end - 4..end].iter_mut().for_each(|byte| *byte = !*byte);
        }
    });
}

/// What cannot be read is told, and keeps nothing else from being looked at.
#[tokio::test]
async fn damaged_rows_stop_nobody_from_looking() {
    let ground = Ground::new().await;
    let [first, second, third, ..] = &*ground.documents else { panic!("six documents") };
    let doc = format!("doc/{}", first.doc_id);
    let simhash = format!("simhash/{}", second.doc_id);
    tear(&ground, &doc);
    tear(&ground, &simhash);
    fs::remove_file(ground.text_path(third)).unwrap();
    let examined = ground.examined(false).await;
    let findings: Vec<_> = examined.report.findings.iter().map(|finding| finding.what.as_str()).collect();
    let says = [
        format!("the record {doc} is damaged"),
        format!("the record {simhash} is damaged"),
        format!("what the indexes of texts say of document {} cannot be looked at", second.doc_id),
        format!("the text of document {} cannot be read", third.doc_id),
    ];
    for says in &says {
        assert!(findings.iter().any(|what| what.contains(says)), "{says}: {findings:?}");
    }
    assert_eq!(findings.len(), says.len(), "{findings:?}");
    assert_eq!(examined.report.documents, u64::from(DOCUMENTS) - 1);
}

#[tokio::test]
async fn a_damaged_alias_stops_nobody_from_looking() {
    let ground = Ground::new().await;
    let spec = ground.store().vectors().describe(&Layer::L2.into()).await.unwrap().unwrap();
    let name = spec.collection.name().to_owned();
    change(&ground, name.as_bytes(), |bytes, at| {
        // The alias and a checksum stand before it.
        if bytes[at - 6..at - 4] == *b"l2" {
            bytes[at + 3..at + 8].fill(0);
        }
    });
    let examined = ground.examined(false).await;
    assert_eq!(examined.report.documents, u64::from(DOCUMENTS));
    ground.heals("the alias l2 leads to no collection").await;
}

#[tokio::test]
async fn one_damaged_point_is_one() {
    let ground = Ground::new().await;
    change(&ground, b"whale number 0 rests at place 3", |bytes, at| bytes[at] = b'W');
    let findings = ground.findings().await;
    let says = format!("1 points of document {} in chunks cannot be read", ground.first().doc_id);
    assert!(findings.contains(&says), "{findings:?}");
    ground.heals("is damaged").await;
}

/// The checksum of a record tells nothing of its key. What its other places say is not thrown away.
#[tokio::test]
async fn a_record_under_a_damaged_key_is_told_and_nothing_of_it_goes() {
    let ground = Ground::new().await;
    // With a greater digit at its end the key keeps its place among the others.
    let first = ground.documents.iter().find(|document| !document.doc_id.to_string().ends_with('f')).unwrap();
    let own = format!("doc/{}", first.doc_id);
    let wrong = format!("{}f", own.strip_suffix(|_: char| true).unwrap());
    let rename = |from: &str, to: &str| {
        let (from, to) = (from.as_bytes(), to.as_bytes());
        change(&ground, from, |bytes, at| bytes[at..at + to.len()].copy_from_slice(to));
    };
    rename(&own, &wrong);
    for repair in [false, true] {
        let examined = ground.examined(repair).await;
        let [finding] = &*examined.report.findings else { panic!("{:?}", examined.report.findings) };
        assert!(finding.what.contains("the key of its record may be damaged"), "{}", finding.what);
        assert!(finding.what.contains(&first.doc_id.to_string()), "{}", finding.what);
        assert!(finding.is_left() && examined.aside.is_none());
    }
    // With the key as it was, everything is there.
    rename(&wrong, &own);
    assert_eq!(ground.findings().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_knowledge_base_without_its_data_is_not_made_anew() {
    let ground = Ground::new().await;
    drop(ground.store());
    let data = ground.path("store/kb/data.mdb");
    fs::remove_file(&data).unwrap();
    for repair in [false, true] {
        let options = Options { folders: Folders::new(ground.folder.path()), repair, readers: Vec::new() };
        let examined = examine(options).await.unwrap();
        assert_eq!(examined.report.findings[0].what, "store/kb/data.mdb is missing");
        assert!(examined.is_partial && examined.report.findings.iter().all(lkr::doctor::Finding::is_left));
        assert!(!data.exists());
    }
    let refused = LmdbStore::open(&ground.path("store"), LmdbOptions::default()).unwrap_err().to_string();
    assert!(refused.contains("is missing: restore a backup"), "{refused}");

    fs::remove_dir_all(ground.path("store")).unwrap();
    let refused = KnowledgeBase::open(ground.folder.path()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains("there are texts in"), "{refused}");
    assert!(ground.text_path(ground.first()).exists());
}

/// A wrong text is never answered, and what is lost for good is said.
#[tokio::test]
async fn a_damaged_text_is_named_and_never_shown() {
    let ground = Ground::new().await;
    let path = ground.text_path(ground.first());
    let whole = fs::read(&path).unwrap();
    for damage in ["flip", "cut", "gone"] {
        let mut bytes = whole.clone();
        match damage {
            "flip" => bytes[20] ^= 1,
            "cut" => bytes.truncate(100),
            _ => {}
        }
        if damage == "gone" {
            fs::remove_file(&path).unwrap();
        } else {
            fs::write(&path, &bytes).unwrap();
        }
        let says = format!("the text of document {} cannot be read", ground.first().doc_id);
        assert!(ground.findings().await.iter().any(|what| what.contains(&says)), "{damage}");
        let mended = ground.examined(true).await;
        assert!(
            mended.report.findings.iter().all(|finding| finding.outcome == RepairOutcome::Left),
            "{damage}"
        );
        let kb = ground.open().await;
        let error = kb.text(ground.first().doc_id).await.unwrap_err();
        assert!(
            damage == "gone" || error.to_string().contains(&ground.first().doc_id.to_string()),
            "{error}"
        );
        assert!(kb.text_in_parts(ground.first().doc_id).await.is_err());
        kb.close().await;
        fs::write(&path, &whole).unwrap();
    }
    assert_eq!(ground.findings().await, Vec::<String>::new());
}

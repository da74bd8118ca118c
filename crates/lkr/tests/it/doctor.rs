//! Each kind of damage is reported and repaired, and the knowledge base then answers as before.

use std::{fs, path::Path, sync::Arc};

use lkr::{
    DocId, ErrorKind, Folders, KnowledgeBase, Layer, PointId, Scope, SpaceName, TaskId,
    doctor::{DoctorOptions, RepairOutcome, examine},
    files::{FileReader, FileTools},
    ports::{
        object_store::local::LocalFileSystem,
        state::{Expect, ScanOrder, StateStore, TaskQueue, Write},
        vectors::{Collection, CollectionSpec, Include, Tags, VectorStore},
    },
};
use lkr_catalog::{DeleteResult, Task, TaskInput, Texts};
use lkr_store_lmdb::{LmdbOptions, LmdbStore};

use crate::closed_kb::{ClosedKb, DOCUMENTS, damage_row, edit_data_file, only, point, text};

#[tokio::test]
async fn doctor_finds_nothing_in_an_undamaged_knowledge_base() {
    let closed = ClosedKb::new().await;
    assert_eq!(closed.findings().await, Vec::<String>::new());
    let repaired = closed.examine(true).await;
    assert_eq!((repaired.report.documents, repaired.report.findings.len()), (u64::from(DOCUMENTS), 0));
    assert!(repaired.aside.is_none());
    let open = closed.open().await;
    let options =
        DoctorOptions { folders: Folders::new(closed.folder.path()), repair: true, readers: Vec::new() };
    assert_eq!(examine(options).await.unwrap_err().kind(), ErrorKind::Conflict);
    open.close().await;
}

#[tokio::test]
async fn missing_points_are_repaired_in_every_layer() {
    for layer in Layer::ALL {
        let closed = ClosedKb::new().await;
        let vectors = closed.store().vectors();
        vectors.delete(&layer.into(), &only(point(closed.first(), layer, 0))).await.unwrap();
        drop(vectors);
        closed
            .assert_repairs(&format!("1 points of document {} in {layer} are missing", closed.first().doc_id))
            .await;
    }
}

#[tokio::test]
async fn points_that_differ_from_the_document_are_repaired() {
    let closed = ClosedKb::new().await;
    let vectors = closed.store().vectors();
    let chunks = Collection::from(Layer::Chunks);
    let ids: Vec<_> = closed.documents.iter().map(|document| point(document, Layer::Chunks, 0)).collect();
    let mut points: Vec<_> =
        vectors.get(&chunks, &ids, Include::All).await.unwrap().into_iter().map(Option::unwrap).collect();
    points[0].payload["text"] = "text that is not in the document".into();
    points[1].dense = None;
    points[2].origin.ordinal += 1;
    points[3].tags = Tags::new();
    points[4].payload = "nothing".into();
    vectors.upsert(&chunks, points).await.unwrap();
    drop(vectors);
    let findings = closed.findings().await.join("\n");
    for expected in
        ["differ from the text", "have no dense vectors", "have the wrong position", "have tags that differ"]
    {
        assert!(findings.contains(expected), "{expected}: {findings}");
    }
    closed.assert_repairs("cannot be read").await;
}

#[tokio::test]
async fn lesson_05_orphaned_data_is_found_and_removed() {
    let closed = ClosedKb::new().await;
    let (store, orphan) = (closed.store(), DocId::new());
    let chunks = Collection::from(Layer::Chunks);
    let original =
        store.vectors().get(&chunks, &[point(closed.first(), Layer::Chunks, 0)], Include::All).await.unwrap();
    let mut planted = original[0].clone().unwrap();
    planted.id = PointId::derive(orphan, 1, Layer::Chunks, 0);
    planted.origin.doc_id = orphan;
    store.vectors().upsert(&chunks, vec![planted]).await.unwrap();
    let partial_result = serde_json::to_vec(&DeleteResult::default()).unwrap();
    store
        .state()
        .apply(vec![
            Write::put(format!("content/{}/{orphan}", "0".repeat(64)), Expect::Any, ""),
            Write::put(format!("simhash/{orphan}"), Expect::Any, "0123456789abcdef"),
            Write::put(format!("active/{}", DocId::new()), Expect::Any, lkr::TaskId::new().to_string()),
            Write::put(format!("partial-result/{}", lkr::TaskId::new()), Expect::Any, partial_result),
        ])
        .await
        .unwrap();
    drop(store);
    let blobs = Arc::new(LocalFileSystem::new_with_prefix(closed.path("blobs")).unwrap());
    Texts::new(blobs).put(orphan, 1, "a text").await.unwrap();
    let file = format!("uploads/2026/11/{orphan}_a.txt");
    fs::create_dir_all(closed.path(&file).parent().unwrap()).unwrap();
    fs::write(closed.path(&file), "a file").unwrap();
    fs::write(closed.path("uploads/mine.txt"), "not lkr's").unwrap();
    let partial = closed.text_path(closed.first()).with_extension("").display().to_string() + "#1";
    fs::write(&partial, "half").unwrap();
    let findings = closed.findings().await;
    assert_eq!(findings.len(), 8, "{findings:?}");
    closed.assert_repairs("orphaned points of document").await;
    assert!(!closed.path(&file).exists() && !Path::new(&partial).exists());
    // They are moved aside, because they may be the only copy.
    let aside = fs::read_dir(closed.path("lost+found")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_to_string(aside.join(&file)).unwrap(), "a file");
    let text = format!("blobs/texts/{}/{orphan}-1", orphan.to_string().get(30..).unwrap());
    assert_eq!(fs::read_to_string(aside.join(text)).unwrap(), "a text");
    assert!(closed.path("uploads/mine.txt").exists());
}

#[tokio::test]
async fn text_indexes_and_lost_tasks_are_repaired() {
    let closed = ClosedKb::new().await;
    let first = closed.first();
    let store = closed.store();
    let fingerprint = first.fingerprint.clone().unwrap();
    store
        .state()
        .apply(vec![
            Write::delete(format!("content/{}/{}", fingerprint.sha256, first.doc_id), Expect::Any),
            Write::put(format!("simhash/{}", closed.documents[1].doc_id), Expect::Any, "0000000000000000"),
        ])
        .await
        .unwrap();
    let entries = store.state().scan("task-in/", None, ScanOrder::Ascending, 1).await.unwrap();
    let entry = Write::delete(entries[0].0.clone(), Expect::Any);
    let orphan = Write::put(format!("task-in/space/default/{}", TaskId::new()), Expect::Any, "");
    store.state().apply(vec![entry, orphan]).await.unwrap();
    // A task that is not queued, with the text of the first document.
    let input = TaskInput { revision: first.revision + 1, ..TaskInput::default() };
    let task =
        Task::replace(&lkr::SystemClock, first.doc_id, SpaceName::default(), first.created_by.clone(), input);
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
    let blobs = Arc::new(LocalFileSystem::new_with_prefix(closed.path("blobs")).unwrap());
    Texts::new(blobs).put(first.doc_id, first.revision + 1, text(0)).await.unwrap();
    drop(store);
    let findings = closed.findings().await.join("\n");
    assert!(findings.contains("is not in the indexes"), "{findings}");
    assert!(findings.contains("is missing in the lists of its space and account"), "{findings}");
    assert!(findings.contains("refers to data that does not exist"), "{findings}");
    closed.assert_repairs("has not ended, but is not queued").await;
}

#[tokio::test]
async fn unreadable_record_and_its_text_are_moved_aside() {
    let closed = ClosedKb::new().await;
    let first = closed.first().clone();
    let store = closed.store();
    let key = format!("doc/{}", first.doc_id);
    store.state().apply(vec![Write::put(key.clone(), Expect::Any, "not a record")]).await.unwrap();
    drop(store);
    let repaired = closed.examine(true).await;
    let aside = repaired.aside.unwrap();
    assert_eq!(fs::read_to_string(aside.join("records").join(&key)).unwrap(), "not a record");
    let id = first.doc_id.to_string();
    let kept = aside.join(format!("blobs/texts/{}/{id}-{}", id.get(30..).unwrap(), first.revision));
    assert_eq!(fs::read_to_string(kept).unwrap(), text(0));
    assert_eq!(closed.findings().await, Vec::<String>::new());
    let kb = closed.open().await;
    assert!(kb.document(first.doc_id).await.unwrap().is_none());
    assert_eq!(kb.stats(&Scope::All).await.unwrap().counts.l1, u64::from(DOCUMENTS) - 1);
    kb.close().await;
}

/// A repair leaves all collections alone, including those of an unfinished re-embedding.
#[tokio::test]
async fn repair_neither_creates_nor_drops_collections() {
    let closed = ClosedKb::new().await;
    let vectors = closed.store().vectors();
    for layer in Layer::ALL {
        let collection = Collection::new(format!("{layer}.0123456789ab")).unwrap();
        vectors.ensure(&CollectionSpec { collection, dense: None }).await.unwrap();
    }
    vectors.delete(&Layer::L1.into(), &only(point(closed.first(), Layer::L1, 0))).await.unwrap();
    let before = vectors.collections().await.unwrap();
    drop(vectors);
    let repaired = closed.examine(true).await;
    assert!(
        repaired.report.findings.iter().all(|finding| finding.outcome == RepairOutcome::Queued),
        "{repaired:?}"
    );
    let store = closed.store();
    assert_eq!(store.vectors().collections().await.unwrap(), before);
    assert_eq!(store.queue().len().await.unwrap(), 1);
}

#[tokio::test]
async fn damaged_rows_do_not_stop_the_check() {
    let closed = ClosedKb::new().await;
    let [first, second, third, ..] = &*closed.documents else { panic!("six documents") };
    let doc = format!("doc/{}", first.doc_id);
    let simhash = format!("simhash/{}", second.doc_id);
    damage_row(&closed, &doc);
    damage_row(&closed, &simhash);
    fs::remove_file(closed.text_path(third)).unwrap();
    let checked = closed.examine(false).await;
    let findings: Vec<_> = checked.report.findings.iter().map(|finding| finding.what.as_str()).collect();
    let expected = [
        format!("the record {doc} is damaged"),
        format!("the record {simhash} is damaged"),
        format!("the text index entries of document {} cannot be checked", second.doc_id),
        format!("the text of document {} cannot be read", third.doc_id),
    ];
    for expected in &expected {
        assert!(findings.iter().any(|what| what.contains(expected)), "{expected}: {findings:?}");
    }
    assert_eq!(findings.len(), expected.len(), "{findings:?}");
    assert_eq!(checked.report.documents, u64::from(DOCUMENTS) - 1);
}

#[tokio::test]
async fn damaged_alias_does_not_stop_the_check() {
    let closed = ClosedKb::new().await;
    let spec = closed.store().vectors().describe(&Layer::L2.into()).await.unwrap().unwrap();
    let name = spec.collection.name().to_owned();
    edit_data_file(&closed, name.as_bytes(), |bytes, at| {
        // The alias and a checksum precede the name.
        if bytes[at - 6..at - 4] == *b"l2" {
            bytes[at + 3..at + 8].fill(0);
        }
    });
    let checked = closed.examine(false).await;
    assert_eq!(checked.report.documents, u64::from(DOCUMENTS));
    closed.assert_repairs("the alias l2 leads to no collection").await;
}

#[tokio::test]
async fn damaged_point_is_reported_once() {
    let closed = ClosedKb::new().await;
    edit_data_file(&closed, b"whale number 0 rests at place 3", |bytes, at| bytes[at] = b'W');
    let findings = closed.findings().await;
    let expected = format!("1 points of document {} in chunks cannot be read", closed.first().doc_id);
    assert!(findings.contains(&expected), "{findings:?}");
    closed.assert_repairs("is damaged").await;
}

/// The checksum of a record does not cover its key, so data under a damaged key is not thrown away.
#[tokio::test]
async fn record_under_a_damaged_key_is_reported_and_left_unchanged() {
    let closed = ClosedKb::new().await;
    // A greater last digit keeps the order of the keys.
    let first = closed.documents.iter().find(|document| !document.doc_id.to_string().ends_with('f')).unwrap();
    let original = format!("doc/{}", first.doc_id);
    let damaged_key = format!("{}f", original.strip_suffix(|_: char| true).unwrap());
    let rename = |from: &str, to: &str| {
        let (from, to) = (from.as_bytes(), to.as_bytes());
        edit_data_file(&closed, from, |bytes, at| bytes[at..at + to.len()].copy_from_slice(to));
    };
    rename(&original, &damaged_key);
    for repair in [false, true] {
        let checked = closed.examine(repair).await;
        let [finding] = &*checked.report.findings else { panic!("{:?}", checked.report.findings) };
        assert!(finding.what.contains("the key of the record may be damaged"), "{}", finding.what);
        assert!(finding.what.contains(&first.doc_id.to_string()), "{}", finding.what);
        assert!(finding.is_unrepaired() && checked.aside.is_none());
    }
    // Once the key is restored, everything is found.
    rename(&damaged_key, &original);
    assert_eq!(closed.findings().await, Vec::<String>::new());
}

#[tokio::test]
async fn missing_data_file_is_reported_and_not_recreated() {
    let closed = ClosedKb::new().await;
    drop(closed.store());
    let data = closed.path("store/kb/data.mdb");
    fs::remove_file(&data).unwrap();
    for repair in [false, true] {
        let options =
            DoctorOptions { folders: Folders::new(closed.folder.path()), repair, readers: Vec::new() };
        let checked = examine(options).await.unwrap();
        assert_eq!(checked.report.findings[0].what, "store/kb/data.mdb is missing");
        assert!(
            checked.is_partial && checked.report.findings.iter().all(lkr::doctor::Finding::is_unrepaired)
        );
        assert!(!data.exists());
    }
    let refused = LmdbStore::open(&closed.path("store"), LmdbOptions::default()).unwrap_err().to_string();
    assert!(refused.contains("is missing: restore a backup"), "{refused}");

    fs::remove_dir_all(closed.path("store")).unwrap();
    let refused = KnowledgeBase::open(closed.folder.path()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("there are texts in"), "{refused}");
    assert!(closed.text_path(closed.first()).exists());
}

#[tokio::test]
async fn damaged_text_is_reported_and_never_returned() {
    let closed = ClosedKb::new().await;
    let path = closed.text_path(closed.first());
    let file_bytes = fs::read(&path).unwrap();
    for damage in ["flip", "cut", "gone"] {
        let mut bytes = file_bytes.clone();
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
        let expected = format!("the text of document {} cannot be read", closed.first().doc_id);
        assert!(closed.findings().await.iter().any(|what| what.contains(&expected)), "{damage}");
        let repaired = closed.examine(true).await;
        assert!(
            repaired.report.findings.iter().all(|finding| finding.outcome == RepairOutcome::Unrepaired),
            "{damage}"
        );
        let kb = closed.open().await;
        let error = kb.text(closed.first().doc_id).await.unwrap_err();
        assert!(
            damage == "gone" || error.to_string().contains(&closed.first().doc_id.to_string()),
            "{error}"
        );
        assert!(kb.text_stream(&Scope::All, closed.first().doc_id).await.is_err());
        kb.close().await;
        fs::write(&path, &file_bytes).unwrap();
    }
    assert_eq!(closed.findings().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn remedy_of_a_damaged_text_relies_on_an_undamaged_original_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (data_dir, file) = (folder.path().join("kb"), folder.path().join("moon.md"));
    fs::write(&file, "# Titan\n\nTitan has lakes of methane.").unwrap();
    let kb = KnowledgeBase::open(&data_dir).await.unwrap();
    let reader = FileReader::in_process(folder.path().join("spool"), FileTools::default()).unwrap();
    let document = kb.add_file(&reader, &file).await.unwrap();
    kb.close().await;
    let (id, original) = (document.doc_id.to_string(), document.original.unwrap());
    let text = format!("blobs/texts/{}/{id}-{}", id.get(30..).unwrap(), document.revision);
    let remedies = async || {
        let options = DoctorOptions { folders: Folders::new(&data_dir), repair: false, readers: Vec::new() };
        let findings = examine(options).await.unwrap().report.findings;
        findings.into_iter().map(|finding| finding.remedy).collect::<Vec<_>>()
    };
    fs::write(data_dir.join(text), "Titan").unwrap();
    assert_eq!(remedies().await, ["replace the document with its original, which is kept"]);
    fs::write(data_dir.join("uploads").join(original.path), "Titan").unwrap();
    assert_eq!(remedies().await, ["replace the document with its file"; 2]);
}

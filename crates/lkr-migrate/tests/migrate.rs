//! Whole migrations and parts of one.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "support/mod.rs"]
mod support;

use std::sync::{Arc, Mutex};

use lkr_migrate::{ErrorKind, Migration, Phase, Progress, Stores, is_in_use, unfinished_migration};
use lkr_state::{Expect, PeerOptions, Peers, Process, ProcessId, StateStoreExt, Write};
use lkr_vectors::{Filter, VectorStore};
use object_store::{ObjectStore, ObjectStoreExt};
use support::{content, data_folder, doc, fill, fill_points, memory, migration, name, options, point, quiet};

#[tokio::test(flavor = "multi_thread")]
async fn memory_to_memory_and_back_is_equal() {
    let (source, target, back) = (memory(), memory(), memory());
    fill(&source, 6).await;
    let before = content(&source).await;
    let report = migration(&source, &target).run(&quiet).await.unwrap();
    assert_eq!(before, content(&target).await);
    assert_eq!(report.points.len(), 8);
    assert!(report.points.values().all(|&count| count == 60));
    assert_eq!((report.texts, report.originals), (18, 6));
    assert_eq!(report.records["doc/"], 6);
    assert_eq!(report.records["(unknown)"], 1);
    assert_eq!(report.left_out["simhash-change/"], 6);
    assert_eq!(target.state.counter("generation").await.unwrap(), 6);
    let again = migration(&target, &back).run(&quiet).await.unwrap();
    assert_eq!(before, content(&back).await);
    assert_eq!(
        (report.records_checksum, report.points_checksum, report.blobs_checksum),
        (again.records_checksum, again.points_checksum, again.blobs_checksum)
    );
    assert!(unfinished_migration(&*back.state).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn data_folder_to_memory_and_back_is_equal() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (source, middle) = (data_folder(from.path()), memory());
    fill(&source, 4).await;
    let before = content(&source).await;
    migration(&source, &middle).run(&quiet).await.unwrap();
    assert_eq!(before, content(&middle).await);
    let back = data_folder(to.path());
    migration(&middle, &back).run(&quiet).await.unwrap();
    assert_eq!(before, content(&back).await);
    migration(&source, &back).verify(&quiet).await.unwrap();
}

#[tokio::test]
async fn only_points_are_migrated_if_only_they_are_given() {
    let source = memory();
    fill(&source, 3).await;
    let vectors: Arc<dyn VectorStore> = Arc::new(lkr_vectors::MemoryVectors::new());
    let source = Stores { texts: None, originals: None, ..source };
    let target = Stores { vectors: Some(vectors), ..source.clone() };
    let mut options = options();
    options.records = false;
    let points = Migration::new(source.clone(), target.clone(), options.clone()).unwrap();
    assert_eq!(points.parts().names(), "points");
    let seen = Mutex::new(false);
    let watch = |progress: Progress| *seen.lock().unwrap() |= progress.phase == Phase::VerifyingPoints;
    let report = points.run(&watch).await.unwrap();
    assert!(*seen.lock().unwrap());
    assert_eq!(report.records_checksum, None);
    assert_eq!(content(&source).await, content(&target).await);
    let one_sided = Stores { vectors: None, ..target };
    let error = Migration::new(source, one_sided, options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

#[tokio::test]
async fn target_with_other_data_is_refused_and_not_changed() {
    let source = memory();
    fill(&source, 2).await;
    let in_records = memory();
    in_records.state.apply(vec![Write::put("doc/x", Expect::Any, "v")]).await.unwrap();
    let in_points = memory();
    fill_points(&**in_points.vectors.as_ref().unwrap(), 1).await;
    let in_texts = memory();
    in_texts.texts.as_ref().unwrap().put(&"blocks/ab/x-1".into(), "b".into()).await.unwrap();
    let in_originals = memory();
    let original = format!("2026/01/{}_a.txt", doc(1));
    in_originals.texts.as_ref().unwrap().put(&original.clone().into(), "b".into()).await.unwrap();
    let cases = [
        (in_records, "doc/x"),
        (in_points, "chunks.0123456789ab"),
        (in_texts, "blocks/ab/x-1"),
        (in_originals, original.as_str()),
    ];
    for (target, named) in cases {
        let before = content(&target).await;
        let error = migration(&source, &target).run(&quiet).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotEmpty, "{error}");
        assert!(error.reason().contains(named), "{error}");
        assert_eq!(content(&target).await, before);
        assert!(!migration(&source, &target).discard(&quiet).await.unwrap());
        assert_eq!(content(&target).await, before);
    }
}

#[tokio::test]
async fn stores_that_a_server_uses_are_refused() {
    let (source, target) = (memory(), memory());
    fill(&source, 1).await;
    for state in [&source.state, &target.state] {
        let peers = Peers::join(
            Arc::clone(state),
            Process { id: ProcessId::new(), format: 1, is_exclusive: false },
            PeerOptions::default(),
        )
        .await
        .unwrap();
        assert_eq!(is_in_use(&**state).await.unwrap(), [peers.id()]);
        let error = migration(&source, &target).run(&quiet).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InUse, "{error}");
        assert!(error.reason().contains(&peers.id().to_string()), "{error}");
        peers.leave().await;
    }
    migration(&source, &target).run(&quiet).await.unwrap();
}

/// Makes a change when the progress first reaches a phase.
async fn run_with_change(
    source: &Stores,
    target: &Stores,
    phase: Phase,
    change: Vec<Write>,
) -> lkr_migrate::Result<lkr_migrate::Report> {
    let (state, changed) = (Arc::clone(&source.state), Mutex::new(Some(change)));
    let sink = move |progress: Progress| {
        let change = changed.lock().unwrap().take_if(|_| progress.phase == phase);
        if let Some(change) = change {
            futures_util::FutureExt::now_or_never(state.apply(change)).unwrap().unwrap();
        }
    };
    migration(source, target).run(&sink).await
}

#[tokio::test]
async fn source_that_changes_during_a_run_is_noticed_and_the_next_run_begins_again() {
    for key in ["doc/new", "auth/session/new", "idempotency/new"] {
        let (source, target) = (memory(), memory());
        fill(&source, 3).await;
        let change = vec![Write::put(key, Expect::Any, "{}")];
        let error = run_with_change(&source, &target, Phase::VerifyingPoints, change).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Changed, "{error}");
        let unfinished = unfinished_migration(&*target.state).await.unwrap().unwrap();
        assert_eq!(unfinished.step, "verifying");
        // What only the outdated copy has must go.
        let texts = source.texts.as_ref().unwrap();
        let path = lkr_catalog::Texts::paths(doc(1), 1)[0].clone();
        texts.delete(&path.into()).await.unwrap();
        source.vectors.as_ref().unwrap().drop_collection(&name("l2.sparse")).await.unwrap();
        source.state.apply(vec![Write::delete(format!("doc/{}", doc(2)), Expect::Any)]).await.unwrap();
        let cleared = Mutex::new(false);
        let watch = |progress: Progress| *cleared.lock().unwrap() |= progress.phase == Phase::Clearing;
        migration(&source, &target).run(&watch).await.unwrap();
        assert!(*cleared.lock().unwrap());
        assert_eq!(content(&source).await, content(&target).await);
    }
}

#[tokio::test]
async fn records_of_running_processes_do_not_count_as_a_change() {
    let (source, target) = (memory(), memory());
    fill(&source, 2).await;
    let change = vec![Write::put("task-change/x", Expect::Any, "")];
    run_with_change(&source, &target, Phase::Blobs, change).await.unwrap();
}

#[tokio::test]
async fn each_difference_is_named() {
    let (source, target) = (memory(), memory());
    fill(&source, 3).await;
    let migration = migration(&source, &target);
    migration.run(&quiet).await.unwrap();
    migration.verify(&quiet).await.unwrap();
    let named = async |expected: &str| {
        let error = migration.verify(&quiet).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Different, "{error}");
        assert!(error.reason().contains(expected), "{expected}: {error}");
        assert!(!error.reason().contains("a secret"), "{error}");
    };
    let (state, vectors) = (&target.state, target.vectors.as_ref().unwrap());
    let texts: &Arc<dyn ObjectStore> = target.texts.as_ref().unwrap();

    // Records are compared last, so the others come after them here.
    state.apply(vec![Write::put("settings", Expect::Any, "a secret")]).await.unwrap();
    named("record settings is 17 bytes").await;
    state.apply(vec![Write::delete("settings", Expect::Any)]).await.unwrap();
    named("record settings is missing in the target").await;
    state.apply(vec![Write::put("settings", Expect::Any, "value of settings")]).await.unwrap();
    state.apply(vec![Write::put("unprinted", Expect::Any, "")]).await.unwrap();
    named("record unprinted is in the target and not in the source").await;

    let path = lkr_catalog::Texts::paths(doc(1), 1)[1].clone();
    texts.put(&path.clone().into(), "BLOCKS of 1".into()).await.unwrap();
    named(&format!("file {path} differs (11 bytes in the source, 11 in the target)")).await;
    texts.delete(&path.clone().into()).await.unwrap();
    named(&format!("file {path} is missing in the target")).await;
    texts.put(&path.into(), "blocks of 1".into()).await.unwrap();
    texts.put(&"notes/zz/other-1".into(), "x".into()).await.unwrap();
    named("file notes/zz/other-1 is in the target and not in the source").await;

    let (chunks, changed) = (name("chunks.0123456789ab"), point(3));
    let mut dense = changed.dense.clone().unwrap();
    // More than a store rounds.
    dense[0] += 1e-3;
    let changed = lkr_vectors::Point { dense: Some(dense), ..changed };
    vectors.upsert(&chunks, vec![changed.clone()]).await.unwrap();
    named(&format!("the dense vector of point {} of chunks.0123456789ab differs", changed.id)).await;
    let only = Filter::only(lkr_vectors::Condition::Ids(vec![changed.id]));
    vectors.delete(&chunks, &only).await.unwrap();
    named(&format!("point {} of chunks.0123456789ab is missing", changed.id)).await;
    vectors.upsert(&chunks, vec![point(3), point(1_000)]).await.unwrap();
    named("collection chunks.0123456789ab has 31 points, expected 30").await;
    vectors.delete(&chunks, &Filter::only(lkr_vectors::Condition::Ids(vec![point(1_000).id]))).await.unwrap();
    vectors.switch(&[(name("l3"), name("l3.sparse"))]).await.unwrap();
    named("aliases").await;
    vectors.drop_collection(&name("l3.sparse")).await.unwrap();
    named("the collections are").await;
}

#[tokio::test]
async fn expired_records_are_neither_copied_nor_missed() {
    let (source, target) = (memory(), memory());
    fill(&source, 1).await;
    let put = |key: &str, value: &str| Write::put(key, Expect::Any, value.to_owned());
    let step = vec![
        put("auth/session/over", r#"{"v":"1","expires_at":"2020-01-01T00:00:00Z"}"#),
        put("auth/session/valid", r#"{"v":"1","expires_at":"2999-01-01T00:00:00Z"}"#),
        put("audit/old", r#"{"v":"1","at":"2020-01-01T00:00:00Z"}"#),
        put("idempotency/x", "[]"),
    ];
    source.state.apply(step).await.unwrap();
    migration(&source, &target).run(&quiet).await.unwrap();
    let keys = ["auth/session/over", "auth/session/valid", "audit/old", "idempotency/x"];
    let found = target.state.get_many(&keys.map(str::to_owned)).await.unwrap();
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false, true]);
    // It expires in the source; the copy has its lifetime from the beginning.
    source.state.apply(vec![Write::delete("idempotency/x", Expect::Any)]).await.unwrap();
    migration(&source, &target).verify(&quiet).await.unwrap();
}

#[tokio::test]
async fn progress_reaches_the_total_of_each_phase() {
    let (source, target) = (memory(), memory());
    fill(&source, 3).await;
    let last = Mutex::new(std::collections::HashMap::new());
    let watch = |progress: Progress| {
        last.lock().unwrap().insert(progress.phase, progress);
    };
    migration(&source, &target).run(&watch).await.unwrap();
    let last = last.into_inner().unwrap();
    let phases = [
        (Phase::Points, 240),
        (Phase::Blobs, 12),
        (Phase::Records, 16),
        (Phase::VerifyingPoints, 240),
        (Phase::VerifyingBlobs, 12),
        (Phase::VerifyingRecords, 16),
    ];
    for (phase, total) in phases {
        let progress = last[&phase];
        assert_eq!((progress.done, progress.total, progress.earlier), (total, Some(total), 0), "{phase}");
    }
    assert!(last[&Phase::Blobs].bytes > 6 * 1024 * 1024);
}

/// lkr never serves an original that is a symbolic link, so it is not copied, whatever it points to.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn symbolic_links_among_originals_are_not_copied() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (source, target) = (data_folder(from.path()), data_folder(to.path()));
    fill(&source, 2).await;
    let link = from.path().join(format!("uploads/2026/03/{}_link.txt", doc(77)));
    std::os::unix::fs::symlink("/etc/hostname", &link).unwrap();
    let report = migration(&source, &target).run(&quiet).await.unwrap();
    assert_eq!(report.originals, 2);
    let copied = target.originals.as_ref().unwrap().stored().await.unwrap();
    assert_eq!(copied.len(), 2, "{copied:?}");
}

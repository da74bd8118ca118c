use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::support::*;
use crate::{ErrorKind, Filter, Include, Point};

/// A snapshot creates its folder; an existing folder is refused and not changed.
pub async fn snapshot_creates_a_folder_and_refuses_an_existing_one(store: Store) {
    let name = create_collection(&store).await;
    store.upsert(&name, (0..100).map(point).collect()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("copy");
    store.snapshot(&to).await.unwrap();
    assert!(std::fs::read_dir(&to).unwrap().next().is_some(), "the folder must not be empty");

    assert_kind(store.snapshot(&to).await, ErrorKind::Invalid);
    let existing = folder.path().join("existing");
    std::fs::create_dir(&existing).unwrap();
    std::fs::write(existing.join("file"), "kept").unwrap();
    assert_kind(store.snapshot(&existing).await, ErrorKind::Invalid);
    assert_eq!(std::fs::read_dir(&existing).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(existing.join("file")).unwrap(), "kept");
    store.snapshot(&folder.path().join("second")).await.unwrap();
    assert_eq!(count(&store, &name).await, 100);
}

/// A copy contains collections, aliases and points as they were, and no later write.
pub async fn snapshot_contains_earlier_writes_only<G>(store: Store, open: impl AsyncFn(&Path) -> (Store, G)) {
    let (name, alias) = (create_collection(&store).await, unique_name());
    store.switch(&[(alias.clone(), name.clone())]).await.unwrap();
    let complete_point = |n: u32| Point {
        tags: tags(&[("größe", "groß")]),
        sparse: sparse(&[(1, 1.0 + n as f32), (n, 0.1)]),
        ..with_dense(n, &[1.0, n as f32, 0.3, 0.7])
    };
    store.upsert(&name, (0..50).map(complete_point).collect()).await.unwrap();
    store.delete(&name, &Filter::only(crate::Condition::Ids(vec![id(7)]))).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("copy");
    store.snapshot(&to).await.unwrap();
    store.upsert(&name, vec![point(100)]).await.unwrap();

    let (copy, _guard) = open(&to).await;
    assert_eq!(copy.describe(&alias).await.unwrap(), Some(spec(&name, DIMS)));
    assert_eq!(count(&copy, &name).await, 49);
    let found = copy.get(&alias, &[id(3), id(7), id(100)], Include::All).await.unwrap();
    assert_points_equal(found[0].as_ref().unwrap(), &complete_point(3));
    assert_eq!(found[1..], [None, None]);
    let hits = search_sparse(&copy, &name, &[(1, 1.0)]).await;
    assert_eq!(hits.len(), 49);
    assert_score(&hits[0], 50.0 * idf(49, 49));
    assert_eq!(search_dense(&copy, &name, &[1.0, 3.0, 0.3, 0.7]).await[0].id, id(3));
    copy.upsert(&name, vec![point(200)]).await.unwrap();
    assert_eq!(
        store.get(&name, &[id(200)], Include::Payload).await.unwrap(),
        [None],
        "writes to the copy must not reach the store"
    );
}

/// A copy made during writes contains complete upserts, including all that returned before the snapshot began.
pub async fn snapshot_during_writes_contains_complete_upserts<G>(
    store: Store,
    open: impl AsyncFn(&Path) -> (Store, G),
) {
    const BATCH: u32 = 10;
    let name = create_collection(&store).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (store, name, stop) = (Arc::clone(&store), name.clone(), Arc::clone(&stop));
        tokio::spawn(async move {
            let mut batches = 0;
            while !stop.load(Ordering::Relaxed) || batches < 5 {
                let range = batches * BATCH..(batches + 1) * BATCH;
                store.upsert(&name, range.map(|n| with_sparse(n, &[(1, 1.0)])).collect()).await.unwrap();
                batches += 1;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            batches
        })
    };
    let folder = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let before = count(&store, &name).await;
        let to = folder.path().join(format!("copy-{round}"));
        store.snapshot(&to).await.unwrap();
        let (copy, _guard) = open(&to).await;
        let copied = count(&copy, &name).await;
        assert!(copied >= before, "the copy has {copied} points, expected at least {before}");
        assert_eq!(copied % u64::from(BATCH), 0, "the copy must contain complete upserts");
        let mut all = scroll_all(&copy, &name, &Filter::all(), 1000).await;
        all.sort_unstable();
        assert_eq!(all, (0..copied as u32).collect::<Vec<_>>());
    }
    stop.store(true, Ordering::Relaxed);
    let batches = writer.await.unwrap();
    assert_eq!(
        count(&store, &name).await,
        u64::from(batches * BATCH),
        "writes must continue during a snapshot"
    );
}

/// A working store reports that it is healthy.
pub async fn health_of_a_working_store_is_ok(store: Store) {
    store.health().await.unwrap();
    assert!(!format!("{store:?}").is_empty());
}

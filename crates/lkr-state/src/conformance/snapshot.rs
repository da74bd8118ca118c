use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::support::*;
use crate::{ErrorKind, Expect, ScanOrder, StateStoreExt as _, Write};

/// A snapshot creates its folder; an existing folder is refused and not changed.
pub async fn snapshot_creates_a_folder_and_refuses_an_existing_one(store: Store) {
    let key = unique_prefix() + "key";
    put(&store, &key, "v").await;
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
    poll_once(store.snapshot(&folder.path().join("dropped")));
    assert_eq!(text(&store, &key).await.unwrap(), "v");
}

/// A copy contains the records as they were, with versions and expiry, and no later write.
pub async fn snapshot_contains_earlier_writes_only<G>(store: Store, open: impl AsyncFn(&Path) -> (Store, G)) {
    let base = unique_prefix();
    let key = |name: &str| format!("{base}{name}");
    let step = vec![
        Write::put(key("a"), Expect::Any, &b"\0\xff"[..]),
        Write::put_for(key("b"), Expect::Any, "kept", Duration::from_secs(600)),
        Write::put_for(key("c"), Expect::Any, "short", ms(30)),
        Write::increment(key("d")),
    ];
    store.apply(step).await.unwrap();
    put(&store, &key("gone"), "v").await;
    store.apply(vec![Write::delete(key("gone"), Expect::Any)]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("copy");
    store.snapshot(&to).await.unwrap();
    put(&store, &key("later"), "v").await;
    tokio::time::sleep(ms(60)).await;

    let (copy, _guard) = open(&to).await;
    assert_eq!(keys(&copy, &base, "", None, ScanOrder::Ascending).await, ["a", "b", "d"]);
    for name in ["a", "b", "d"] {
        assert_eq!(get(&copy, &key(name)).await, get(&store, &key(name)).await);
    }
    let old = version(&copy, &key("d")).await;
    copy.apply(vec![Write::increment(key("d"))]).await.unwrap();
    assert!(version(&copy, &key("d")).await > old);
    assert_eq!(store.counter(&key("d")).await.unwrap(), 1, "writes to the copy must not reach the store");
}

/// A copy made during writes contains complete steps, including all that returned before the snapshot began.
pub async fn snapshot_during_writes_contains_complete_steps<G>(
    store: Store,
    open: impl AsyncFn(&Path) -> (Store, G),
) {
    let base = unique_prefix();
    let stop = Arc::new(AtomicBool::new(false));
    let pair = [format!("{base}a"), format!("{base}b")];
    let writer = {
        let (store, pair, stop) = (Arc::clone(&store), pair.clone(), Arc::clone(&stop));
        tokio::spawn(async move {
            let mut steps = 0;
            while !stop.load(Ordering::Relaxed) || steps < 5 {
                store.apply(pair.iter().map(|key| Write::increment(key.as_str())).collect()).await.unwrap();
                steps += 1;
                tokio::time::sleep(ms(2)).await;
            }
            steps
        })
    };
    let folder = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let before = store.counter(&pair[0]).await.unwrap();
        let to = folder.path().join(format!("copy-{round}"));
        store.snapshot(&to).await.unwrap();
        let (copy, _guard) = open(&to).await;
        let copied = copy.counter(&pair[0]).await.unwrap();
        assert_eq!(copied, copy.counter(&pair[1]).await.unwrap(), "the copy must contain complete steps");
        assert!(copied >= before, "the copy has {copied} steps, expected at least {before}");
    }
    stop.store(true, Ordering::Relaxed);
    let steps = writer.await.unwrap();
    assert_eq!(store.counter(&pair[0]).await.unwrap(), steps, "writes must continue during a snapshot");
}

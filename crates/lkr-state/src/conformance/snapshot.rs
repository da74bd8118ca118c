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

/// The folder is made with something in it; one that exists is left alone.
pub async fn snapshot_makes_a_new_folder(store: Store) {
    let key = fresh() + "key";
    put(&store, &key, "v").await;
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("copy");
    store.snapshot(&to).await.unwrap();
    assert!(std::fs::read_dir(&to).unwrap().next().is_some(), "the folder is not empty");

    assert_kind(store.snapshot(&to).await, ErrorKind::Invalid);
    let mine = folder.path().join("mine");
    std::fs::create_dir(&mine).unwrap();
    std::fs::write(mine.join("file"), "kept").unwrap();
    assert_kind(store.snapshot(&mine).await, ErrorKind::Invalid);
    assert_eq!(std::fs::read_dir(&mine).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(mine.join("file")).unwrap(), "kept");
    store.snapshot(&folder.path().join("second")).await.unwrap();
    poll_once(store.snapshot(&folder.path().join("dropped")));
    assert_eq!(text(&store, &key).await.unwrap(), "v");
}

/// A copy holds the records as they were, with versions and times, and nothing that came later.
pub async fn snapshot_holds_everything<G>(store: Store, open: impl AsyncFn(&Path) -> (Store, G)) {
    let base = fresh();
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
    assert_eq!(store.counter(&key("d")).await.unwrap(), 1, "the copy stands alone");
}

/// A copy that is made under writes holds whole steps, and all of those that were answered before.
pub async fn snapshot_while_writing_is_consistent<G>(store: Store, open: impl AsyncFn(&Path) -> (Store, G)) {
    let base = fresh();
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
        assert_eq!(copied, copy.counter(&pair[1]).await.unwrap(), "whole steps");
        assert!(copied >= before, "{copied} of at least {before}");
    }
    stop.store(true, Ordering::Relaxed);
    let steps = writer.await.unwrap();
    assert_eq!(store.counter(&pair[0]).await.unwrap(), steps, "writes went on");
}

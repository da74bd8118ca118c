use std::time::Duration;

use super::support::*;
use crate::{ErrorKind, Expect, ScanOrder, StateStoreExt as _, Write};

/// Long enough to be still there when it is looked at on a busy machine.
const MINUTE: Duration = Duration::from_secs(60);

/// Waits until a record is gone.
async fn gone(store: &Store, key: &str) {
    for _ in 0..400 {
        if get(store, key).await.is_none() {
            return;
        }
        tokio::time::sleep(ms(20)).await;
    }
    panic!("{key} does not expire");
}

/// A record is there before its time is over, and in no read afterwards.
pub async fn records_expire(store: Store) {
    let base = fresh();
    let (short, long, ever) = (format!("{base}a"), format!("{base}b"), format!("{base}c"));
    let step = vec![
        Write::put_for(&short, Expect::Any, "v", ms(50)),
        Write::put_for(&long, Expect::Any, "v", MINUTE),
        Write::put(&ever, Expect::Any, "v"),
    ];
    store.apply(step).await.unwrap();
    assert!(get(&store, &long).await.is_some());
    gone(&store, &short).await;
    for (order, expected) in [(ScanOrder::Ascending, ["b", "c"]), (ScanOrder::Descending, ["c", "b"])] {
        assert_eq!(keys(&store, &base, "", None, order).await, expected);
        let first = store.scan(&base, None, order, 1).await.unwrap();
        assert_eq!(first.len(), 1, "what has expired takes no place on a page");
    }
    let found = store.get_many(&[short, long, ever]).await.unwrap();
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, true]);
}

/// What has expired is absent to every expectation, and its version is not used again.
pub async fn expired_records_are_absent(store: Store) {
    let key = fresh() + "key";
    store.apply(vec![Write::put_for(&key, Expect::Any, "v", ms(300))]).await.unwrap();
    let old = get(&store, &key).await.map_or(0, |record| record.version);
    gone(&store, &key).await;
    assert_kind(store.apply(vec![Write::check(&key, Expect::Version(old))]).await, ErrorKind::Conflict);
    assert_kind(store.apply(vec![Write::put(&key, Expect::Version(old), "v")]).await, ErrorKind::Conflict);
    store.apply(vec![Write::check(&key, Expect::Absent)]).await.unwrap();
    store.apply(vec![Write::delete(&key, Expect::Absent)]).await.unwrap();
    store.apply(vec![Write::put(&key, Expect::Absent, "new")]).await.unwrap();
    assert!(version(&store, &key).await > old);
    assert_eq!(text(&store, &key).await.unwrap(), "new");
}

/// Each put sets the time anew, or takes it away.
pub async fn ttl_is_of_the_last_put(store: Store) {
    let base = fresh();
    let (longer, ever, shorter) = (format!("{base}a"), format!("{base}b"), format!("{base}c"));
    for key in [&longer, &ever] {
        store.apply(vec![Write::put_for(key, Expect::Any, "old", ms(30))]).await.unwrap();
    }
    store.apply(vec![Write::put_for(&longer, Expect::Any, "new", MINUTE)]).await.unwrap();
    store.apply(vec![Write::put(&ever, Expect::Any, "new")]).await.unwrap();
    store.apply(vec![Write::put(&shorter, Expect::Any, "old")]).await.unwrap();
    store.apply(vec![Write::put_for(&shorter, Expect::Any, "new", ms(30))]).await.unwrap();
    tokio::time::sleep(ms(60)).await;
    gone(&store, &shorter).await;
    assert_eq!(text(&store, &longer).await.unwrap(), "new");
    assert_eq!(text(&store, &ever).await.unwrap(), "new");
}

/// No time at all is over at once; more than a clock can tell is for ever.
pub async fn ttl_of_none_and_of_ages(store: Store) {
    let base = fresh();
    let (none, ages) = (format!("{base}a"), format!("{base}b"));
    put(&store, &none, "old").await;
    store.apply(vec![Write::put_for(&none, Expect::Any, "v", NONE)]).await.unwrap();
    gone(&store, &none).await;
    for ttl in [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_secs(u64::from(u32::MAX))] {
        store.apply(vec![Write::put_for(&ages, Expect::Any, "v", ttl)]).await.unwrap();
        assert_eq!(text(&store, &ages).await.unwrap(), "v", "{ttl:?}");
    }
}

/// A counter expires when its put said, however often it has counted since, and then begins at 0.
pub async fn counters_keep_their_ttl(store: Store) {
    let key = fresh() + "count";
    store.apply(vec![Write::put_for(&key, Expect::Any, "5", ms(200))]).await.unwrap();
    let first = std::time::Instant::now();
    while first.elapsed() < ms(120) {
        store.apply(vec![Write::increment(&key)]).await.unwrap();
        tokio::time::sleep(ms(30)).await;
    }
    gone(&store, &key).await;
    store.apply(vec![Write::increment(&key)]).await.unwrap();
    assert_eq!(store.counter(&key).await.unwrap(), 1);
    tokio::time::sleep(ms(20)).await;
    assert_eq!(store.counter(&key).await.unwrap(), 1, "it has no time of its own now");
}

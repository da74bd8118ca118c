use std::time::Duration;

use super::support::*;
use crate::{ErrorKind, Expect, Scan, ScanOrder, StateStoreExt as _, Write};

/// Long enough that a record has not expired when it is read on a busy machine.
const MINUTE: Duration = Duration::from_secs(60);

/// Waits until a record has expired.
async fn wait_for_expiry(store: &Store, key: &str) {
    for _ in 0..400 {
        if get(store, key).await.is_none() {
            return;
        }
        tokio::time::sleep(ms(20)).await;
    }
    panic!("the record {key} does not expire");
}

/// Reads return a record until it expires, and never afterwards.
pub async fn expired_record_is_in_no_read(store: Store) {
    let base = unique_prefix();
    let (short, long, permanent) = (format!("{base}a"), format!("{base}b"), format!("{base}c"));
    let step = vec![
        Write::put_for(&short, Expect::Any, "v", ms(50)),
        Write::put_for(&long, Expect::Any, "v", MINUTE),
        Write::put(&permanent, Expect::Any, "v"),
    ];
    store.apply(step).await.unwrap();
    assert!(get(&store, &long).await.is_some());
    wait_for_expiry(&store, &short).await;
    for (order, expected) in [(ScanOrder::Ascending, ["b", "c"]), (ScanOrder::Descending, ["c", "b"])] {
        assert_eq!(keys(&store, &base, "", None, order).await, expected);
        let first = store.scan(&base, None, order, 1).await.unwrap();
        assert_eq!(first.len(), 1, "an expired record must not count towards the limit");
        let scan = Scan { prefix: base.clone(), after: None, order, limit: 1 };
        assert_eq!(store.scan_many(&[scan]).await.unwrap(), [first]);
    }
    let found = store.get_many(&[short, long, permanent]).await.unwrap();
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, true]);
}

/// Expectations treat an expired record as absent, and its version is not reused.
pub async fn expired_record_counts_as_absent_in_expectations(store: Store) {
    let key = unique_prefix() + "key";
    store.apply(vec![Write::put_for(&key, Expect::Any, "v", ms(300))]).await.unwrap();
    let old = get(&store, &key).await.map_or(0, |record| record.version);
    wait_for_expiry(&store, &key).await;
    assert_kind(store.apply(vec![Write::check(&key, Expect::Version(old))]).await, ErrorKind::Conflict);
    assert_kind(store.apply(vec![Write::put(&key, Expect::Version(old), "v")]).await, ErrorKind::Conflict);
    store.apply(vec![Write::check(&key, Expect::Absent)]).await.unwrap();
    store.apply(vec![Write::delete(&key, Expect::Absent)]).await.unwrap();
    store.apply(vec![Write::put(&key, Expect::Absent, "new")]).await.unwrap();
    assert!(version(&store, &key).await > old);
    assert_eq!(text(&store, &key).await.unwrap(), "new");
}

/// Each put sets a new expiry or removes it.
pub async fn put_replaces_the_ttl(store: Store) {
    let base = unique_prefix();
    let (longer, permanent, shorter) = (format!("{base}a"), format!("{base}b"), format!("{base}c"));
    for key in [&longer, &permanent] {
        store.apply(vec![Write::put_for(key, Expect::Any, "old", ms(30))]).await.unwrap();
    }
    store.apply(vec![Write::put_for(&longer, Expect::Any, "new", MINUTE)]).await.unwrap();
    store.apply(vec![Write::put(&permanent, Expect::Any, "new")]).await.unwrap();
    store.apply(vec![Write::put(&shorter, Expect::Any, "old")]).await.unwrap();
    store.apply(vec![Write::put_for(&shorter, Expect::Any, "new", ms(30))]).await.unwrap();
    tokio::time::sleep(ms(60)).await;
    wait_for_expiry(&store, &shorter).await;
    assert_eq!(text(&store, &longer).await.unwrap(), "new");
    assert_eq!(text(&store, &permanent).await.unwrap(), "new");
}

/// A TTL of zero expires at once; a TTL that is too large for the clock never expires.
pub async fn ttl_of_zero_expires_at_once_and_a_huge_ttl_never(store: Store) {
    let base = unique_prefix();
    let (zero, huge) = (format!("{base}a"), format!("{base}b"));
    put(&store, &zero, "old").await;
    store.apply(vec![Write::put_for(&zero, Expect::Any, "v", ZERO)]).await.unwrap();
    wait_for_expiry(&store, &zero).await;
    for ttl in [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_secs(u64::from(u32::MAX))] {
        store.apply(vec![Write::put_for(&huge, Expect::Any, "v", ttl)]).await.unwrap();
        assert_eq!(text(&store, &huge).await.unwrap(), "v", "{ttl:?}");
    }
}

/// Increments do not change the expiry of a counter; after it the counter starts at 0.
pub async fn increment_keeps_the_ttl(store: Store) {
    let key = unique_prefix() + "count";
    store.apply(vec![Write::put_for(&key, Expect::Any, "5", ms(200))]).await.unwrap();
    let first = std::time::Instant::now();
    while first.elapsed() < ms(120) {
        store.apply(vec![Write::increment(&key)]).await.unwrap();
        tokio::time::sleep(ms(30)).await;
    }
    wait_for_expiry(&store, &key).await;
    store.apply(vec![Write::increment(&key)]).await.unwrap();
    assert_eq!(store.counter(&key).await.unwrap(), 1);
    tokio::time::sleep(ms(20)).await;
    assert_eq!(store.counter(&key).await.unwrap(), 1, "the new counter must not expire");
}

use std::sync::Arc;

use tokio::task::JoinSet;

use super::support::*;
use crate::{Expect, StateStoreExt as _, Write};

/// A counter begins at 0, grows by one, and is decimal digits to those who read it.
pub async fn counters_count(store: Store) {
    let key = fresh() + "count";
    assert_eq!(store.counter(&key).await.unwrap(), 0);
    for expected in 1..=12 {
        store.apply(vec![Write::increment(&key)]).await.unwrap();
        assert_eq!(store.counter(&key).await.unwrap(), expected);
    }
    assert_eq!(text(&store, &key).await.unwrap(), "12");
    store.apply(vec![Write::delete(&key, Expect::Any)]).await.unwrap();
    assert_eq!(store.counter(&key).await.unwrap(), 0);
    store.apply(vec![Write::increment(&key)]).await.unwrap();
    assert_eq!(store.counter(&key).await.unwrap(), 1);
    store.apply(vec![Write::put(&key, Expect::Any, "9007199254740993")]).await.unwrap();
    store.apply(vec![Write::increment(&key)]).await.unwrap();
    assert_eq!(text(&store, &key).await.unwrap(), "9007199254740994");
}

/// A value that is no counter counts as 0.
pub async fn counters_begin_anew_on_other_values(store: Store) {
    let base = fresh();
    for (n, value) in
        [&b"text"[..], b"", b"-3", b"1.5", b"\xff\xfe", b"99999999999999999999999"].into_iter().enumerate()
    {
        let key = format!("{base}{n}");
        store.apply(vec![Write::put(&key, Expect::Any, value)]).await.unwrap();
        assert_eq!(store.counter(&key).await.unwrap(), 0, "{value:?}");
        store.apply(vec![Write::increment(&key)]).await.unwrap();
        assert_eq!(store.counter(&key).await.unwrap(), 1, "{value:?}");
    }
}

/// Fifty tasks of twenty increments make a thousand.
pub async fn concurrent_increments_lose_nothing(store: Store) {
    let base = fresh();
    let mut tasks = JoinSet::new();
    for task in 0..50 {
        let (store, shared, own) = (Arc::clone(&store), format!("{base}shared"), format!("{base}own/{task}"));
        tasks.spawn(async move {
            for _ in 0..20 {
                store.apply(vec![Write::increment(&shared), Write::increment(&own)]).await.unwrap();
            }
            assert_eq!(store.counter(&own).await.unwrap(), 20);
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(store.counter(&format!("{base}shared")).await.unwrap(), 1000);
}

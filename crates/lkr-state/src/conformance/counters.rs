use std::sync::Arc;

use tokio::task::JoinSet;

use super::support::*;
use crate::{Expect, StateStoreExt as _, Write};

/// A counter starts at 0, grows by one, and is stored as decimal digits.
pub async fn increment_starts_at_zero_and_adds_one(store: Store) {
    let key = unique_prefix() + "count";
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

/// A value that is not a counter counts as 0.
pub async fn increment_of_a_value_that_is_no_counter_starts_at_zero(store: Store) {
    let base = unique_prefix();
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

/// Fifty concurrent tasks with twenty increments each add up to a thousand.
pub async fn concurrent_increments_are_all_counted(store: Store) {
    let base = unique_prefix();
    let mut tasks = JoinSet::new();
    for task in 0..50 {
        let (store, shared, private) =
            (Arc::clone(&store), format!("{base}shared"), format!("{base}private/{task}"));
        tasks.spawn(async move {
            for _ in 0..20 {
                store.apply(vec![Write::increment(&shared), Write::increment(&private)]).await.unwrap();
            }
            assert_eq!(store.counter(&private).await.unwrap(), 20);
        });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
    assert_eq!(store.counter(&format!("{base}shared")).await.unwrap(), 1000);
}

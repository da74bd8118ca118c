//! Helpers shared by the cases.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use lkr_domain::DocId;

use crate::{ErrorKind, Expect, Record, Result, ScanOrder, StateStore, StateStoreExt as _, TaskQueue, Write};

/// The store under test.
pub(super) type Store = Arc<dyn StateStore>;

/// The queue under test.
pub(super) type Queue = Arc<dyn TaskQueue>;

/// No delay or wait.
pub(super) const ZERO: Duration = Duration::ZERO;

/// A wait that only elapses if the store is faulty.
pub(super) const LONG: Duration = Duration::from_secs(30);

/// Much longer than a waiter needs after its wake-up, and much shorter than [`LONG`].
pub(super) const WAKE_UP_LIMIT: Duration = Duration::from_secs(15);

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A random key prefix that ends in a slash.
pub(super) fn unique_prefix() -> String {
    format!("case-{}/", DocId::new())
}

pub(super) async fn get(store: &Store, key: &str) -> Option<Record> {
    store.get(key).await.unwrap()
}

pub(super) async fn put(store: &Store, key: &str, value: &'static str) -> u64 {
    store.apply(vec![Write::put(key, Expect::Any, value)]).await.unwrap();
    version(store, key).await
}

/// The version of an existing record.
pub(super) async fn version(store: &Store, key: &str) -> u64 {
    get(store, key).await.unwrap_or_else(|| panic!("the record {key} does not exist")).version
}

/// The value of a record as text; `None` if the record does not exist.
pub(super) async fn text(store: &Store, key: &str) -> Option<String> {
    get(store, key).await.map(|record| String::from_utf8(record.value.to_vec()).unwrap())
}

/// Scans, and returns the keys without the case's prefix `base`.
pub(super) async fn keys(
    store: &Store,
    base: &str,
    prefix: &str,
    after: Option<&str>,
    order: ScanOrder,
) -> Vec<String> {
    let after = after.map(|after| format!("{base}{after}"));
    let found = store.scan(&format!("{base}{prefix}"), after.as_deref(), order, 1000).await.unwrap();
    found.into_iter().map(|(key, _)| key.strip_prefix(base).unwrap().to_owned()).collect()
}

#[track_caller]
pub(super) fn assert_kind<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind) {
    match result {
        Ok(value) => panic!("expected the error {kind:?}, got {value:?}"),
        Err(error) => assert_eq!(error.kind(), kind, "{error}"),
    }
}

/// Polls a future once and drops it; returns whether it was ready.
pub(super) fn poll_once(future: impl Future) -> bool {
    pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// Starts a future and drops it after `delay` unless it is ready earlier.
pub(super) async fn drop_after(delay: Duration, future: impl Future) {
    let _ready_or_elapsed = tokio::time::timeout(delay, future).await;
}

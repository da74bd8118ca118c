//! What the cases share.

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

/// No time at all.
pub(super) const NONE: Duration = Duration::ZERO;

/// A wait that is never used up unless the store fails.
pub(super) const LONG: Duration = Duration::from_secs(30);

/// Far longer than a waiter sleeps on when it has been woken, and far shorter than [`LONG`].
pub(super) const WOKEN: Duration = Duration::from_secs(15);

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A prefix that no key has yet; it ends in a slash.
pub(super) fn fresh() -> String {
    format!("case-{}/", DocId::new())
}

pub(super) async fn get(store: &Store, key: &str) -> Option<Record> {
    store.get(key).await.unwrap()
}

pub(super) async fn put(store: &Store, key: &str, value: &'static str) -> u64 {
    store.apply(vec![Write::put(key, Expect::Any, value)]).await.unwrap();
    version(store, key).await
}

/// The version of a record that is there.
pub(super) async fn version(store: &Store, key: &str) -> u64 {
    get(store, key).await.unwrap_or_else(|| panic!("{key} is not there")).version
}

/// The value of a record, if it is there, as text.
pub(super) async fn text(store: &Store, key: &str) -> Option<String> {
    get(store, key).await.map(|record| String::from_utf8(record.value.to_vec()).unwrap())
}

/// The keys of a scan, without the prefix `base` of the case.
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
        Ok(value) => panic!("{kind:?} was expected, not {value:?}"),
        Err(error) => assert_eq!(error.kind(), kind, "{error}"),
    }
}

/// Polls a future once and drops it; answers whether it was done by then.
pub(super) fn poll_once(future: impl Future) -> bool {
    pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// Starts a future, and drops it after `pause` unless it is done by then.
pub(super) async fn drop_after(pause: Duration, future: impl Future) {
    let _dropped_or_done = tokio::time::timeout(pause, future).await;
}

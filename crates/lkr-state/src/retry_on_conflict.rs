use std::{
    fmt::{self, Debug},
    hash::{BuildHasher, RandomState},
    path::Path,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;

use crate::{Error, ErrorKind, Key, Record, Result, ScanOrder, StateStore, Write};

/// The most attempts of [`retry_on_conflict`]. Judgement: with the pauses between them, sixteen writers of one record all
/// succeed, and a write that never can ends after about a tenth of a second. See docs/studies.md#contention.
pub const MAX_ATTEMPTS: u32 = 16;

/// The attempts that follow each other without a pause: most conflicts are over by the next read.
const IMMEDIATE_ATTEMPTS: u32 = 3;

/// The longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_millis(16);

/// An error that tells a lost compare-and-set from other failures.
pub trait ConflictError: Sized {
    /// Whether the records changed between the read and the write, so that reading again may help.
    fn is_conflict(&self) -> bool;

    /// The error of an operation whose attempts all lost.
    fn contention(operation: &'static str, attempts: u32) -> Self;
}

impl ConflictError for Error {
    fn is_conflict(&self) -> bool {
        self.kind() == ErrorKind::Conflict
    }

    fn contention(operation: &'static str, attempts: u32) -> Self {
        Self::new(ErrorKind::Contention, operation, contention_reason(attempts))
    }
}

/// The reason of an error of contention, the same in every crate.
#[must_use]
pub fn contention_reason(attempts: u32) -> String {
    format!("the record changed during each of {attempts} attempts")
}

/// Repeats `attempt`, which reads records and writes them back with expectations, while it loses its compare-and-set.
///
/// Pauses between attempts double up to 16 ms and are jittered, so that writers of one record do not stay in step. After
/// [`MAX_ATTEMPTS`] it reports the contention to `store` ([`StateStore::report_contention`]) and ends with
/// [`ConflictError::contention`]. That is not an outage: the store answers, and a later call may succeed.
///
/// # Errors
/// The first error that is not a conflict; contention after the last attempt.
pub async fn retry_on_conflict<T, E, F>(
    store: &dyn StateStore,
    operation: &'static str,
    mut attempt: impl FnMut() -> F,
) -> Result<T, E>
where
    E: ConflictError,
    F: Future<Output = Result<T, E>>,
{
    for attempts in 1..=MAX_ATTEMPTS {
        match attempt().await {
            Err(error) if error.is_conflict() => {}
            ended => return ended,
        }
        if let Some(pause) = pause_after(attempts) {
            tokio::time::sleep(pause).await;
        }
    }
    store.report_contention(operation);
    Err(E::contention(operation, MAX_ATTEMPTS))
}

/// The pause after this attempt: between half of its length and its length; `None` after the first attempts.
fn pause_after(attempts: u32) -> Option<Duration> {
    let doublings = attempts.checked_sub(IMMEDIATE_ATTEMPTS)?;
    let longest = Duration::from_millis(1).saturating_mul(1 << doublings.min(5)).min(MAX_PAUSE);
    let jitter = RandomState::new().hash_one(attempts) % 1024;
    Some(longest / 2 + longest.mul_f64(jitter as f64 / 2048.0))
}

/// Is told of each operation that gave up because of contention, such as a counter of metrics.
#[derive(Clone)]
pub struct ContentionObserver(Arc<dyn Fn(&'static str) + Send + Sync>);

impl ContentionObserver {
    /// Calls `observe` with the name of each operation that gave up.
    pub fn new(observe: impl Fn(&'static str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }
}

impl Debug for ContentionObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentionObserver")
    }
}

/// A store that tells an observer of contention.
#[derive(Debug)]
pub struct ObservedState {
    inner: Arc<dyn StateStore>,
    observer: ContentionObserver,
}

impl ObservedState {
    /// Tells `observer` the operation whenever [`retry_on_conflict`] gives up on `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn StateStore>, observer: ContentionObserver) -> Self {
        Self { inner, observer }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for ObservedState {
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        self.inner.get_many(keys).await
    }

    async fn apply(&self, writes: Vec<Write>) -> Result<()> {
        self.inner.apply(writes).await
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>> {
        self.inner.scan(prefix, after, order, limit).await
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        self.inner.snapshot(to).await
    }

    async fn health(&self) -> Result<()> {
        self.inner.health().await
    }

    fn report_contention(&self, operation: &'static str) {
        (self.observer.0)(operation);
        self.inner.report_contention(operation);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    };

    use super::*;
    use crate::{Expect, FailingState, MemoryState, StateStoreExt};

    fn observed(inner: Arc<dyn StateStore>) -> (ObservedState, Arc<Mutex<Vec<&'static str>>>) {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&reports);
        let observer = ContentionObserver::new(move |operation| sink.lock().unwrap().push(operation));
        (ObservedState::new(inner, observer), reports)
    }

    #[tokio::test(start_paused = true)]
    async fn sixteen_lost_compare_and_sets_end_as_contention_and_are_reported() {
        let inner = FailingState::new(Arc::new(MemoryState::new()), |operation| {
            (operation == "apply").then_some(ErrorKind::Conflict)
        });
        let (store, reports) = observed(Arc::new(inner));
        let attempts = AtomicU32::new(0);
        let result: Result<()> = retry_on_conflict(&store, "write record", || {
            attempts.fetch_add(1, Ordering::Relaxed);
            store.apply(vec![Write::put("key", Expect::Any, "value")])
        })
        .await;
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Contention);
        assert!(error.is_retryable(), "a later call may succeed");
        assert_eq!(error.to_string(), "write record: the record changed during each of 16 attempts");
        assert_eq!(attempts.load(Ordering::Relaxed), 16);
        assert_eq!(*reports.lock().unwrap(), ["write record"]);
    }

    #[tokio::test(start_paused = true)]
    async fn conflict_that_ends_is_retried_without_a_report() {
        let left = AtomicU32::new(15);
        let inner = FailingState::new(Arc::new(MemoryState::new()), move |operation| {
            let fails = operation == "apply"
                && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok();
            fails.then_some(ErrorKind::Conflict)
        });
        let (store, reports) = observed(Arc::new(inner));
        retry_on_conflict(&store, "write record", || {
            store.apply(vec![Write::put("key", Expect::Any, "value")])
        })
        .await
        .unwrap();
        assert!(store.get("key").await.unwrap().is_some());
        assert!(reports.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn other_failure_ends_the_retries() {
        let inner = FailingState::new(Arc::new(MemoryState::new()), |_| Some(ErrorKind::Unavailable));
        let (store, reports) = observed(Arc::new(inner));
        let attempts = AtomicU32::new(0);
        let result = retry_on_conflict(&store, "write record", || {
            attempts.fetch_add(1, Ordering::Relaxed);
            store.apply(Vec::new())
        });
        assert_eq!(result.await.unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(attempts.load(Ordering::Relaxed), 1);
        assert!(reports.lock().unwrap().is_empty());
    }

    #[test]
    fn pauses_grow_to_a_bound() {
        assert_eq!(pause_after(1), None);
        for attempts in IMMEDIATE_ATTEMPTS..=MAX_ATTEMPTS {
            let pause = pause_after(attempts).unwrap();
            assert!(pause >= Duration::from_micros(500) && pause <= MAX_PAUSE, "{attempts}: {pause:?}");
        }
    }

    async fn store() -> (Arc<dyn StateStore>, ()) {
        (Arc::new(observed(Arc::new(MemoryState::new())).0), ())
    }

    mod state_suite {
        crate::state_store_suite!(super::store());
    }
}

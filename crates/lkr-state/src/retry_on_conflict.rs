use std::{
    fmt::{self, Debug},
    hash::{BuildHasher, RandomState},
    path::Path,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::{Error, ErrorKind, Key, Record, Result, Scan, ScanOrder, StateStore, Write};

/// The maximum number of attempts of [`retry_on_conflict`]. Judgement: with the pauses between attempts, sixteen concurrent
/// writers of one record all succeed, and a write that can never succeed fails after about 0.1 s. See
/// docs/studies.md#contention.
pub const MAX_ATTEMPTS: u32 = 16;

/// The number of attempts without a pause in between, because most conflicts are over by the next read. See
/// docs/studies.md#contention.
const IMMEDIATE_ATTEMPTS: u32 = 3;

/// The maximum pause between two attempts. See docs/studies.md#contention.
const MAX_PAUSE: Duration = Duration::from_millis(16);

/// An error type that distinguishes a lost compare-and-set from other failures.
pub trait ConflictError: Sized {
    /// Whether the records changed between the read and the write, so that a new attempt may succeed.
    fn is_conflict(&self) -> bool;

    /// The error of an operation that lost the compare-and-set in every attempt.
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

/// The message of a contention error, the same in every crate.
#[must_use]
pub fn contention_reason(attempts: u32) -> String {
    format!("the record changed during each of {attempts} attempts")
}

/// Repeats `attempt` while it loses its compare-and-set. `attempt` reads records and writes them with expectations.
///
/// Pauses between attempts double up to 16 ms and have jitter, so that concurrent writers do not retry in lockstep. After
/// [`MAX_ATTEMPTS`] attempts it reports the contention to `store` ([`StateStore::report_contention`]) and returns
/// [`ConflictError::contention`]. Contention is not an outage: the store works, and a later call may succeed.
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
            result => return result,
        }
        if let Some(pause) = pause_after(attempts) {
            tokio::time::sleep(pause).await;
        }
    }
    store.report_contention(operation);
    Err(E::contention(operation, MAX_ATTEMPTS))
}

/// The pause after an attempt, with jitter: between half of the maximum and the maximum. `None` after the first attempts.
fn pause_after(attempts: u32) -> Option<Duration> {
    let doublings = attempts.checked_sub(IMMEDIATE_ATTEMPTS)?;
    let max = Duration::from_millis(1).saturating_mul(1 << doublings.min(5)).min(MAX_PAUSE);
    let jitter = RandomState::new().hash_one(attempts) % 1024;
    Some(max / 2 + max.mul_f64(jitter as f64 / 2048.0))
}

/// A callback for each operation that gave up because of contention, for example to increment a metric.
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

/// A decorator of a store that reports contention to an observer.
#[derive(Debug)]
pub struct ObservedState {
    inner: Arc<dyn StateStore>,
    observer: ContentionObserver,
}

impl ObservedState {
    /// Calls `observer` with the operation whenever [`retry_on_conflict`] gives up on `inner`.
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

    async fn scan_many(&self, scans: &[Scan]) -> Result<Vec<Vec<(Key, Record)>>> {
        self.inner.scan_many(scans).await
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        self.inner.snapshot(to).await
    }

    async fn health(&self) -> Result<()> {
        self.inner.health().await
    }

    fn now(&self) -> OffsetDateTime {
        self.inner.now()
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
        let conflicts_left = AtomicU32::new(15);
        let inner = FailingState::new(Arc::new(MemoryState::new()), move |operation| {
            let fails = operation == "apply"
                && conflicts_left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                    .is_ok();
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
    fn pause_after_any_attempt_is_bounded() {
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

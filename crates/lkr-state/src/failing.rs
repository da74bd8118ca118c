use std::{collections::HashMap, fmt, path::Path, pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use lkr_domain::TaskId;
use time::OffsetDateTime;

use crate::{
    Claim, Error, ErrorKind, Key, Lane, Record, Result, Scan, ScanOrder, StateStore, TaskQueue, Work, Write,
};

/// Called with the name of each operation before it runs; returns the kind of error to fail with.
type Fault = Box<dyn Fn(&'static str) -> Option<ErrorKind> + Send + Sync>;

/// Runs before an operation, and returns the kind of error to fail with.
pub type FaultFuture = Pin<Box<dyn Future<Output = Option<ErrorKind>> + Send>>;

/// Called with the name of each operation before it runs.
type AsyncFault = Box<dyn Fn(&'static str) -> FaultFuture + Send + Sync>;

/// A decorator of a store that injects faults, for tests of error handling.
///
/// Before each operation it calls a closure with the operation's name. The closure returns the kind of error to fail
/// with, or `None` to let the operation through. An operation that fails has no effect.
pub struct FailingState {
    inner: Arc<dyn StateStore>,
    fault: AsyncFault,
}

/// A decorator of a queue that injects faults, like [`FailingState`].
pub struct FailingQueue {
    inner: Arc<dyn TaskQueue>,
    fault: Fault,
}

impl FailingState {
    /// Wraps `inner` so that operations fail as `fault` decides.
    pub fn new(
        inner: Arc<dyn StateStore>,
        fault: impl Fn(&'static str) -> Option<ErrorKind> + Send + Sync + 'static,
    ) -> Self {
        Self::with_async_fault(inner, move |operation| Box::pin(std::future::ready(fault(operation))))
    }

    /// Wraps `inner` with an asynchronous `fault`, which can also delay an operation or run other operations before
    /// it.
    pub fn with_async_fault(
        inner: Arc<dyn StateStore>,
        fault: impl Fn(&'static str) -> FaultFuture + Send + Sync + 'static,
    ) -> Self {
        Self { inner, fault: Box::new(fault) }
    }

    async fn inject_fault(&self, operation: &'static str) -> Result<()> {
        fail_if((self.fault)(operation).await, operation)
    }
}

impl FailingQueue {
    /// Wraps `inner` so that operations fail as `fault` decides.
    pub fn new(
        inner: Arc<dyn TaskQueue>,
        fault: impl Fn(&'static str) -> Option<ErrorKind> + Send + Sync + 'static,
    ) -> Self {
        Self { inner, fault: Box::new(fault) }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for FailingState {
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        self.inject_fault("get_many").await?;
        self.inner.get_many(keys).await
    }

    async fn apply(&self, writes: Vec<Write>) -> Result<()> {
        self.inject_fault("apply").await?;
        self.inner.apply(writes).await
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>> {
        self.inject_fault("scan").await?;
        self.inner.scan(prefix, after, order, limit).await
    }

    /// The operation has the name of [`scan`](Self::scan), so a fault in scans is one in all of them.
    async fn scan_many(&self, scans: &[Scan]) -> Result<Vec<Vec<(Key, Record)>>> {
        self.inject_fault("scan").await?;
        self.inner.scan_many(scans).await
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        self.inject_fault("snapshot").await?;
        self.inner.snapshot(to).await
    }

    async fn health(&self) -> Result<()> {
        self.inject_fault("health").await?;
        self.inner.health().await
    }

    fn now(&self) -> OffsetDateTime {
        self.inner.now()
    }

    fn report_contention(&self, operation: &'static str) {
        self.inner.report_contention(operation);
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl TaskQueue for FailingQueue {
    async fn push(&self, task: TaskId, delay: Duration) -> Result<()> {
        inject_fault(&self.fault, "push")?;
        self.inner.push(task, delay).await
    }

    async fn enqueue(&self, task: TaskId, work: Work, delay: Duration) -> Result<()> {
        inject_fault(&self.fault, "push")?;
        self.inner.enqueue(task, work, delay).await
    }

    async fn claim_in(&self, lane: Lane, lease: Duration, wait: Duration) -> Result<Option<Claim>> {
        inject_fault(&self.fault, "claim")?;
        self.inner.claim_in(lane, lease, wait).await
    }

    async fn claim(&self, lease: Duration, wait: Duration) -> Result<Option<Claim>> {
        inject_fault(&self.fault, "claim")?;
        self.inner.claim(lease, wait).await
    }

    async fn heartbeat(&self, claim: &Claim, lease: Duration) -> Result<()> {
        inject_fault(&self.fault, "heartbeat")?;
        self.inner.heartbeat(claim, lease).await
    }

    async fn finish(&self, claim: &Claim) -> Result<()> {
        inject_fault(&self.fault, "finish")?;
        self.inner.finish(claim).await
    }

    async fn retry(&self, claim: &Claim, delay: Duration) -> Result<()> {
        inject_fault(&self.fault, "retry")?;
        self.inner.retry(claim, delay).await
    }

    async fn remove(&self, task: TaskId) -> Result<bool> {
        inject_fault(&self.fault, "remove")?;
        self.inner.remove(task).await
    }

    async fn len(&self) -> Result<u64> {
        inject_fault(&self.fault, "len")?;
        self.inner.len().await
    }

    async fn flows(&self) -> Result<HashMap<String, u64>> {
        inject_fault(&self.fault, "flows")?;
        self.inner.flows().await
    }

    async fn oldest(&self) -> Result<Option<TaskId>> {
        inject_fault(&self.fault, "oldest")?;
        self.inner.oldest().await
    }

    async fn health(&self) -> Result<()> {
        inject_fault(&self.fault, "health")?;
        self.inner.health().await
    }
}

impl fmt::Debug for FailingState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailingState").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl fmt::Debug for FailingQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailingQueue").field("inner", &self.inner).finish_non_exhaustive()
    }
}

fn inject_fault(fault: &Fault, operation: &'static str) -> Result<()> {
    fail_if(fault(operation), operation)
}

fn fail_if(kind: Option<ErrorKind>, operation: &'static str) -> Result<()> {
    kind.map_or(Ok(()), |kind| Err(Error::new(kind, operation, "injected fault")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryQueue, MemoryState};

    async fn state() -> (Arc<dyn StateStore>, ()) {
        (Arc::new(FailingState::new(Arc::new(MemoryState::new()), |_| None)), ())
    }

    async fn queue() -> (Arc<dyn TaskQueue>, ()) {
        (Arc::new(FailingQueue::new(Arc::new(MemoryQueue::new()), |_| None)), ())
    }

    mod state_suite {
        crate::state_store_suite!(super::state());
    }

    mod queue_suite {
        crate::task_queue_suite!(super::queue());
    }

    #[tokio::test]
    async fn fault_in_any_state_operation_names_it() {
        let store = FailingState::new(Arc::new(MemoryState::new()), |_| Some(ErrorKind::Unavailable));
        let errors = [
            store.get_many(&[]).await.unwrap_err(),
            store.apply(vec![]).await.unwrap_err(),
            store.scan("", None, ScanOrder::Ascending, 1).await.unwrap_err(),
            store.scan_many(&[]).await.unwrap_err(),
            store.snapshot(Path::new("/nowhere")).await.unwrap_err(),
            store.health().await.unwrap_err(),
        ];
        let names = errors.each_ref().map(Error::operation).join(" ");
        assert_eq!(names, "get_many apply scan scan snapshot health");
        assert!(errors.iter().all(Error::is_retryable));
    }

    #[tokio::test]
    async fn fault_in_any_queue_operation_names_it_and_has_no_effect() {
        let inner = Arc::new(MemoryQueue::new());
        let queue = FailingQueue::new(Arc::clone(&inner) as _, |_| Some(ErrorKind::Internal));
        let claim = Claim { task: TaskId::new(), token: 1 };
        let errors = [
            queue.push(claim.task, Duration::ZERO).await.unwrap_err(),
            queue.claim(Duration::ZERO, Duration::ZERO).await.unwrap_err(),
            queue.heartbeat(&claim, Duration::ZERO).await.unwrap_err(),
            queue.finish(&claim).await.unwrap_err(),
            queue.retry(&claim, Duration::ZERO).await.unwrap_err(),
            queue.remove(claim.task).await.unwrap_err(),
            queue.len().await.unwrap_err(),
            queue.health().await.unwrap_err(),
        ];
        let names = errors.each_ref().map(Error::operation).join(" ");
        assert_eq!(names, "push claim heartbeat finish retry remove len health");
        assert!(errors.iter().all(|error| error.kind() == ErrorKind::Internal));
        assert_eq!(inner.len().await.unwrap(), 0, "the failed push must not queue the task");
    }
}

use std::{fmt, path::Path, pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use lkr_domain::TaskId;

use crate::{Claim, Error, ErrorKind, Key, Record, Result, ScanOrder, StateStore, TaskQueue, Write};

/// Asked before each operation, by its name; answers the kind of error to fail with.
type Fault = Box<dyn Fn(&'static str) -> Option<ErrorKind> + Send + Sync>;

/// What comes before an operation, and the kind of error to fail with.
pub type Before = Pin<Box<dyn Future<Output = Option<ErrorKind>> + Send>>;

/// Called before each operation, with its name.
type Hook = Box<dyn Fn(&'static str) -> Before + Send + Sync>;

/// A store that fails on demand: for tests of what becomes of a failure.
///
/// A closure is asked before each operation, by the operation's name, and answers the kind of error to fail with, or
/// `None` to let it through. An operation that fails does nothing.
pub struct FailingState {
    inner: Arc<dyn StateStore>,
    hook: Hook,
}

/// A queue that fails on demand, as [`FailingState`] does.
pub struct FailingQueue {
    inner: Arc<dyn TaskQueue>,
    fault: Fault,
}

impl FailingState {
    /// The store `inner`, except where `fault` says otherwise.
    pub fn new(
        inner: Arc<dyn StateStore>,
        fault: impl Fn(&'static str) -> Option<ErrorKind> + Send + Sync + 'static,
    ) -> Self {
        Self::hooked(inner, move |operation| Box::pin(std::future::ready(fault(operation))))
    }

    /// The store `inner`, with each operation after what `hook` does before it: it may take its time, let others go
    /// first, and answer the kind of error to fail with.
    pub fn hooked(
        inner: Arc<dyn StateStore>,
        hook: impl Fn(&'static str) -> Before + Send + Sync + 'static,
    ) -> Self {
        Self { inner, hook: Box::new(hook) }
    }

    async fn pass(&self, operation: &'static str) -> Result<()> {
        fail((self.hook)(operation).await, operation)
    }
}

impl FailingQueue {
    /// The queue `inner`, except where `fault` says otherwise.
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
        self.pass("get_many").await?;
        self.inner.get_many(keys).await
    }

    async fn apply(&self, writes: Vec<Write>) -> Result<()> {
        self.pass("apply").await?;
        self.inner.apply(writes).await
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>> {
        self.pass("scan").await?;
        self.inner.scan(prefix, after, order, limit).await
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        self.pass("snapshot").await?;
        self.inner.snapshot(to).await
    }

    async fn health(&self) -> Result<()> {
        self.pass("health").await?;
        self.inner.health().await
    }

    fn report_contention(&self, operation: &'static str) {
        self.inner.report_contention(operation);
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl TaskQueue for FailingQueue {
    async fn push(&self, task: TaskId, delay: Duration) -> Result<()> {
        pass(&self.fault, "push")?;
        self.inner.push(task, delay).await
    }

    async fn claim(&self, lease: Duration, wait: Duration) -> Result<Option<Claim>> {
        pass(&self.fault, "claim")?;
        self.inner.claim(lease, wait).await
    }

    async fn heartbeat(&self, claim: &Claim, lease: Duration) -> Result<()> {
        pass(&self.fault, "heartbeat")?;
        self.inner.heartbeat(claim, lease).await
    }

    async fn finish(&self, claim: &Claim) -> Result<()> {
        pass(&self.fault, "finish")?;
        self.inner.finish(claim).await
    }

    async fn retry(&self, claim: &Claim, delay: Duration) -> Result<()> {
        pass(&self.fault, "retry")?;
        self.inner.retry(claim, delay).await
    }

    async fn remove(&self, task: TaskId) -> Result<bool> {
        pass(&self.fault, "remove")?;
        self.inner.remove(task).await
    }

    async fn len(&self) -> Result<u64> {
        pass(&self.fault, "len")?;
        self.inner.len().await
    }

    async fn health(&self) -> Result<()> {
        pass(&self.fault, "health")?;
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

fn pass(fault: &Fault, operation: &'static str) -> Result<()> {
    fail(fault(operation), operation)
}

fn fail(kind: Option<ErrorKind>, operation: &'static str) -> Result<()> {
    kind.map_or(Ok(()), |kind| Err(Error::new(kind, operation, "made to fail")))
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
    async fn every_state_operation_fails_by_its_name() {
        let store = FailingState::new(Arc::new(MemoryState::new()), |_| Some(ErrorKind::Unavailable));
        let errors = [
            store.get_many(&[]).await.unwrap_err(),
            store.apply(vec![]).await.unwrap_err(),
            store.scan("", None, ScanOrder::Ascending, 1).await.unwrap_err(),
            store.snapshot(Path::new("/nowhere")).await.unwrap_err(),
            store.health().await.unwrap_err(),
        ];
        let names = errors.each_ref().map(Error::operation).join(" ");
        assert_eq!(names, "get_many apply scan snapshot health");
        assert!(errors.iter().all(Error::is_retryable));
    }

    #[tokio::test]
    async fn every_queue_operation_fails_by_its_name() {
        let inner = Arc::new(MemoryQueue::new());
        let store = FailingQueue::new(Arc::clone(&inner) as _, |_| Some(ErrorKind::Internal));
        let claim = Claim { task: TaskId::new(), token: 1 };
        let errors = [
            store.push(claim.task, Duration::ZERO).await.unwrap_err(),
            store.claim(Duration::ZERO, Duration::ZERO).await.unwrap_err(),
            store.heartbeat(&claim, Duration::ZERO).await.unwrap_err(),
            store.finish(&claim).await.unwrap_err(),
            store.retry(&claim, Duration::ZERO).await.unwrap_err(),
            store.remove(claim.task).await.unwrap_err(),
            store.len().await.unwrap_err(),
            store.health().await.unwrap_err(),
        ];
        let names = errors.each_ref().map(Error::operation).join(" ");
        assert_eq!(names, "push claim heartbeat finish retry remove len health");
        assert!(errors.iter().all(|error| error.kind() == ErrorKind::Internal));
        assert_eq!(inner.len().await.unwrap(), 0, "nothing was pushed");
    }
}

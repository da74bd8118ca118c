use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use lkr_domain::TaskId;

use crate::{Claim, Lane, Peers, Result, TaskQueue, Work};

/// A decorator that gives out no tasks while another process [may have taken the place](Peers::verify) of this one.
#[derive(Debug)]
pub struct FencedQueue {
    inner: Arc<dyn TaskQueue>,
    peers: Peers,
}

impl FencedQueue {
    /// Wraps `inner`.
    #[must_use]
    pub const fn new(inner: Arc<dyn TaskQueue>, peers: Peers) -> Self {
        Self { inner, peers }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl TaskQueue for FencedQueue {
    async fn push(&self, task: TaskId, delay: Duration) -> Result<()> {
        self.inner.push(task, delay).await
    }

    async fn enqueue(&self, task: TaskId, work: Work, delay: Duration) -> Result<()> {
        self.inner.enqueue(task, work, delay).await
    }

    async fn claim_in(&self, lane: Lane, lease: Duration, wait: Duration) -> Result<Option<Claim>> {
        self.peers.verify()?;
        let Some(claim) = self.inner.claim_in(lane, lease, wait).await? else { return Ok(None) };
        // The process may have stood still while it waited.
        if let Err(error) = self.peers.verify() {
            self.inner.retry(&claim, Duration::ZERO).await?;
            return Err(error);
        }
        Ok(Some(claim))
    }

    async fn claim(&self, lease: Duration, wait: Duration) -> Result<Option<Claim>> {
        self.claim_in(Lane::Any, lease, wait).await
    }

    async fn heartbeat(&self, claim: &Claim, lease: Duration) -> Result<()> {
        self.inner.heartbeat(claim, lease).await
    }

    async fn finish(&self, claim: &Claim) -> Result<()> {
        self.inner.finish(claim).await
    }

    async fn retry(&self, claim: &Claim, delay: Duration) -> Result<()> {
        self.inner.retry(claim, delay).await
    }

    async fn remove(&self, task: TaskId) -> Result<bool> {
        self.inner.remove(task).await
    }

    async fn len(&self) -> Result<u64> {
        self.inner.len().await
    }

    async fn flows(&self) -> Result<HashMap<String, u64>> {
        self.inner.flows().await
    }

    async fn oldest(&self) -> Result<Option<TaskId>> {
        self.inner.oldest().await
    }

    async fn health(&self) -> Result<()> {
        self.inner.health().await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::FencedQueue;
    use crate::{MemoryQueue, Peers, TaskQueue};

    async fn queue() -> (Arc<dyn TaskQueue>, ()) {
        (Arc::new(FencedQueue::new(Arc::new(MemoryQueue::new()), Peers::alone())), ())
    }

    mod suite {
        crate::task_queue_suite!(super::queue());
    }
}

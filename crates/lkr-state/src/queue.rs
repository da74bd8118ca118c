use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;
use lkr_domain::TaskId;

use crate::Result;

/// A durable queue of tasks that are handed out under leases.
///
/// One worker at a time holds the claim of a task. If it neither finishes the task nor renews its lease, another worker
/// can claim the task. An embedded queue ends all leases when it is opened, because no other process can hold one.
///
/// Operations are cancellation-safe: if a future is dropped at an await, its operation takes effect completely or not at
/// all. A task that a dropped `claim` took is claimable again when the lease ends.
#[async_trait]
#[expect(
    clippy::len_without_is_empty,
    reason = "the length is used in statistics only; no caller needs `is_empty`"
)]
pub trait TaskQueue: Debug + Send + Sync + 'static {
    /// Queues a task that is claimable after `delay`. Does nothing if the task is queued or claimed already.
    async fn push(&self, task: TaskId, delay: Duration) -> Result<()>;

    /// Claims the task that has been claimable for the longest time; waits up to `wait` for one.
    ///
    /// A task becomes claimable when its delay ends or its lease expires.
    async fn claim(&self, lease: Duration, wait: Duration) -> Result<Option<Claim>>;

    /// Renews the lease: it now ends after `lease` from now. An expired lease can be renewed until another worker claims
    /// the task.
    ///
    /// # Errors
    /// `LeaseLost` if the task was claimed again, was returned to the queue, or has left it. The same applies to
    /// [`finish`](Self::finish) and [`retry`](Self::retry).
    async fn heartbeat(&self, claim: &Claim, lease: Duration) -> Result<()>;

    /// Removes a claimed task from the queue.
    async fn finish(&self, claim: &Claim) -> Result<()>;

    /// Returns a claimed task to the queue; it is claimable after `delay`.
    async fn retry(&self, claim: &Claim, delay: Duration) -> Result<()>;

    /// Removes a task even if a worker holds it; `false` if it is not in the queue.
    async fn remove(&self, task: TaskId) -> Result<bool>;

    /// The number of tasks that are queued or claimed.
    async fn len(&self) -> Result<u64>;

    /// Whether the queue is reachable.
    async fn health(&self) -> Result<()>;
}

/// A task under lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The task.
    pub task: TaskId,
    /// Distinguishes this claim from every other claim of the task.
    pub token: u64,
}

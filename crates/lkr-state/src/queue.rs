use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;
use lkr_domain::TaskId;

use crate::Result;

/// A durable queue of tasks, handed out under leases.
///
/// A task is claimed by one worker at a time. A worker that neither finishes nor keeps its lease loses the task to
/// the next one; an embedded queue gives up all leases when it is opened, because no other process can hold one.
/// Every future may be dropped at any await: the operation then happens whole or not at all, and what a dropped
/// `claim` took is claimable again when its lease ends.
#[async_trait]
#[expect(
    clippy::len_without_is_empty,
    reason = "the length is for the statistics; nobody asks for an empty queue"
)]
pub trait TaskQueue: Debug + Send + Sync + 'static {
    /// Queues a task, claimable after `delay`; nothing where it is queued or claimed already.
    async fn push(&self, task: TaskId, delay: Duration) -> Result<()>;

    /// Claims the task that has been claimable for the longest, and waits up to `wait` for one.
    ///
    /// A task is claimable from the end of its delay, or of its lease where its worker let it pass.
    async fn claim(&self, lease: Duration, wait: Duration) -> Result<Option<Claim>>;

    /// Keeps a claim for another `lease` from now, also where the lease has ended and nobody else took the task.
    ///
    /// # Errors
    /// `LeaseLost` where the task was claimed anew, given back, or has left the queue since; so with the two below.
    async fn heartbeat(&self, claim: &Claim, lease: Duration) -> Result<()>;

    /// Removes a claimed task from the queue.
    async fn finish(&self, claim: &Claim) -> Result<()>;

    /// Gives a claimed task back, claimable after `delay`.
    async fn retry(&self, claim: &Claim, delay: Duration) -> Result<()>;

    /// Removes a task whoever holds it; `false` where it is not in the queue.
    async fn remove(&self, task: TaskId) -> Result<bool>;

    /// How many tasks are queued or claimed.
    async fn len(&self) -> Result<u64>;

    /// Whether the queue answers.
    async fn health(&self) -> Result<()>;
}

/// A task under lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The task.
    pub task: TaskId,
    /// Tells this claim from any other of the same task.
    pub token: u64,
}

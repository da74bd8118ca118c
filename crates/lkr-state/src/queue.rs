use std::{collections::HashMap, fmt::Debug, time::Duration};

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
    async fn enqueue(&self, task: TaskId, work: Work, delay: Duration) -> Result<()>;

    /// Queues a task without a flow or cost, as [`enqueue`](Self::enqueue) does.
    async fn push(&self, task: TaskId, delay: Duration) -> Result<()> {
        self.enqueue(task, Work::default(), delay).await
    }

    /// Claims a task of `lane`; waits up to `wait` for one. Flows take turns by the cost of their tasks, as
    /// [`FairTags`](crate::FairTags) says. Within a flow, the task is next that has been claimable for the longest time.
    ///
    /// A task becomes claimable when its delay ends or its lease expires.
    async fn claim_in(&self, lane: Lane, lease: Duration, wait: Duration) -> Result<Option<Claim>>;

    /// Claims a task of any lane, as [`claim_in`](Self::claim_in) does.
    async fn claim(&self, lease: Duration, wait: Duration) -> Result<Option<Claim>> {
        self.claim_in(Lane::Any, lease, wait).await
    }

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

    /// The number of tasks of each flow that are queued or claimed. Reads the whole queue; tasks that are queued or finished
    /// meanwhile may be missing.
    async fn flows(&self) -> Result<HashMap<String, u64>>;

    /// The task with the smallest id that is queued or claimed: the one that was accepted first, because ids begin with
    /// their time. `None` for an empty queue, and for one that cannot tell without reading all of it.
    async fn oldest(&self) -> Result<Option<TaskId>> {
        Ok(None)
    }

    /// Whether the queue is reachable.
    async fn health(&self) -> Result<()>;
}

/// What a queue needs to know of a task in order to be fair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Work {
    /// Whose turn the task takes, such as an account.
    pub flow: String,
    /// The size of the task, such as the bytes of its text.
    pub cost: u64,
    /// Whether the task belongs to the lane of long tasks.
    pub is_long: bool,
}

impl Work {
    /// What the task costs its flow.
    #[must_use]
    pub const fn charge(&self) -> u64 {
        self.cost.saturating_add(crate::BASE_COST)
    }
}

/// The tasks that a worker takes. Short tasks never wait behind long ones, because different workers take them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Short tasks, and long ones while there are no short ones.
    Any,
    /// Short tasks only.
    Short,
    /// Short tasks of flows that have no task claimed.
    Spare,
    /// Long tasks only.
    Long,
}

/// A task under lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The task.
    pub task: TaskId,
    /// Distinguishes this claim from every other claim of the task.
    pub token: u64,
}

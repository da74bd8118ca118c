use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use lkr_domain::TaskId;
use tokio::{sync::Notify, time::Instant};

use crate::{Claim, Error, ErrorKind, FairTags, Lane, Result, TaskQueue, Work};

/// A [`TaskQueue`] in memory. Tasks are lost when the value is dropped.
#[derive(Default)]
pub struct MemoryQueue {
    state: Mutex<MemoryQueueState>,
    /// Wakes all waiting claims when a task is pushed or returned, or a lease changes.
    changed: Notify,
}

#[derive(Default)]
struct MemoryQueueState {
    entries: HashMap<TaskId, Entry>,
    /// The last token or sequence number issued. Both share one counter and are never reused.
    last_number: u64,
    tags: FairTags,
}

struct Entry {
    work: Work,
    /// The place of a claimable task among the flows.
    tag: Option<u64>,
    /// When the task becomes claimable: the end of its delay or lease. `None` means never.
    claimable: Option<Instant>,
    /// Orders tasks that become claimable at the same instant.
    sequence: u64,
    /// The token of the valid claim.
    token: Option<u64>,
}

impl MemoryQueue {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    // A poisoned lock is safe to use: each change is a single insert, removal or assignment.
    fn lock(&self) -> MutexGuard<'_, MemoryQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl TaskQueue for MemoryQueue {
    async fn enqueue(&self, task: TaskId, work: Work, delay: Duration) -> Result<()> {
        let now = Instant::now();
        let mut state = self.lock();
        state.tag_claimable(now);
        let sequence = state.next_number();
        let entry = Entry { work, tag: None, claimable: now.checked_add(delay), sequence, token: None };
        state.entries.entry(task).or_insert(entry);
        state.tag_claimable(now);
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    async fn push(&self, task: TaskId, delay: Duration) -> Result<()> {
        self.enqueue(task, Work::default(), delay).await
    }

    async fn claim(&self, lease: Duration, wait: Duration) -> Result<Option<Claim>> {
        self.claim_in(Lane::Any, lease, wait).await
    }

    async fn claim_in(&self, lane: Lane, lease: Duration, wait: Duration) -> Result<Option<Claim>> {
        let deadline = Instant::now().checked_add(wait);
        loop {
            // Registers the waiter before the lookup, so that a task pushed in between wakes it.
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let now = Instant::now();
            let next_claimable = match self.lock().claim(lane, now, lease) {
                Ok(claim) => return Ok(Some(claim)),
                Err(next_claimable) => next_claimable,
            };
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(None);
            }
            tokio::select! {
                () = changed => {}
                () = sleep_until([next_claimable, deadline].into_iter().flatten().min()) => {}
            }
        }
    }

    async fn heartbeat(&self, claim: &Claim, lease: Duration) -> Result<()> {
        let mut state = self.lock();
        let entry = state.claimed_entry("heartbeat", claim)?;
        (entry.claimable, entry.tag) = (Instant::now().checked_add(lease), None);
        drop(state);
        // A heartbeat can also shorten a lease, so waiting claims must check again.
        self.changed.notify_waiters();
        Ok(())
    }

    async fn finish(&self, claim: &Claim) -> Result<()> {
        let mut state = self.lock();
        state.claimed_entry("finish", claim)?;
        state.entries.remove(&claim.task);
        Ok(())
    }

    async fn retry(&self, claim: &Claim, delay: Duration) -> Result<()> {
        let now = Instant::now();
        let mut state = self.lock();
        state.tag_claimable(now);
        let sequence = state.next_number();
        let entry = state.claimed_entry("retry", claim)?;
        (entry.claimable, entry.tag) = (now.checked_add(delay), None);
        (entry.sequence, entry.token) = (sequence, None);
        state.tag_claimable(now);
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    async fn remove(&self, task: TaskId) -> Result<bool> {
        Ok(self.lock().entries.remove(&task).is_some())
    }

    async fn len(&self) -> Result<u64> {
        Ok(self.lock().entries.len() as u64)
    }

    async fn flows(&self) -> Result<HashMap<String, u64>> {
        let mut flows = HashMap::new();
        for entry in self.lock().entries.values() {
            *flows.entry(entry.work.flow.clone()).or_default() += 1;
        }
        Ok(flows)
    }

    async fn oldest(&self) -> Result<Option<TaskId>> {
        Ok(self.lock().entries.keys().min().copied())
    }

    async fn health(&self) -> Result<()> {
        Ok(())
    }
}

impl MemoryQueueState {
    const fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Gives every task that has become claimable its place among the flows.
    fn tag_claimable(&mut self, now: Instant) {
        let untagged = self.entries.values_mut().filter(|entry| entry.tag.is_none());
        let mut claimable: Vec<_> =
            untagged.filter(|entry| entry.claimable.is_some_and(|at| at <= now)).collect();
        claimable.sort_by_key(|entry| (entry.claimable, entry.sequence));
        for entry in claimable {
            entry.tag = Some(self.tags.tag(&entry.work));
        }
    }

    /// Claims the next task of `lane`. Otherwise returns when a task becomes claimable.
    fn claim(&mut self, lane: Lane, now: Instant, lease: Duration) -> Result<Claim, Option<Instant>> {
        self.tag_claimable(now);
        let token = self.next_number();
        let busy = self.flows_with_claims(lane);
        for &is_long in FairTags::lanes(lane) {
            let tagged = self.entries.iter_mut().filter(|(_, entry)| entry.work.is_long == is_long);
            let tagged = tagged.filter(|(_, entry)| !busy.contains(&entry.work.flow));
            let tagged = tagged.filter_map(|(task, entry)| Some((entry.tag?, *task, entry)));
            let Some((tag, task, entry)) = tagged.min_by_key(|(tag, _, entry)| (*tag, entry.sequence)) else {
                continue;
            };
            entry.token = Some(token);
            (entry.claimable, entry.tag) = (now.checked_add(lease), None);
            self.tags.serve(tag);
            return Ok(Claim { task, token });
        }
        let untagged = self.entries.values().filter(|entry| entry.tag.is_none());
        Err(untagged.filter_map(|entry| entry.claimable).min())
    }

    /// The flows that [`Lane::Spare`] leaves out.
    fn flows_with_claims(&self, lane: Lane) -> HashSet<String> {
        let claimed = self.entries.values().filter(|entry| entry.tag.is_none() && entry.token.is_some());
        claimed.filter(|_| lane == Lane::Spare).map(|entry| entry.work.flow.clone()).collect()
    }

    /// The entry of a valid claim.
    fn claimed_entry(&mut self, operation: &'static str, claim: &Claim) -> Result<&mut Entry> {
        let entry = self.entries.get_mut(&claim.task).filter(|entry| entry.token == Some(claim.token));
        entry.ok_or_else(|| {
            Error::new(ErrorKind::LeaseLost, operation, format!("lease of task {} was lost", claim.task))
        })
    }
}

impl fmt::Debug for MemoryQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryQueue").field("tasks", &self.lock().entries.len()).finish_non_exhaustive()
    }
}

/// Sleeps until an instant; forever if there is none.
async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

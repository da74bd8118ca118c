use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use lkr_domain::TaskId;
use tokio::{sync::Notify, time::Instant};

use crate::{Claim, Error, ErrorKind, Result, TaskQueue};

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
}

struct Entry {
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
    async fn push(&self, task: TaskId, delay: Duration) -> Result<()> {
        let mut state = self.lock();
        let sequence = state.next_number();
        let entry = Entry { claimable: Instant::now().checked_add(delay), sequence, token: None };
        state.entries.entry(task).or_insert(entry);
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    async fn claim(&self, lease: Duration, wait: Duration) -> Result<Option<Claim>> {
        let deadline = Instant::now().checked_add(wait);
        loop {
            // Registers the waiter before the lookup, so that a task pushed in between wakes it.
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let now = Instant::now();
            let next_claimable = match self.lock().claim(now, lease) {
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
        self.lock().claimed_entry("heartbeat", claim)?.claimable = Instant::now().checked_add(lease);
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
        let mut state = self.lock();
        let sequence = state.next_number();
        let entry = state.claimed_entry("retry", claim)?;
        *entry = Entry { claimable: Instant::now().checked_add(delay), sequence, token: None };
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

    async fn health(&self) -> Result<()> {
        Ok(())
    }
}

impl MemoryQueueState {
    const fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Claims the task that has been claimable for the longest time. Otherwise returns when the next task becomes
    /// claimable.
    fn claim(&mut self, now: Instant, lease: Duration) -> Result<Claim, Option<Instant>> {
        let token = self.next_number();
        let timed_entries =
            self.entries.iter_mut().filter_map(|(task, entry)| Some((entry.claimable?, task, entry)));
        let Some((claimable, task, entry)) = timed_entries.min_by_key(|(at, _, entry)| (*at, entry.sequence))
        else {
            return Err(None);
        };
        if claimable > now {
            return Err(Some(claimable));
        }
        entry.token = Some(token);
        entry.claimable = now.checked_add(lease);
        Ok(Claim { task: *task, token })
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

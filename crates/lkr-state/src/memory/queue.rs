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

/// A [`TaskQueue`] in memory. It keeps what it is given for as long as it lives.
#[derive(Default)]
pub struct MemoryQueue {
    inner: Mutex<Inner>,
    /// Wakes all who wait when a task has come or come back.
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    entries: HashMap<TaskId, Entry>,
    /// The last token or place given: one count for both, never used again.
    count: u64,
}

struct Entry {
    /// When it can be claimed: the end of its delay or lease; never when `None`.
    claimable: Option<Instant>,
    /// Its place among those that became claimable at the same instant.
    place: u64,
    /// The token of the claim that holds good.
    token: Option<u64>,
}

impl MemoryQueue {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    // A panic elsewhere does not make the entries wrong: each change is a single insert, removal or assignment.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl TaskQueue for MemoryQueue {
    async fn push(&self, task: TaskId, delay: Duration) -> Result<()> {
        let mut inner = self.lock();
        let place = inner.next();
        let entry = Entry { claimable: Instant::now().checked_add(delay), place, token: None };
        inner.entries.entry(task).or_insert(entry);
        drop(inner);
        self.changed.notify_waiters();
        Ok(())
    }

    async fn claim(&self, lease: Duration, wait: Duration) -> Result<Option<Claim>> {
        let deadline = Instant::now().checked_add(wait);
        loop {
            // The waiter is enrolled before the look, so that a task that comes in between wakes it.
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let now = Instant::now();
            let next = match self.lock().claim(now, lease) {
                Ok(claim) => return Ok(Some(claim)),
                Err(next) => next,
            };
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(None);
            }
            tokio::select! {
                () = changed => {}
                () = sleep_until([next, deadline].into_iter().flatten().min()) => {}
            }
        }
    }

    async fn heartbeat(&self, claim: &Claim, lease: Duration) -> Result<()> {
        self.lock().held("heartbeat", claim)?.claimable = Instant::now().checked_add(lease);
        // A lease can also be cut short, and then those who wait must look again.
        self.changed.notify_waiters();
        Ok(())
    }

    async fn finish(&self, claim: &Claim) -> Result<()> {
        let mut inner = self.lock();
        inner.held("finish", claim)?;
        inner.entries.remove(&claim.task);
        Ok(())
    }

    async fn retry(&self, claim: &Claim, delay: Duration) -> Result<()> {
        let mut inner = self.lock();
        let place = inner.next();
        let entry = inner.held("retry", claim)?;
        *entry = Entry { claimable: Instant::now().checked_add(delay), place, token: None };
        drop(inner);
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

impl Inner {
    const fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Claims what has been claimable for the longest, or tells when the next task will be.
    fn claim(&mut self, now: Instant, lease: Duration) -> Result<Claim, Option<Instant>> {
        let token = self.next();
        let timed = self.entries.iter_mut().filter_map(|(task, entry)| Some((entry.claimable?, task, entry)));
        let Some((claimable, task, entry)) = timed.min_by_key(|(at, _, entry)| (*at, entry.place)) else {
            return Err(None);
        };
        if claimable > now {
            return Err(Some(claimable));
        }
        entry.token = Some(token);
        entry.claimable = now.checked_add(lease);
        Ok(Claim { task: *task, token })
    }

    /// The entry that a claim holds.
    fn held(&mut self, operation: &'static str, claim: &Claim) -> Result<&mut Entry> {
        let entry = self.entries.get_mut(&claim.task).filter(|entry| entry.token == Some(claim.token));
        entry.ok_or_else(|| {
            Error::new(ErrorKind::LeaseLost, operation, format!("the lease of {} is lost", claim.task))
        })
    }
}

impl fmt::Debug for MemoryQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryQueue").field("tasks", &self.lock().entries.len()).finish_non_exhaustive()
    }
}

/// Sleeps until then; for ever when there is no such instant.
async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

//! The port `TaskQueue`.

mod verify;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use heed::{RoTxn, RwTxn};
use lkr_domain::TaskId;
use lkr_state::{Claim, Result, TaskQueue};
use tokio::time::{Instant, sleep_until, timeout_at};

pub(crate) use self::verify::verify;
use crate::{
    clock,
    codec::{FieldReader, damaged, strip_checksum, with_checksum},
    env::Kb,
    error::{Failure, InternalResult},
    shared::StoreShared,
};

/// The counter that orders tasks with the same due time.
const SEQUENCE: &str = "places";
/// The counter for tokens. It is stored, so that tokens are never reused.
const TOKENS: &str = "tokens";
/// The longest wait between two polls, because the clock may be set meanwhile.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(30);

/// The tasks of a store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LmdbQueue {
    shared: Arc<StoreShared>,
}

impl LmdbQueue {
    pub(crate) const fn new(shared: Arc<StoreShared>) -> Self {
        Self { shared }
    }

    async fn write<T, F>(&self, operation: &'static str, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Kb, &mut RwTxn) -> InternalResult<T> + Send + 'static,
    {
        self.shared.write(work).await.map_err(|failure| failure.into_state(operation))
    }

    async fn read<T, F>(&self, operation: &'static str, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Kb, &RoTxn) -> InternalResult<T> + Send + 'static,
    {
        StoreShared::read(&self.shared, work).await.map_err(|failure| failure.into_state(operation))
    }

    /// Claims a due task, or returns the time until one is due.
    async fn try_claim(&self, lease: Duration) -> Result<std::result::Result<Claim, Duration>> {
        let wait = self.read("claim", until_due).await?;
        if !wait.is_zero() {
            return Ok(Err(wait));
        }
        let claimed = self.write("claim", move |kb, txn| claim(kb, txn, lease)).await?;
        // Another worker may have been faster.
        Ok(claimed.ok_or(Duration::ZERO))
    }
}

#[async_trait]
impl TaskQueue for LmdbQueue {
    async fn push(&self, task: TaskId, delay: Duration) -> Result<()> {
        self.write("push", move |kb, txn| push(kb, txn, task, delay)).await?;
        self.shared.tasks.notify_waiters();
        Ok(())
    }

    async fn claim(&self, lease: Duration, wait: Duration) -> Result<Option<Claim>> {
        let now = Instant::now();
        let deadline = now.checked_add(wait).unwrap_or(now + Duration::from_secs(86_400 * 365));
        loop {
            // Registered before the lookup, so that no push between lookup and wait is missed.
            let mut pushed = std::pin::pin!(self.shared.tasks.notified());
            pushed.as_mut().enable();
            let due = match self.try_claim(lease).await? {
                Ok(claim) => return Ok(Some(claim)),
                Err(due) => Instant::now() + due.min(MAX_POLL_INTERVAL),
            };
            if Instant::now() >= deadline {
                return Ok(None);
            }
            let due_or_pushed = async {
                tokio::select! { () = pushed => {}, () = sleep_until(due) => {} }
            };
            // The next round looks again, whichever comes first.
            let _ = timeout_at(deadline, due_or_pushed).await;
        }
    }

    async fn heartbeat(&self, claim: &Claim, lease: Duration) -> Result<()> {
        let claim = claim.clone();
        self.write("heartbeat", move |kb, txn| {
            let entry = leased_entry(kb, txn, &claim)?;
            reschedule(kb, txn, claim.task, &entry, clock::after(clock::now(), lease), claim.token)
        })
        .await?;
        // The heartbeat may have shortened the lease, so waiting workers must look again.
        self.shared.tasks.notify_waiters();
        Ok(())
    }

    async fn finish(&self, claim: &Claim) -> Result<()> {
        let claim = claim.clone();
        self.write("finish", move |kb, txn| {
            let entry = leased_entry(kb, txn, &claim)?;
            remove_point(kb, txn, claim.task, &entry)
        })
        .await
    }

    async fn retry(&self, claim: &Claim, delay: Duration) -> Result<()> {
        let claim = claim.clone();
        self.write("retry", move |kb, txn| {
            let entry = leased_entry(kb, txn, &claim)?;
            reschedule(kb, txn, claim.task, &entry, clock::after(clock::now(), delay), UNCLAIMED)
        })
        .await?;
        self.shared.tasks.notify_waiters();
        Ok(())
    }

    async fn remove(&self, task: TaskId) -> Result<bool> {
        self.write("remove", move |kb, txn| match find(kb, txn, task)? {
            Some(entry) => remove_point(kb, txn, task, &entry).map(|()| true),
            None => Ok(false),
        })
        .await
    }

    async fn len(&self) -> Result<u64> {
        self.read("len", |kb, txn| Ok(kb.tables.tasks.len(txn)?)).await
    }

    async fn health(&self) -> Result<()> {
        StoreShared::health(&self.shared).await.map_err(|failure| failure.into_state("health"))
    }
}

/// The token of a task that nobody has claimed. The counter begins at 1.
const UNCLAIMED: u64 = 0;

/// A queued or claimed task as it is stored; times are microseconds since 1970.
struct QueueEntry {
    /// When it is claimable; for a claimed task, when the lease ends.
    due: u64,
    /// Its order among tasks with the same due time.
    sequence: u64,
    /// The due time before it was claimed.
    since: u64,
    /// The claim that holds it, or [`UNCLAIMED`].
    token: u64,
}

impl QueueEntry {
    fn decode(checksummed: &[u8], task: TaskId) -> InternalResult<Self> {
        let name = || format!("the queue's entry of task {task}");
        let mut fields = FieldReader(strip_checksum(checksummed, name)?);
        let mut next = || fields.u64().ok_or_else(|| damaged(name));
        Ok(Self { due: next()?, sequence: next()?, since: next()?, token: next()? })
    }

    fn encode(&self) -> Vec<u8> {
        with_checksum(&[self.due, self.sequence, self.since, self.token].map(u64::to_le_bytes).concat())
    }

    fn due_key(&self) -> [u8; 16] {
        (u128::from(self.due) << 64 | u128::from(self.sequence)).to_be_bytes()
    }
}

fn find(kb: &Kb, txn: &RoTxn, task: TaskId) -> InternalResult<Option<QueueEntry>> {
    kb.tables
        .tasks
        .get(txn, task.as_bytes())?
        .map(|checksummed| QueueEntry::decode(checksummed, task))
        .transpose()
}

fn put(kb: &Kb, txn: &mut RwTxn, task: TaskId, entry: &QueueEntry) -> InternalResult<()> {
    kb.tables.tasks.put(txn, task.as_bytes(), &entry.encode())?;
    Ok(kb.tables.due.put(txn, &entry.due_key(), task.as_bytes())?)
}

fn remove_point(kb: &Kb, txn: &mut RwTxn, task: TaskId, entry: &QueueEntry) -> InternalResult<()> {
    kb.tables.tasks.delete(txn, task.as_bytes())?;
    kb.tables.due.delete(txn, &entry.due_key())?;
    Ok(())
}

fn push(kb: &Kb, txn: &mut RwTxn, task: TaskId, delay: Duration) -> InternalResult<()> {
    if find(kb, txn, task)?.is_some() {
        return Ok(());
    }
    let due = clock::after(clock::now(), delay);
    let sequence = kb.count(txn, SEQUENCE)?;
    put(kb, txn, task, &QueueEntry { due, sequence, since: due, token: UNCLAIMED })
}

/// The next task and its due time.
fn next(kb: &Kb, txn: &RoTxn) -> InternalResult<Option<(TaskId, u64)>> {
    let Some((key, task)) = kb.tables.due.first(txn)? else { return Ok(None) };
    let parts = key.first_chunk().zip(task.try_into().ok());
    let (due, task) = parts.ok_or_else(|| damaged(|| "the order of the queue".to_owned()))?;
    Ok(Some((TaskId::from_bytes(task), u64::from_be_bytes(*due))))
}

/// The time until a task is due; zero if one is due.
fn until_due(kb: &Kb, txn: &RoTxn) -> InternalResult<Duration> {
    let now = clock::now();
    Ok(next(kb, txn)?.map_or(MAX_POLL_INTERVAL, |(_, due)| Duration::from_micros(due.saturating_sub(now))))
}

/// Claims the task that has been due for the longest. Only an unclaimed task, or one whose lease has ended, is due.
fn claim(kb: &Kb, txn: &mut RwTxn, lease: Duration) -> InternalResult<Option<Claim>> {
    let now = clock::now();
    let Some((task, _)) = next(kb, txn)?.filter(|(_, due)| *due <= now) else { return Ok(None) };
    let name = || format!("the queue's entry of task {task}");
    let entry = find(kb, txn, task)?.ok_or_else(|| damaged(name))?;
    let token = kb.count(txn, TOKENS)?;
    let claimed = QueueEntry { since: entry.due, ..entry };
    reschedule(kb, txn, task, &claimed, clock::after(now, lease), token)?;
    Ok(Some(Claim { task, token }))
}

/// Moves a task to another due time, under `token`.
fn reschedule(
    kb: &Kb,
    txn: &mut RwTxn,
    task: TaskId,
    entry: &QueueEntry,
    due: u64,
    token: u64,
) -> InternalResult<()> {
    kb.tables.due.delete(txn, &entry.due_key())?;
    let sequence = kb.count(txn, SEQUENCE)?;
    put(kb, txn, task, &QueueEntry { due, sequence, since: entry.since, token })
}

/// The entry of a claimed task, if the claim still holds its lease.
fn leased_entry(kb: &Kb, txn: &RoTxn, claim: &Claim) -> InternalResult<QueueEntry> {
    let entry = find(kb, txn, claim.task)?.filter(|entry| entry.token == claim.token);
    entry.ok_or_else(|| Failure::lease_lost(format!("task {} is no longer held by this claim", claim.task)))
}

/// Clears all leases, because their workers ended with their process. The tasks return to their old positions.
pub(crate) fn clear_leases(kb: &Kb) -> InternalResult<()> {
    let mut txn = kb.env.write_txn()?;
    let mut claimed = Vec::new();
    for row in kb.tables.tasks.iter(&txn)? {
        let (task, checksummed) = row?;
        let task = task.try_into().map_err(|_| damaged(|| "the id of a queued task".to_owned()))?;
        let task = TaskId::from_bytes(task);
        let entry = QueueEntry::decode(checksummed, task)?;
        if entry.token != UNCLAIMED {
            claimed.push((task, entry));
        }
    }
    for (task, entry) in &claimed {
        reschedule(kb, &mut txn, *task, entry, entry.since, UNCLAIMED)?;
    }
    if !claimed.is_empty() {
        txn.commit()?;
    }
    Ok(())
}

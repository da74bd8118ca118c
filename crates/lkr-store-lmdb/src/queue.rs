//! The port `TaskQueue`.

mod entry;
mod fair;
mod verify;

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use heed::{RoTxn, RwTxn};
use lkr_domain::TaskId;
use lkr_state::{Claim, FairTags, Lane, Result, TaskQueue, Work};
use tokio::time::{Instant, sleep_until, timeout_at};

use self::entry::{QueueEntry, UNCLAIMED};
pub(crate) use self::verify::verify;
use crate::{
    clock::after,
    codec::damaged,
    env::Kb,
    error::{Failure, InternalResult},
    shared::StoreShared,
};

/// The counter that orders tasks with the same due time.
const SEQUENCE: &str = "places";
/// The counter for tokens. It is stored, so that tokens are never reused.
const TOKENS: &str = "tokens";
/// The longest wait between two polls.
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

    fn read_in_place<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Kb, &RoTxn) -> InternalResult<T>,
    ) -> Result<T> {
        self.shared.read_in_place(work).map_err(|failure| failure.into_state(operation))
    }

    /// Writes with the order of the flows.
    async fn write_fairly<T, F>(&self, operation: &'static str, mut work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Kb, &mut RwTxn, &mut FairTags) -> InternalResult<T> + Send + 'static,
    {
        let tags = Arc::clone(&self.shared.fair_tags);
        self.write(operation, move |kb, txn| {
            // A poisoned lock is safe to use: tags decide about turns, and any tag is valid.
            let mut tags = tags.lock().unwrap_or_else(PoisonError::into_inner);
            let tags = match &mut *tags {
                Some(tags) => tags,
                none => none.insert(fair::restore(kb, txn)?),
            };
            fair::tag_due(kb, txn, tags)?;
            work(kb, txn, tags)
        })
        .await
    }

    /// Claims a due task, or returns the time until one is due.
    async fn try_claim(&self, lane: Lane, lease: Duration) -> Result<std::result::Result<Claim, Duration>> {
        // The spare lane may look at hundreds of tasks.
        let until_due = move |kb: &Kb, txn: &RoTxn| fair::until_due(kb, txn, lane);
        let wait = match lane {
            Lane::Spare => self.read("claim", until_due).await?,
            _ => self.read_in_place("claim", until_due)?,
        };
        if !wait.is_zero() {
            return Ok(Err(wait));
        }
        let claimed =
            self.write_fairly("claim", move |kb, txn, tags| claim(kb, txn, tags, lane, lease)).await?;
        // Another worker may have been faster.
        Ok(claimed.ok_or(Duration::ZERO))
    }
}

#[async_trait]
impl TaskQueue for LmdbQueue {
    async fn enqueue(&self, task: TaskId, work: Work, delay: Duration) -> Result<()> {
        self.write_fairly("push", move |kb, txn, tags| push(kb, txn, tags, task, &work, delay)).await?;
        self.shared.tasks.notify_waiters();
        Ok(())
    }

    async fn claim_in(&self, lane: Lane, lease: Duration, wait: Duration) -> Result<Option<Claim>> {
        let now = Instant::now();
        let deadline = now.checked_add(wait).unwrap_or(now + Duration::from_secs(86_400 * 365));
        loop {
            // Registered before the lookup, so that no push between lookup and wait is missed.
            let mut pushed = std::pin::pin!(self.shared.tasks.notified());
            pushed.as_mut().enable();
            let due = match self.try_claim(lane, lease).await? {
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
            reschedule(kb, txn, claim.task, entry, after(fair::now(), lease), claim.token)
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
        self.write_fairly("retry", move |kb, txn, tags| {
            let entry = leased_entry(kb, txn, &claim)?;
            let due = fair::due_after(tags, &entry.work, delay);
            reschedule(kb, txn, claim.task, entry, due, UNCLAIMED)
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
        self.read_in_place("len", |kb, txn| Ok(kb.tables.tasks.len(txn)?))
    }

    async fn flows(&self) -> Result<HashMap<String, u64>> {
        let read = |kb: &Kb, txn: &RoTxn| {
            let mut flows = HashMap::new();
            for row in kb.tables.tasks.iter(txn)? {
                let (task, entry) = row?;
                let task = task.try_into().map_err(|_| damaged(|| "the id of a queued task".to_owned()))?;
                let entry = QueueEntry::decode(entry, TaskId::from_bytes(task))?;
                *flows.entry(entry.work.flow).or_default() += 1;
            }
            Ok(flows)
        };
        self.read("flows", read).await
    }

    async fn oldest(&self) -> Result<Option<TaskId>> {
        let first = self.read("oldest", |kb, txn| {
            let first = kb.tables.tasks.first(txn)?;
            let id = first.map(|(task, _)| task.try_into());
            id.transpose().map_err(|_| damaged(|| "the id of a queued task".to_owned()))
        });
        Ok(first.await?.map(TaskId::from_bytes))
    }

    async fn health(&self) -> Result<()> {
        StoreShared::health(&self.shared).await.map_err(|failure| failure.into_state("health"))
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

fn push(
    kb: &Kb,
    txn: &mut RwTxn,
    tags: &mut FairTags,
    task: TaskId,
    work: &Work,
    delay: Duration,
) -> InternalResult<()> {
    match find(kb, txn, task)? {
        // Queued before tasks had flows.
        Some(entry) if entry.token == UNCLAIMED && entry.work == Work::default() && *work != entry.work => {
            let due = if entry.due < FairTags::END { tags.tag(work) } else { entry.due };
            reschedule(kb, txn, task, QueueEntry { work: work.clone(), ..entry }, due, UNCLAIMED)
        }
        Some(_) => Ok(()),
        None => {
            let due = fair::due_after(tags, work, delay);
            let sequence = kb.count(txn, SEQUENCE)?;
            put(
                kb,
                txn,
                task,
                &QueueEntry { due, sequence, since: due, token: UNCLAIMED, work: work.clone() },
            )
        }
    }
}

/// Claims the task of `lane` whose turn it is.
fn claim(
    kb: &Kb,
    txn: &mut RwTxn,
    tags: &mut FairTags,
    lane: Lane,
    lease: Duration,
) -> InternalResult<Option<Claim>> {
    let Some((task, tag)) = fair::next(kb, txn, lane)? else { return Ok(None) };
    let name = || format!("the queue's entry of task {task}");
    let entry = find(kb, txn, task)?.ok_or_else(|| damaged(name))?;
    tags.serve(tag);
    let token = kb.count(txn, TOKENS)?;
    let claimed = QueueEntry { since: entry.due, ..entry };
    reschedule(kb, txn, task, claimed, after(fair::now(), lease), token)?;
    Ok(Some(Claim { task, token }))
}

/// Moves a task to another due time, under `token`.
fn reschedule(
    kb: &Kb,
    txn: &mut RwTxn,
    task: TaskId,
    entry: QueueEntry,
    due: u64,
    token: u64,
) -> InternalResult<()> {
    kb.tables.due.delete(txn, &entry.due_key())?;
    let sequence = kb.count(txn, SEQUENCE)?;
    put(kb, txn, task, &QueueEntry { due, sequence, token, ..entry })
}

/// The entry of a claimed task, if the claim still holds its lease.
fn leased_entry(kb: &Kb, txn: &RoTxn, claim: &Claim) -> InternalResult<QueueEntry> {
    let entry = find(kb, txn, claim.task)?.filter(|entry| entry.token == claim.token);
    entry.ok_or_else(|| Failure::lease_lost(format!("task {} is no longer held by this claim", claim.task)))
}

/// Clears all leases, because their workers ended with their process: the tasks return to their old positions. Delays end
/// too, because the clock may have been set back since; those that would have ended first are claimable first.
pub(crate) fn clear_leases(kb: &Kb) -> InternalResult<()> {
    let mut txn = kb.write_txn()?;
    let mut changed = Vec::new();
    for row in kb.tables.tasks.iter(&txn)? {
        let (task, checksummed) = row?;
        let task = task.try_into().map_err(|_| damaged(|| "the id of a queued task".to_owned()))?;
        let task = TaskId::from_bytes(task);
        let entry = QueueEntry::decode(checksummed, task)?;
        let position = if entry.token == UNCLAIMED { entry.due } else { entry.since };
        let due = fair::without_delay(position);
        if (due, UNCLAIMED) != (entry.due, entry.token) {
            changed.push((position, due, task, entry));
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    changed.sort_by_key(|(position, ..)| *position);
    for (_, due, task, entry) in changed {
        reschedule(kb, &mut txn, task, entry, due, UNCLAIMED)?;
    }
    txn.commit()?;
    Ok(())
}

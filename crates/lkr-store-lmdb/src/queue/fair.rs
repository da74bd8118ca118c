//! The turns of flows. A claimable task's due time is its start tag (see `FairTags`), which is below every time, so the table
//! `due` lists the claimable tasks of the short lane, then those of the long lane, then those that wait, by their time.

use std::{
    collections::HashSet,
    ops::{Bound, Range},
    sync::LazyLock,
    time::{Duration, Instant},
};

use heed::{RoTxn, RwTxn};
use lkr_domain::TaskId;
use lkr_state::{FairTags, Lane, Work};

use super::{MAX_POLL_INTERVAL, QueueEntry, UNCLAIMED, find, reschedule};
use crate::{
    clock::{self, after},
    codec::damaged,
    env::Kb,
    error::InternalResult,
};

/// The most waiting tasks that are looked at for one of a flow without a claim: more than there are accounts that are
/// busy at once. Chosen, not measured.
const MAX_SPARE_SCAN: usize = 256;

/// The time by which delays and leases end: the clock as this process read it first, and what has passed since. So they keep
/// their length if the clock is set.
pub(super) fn now() -> u64 {
    static FIRST: LazyLock<(Instant, u64)> = LazyLock::new(|| (Instant::now(), clock::now()));
    let (read_at, time) = &*FIRST;
    after(*time, read_at.elapsed())
}

/// The due time of a task that is claimable after `delay`.
pub(super) fn due_after(tags: &mut FairTags, work: &Work, delay: Duration) -> u64 {
    if delay.is_zero() { tags.tag(work) } else { after(now(), delay) }
}

/// The due time of a task whose delay ends now, whatever the time is. Start tags, and the end of a delay that never ends,
/// stay as they are.
pub(super) fn without_delay(due: u64) -> u64 {
    if (FairTags::END..u64::MAX).contains(&due) { FairTags::END } else { due }
}

/// The clocks of the tasks that are stored.
pub(super) fn restore(kb: &Kb, txn: &RoTxn) -> InternalResult<FairTags> {
    let mut waiting = Vec::new();
    for row in kb.tables.tasks.iter(txn)? {
        let (task, checksummed) = row?;
        let Ok(task) = task.try_into() else { continue };
        // A damaged entry is found when its turn comes.
        let Ok(entry) = QueueEntry::decode(checksummed, TaskId::from_bytes(task)) else { continue };
        if entry.due < FairTags::END && entry.token == UNCLAIMED {
            waiting.push((entry.due, entry.work));
        }
    }
    Ok(FairTags::restore(waiting))
}

/// Gives every task whose delay or lease has ended its place among the flows.
pub(super) fn tag_due(kb: &Kb, txn: &mut RwTxn, tags: &mut FairTags) -> InternalResult<()> {
    while let Some((task, due)) = first(kb, txn, FairTags::END..u64::MAX)? {
        if due > now() {
            return Ok(());
        }
        let entry = find(kb, txn, task)?;
        let entry = entry.ok_or_else(|| damaged(|| format!("the queue's entry of task {task}")))?;
        let (tag, token) = (tags.tag(&entry.work), entry.token);
        reschedule(kb, txn, task, entry, tag, token)?;
    }
    Ok(())
}

/// The task of `lane` whose turn it is, and its start tag.
pub(super) fn next(kb: &Kb, txn: &RoTxn, lane: Lane) -> InternalResult<Option<(TaskId, u64)>> {
    if lane == Lane::Spare {
        return next_spare(kb, txn);
    }
    for &is_long in FairTags::lanes(lane) {
        if let Some(next) = first(kb, txn, FairTags::range(is_long))? {
            return Ok(Some(next));
        }
    }
    Ok(None)
}

/// The first task of a flow that has none claimed. Such a task has one of the lowest start tags, so that only the first
/// tasks are looked at.
fn next_spare(kb: &Kb, txn: &RoTxn) -> InternalResult<Option<(TaskId, u64)>> {
    let mut busy = HashSet::new();
    for row in tasks(kb, txn, FairTags::END..u64::MAX)? {
        let (task, _) = row?;
        busy.extend(
            find(kb, txn, task)?.filter(|entry| entry.token != UNCLAIMED).map(|entry| entry.work.flow),
        );
    }
    for row in tasks(kb, txn, FairTags::range(false))?.take(MAX_SPARE_SCAN) {
        let (task, tag) = row?;
        if find(kb, txn, task)?.is_some_and(|entry| !busy.contains(&entry.work.flow)) {
            return Ok(Some((task, tag)));
        }
    }
    Ok(None)
}

/// The time until a task may be claimable; zero if one is.
pub(super) fn until_due(kb: &Kb, txn: &RoTxn, lane: Lane) -> InternalResult<Duration> {
    if next(kb, txn, lane)?.is_some() {
        return Ok(Duration::ZERO);
    }
    let waiting = first(kb, txn, FairTags::END..u64::MAX)?;
    let until = |(_, due): (TaskId, u64)| Duration::from_micros(due.saturating_sub(now()));
    Ok(waiting.map_or(MAX_POLL_INTERVAL, until))
}

/// The first task with a due time in `range`.
fn first(kb: &Kb, txn: &RoTxn, range: Range<u64>) -> InternalResult<Option<(TaskId, u64)>> {
    tasks(kb, txn, range)?.next().transpose()
}

/// The tasks with a due time in `range`, in the order of the due times.
fn tasks<'t>(
    kb: &Kb,
    txn: &'t RoTxn,
    range: Range<u64>,
) -> InternalResult<impl Iterator<Item = InternalResult<(TaskId, u64)>> + use<'t>> {
    let [from, to] = [range.start, range.end].map(|due| (u128::from(due) << 64).to_be_bytes());
    let range = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
    Ok(kb.tables.due.range(txn, &range)?.map(|row| {
        let (key, task) = row?;
        let parts = key.first_chunk().zip(task.try_into().ok());
        let (due, task) = parts.ok_or_else(|| damaged(|| "the order of the queue".to_owned()))?;
        Ok((TaskId::from_bytes(task), u64::from_be_bytes(*due)))
    }))
}

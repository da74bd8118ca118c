//! The turns of flows. A claimable task's due time is its start tag (see `FairTags`), which is below every time, so the table
//! `due` lists the claimable tasks of the short lane, then those of the long lane, then those that wait, by their time.

use std::{
    ops::{Bound, Range},
    time::Duration,
};

use heed::{RoTxn, RwTxn};
use lkr_domain::TaskId;
use lkr_state::{FairTags, Lane, Work};

use super::{MAX_POLL_INTERVAL, QueueEntry, UNCLAIMED, find, reschedule};
use crate::{clock, codec::damaged, env::Kb, error::InternalResult};

/// The due time of a task that is claimable after `delay`.
pub(super) fn due_after(tags: &mut FairTags, work: &Work, delay: Duration) -> u64 {
    if delay.is_zero() { tags.tag(work) } else { clock::after(clock::now(), delay) }
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
        if due > clock::now() {
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
    for &is_long in FairTags::lanes(lane) {
        if let Some(next) = first(kb, txn, FairTags::range(is_long))? {
            return Ok(Some(next));
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
    let until = |(_, due): (TaskId, u64)| Duration::from_micros(due.saturating_sub(clock::now()));
    Ok(waiting.map_or(MAX_POLL_INTERVAL, until))
}

/// The first task with a due time in `range`.
fn first(kb: &Kb, txn: &RoTxn, range: Range<u64>) -> InternalResult<Option<(TaskId, u64)>> {
    let [from, to] = [range.start, range.end].map(|due| (u128::from(due) << 64).to_be_bytes());
    let range = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
    let Some(row) = kb.tables.due.range(txn, &range)?.next() else { return Ok(None) };
    let (key, task) = row?;
    let parts = key.first_chunk().zip(task.try_into().ok());
    let (due, task) = parts.ok_or_else(|| damaged(|| "the order of the queue".to_owned()))?;
    Ok(Some((TaskId::from_bytes(task), u64::from_be_bytes(*due))))
}

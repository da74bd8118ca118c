//! A task of the queue as it is stored.

use lkr_domain::TaskId;
use lkr_state::Work;

use crate::{
    codec::{FieldReader, damaged, strip_checksum, with_checksum},
    error::InternalResult,
};

/// The token of a task that nobody has claimed. The counter begins at 1.
pub(super) const UNCLAIMED: u64 = 0;

/// A queued or claimed task as it is stored; times are microseconds since 1970.
pub(super) struct QueueEntry {
    /// Its start tag if it is claimable, below [`FairTags::END`](lkr_state::FairTags::END). Else when it will be
    /// claimable; for a claimed task, when the lease ends.
    pub(super) due: u64,
    /// Its order among tasks with the same due time.
    pub(super) sequence: u64,
    /// The due time before it was claimed.
    pub(super) since: u64,
    /// The claim that holds it, or [`UNCLAIMED`].
    pub(super) token: u64,
    /// Its flow and cost. Entries written before tasks had flows end before it.
    pub(super) work: Work,
}

impl QueueEntry {
    pub(super) fn decode(checksummed: &[u8], task: TaskId) -> InternalResult<Self> {
        let name = || format!("the queue's entry of task {task}");
        let mut fields = FieldReader(strip_checksum(checksummed, name)?);
        let mut next = || fields.u64().ok_or_else(|| damaged(name));
        let (due, sequence, since, token) = (next()?, next()?, next()?, next()?);
        let work = if fields.0.is_empty() {
            Work::default()
        } else {
            work(&mut fields).ok_or_else(|| damaged(name))?
        };
        Ok(Self { due, sequence, since, token, work })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let Work { flow, cost, is_long } = &self.work;
        let numbers = [self.due, self.sequence, self.since, self.token, *cost, u64::from(*is_long)];
        let mut bytes = numbers.map(u64::to_le_bytes).concat();
        bytes.extend_from_slice(flow.as_bytes());
        with_checksum(&bytes)
    }

    pub(super) fn due_key(&self) -> [u8; 16] {
        (u128::from(self.due) << 64 | u128::from(self.sequence)).to_be_bytes()
    }
}

fn work(fields: &mut FieldReader) -> Option<Work> {
    let (cost, is_long) = (fields.u64()?, fields.u64()? != 0);
    let flow = std::str::from_utf8(fields.0).ok()?.to_owned();
    Some(Work { flow, cost, is_long })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_without_a_flow_is_read() {
        let before = with_checksum(&[5_u64, 6, 7, 8].map(u64::to_le_bytes).concat());
        let entry = QueueEntry::decode(&before, TaskId::new()).ok().unwrap();
        assert_eq!([entry.due, entry.sequence, entry.since, entry.token], [5, 6, 7, 8]);
        assert_eq!(entry.work, Work::default());
    }

    #[test]
    fn entry_keeps_its_flow_and_cost() {
        let work = Work { flow: "account:eva".to_owned(), cost: 12, is_long: true };
        let entry = QueueEntry { due: 1, sequence: 2, since: 3, token: 4, work: work.clone() };
        let read = QueueEntry::decode(&entry.encode(), TaskId::new()).ok().unwrap();
        assert_eq!((read.work, read.token), (work, 4));
    }
}

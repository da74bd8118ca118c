//! Queued tasks and when they are due.

use heed::RoTxn;
use lkr_domain::TaskId;

use super::{QueueEntry, SEQUENCE, TOKENS};
use crate::{
    env::Kb,
    error::InternalResult,
    verify::{Finding, check_counter},
};

/// Checks every entry: it is readable, and the table `due` lists exactly the queued tasks.
pub(crate) fn verify(kb: &Kb, txn: &RoTxn, findings: &mut Vec<Finding>) -> InternalResult<()> {
    let (mut sequence, mut token) = (0, 0);
    for row in kb.tables.tasks.iter(txn)? {
        let (key, checksummed) = row?;
        let Some((task, entry)) = read(key, checksummed) else {
            // Every task that has not ended is queued again at the next start.
            findings.push(Finding::wrong("an entry of the queue is damaged".to_owned(), "tasks", key));
            continue;
        };
        (sequence, token) = (sequence.max(entry.sequence), token.max(entry.token));
        if kb.tables.due.get(txn, &entry.due_key())? != Some(key) {
            let what = format!("task {task} is queued and would never be due");
            findings.push(Finding::missing(what, "due", &entry.due_key(), key));
        }
    }
    for row in kb.tables.due.iter(txn)? {
        let (due, key) = row?;
        let entry = kb.tables.tasks.get(txn, key)?.and_then(|checksummed| read(key, checksummed));
        if entry.is_none_or(|(_, entry)| entry.due_key() != due) {
            let what = "an entry of the due table belongs to no queued task".to_owned();
            findings.push(Finding::wrong(what, "due", due));
        }
    }
    check_counter(kb, txn, SEQUENCE, sequence, findings)?;
    check_counter(kb, txn, TOKENS, token, findings)
}

fn read(key: &[u8], checksummed: &[u8]) -> Option<(TaskId, QueueEntry)> {
    let task = TaskId::from_bytes(key.try_into().ok()?);
    Some((task, QueueEntry::decode(checksummed, task).ok()?))
}

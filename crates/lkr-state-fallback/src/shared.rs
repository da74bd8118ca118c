use std::sync::{Arc, Mutex, PoisonError};

use lkr_state::{Error, ErrorKind, Expect, Key, Record, RecordsLost, Result, StateStore, Write};
use tokio::sync::{Mutex as AsyncMutex, Notify};

use crate::{
    FallbackConfig,
    journal::{Entry, Journal},
    mirror::{Flight, MirrorCell},
    receipt,
    records::Policies,
    version,
};

/// What the calls and the background task share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) remote: Arc<dyn StateStore>,
    pub(crate) policies: Policies,
    pub(crate) config: FallbackConfig,
    pub(crate) mirror: MirrorCell,
    /// Held while a step is appended, and while the remote store comes back. So no step is appended after the last one was
    /// merged.
    pub(crate) journal: Arc<AsyncMutex<Journal>>,
    /// Held by the one that asks whether the remote store is back.
    pub(crate) recovering: AsyncMutex<()>,
    /// Wakes the background task.
    pub(crate) wake: Arc<Notify>,
    /// Receipts of steps that were answered. Later steps delete them.
    answered: Mutex<Vec<Key>>,
}

impl Shared {
    pub(crate) fn new(
        remote: Arc<dyn StateStore>,
        policies: Policies,
        config: FallbackConfig,
        journal: Journal,
    ) -> Self {
        let mirror = MirrorCell::new(config.max_mirror_bytes);
        let mut restored = mirror.lock();
        for entry in journal.entries() {
            restored.restore(&entry.changes, entry.age(), &policies);
            restored.has_seen_sentinel |= entry.has_seen_sentinel;
        }
        drop(restored);
        Self {
            remote,
            policies,
            config,
            mirror,
            journal: Arc::new(AsyncMutex::new(journal)),
            recovering: AsyncMutex::default(),
            wake: Arc::default(),
            answered: Mutex::default(),
        }
    }

    /// Notes that a call of the remote store failed.
    pub(crate) fn leave(&self, flight: &Flight<'_>, error: &Error) {
        self.note_if_lost(error);
        let mut mirror = self.mirror.lock();
        if mirror.leave(flight) {
            if !mirror.is_remote_empty {
                tracing::warn!(%error, "the remote store is away; answering from memory");
            }
            self.wake.notify_one();
        }
    }

    /// Notes that the remote store has lost its records, if an error says so.
    pub(crate) fn note_if_lost(&self, error: &Error) {
        if RecordsLost::caused(error) && !std::mem::replace(&mut self.mirror.lock().is_remote_empty, true) {
            tracing::error!(%error, "the remote store has lost its records; it is not used until they are restored");
        }
    }

    /// Gives a record of the remote store the version that callers see.
    pub(crate) fn shown(&self, key: &str, record: Record) -> Result<Record> {
        if self.policies.is_mirrored(key) {
            return Ok(Record { version: version::shown(record.version)?, ..record });
        }
        Ok(record)
    }

    /// Gives the records of some scans the versions that callers see.
    pub(crate) fn all_shown(&self, found: Vec<Vec<(Key, Record)>>) -> Result<Vec<Vec<(Key, Record)>>> {
        let show = |(key, record): (Key, Record)| {
            let record = self.shown(&key, record)?;
            Ok((key, record))
        };
        found.into_iter().map(|found| found.into_iter().map(show).collect()).collect()
    }

    /// A step as the remote store gets it, with the receipt `id`.
    ///
    /// # Errors
    /// `Conflict` if a record is expected to have a version that this process gave.
    pub(crate) fn remote_step(&self, writes: &[Write], id: Option<&str>) -> Result<Vec<Write>> {
        let mut step = writes.iter().map(|write| self.remote_write(write)).collect::<Result<Vec<_>>>()?;
        if let Some(id) = id {
            step.push(receipt::write(id));
            let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
            let from = answered.len().saturating_sub(receipt::DELETED_AT_ONCE);
            step.extend(answered.drain(from..).map(|key| Write::delete(key, Expect::Any)));
        }
        Ok(step)
    }

    fn remote_write(&self, write: &Write) -> Result<Write> {
        let expect = match write.expect {
            Expect::Version(shown) if self.policies.is_mirrored(&write.key) => {
                let refused = || {
                    let message =
                        format!("{}: the version is from before the remote store returned", write.key);
                    Error::new(ErrorKind::Conflict, "apply", message)
                };
                Expect::Version(version::remote(shown).ok_or_else(refused)?)
            }
            expect => expect,
        };
        Ok(Write { expect, ..write.clone() })
    }

    /// Notes that nothing asks for a receipt any more.
    pub(crate) fn forget_receipt(&self, id: &str) {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        if answered.len() < receipt::MAX_NOTED {
            answered.push(receipt::key(id));
        }
    }

    /// Applies a step to the journal and to the mirror. `None` if the remote store came back meanwhile.
    pub(crate) async fn apply_away(self: &Arc<Self>, id: &str, writes: Vec<Write>) -> Option<Result<()>> {
        let journal = Arc::clone(&self.journal).lock_owned().await;
        let (shared, id) = (Arc::clone(self), id.to_owned());
        // The blocking task runs to its end even if this future is dropped, so the step is applied completely.
        let applied = tokio::task::spawn_blocking(move || {
            let mut journal = journal;
            shared.apply_to_journal(&mut journal, id, &writes)
        });
        applied.await.unwrap_or_else(|error| Some(Err(Error::new(ErrorKind::Internal, "apply", error))))
    }

    fn apply_to_journal(&self, journal: &mut Journal, id: String, writes: &[Write]) -> Option<Result<()>> {
        let mut mirror = self.mirror.lock();
        mirror.away_since?;
        let planned = mirror.check_not_lost("apply").and_then(|()| mirror.plan(writes, &self.policies));
        let has_seen_sentinel = mirror.has_seen_sentinel;
        drop(mirror);
        Some(planned.and_then(|changes| {
            if writes.iter().any(|write| write.op != lkr_state::Op::Check) {
                journal.append(Entry::new(id, has_seen_sentinel, changes.clone()))?;
                self.mirror.lock().commit(&changes, &self.policies);
            }
            Ok(())
        }))
    }
}

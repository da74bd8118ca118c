//! The mirrored records in memory, and whether the remote store is used.
//!
//! Answers of the remote store arrive in another order than it gave them. So each call takes a ticket with a number, and
//! each record carries the number at which it was set. An answer is taken only if its call began after the record was set.
//! Deleted records stay as absent ones until all calls that began earlier have ended.

mod slots;
mod step;

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Instant, SystemTime},
};

use lkr_state::{Error, Key, Op, Record, Result, Write};

pub(crate) use self::slots::{Known, Slots};
use crate::{records::Policies, version::LocalVersions};

/// The mirror, which is locked for short times only.
#[derive(Debug)]
pub(crate) struct MirrorCell(Mutex<Mirror>);

/// What is known of the mirrored records.
#[derive(Debug)]
pub(crate) struct Mirror {
    pub(crate) slots: Slots,
    pub(crate) versions: LocalVersions,
    /// Since when the remote store is away; `None` while it is used.
    pub(crate) away_since: Option<SystemTime>,
    /// Whether the remote store answers and has lost its records. Then nothing is answered from memory.
    pub(crate) is_remote_empty: bool,
    /// Whether the remote store was seen with the sentinel.
    pub(crate) has_seen_sentinel: bool,
    /// Records to read again, because calls overlapped.
    pub(crate) uncertain: BTreeSet<Key>,
    /// Grows whenever the remote store leaves or returns.
    era: u64,
    in_flight: BTreeSet<u64>,
}

/// A call of the remote store.
#[derive(Debug)]
pub(crate) struct Flight<'a> {
    cell: &'a MirrorCell,
    began: u64,
    era: u64,
    /// The records that it changes. If it is dropped before it ends, they are read again.
    changes: Vec<Key>,
}

impl MirrorCell {
    /// An empty mirror, with the remote store away.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self(Mutex::new(Mirror {
            slots: Slots::new(max_bytes),
            versions: LocalVersions::default(),
            away_since: Some(SystemTime::now()),
            is_remote_empty: false,
            has_seen_sentinel: false,
            uncertain: BTreeSet::new(),
            era: 0,
            in_flight: BTreeSet::new(),
        }))
    }

    // A poisoned lock is safe to use: each change is a sequence of insertions that cannot fail.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Mirror> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call of the remote store. While it is away, returns what `away` says instead.
    pub(crate) fn begin_or<T>(&self, away: impl FnOnce(&mut Mirror) -> T) -> Result<Flight<'_>, T> {
        let mut mirror = self.lock();
        if mirror.away_since.is_some() {
            return Err(away(&mut mirror));
        }
        Ok(self.fly(&mut mirror))
    }

    /// Begins a call of the remote store, whether or not it is away.
    pub(crate) fn begin(&self) -> Flight<'_> {
        self.fly(&mut self.lock())
    }

    fn fly(&self, mirror: &mut Mirror) -> Flight<'_> {
        let began = mirror.slots.tick();
        mirror.in_flight.insert(began);
        Flight { cell: self, began, era: mirror.era, changes: Vec::new() }
    }
}

impl Flight<'_> {
    /// Says which mirrored records the call changes.
    pub(crate) fn changes<'k>(&mut self, keys: impl Iterator<Item = &'k Key>) {
        self.changes = keys.cloned().collect();
    }

    /// Says that the outcome of the call is known.
    pub(crate) fn end(&mut self) {
        self.changes.clear();
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut mirror = self.cell.lock();
        mirror.in_flight.remove(&self.began);
        mirror.uncertain.extend(self.changes.drain(..));
    }
}

impl Mirror {
    /// Whether the remote store neither left nor returned since the call began.
    pub(crate) fn is_current(&self, flight: &Flight<'_>) -> bool {
        self.era == flight.era
    }

    /// Refuses to go on from memory if the remote store has lost its records.
    pub(crate) fn check_not_lost(&self, operation: &'static str) -> Result<()> {
        if self.is_remote_empty { Err(Error::records_lost(operation)) } else { Ok(()) }
    }

    /// A number that is the same while the remote store neither leaves nor returns.
    pub(crate) const fn era(&self) -> u64 {
        self.era
    }

    /// Notes that a call failed; `false` if another one noted it.
    pub(crate) fn leave(&mut self, flight: &Flight<'_>) -> bool {
        let is_first = self.is_current(flight) && self.away_since.is_none();
        if is_first {
            self.away_since = Some(SystemTime::now());
            self.era += 1;
        }
        is_first
    }

    /// Notes that the remote store is used again.
    pub(crate) fn come_back(&mut self) {
        self.away_since = None;
        self.is_remote_empty = false;
        self.era += 1;
    }

    /// Takes a record that the remote store returned, with the version that callers see.
    pub(crate) fn observe(
        &mut self,
        flight: &Flight<'_>,
        key: &str,
        found: Option<&Record>,
        policies: &Policies,
    ) {
        if let Some(record) = found {
            self.versions.note(record.version);
        }
        let before = self.slots.get(key);
        if before.is_some_and(|slot| slot.set_at > flight.began || slot.is_version(found)) {
            return;
        }
        match found {
            Some(Record { value, version }) => {
                let expires =
                    policies.expires_in(key, value).and_then(|left| Instant::now().checked_add(left));
                self.slots.insert(key, value.clone(), *version, expires);
            }
            None => self.forget(key, Some(flight.began)),
        }
    }

    /// Takes a step that the remote store applied.
    pub(crate) fn applied(&mut self, flight: &Flight<'_>, writes: &[Write], policies: &Policies) {
        for write in writes.iter().filter(|write| policies.is_mirrored(&write.key)) {
            let before = self.slots.get(&write.key);
            let is_overlapped = before.is_some_and(|slot| slot.set_at > flight.began);
            let is_gone = before.is_some_and(|slot| slot.value.is_none());
            if is_overlapped && write.op != Op::Check {
                self.uncertain.insert(write.key.clone());
            }
            match &write.op {
                // Of a deletion and a write at the same time, the deletion counts until the record is read again.
                Op::Put { .. } | Op::Increment if is_overlapped && is_gone => {}
                Op::Put { value, ttl } => {
                    let version = self.versions.next(before.map(|slot| slot.version));
                    let expires = ttl.and_then(|ttl| Instant::now().checked_add(ttl));
                    self.slots.insert(&write.key, value.clone(), version, expires);
                }
                Op::Delete => self.forget(&write.key, Some(flight.began)),
                Op::Increment => self.increment(&write.key),
                Op::Check => {}
            }
        }
    }

    /// Removes a record. It stays as an absent one if a call that began earlier, other than `own`, may return it.
    fn forget(&mut self, key: &str, own: Option<u64>) {
        let has_others = self.in_flight.iter().any(|&began| Some(began) != own);
        if has_others || self.away_since.is_some() {
            self.slots.insert_absent(key);
        } else {
            self.slots.remove(key);
        }
        if self.away_since.is_none() {
            let oldest = self.in_flight.first().copied();
            self.slots.prune_absent(oldest);
        }
    }

    fn increment(&mut self, key: &str) {
        let now = Instant::now();
        let (count, version, expires) = match self.slots.known(key, now) {
            Known::Present(slot) => (slot.count(), Some(slot.version), slot.expires),
            Known::Absent(version) => (0, version, None),
            Known::Unknown => return,
        };
        let version = self.versions.next(version);
        self.slots.insert(key, (count + 1).to_string().into(), version, expires);
    }
}

#[cfg(test)]
mod tests;

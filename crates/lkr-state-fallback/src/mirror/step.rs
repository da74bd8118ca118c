//! Steps that are applied to the mirror because the remote store is away.

use std::time::{Duration, Instant};

use bytes::Bytes;
use lkr_state::{Error, ErrorKind, Expect, Op, Result, Write};

use super::{Known, Mirror};
use crate::{
    journal::{Change, ChangeKind},
    records::Policies,
};

/// A mirrored record before a write of a step.
struct Before {
    value: Option<Bytes>,
    version: Option<u64>,
}

impl Mirror {
    /// Checks the expectations of a step, and returns what it changes.
    ///
    /// # Errors
    /// `Conflict` if an expectation does not hold, `Unavailable` if a record is not in memory.
    pub(crate) fn plan(&mut self, writes: &[Write], policies: &Policies) -> Result<Vec<Change>> {
        let now = Instant::now();
        // All expectations come first, so that a refused step uses no versions.
        let before =
            writes.iter().map(|write| self.before(write, policies, now)).collect::<Result<Vec<_>>>()?;
        Ok(writes.iter().zip(before).map(|(write, before)| self.change(write, before)).collect())
    }

    /// Applies the changes of a step.
    pub(crate) fn commit(&mut self, changes: &[Change], policies: &Policies) {
        let now = Instant::now();
        for change in changes.iter().filter(|change| policies.is_mirrored(&change.key)) {
            self.commit_change(change, change.ttl().map(|ttl| now.checked_add(ttl)), now);
        }
    }

    /// Applies the changes of a journal that an earlier process left; `age` is how long ago that was.
    pub(crate) fn restore(&mut self, changes: &[Change], age: Duration, policies: &Policies) {
        let now = Instant::now();
        for change in changes.iter().filter(|change| policies.is_mirrored(&change.key)) {
            self.versions.note(change.version);
            let left = change.ttl().map(|ttl| now.checked_add(ttl.saturating_sub(age)));
            self.commit_change(change, left, now);
        }
    }

    fn commit_change(&mut self, change: &Change, expires: Option<Option<Instant>>, now: Instant) {
        let Change { key, value, version, .. } = change;
        let kept_expiry = match self.slots.known(key, now) {
            Known::Present(slot) => slot.expires,
            Known::Absent(_) | Known::Unknown => None,
        };
        match (&change.kind, value) {
            (ChangeKind::Put { .. }, Some(value)) => {
                self.slots.force(key, value.clone(), *version, expires.flatten());
            }
            (ChangeKind::Increment, Some(value)) => {
                self.slots.force(key, value.clone(), *version, kept_expiry);
            }
            (ChangeKind::Check, _) => {}
            _ => self.slots.insert_absent(key),
        }
    }

    fn before(&self, write: &Write, policies: &Policies, now: Instant) -> Result<Before> {
        if !policies.is_mirrored(&write.key) {
            return match write.expect {
                Expect::Any | Expect::Absent => Ok(Before { value: None, version: None }),
                Expect::Version(_) => Err(unknown(write)),
            };
        }
        let before = match self.slots.known(&write.key, now) {
            Known::Present(slot) => Before { value: slot.value.clone(), version: Some(slot.version) },
            Known::Absent(version) => Before { value: None, version },
            // A record may be deleted unseen, so that a revocation holds.
            Known::Unknown if write.expect == Expect::Any && write.op == Op::Delete => {
                Before { value: None, version: None }
            }
            Known::Unknown => return Err(unknown(write)),
        };
        let current = before.version.filter(|_| before.value.is_some());
        let holds = match write.expect {
            Expect::Any => true,
            Expect::Absent => current.is_none(),
            Expect::Version(version) => current == Some(version),
        };
        if holds { Ok(before) } else { Err(conflict(write, current)) }
    }

    fn change(&mut self, write: &Write, before: Before) -> Change {
        let count = || {
            let value = before.value.clone().unwrap_or_default();
            lkr_state::Record { value, version: 0 }.as_counter().saturating_add(1)
        };
        let (kind, value) = match &write.op {
            Op::Put { value, ttl } => (ChangeKind::Put { ttl_ms: ttl.map(millis) }, Some(value.clone())),
            Op::Delete => (ChangeKind::Delete, None),
            Op::Increment => (ChangeKind::Increment, Some(count().to_string().into())),
            Op::Check => (ChangeKind::Check, before.value.clone()),
        };
        let version = match kind {
            ChangeKind::Check => before.version.unwrap_or_default(),
            _ => self.versions.next(before.version),
        };
        Change { key: write.key.clone(), kind, base: before.value, value, version }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn conflict(write: &Write, current: Option<u64>) -> Error {
    let message = format!("{}: expected {:?}, found version {current:?}", write.key, write.expect);
    Error::new(ErrorKind::Conflict, "apply", message)
}

fn unknown(write: &Write) -> Error {
    let message = format!("the remote store is away, and the record {} is not in memory", write.key);
    Error::new(ErrorKind::Unavailable, "apply", message)
}

//! Steps that the remote store applied, taken into the mirror.

use std::{collections::BTreeMap, time::Instant};

use lkr_state::{Merged, OfflineChange, Op, Write};

use crate::{
    mirror::{Flight, Known, Mirror},
    shared::Shared,
};

impl Shared {
    /// Takes a step that the remote store applied, so that it counts even if the remote store leaves now.
    pub(crate) async fn take_applied(&self, flight: Flight<'_>, id: Option<&str>, writes: &[Write]) {
        if let Some(id) = id {
            self.forget_receipt(id);
        }
        let policies = &self.policies;
        {
            let mut mirror = self.mirror.lock();
            if mirror.is_current(&flight) || mirror.away_since.is_none() {
                mirror.applied(&flight, writes, policies);
                if !mirror.uncertain.is_empty() {
                    self.wake.notify_one();
                }
                return;
            }
        }
        // It left meanwhile, and other steps may wait in the journal that were made without this one.
        let journal = self.journal.lock().await;
        let mut mirror = self.mirror.lock();
        for write in writes {
            match journal.first_change(&write.key).map(|change| change.base.clone()) {
                Some(base) => self.combine(&mut mirror, write, base.as_deref()),
                None => mirror.applied(&flight, std::slice::from_ref(write), policies),
            }
        }
    }

    /// Combines a write that the remote store applied with one that waits in the journal. Both were made on `base`.
    fn combine(&self, mirror: &mut Mirror, write: &Write, base: Option<&[u8]>) {
        let Some(policy) = self.policies.of(&write.key) else { return };
        let (ours, ttl) = match &write.op {
            Op::Put { value, ttl } => (Some(&**value), *ttl),
            Op::Delete => (None, None),
            Op::Increment | Op::Check => return,
        };
        let now = Instant::now();
        let (theirs, version, expires) = match mirror.slots.known(&write.key, now) {
            Known::Present(slot) => (slot.value.clone(), Some(slot.version), slot.expires),
            Known::Absent(version) => (None, version, None),
            Known::Unknown => return,
        };
        let key = &write.key;
        let related = &BTreeMap::new();
        let change =
            OfflineChange { key, base, ours, theirs: theirs.as_deref(), ttl, related, restricting: false };
        match policy.merge(&change) {
            Merged::Keep | Merged::Overruled(_) => {}
            Merged::Delete => mirror.slots.insert_absent(key),
            Merged::Put { value, .. } => {
                let version = mirror.versions.next(version);
                mirror.slots.force(key, value, version, expires);
            }
        }
    }
}

use std::{collections::BTreeMap, ops::Bound, time::Instant};

use bytes::Bytes;
use lkr_state::{Key, Record, Scan, ScanOrder};

/// Absent records are pruned when there are more than these.
const MIN_PRUNE: usize = 1024;

/// The memory that a record takes besides its key and its value, measured with 100,000 sessions.
const RECORD_OVERHEAD: usize = 350;

/// A mirrored record.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The value; `None` if the record is known to be absent.
    pub(crate) value: Option<Bytes>,
    /// The version that callers see; of an absent record, its last one.
    pub(crate) version: u64,
    pub(crate) expires: Option<Instant>,
    /// When it was set: a number of [`Slots::tick`].
    pub(crate) set_at: u64,
}

/// What is known of a record.
#[derive(Debug)]
pub(crate) enum Known<'a> {
    Present(&'a Slot),
    /// No such record; the last version if it is known.
    Absent(Option<u64>),
    Unknown,
}

/// The mirrored records by key. They are bounded by their bytes.
#[derive(Debug)]
pub(crate) struct Slots {
    slots: BTreeMap<Key, Slot>,
    /// The memory that the records take.
    bytes: usize,
    max_bytes: usize,
    absent: usize,
    prune_above: usize,
    clock: u64,
    /// Whether a record that is not here does not exist.
    is_complete: bool,
    /// Whether a record did not fit since the last refresh began.
    has_overflown: bool,
}

impl Slots {
    pub(crate) const fn new(max_bytes: usize) -> Self {
        Self {
            slots: BTreeMap::new(),
            bytes: 0,
            max_bytes,
            absent: 0,
            prune_above: MIN_PRUNE,
            clock: 0,
            is_complete: false,
            has_overflown: false,
        }
    }

    /// The next number. Numbers order calls and changes.
    pub(crate) const fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Slot> {
        self.slots.get(key)
    }

    pub(crate) fn known(&self, key: &str, now: Instant) -> Known<'_> {
        match self.slots.get(key) {
            Some(slot) if slot.is_live(now) => Known::Present(slot),
            Some(slot) => Known::Absent(Some(slot.version)),
            None if self.is_complete => Known::Absent(None),
            None => Known::Unknown,
        }
    }

    /// Stores a record; a new one only if there is room.
    pub(crate) fn insert(&mut self, key: &str, value: Bytes, version: u64, expires: Option<Instant>) {
        let is_new = self.slots.get(key).is_none_or(|slot| slot.value.is_none());
        if is_new && self.bytes + memory_of(key, Some(&value)) > self.max_bytes {
            // What was known of the record is wrong now.
            self.remove(key);
            self.is_complete = false;
            self.has_overflown = true;
            return;
        }
        self.put(key, Some(value), version, expires);
    }

    /// Stores a record even if there is no room, because the journal has it too.
    pub(crate) fn force(&mut self, key: &str, value: Bytes, version: u64, expires: Option<Instant>) {
        self.put(key, Some(value), version, expires);
    }

    /// Stores that a record is absent.
    pub(crate) fn insert_absent(&mut self, key: &str) {
        let version = self.slots.get(key).map_or(0, |slot| slot.version);
        self.put(key, None, version, None);
    }

    fn put(&mut self, key: &str, value: Option<Bytes>, version: u64, expires: Option<Instant>) {
        self.remove(key);
        self.bytes += memory_of(key, value.as_ref());
        self.absent += usize::from(value.is_none());
        let set_at = self.tick();
        self.slots.insert(key.to_owned(), Slot { value, version, expires, set_at });
    }

    pub(crate) fn remove(&mut self, key: &str) {
        let Some(slot) = self.slots.remove(key) else { return };
        self.bytes -= memory_of(key, slot.value.as_ref());
        self.absent -= usize::from(slot.value.is_none());
    }

    /// Removes absent records that no call can return: those set before the call that began at `oldest`.
    pub(crate) fn prune_absent(&mut self, oldest: Option<u64>) {
        if self.absent <= self.prune_above {
            return;
        }
        let is_kept = |slot: &Slot| slot.value.is_some() || oldest.is_some_and(|oldest| slot.set_at > oldest);
        self.retain(|_, slot| is_kept(slot));
        self.prune_above = MIN_PRUNE.max(2 * self.absent);
    }

    /// Removes expired records.
    pub(crate) fn sweep(&mut self, now: Instant) {
        self.retain(|_, slot| slot.value.is_none() || slot.is_live(now));
    }

    fn retain(&mut self, keep: impl Fn(&str, &Slot) -> bool) {
        let (mut bytes, mut absent) = (0, 0);
        self.slots.retain(|key, slot| {
            let is_kept = keep(key, slot);
            if is_kept {
                bytes += memory_of(key, slot.value.as_ref());
                absent += usize::from(slot.value.is_none());
            }
            is_kept
        });
        (self.bytes, self.absent) = (bytes, absent);
    }

    pub(crate) const fn begin_refresh(&mut self) {
        self.has_overflown = false;
    }

    pub(crate) const fn end_refresh(&mut self) {
        self.is_complete = !self.has_overflown;
    }

    pub(crate) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The number of existing records, and the memory that all records take, in bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.slots.len() - self.absent, self.bytes)
    }

    /// The keys of existing records with `prefix` that come after `after`, up to `last` or the last one.
    pub(crate) fn keys_between(&self, prefix: &str, after: Option<&str>, last: Option<&str>) -> Vec<Key> {
        let range = self.range(prefix, after);
        let in_time = range.take_while(|(key, _)| last.is_none_or(|last| key.as_str() <= last));
        in_time.filter(|(_, slot)| slot.value.is_some()).map(|(key, _)| key.clone()).collect()
    }

    /// A scan as [`lkr_state::StateStore::scan`]. It needs a complete mirror.
    pub(crate) fn scan(&self, scan: &Scan, now: Instant) -> Vec<(Key, Record)> {
        let Scan { ref prefix, ref after, order, limit } = *scan;
        let after = after.as_deref();
        let record = |(key, slot): (&Key, &Slot)| Some((key.clone(), slot.record(now)?));
        match order {
            ScanOrder::Ascending => self.range(prefix, after).filter_map(record).take(limit).collect(),
            ScanOrder::Descending => {
                let all = self.range(prefix, None);
                let smaller = all.take_while(|(key, _)| after.is_none_or(|after| key.as_str() < after));
                let smaller: Vec<_> = smaller.collect();
                smaller.into_iter().rev().filter_map(record).take(limit).collect()
            }
        }
    }

    fn range<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Slot)> {
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let from = self.slots.range::<str, _>((start, Bound::Unbounded));
        from.take_while(move |(key, _)| key.starts_with(prefix))
    }
}

fn memory_of(key: &str, value: Option<&Bytes>) -> usize {
    RECORD_OVERHEAD + key.len() + value.map_or(0, Bytes::len)
}

impl Slot {
    fn is_live(&self, now: Instant) -> bool {
        self.value.is_some() && self.expires.is_none_or(|expires| now < expires)
    }

    /// Whether the slot contains what was found already.
    pub(crate) fn is_version(&self, found: Option<&Record>) -> bool {
        match found {
            Some(record) => self.value.is_some() && self.version == record.version,
            None => false,
        }
    }

    /// The record, unless it is absent or expired.
    pub(crate) fn record(&self, now: Instant) -> Option<Record> {
        let value = self.value.clone().filter(|_| self.is_live(now))?;
        Some(Record { value, version: self.version })
    }

    /// The value as a counter.
    pub(crate) fn count(&self) -> u64 {
        let value = self.value.clone().unwrap_or_default();
        Record { value, version: 0 }.as_counter()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn slots(keys: &[&str]) -> Slots {
        let mut slots = Slots::new(1 << 20);
        for key in keys {
            slots.insert(key, Bytes::from("v"), 1, None);
        }
        slots
    }

    fn scanned(slots: &Slots, prefix: &str, after: Option<&str>, order: ScanOrder, limit: usize) -> String {
        let scan = Scan { prefix: prefix.to_owned(), after: after.map(str::to_owned), order, limit };
        let found = slots.scan(&scan, Instant::now());
        found.into_iter().map(|(key, _)| key).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn scan_returns_live_records_in_order() {
        let mut slots = slots(&["a/1", "a/2", "a/3", "a/4", "b/1"]);
        slots.insert("a/0", Bytes::from("v"), 1, Some(Instant::now()));
        slots.insert_absent("a/3");
        let up = |after, limit| scanned(&slots, "a/", after, ScanOrder::Ascending, limit);
        assert_eq!(up(None, 9), "a/1 a/2 a/4");
        assert_eq!(up(None, 2), "a/1 a/2");
        assert_eq!(up(Some("a/1"), 9), "a/2 a/4");
        assert_eq!(up(Some("A"), 9), "a/1 a/2 a/4");
        assert_eq!(up(Some("b"), 9), "");
        let down = |after, limit| scanned(&slots, "a/", after, ScanOrder::Descending, limit);
        assert_eq!(down(None, 9), "a/4 a/2 a/1");
        assert_eq!(down(Some("a/4"), 1), "a/2");
        assert_eq!(down(Some("b"), 2), "a/4 a/2");
        assert_eq!(down(Some("A"), 9), "");
        assert_eq!(slots.keys_between("a/", Some("a/1"), Some("a/4")), ["a/2", "a/4"]);
    }

    #[test]
    fn record_without_room_is_unknown_and_the_mirror_incomplete() {
        let mut slots = Slots::new(RECORD_OVERHEAD + 10);
        slots.begin_refresh();
        slots.insert("a", Bytes::from("12345"), 1, None);
        slots.end_refresh();
        assert!(slots.is_complete());
        assert!(matches!(slots.known("b", Instant::now()), Known::Absent(None)));
        slots.insert("b", Bytes::from("12345"), 1, None);
        slots.end_refresh();
        assert!(!slots.is_complete());
        assert!(matches!(slots.known("b", Instant::now()), Known::Unknown));
        slots.insert("a", Bytes::from("1234567890"), 2, None);
        assert_eq!(slots.size(), (1, RECORD_OVERHEAD + 11), "a record that is here may grow");
        slots.force("b", Bytes::from("1"), 3, None);
        assert!(matches!(slots.known("b", Instant::now()), Known::Present(_)));
        slots.remove("a");
        slots.begin_refresh();
        slots.end_refresh();
        assert!(slots.is_complete());
    }

    #[test]
    fn absent_records_are_pruned_once_no_call_can_return_them() {
        let mut slots = Slots::new(1 << 20);
        for n in 0..MIN_PRUNE + 1 {
            slots.insert_absent(&format!("{n:05}"));
        }
        let middle = slots.get("00500").unwrap().set_at;
        slots.prune_absent(Some(middle));
        assert!(slots.get("00500").is_none() && slots.get("00501").is_some());
        slots.prune_absent(None);
        assert!(slots.get("00501").is_some(), "few are left, so they stay");
    }

    #[test]
    fn sweep_removes_expired_records() {
        let mut slots = slots(&["a"]);
        let now = Instant::now();
        slots.insert("b", Bytes::from("v"), 1, Some(now + Duration::from_secs(1)));
        slots.sweep(now);
        assert_eq!(slots.size().0, 2);
        assert!(matches!(slots.known("b", now + Duration::from_secs(1)), Known::Absent(Some(1))));
        slots.sweep(now + Duration::from_secs(1));
        assert_eq!(slots.size(), (1, RECORD_OVERHEAD + 2));
    }
}

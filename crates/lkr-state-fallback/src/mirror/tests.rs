use bytes::Bytes;
use lkr_state::{Expect, MergePolicy, Merged, OfflineChange};

use super::*;

#[derive(Debug)]
struct All;

impl MergePolicy for All {
    fn mirrored(&self) -> &'static [&'static str] {
        &[""]
    }

    fn merge(&self, change: &OfflineChange<'_>) -> Merged {
        change.accept()
    }
}

/// A complete mirror whose remote store is there.
struct Harness {
    cell: MirrorCell,
    policies: Policies,
}

impl Harness {
    fn new() -> Self {
        let cell = MirrorCell::new(1 << 20);
        let mut mirror = cell.lock();
        mirror.come_back();
        mirror.slots.begin_refresh();
        mirror.slots.end_refresh();
        drop(mirror);
        Self { cell, policies: Policies::new(vec![std::sync::Arc::new(All)]) }
    }

    fn observe(&self, flight: &Flight<'_>, found: Option<(&'static str, u64)>) {
        let record = found.map(|(value, version)| {
            let version = crate::version::shown(version).unwrap();
            Record { value: Bytes::from(value), version }
        });
        self.cell.lock().observe(flight, "k", record.as_ref(), &self.policies);
    }

    fn applied(&self, flight: &Flight<'_>, write: Write) {
        self.cell.lock().applied(flight, &[write], &self.policies);
    }

    fn value(&self) -> Option<String> {
        let mirror = self.cell.lock();
        match mirror.slots.known("k", Instant::now()) {
            Known::Present(slot) => Some(String::from_utf8(slot.value.clone().unwrap().to_vec()).unwrap()),
            Known::Absent(_) => None,
            Known::Unknown => panic!("the mirror is complete"),
        }
    }

    fn is_uncertain(&self) -> bool {
        self.cell.lock().uncertain.contains("k")
    }
}

fn put(value: &'static str) -> Write {
    Write::put("k", Expect::Any, value)
}

fn delete() -> Write {
    Write::delete("k", Expect::Any)
}

#[test]
fn read_that_began_before_a_deletion_does_not_bring_the_record_back() {
    let harness = Harness::new();
    harness.observe(&harness.cell.begin(), Some(("1", 1)));
    let read = harness.cell.begin();
    let deletion = harness.cell.begin();
    harness.applied(&deletion, delete());
    drop(deletion);
    harness.observe(&read, Some(("1", 1)));
    assert_eq!(harness.value(), None);
    drop(read);
    harness.observe(&harness.cell.begin(), Some(("2", 2)));
    assert_eq!(harness.value().unwrap(), "2", "a later read brings a new record");
}

/// Another process deleted the record, which one of two reads saw.
#[test]
fn read_that_overlaps_one_without_the_record_does_not_bring_it_back() {
    for is_known in [false, true] {
        let harness = Harness::new();
        if is_known {
            harness.observe(&harness.cell.begin(), Some(("1", 1)));
        }
        let early = harness.cell.begin();
        harness.observe(&harness.cell.begin(), None);
        harness.observe(&early, Some(("1", 1)));
        assert_eq!(harness.value(), None, "known: {is_known}");
    }
}

#[test]
fn read_that_began_before_a_write_does_not_undo_it() {
    let harness = Harness::new();
    harness.observe(&harness.cell.begin(), Some(("enabled", 1)));
    let read = harness.cell.begin();
    let write = harness.cell.begin();
    harness.applied(&write, put("disabled"));
    harness.observe(&read, Some(("enabled", 1)));
    assert_eq!(harness.value().unwrap(), "disabled");
    assert!(!harness.is_uncertain());
}

#[test]
fn write_that_overlaps_a_read_counts_until_the_record_is_read_again() {
    let harness = Harness::new();
    harness.observe(&harness.cell.begin(), Some(("enabled", 1)));
    let write = harness.cell.begin();
    harness.observe(&harness.cell.begin(), Some(("changed", 2)));
    harness.applied(&write, put("disabled"));
    assert_eq!(harness.value().unwrap(), "disabled");
    assert!(harness.is_uncertain());
}

#[test]
fn deletion_that_overlaps_a_write_counts_whichever_ends_first() {
    for deletion_ends_first in [false, true] {
        let harness = Harness::new();
        let (write, deletion) = (harness.cell.begin(), harness.cell.begin());
        if deletion_ends_first {
            harness.applied(&deletion, delete());
            harness.applied(&write, put("1"));
        } else {
            harness.applied(&write, put("1"));
            harness.applied(&deletion, delete());
        }
        assert_eq!(harness.value(), None);
        assert!(harness.is_uncertain());
    }
}

#[test]
fn write_whose_call_was_dropped_is_read_again() {
    let harness = Harness::new();
    let mut write = harness.cell.begin();
    write.changes([&"k".to_owned()].into_iter());
    drop(write);
    assert!(harness.is_uncertain());
    let harness = Harness::new();
    let mut write = harness.cell.begin();
    write.changes([&"k".to_owned()].into_iter());
    write.end();
    drop(write);
    assert!(!harness.is_uncertain());
}

#[test]
fn deleted_records_do_not_stay_without_overlapping_calls() {
    let harness = Harness::new();
    harness.observe(&harness.cell.begin(), Some(("1", 1)));
    let deletion = harness.cell.begin();
    harness.applied(&deletion, delete());
    assert!(harness.cell.lock().slots.get("k").is_none());
    harness.observe(&harness.cell.begin(), None);
    assert!(harness.cell.lock().slots.get("other").is_none());
}

#[test]
fn only_the_first_failure_of_an_outage_begins_it() {
    let harness = Harness::new();
    let (first, second) = (harness.cell.begin(), harness.cell.begin());
    assert!(harness.cell.lock().leave(&first));
    assert!(!harness.cell.lock().leave(&second));
    harness.cell.lock().come_back();
    assert!(!harness.cell.lock().leave(&second), "a failure of the last outage begins no new one");
    assert!(!harness.cell.lock().is_current(&second));
}

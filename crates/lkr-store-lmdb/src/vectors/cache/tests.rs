use std::{collections::BTreeSet, ops::Range};

use lkr_domain::{DocId, PointId, SparseVector};
use lkr_vectors::{Collection, CollectionSpec, Condition, DenseSpec, Filter, Point, PointOrigin, Tags};
use proptest::prelude::*;
use roaring::RoaringBitmap;

use super::*;
use crate::{
    env::Map,
    vectors::{
        bitmap::{self, Field},
        postings::{self, Entry},
        registry::CollectionEntry,
        write,
    },
};

struct Fixture {
    kb: Kb,
    entry: CollectionEntry,
    caches: PointCaches,
    _dir: tempfile::TempDir,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let kb = Kb::open(dir.path(), Map::default()).unwrap();
    let collection = Collection::new("points").unwrap();
    let dense = Some(DenseSpec { model: "model".to_owned(), dims: 2 });
    let mut txn = kb.write_txn().unwrap();
    registry::ensure(&kb, &mut txn, &CollectionSpec { collection: collection.clone(), dense }).unwrap();
    let entry = registry::require(&kb, &txn, &collection).unwrap();
    txn.commit().unwrap();
    Fixture { kb, entry, caches: PointCaches::default(), _dir: dir }
}

/// The internal ids that a table has of a snapshot, and those from which on they may be missing.
#[derive(Debug, PartialEq)]
struct Seen {
    ids: BTreeSet<u32>,
    missing: Range<u32>,
}

impl Seen {
    /// Nothing is missing.
    fn all(ids: Range<u32>) -> Self {
        Self { missing: ids.end..ids.end, ids: ids.collect() }
    }
}

fn id(n: u8) -> PointId {
    PointId::from_bytes([n; 16])
}

impl Fixture {
    fn add(&self, numbers: std::ops::Range<u8>) {
        let origin = |ordinal| PointOrigin {
            doc_id: DocId::from_bytes([1; 16]),
            revision: 1,
            ordinal,
            l2: None,
            l3: None,
        };
        let point = |n: u8| Point {
            id: id(n),
            origin: origin(n.into()),
            tags: Tags::new(),
            dense: Some(vec![1.0, f32::from(n)]),
            sparse: SparseVector::from_pairs([(1, f32::from(n)), (2, 1.0)]),
            payload: serde_json::Value::Null,
        };
        let points = write::encode_points(numbers.map(point).collect()).unwrap();
        let mut txn = self.kb.write_txn().unwrap();
        write::upsert(&self.kb, &mut txn, &self.entry, &points).unwrap();
        txn.commit().unwrap();
    }

    fn delete(&self, numbers: std::ops::Range<u8>) {
        let gone = Filter::only(Condition::Ids(numbers.map(id).collect()));
        let mut txn = self.kb.write_txn().unwrap();
        write::delete(&self.kb, &mut txn, &self.entry, &gone).unwrap();
        txn.commit().unwrap();
    }

    /// The internal ids that a scan of the quantised vectors on the snapshot sees.
    fn scan(&self, txn: &RoTxn) -> Seen {
        let all = |table: &CodeTable, ids: IdCounters, end| {
            let seen = table.nearest(&[1.0, 0.0], 1_000, |id| id < end);
            Seen { ids: seen.into_iter().map(|(_, id)| id).collect(), missing: end..ids.next }
        };
        self.caches.codes.read(&self.kb, txn, self.entry.number, || CodeTable::new(2), all).unwrap()
    }

    /// The internal ids whose origins are known on the snapshot, which are theirs.
    fn origins(&self, txn: &RoTxn) -> Seen {
        let all = |table: &OriginTable, ids: IdCounters, end| {
            let known = (0..200_u32).filter_map(|id| Some((id, table.get(id)?)));
            let checked = known.map(|(number, (point, origin))| {
                assert_eq!((point, origin.ordinal), (id(number as u8), number));
                number
            });
            Seen { ids: checked.collect(), missing: end..ids.next }
        };
        self.caches.origins.read(&self.kb, txn, self.entry.number, OriginTable::default, all).unwrap()
    }

    /// The internal ids of the pending points with term 1 on the snapshot, which their weights are.
    fn pending(&self, txn: &RoTxn) -> Seen {
        let live = self.live(txn);
        let query = SparseVector::from_pairs([(1, 1.0), (3, 1.0)]);
        let entries = |table: &PendingTable, ids: IdCounters, end| {
            (table.entries(&query, ids.posted..end, &live), end..ids.next)
        };
        let table = PendingTable::default;
        let (found, missing) =
            self.caches.pending.read(&self.kb, txn, self.entry.number, table, entries).unwrap();
        let [first, third] = <[Vec<Entry>; 2]>::try_from(found).unwrap();
        assert!(third.is_empty() && first.is_sorted_by(|a, b| a.0 < b.0));
        assert!(first.iter().all(|(id, weight)| *id as f32 == *weight));
        Seen { ids: first.into_iter().map(|(id, _)| id).collect(), missing }
    }

    fn live(&self, txn: &RoTxn) -> RoaringBitmap {
        bitmap::read(&self.kb, txn, self.entry.number, Field::Live).unwrap()
    }

    /// Adds pending points to the posting lists.
    fn post(&self, max_entries: usize) {
        let mut txn = self.kb.write_txn().unwrap();
        let ids = registry::ids(&self.kb, &txn, self.entry.number).unwrap();
        let ids = postings::post_slice(&self.kb, &mut txn, self.entry.number, ids, max_entries).unwrap();
        registry::set_ids(&self.kb, &mut txn, self.entry.number, ids).unwrap();
        txn.commit().unwrap();
    }

    /// Checks that each table has all points of the snapshot but those that it calls missing.
    fn check_tables(&self, txn: &RoTxn) {
        let (live, posted) =
            (self.live(txn), registry::ids(&self.kb, txn, self.entry.number).unwrap().posted);
        let among = |Seen { ids, missing }: Seen, from: u32| {
            let seen: Vec<u32> = ids.into_iter().filter(|id| live.contains(*id)).collect();
            let expected = live.iter().filter(|id| *id >= from && !missing.contains(id));
            (seen, expected.collect::<Vec<_>>())
        };
        let (seen, expected) = among(self.scan(txn), 0);
        assert_eq!(seen, expected);
        let (seen, expected) = among(self.pending(txn), posted);
        assert_eq!(seen, expected);
        let (seen, expected) = among(self.origins(txn), 0);
        assert!(expected.iter().all(|id| seen.contains(id)), "{expected:?} among {seen:?}");
    }
}

#[test]
fn tables_have_the_points_of_a_snapshot_or_tell_which_are_missing() {
    let fixture = fixture();
    fixture.add(0..60);
    let first = fixture.kb.snapshot().unwrap();
    let all = || Seen::all(0..60);
    assert_eq!((fixture.scan(&first), fixture.pending(&first)), (all(), all()));
    assert_eq!(fixture.origins(&first), all());
    fixture.delete(0..40);
    fixture.add(60..70);
    let second = fixture.kb.snapshot().unwrap();
    let kept = || Seen::all(40..70);
    assert_eq!(fixture.scan(&second), kept(), "points that were gone were removed");
    assert_eq!(fixture.origins(&second), kept(), "so were their origins");
    assert_eq!(fixture.pending(&second), kept());
    assert_eq!(fixture.scan(&first).missing, 0..60, "the first snapshot has points that were removed");
    assert_eq!(fixture.pending(&first), all(), "pending points stay until they are posted");
    fixture.delete(40..50);
    let third = fixture.kb.snapshot().unwrap();
    let seen = fixture.scan(&third).ids;
    assert!(seen.is_superset(&(50..70).collect()), "{seen:?}");
    assert_eq!(fixture.pending(&third), Seen::all(50..70));
    fixture.caches.forget(fixture.entry.number);
    assert_eq!((fixture.scan(&first), fixture.pending(&first)), (all(), all()));
    assert_eq!(fixture.origins(&first), all());
    let (caches, number) = (&fixture.caches, fixture.entry.number);
    let kept = [caches.codes.has(number), caches.origins.has(number), caches.pending.has(number)];
    assert_eq!(
        kept, [false; 3],
        "nothing is kept of a dropped collection, though older snapshots may still be read"
    );
}

#[test]
fn snapshot_older_than_a_table_misses_only_points_that_were_not_read_in_time() {
    let fixture = fixture();
    fixture.add(0..60);
    fixture.check_tables(&fixture.kb.snapshot().unwrap());
    fixture.add(60..70);
    let older = fixture.kb.snapshot().unwrap();
    fixture.delete(62..65);
    fixture.add(70..80);
    fixture.check_tables(&fixture.kb.snapshot().unwrap());
    assert_eq!(fixture.scan(&older).missing, 60..70);
    assert_eq!(fixture.pending(&older), Seen { ids: (0..60).collect(), missing: 60..70 });
    fixture.check_tables(&older);
}

#[test]
fn pending_points_leave_their_table_when_they_are_posted() {
    let fixture = fixture();
    for n in 0..8 {
        fixture.add(10 * n..10 * n + 10);
        let snapshot = fixture.kb.snapshot().unwrap();
        assert_eq!(fixture.pending(&snapshot), Seen::all(0..10 * u32::from(n) + 10));
    }
    fixture.post(100);
    assert_eq!(fixture.pending(&fixture.kb.snapshot().unwrap()), Seen::all(50..80));
    fixture.add(80..90);
    assert_eq!(fixture.pending(&fixture.kb.snapshot().unwrap()), Seen::all(50..90));
}

/// A step of a history of a collection, and of the searches beside it.
#[derive(Debug, Clone)]
enum Step {
    Add(u8),
    Delete(u8, u8),
    Post(usize),
    /// Opens a snapshot and reads the tables on it only if it is to be read now.
    Open(bool),
    /// Reads the tables on one of the snapshots.
    Read(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1_u8..12).prop_map(Step::Add),
        2 => (0_u8..200, 1_u8..30).prop_map(|(from, count)| Step::Delete(from, count)),
        1 => (1_usize..60).prop_map(Step::Post),
        3 => any::<bool>().prop_map(Step::Open),
        2 => any::<usize>().prop_map(Step::Read),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tables_are_right_on_each_snapshot(steps in prop::collection::vec(step(), 1..60)) {
        let fixture = fixture();
        let (mut snapshots, mut added) = (Vec::new(), 0);
        for step in steps {
            match step {
                Step::Add(count) if added + count <= 200 => {
                    fixture.add(added..added + count);
                    added += count;
                }
                Step::Add(_) => {}
                Step::Delete(from, count) => fixture.delete(from..from.saturating_add(count).min(added).max(from)),
                Step::Post(max_entries) => fixture.post(max_entries),
                Step::Open(is_read) => {
                    let snapshot = fixture.kb.snapshot().unwrap();
                    if is_read {
                        fixture.check_tables(&snapshot);
                        prop_assert!(fixture.scan(&snapshot).missing.is_empty());
                    }
                    snapshots.push(snapshot);
                }
                Step::Read(at) => {
                    if let Some(snapshot) = at.checked_rem(snapshots.len()).and_then(|at| snapshots.get(at)) {
                        fixture.check_tables(snapshot);
                    }
                }
            }
        }
    }
}

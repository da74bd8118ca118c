use std::collections::BTreeSet;

use lkr_domain::{DocId, PointId, SparseVector};
use lkr_vectors::{Collection, CollectionSpec, Condition, DenseSpec, Filter, Point, PointOrigin, Tags};

use super::*;
use crate::vectors::{
    bitmap::{self, Field},
    postings::{self, Entry},
    registry::CollectionEntry,
    write,
};

struct Fixture {
    kb: Kb,
    entry: CollectionEntry,
    caches: PointCaches,
    _dir: tempfile::TempDir,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let kb = Kb::open(dir.path(), 1 << 30).unwrap();
    let collection = Collection::new("points").unwrap();
    let dense = Some(DenseSpec { model: "model".to_owned(), dims: 2 });
    let mut txn = kb.write_txn().unwrap();
    registry::ensure(&kb, &mut txn, &CollectionSpec { collection: collection.clone(), dense }).unwrap();
    let entry = registry::require(&kb, &txn, &collection).unwrap();
    txn.commit().unwrap();
    Fixture { kb, entry, caches: PointCaches::default(), _dir: dir }
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

    /// The internal ids that a scan of the quantised vectors on the snapshot sees; `None` if it cannot.
    fn scan(&self, txn: &RoTxn) -> Option<BTreeSet<u32>> {
        let all = |table: &CodeTable, _| table.nearest(&[1.0, 0.0], 1_000, |_| true).into_iter().collect();
        self.caches.codes.read(&self.kb, txn, self.entry.number, || CodeTable::new(2), all).unwrap()
    }

    /// The internal ids whose origins are known on the snapshot, which are theirs; `None` if the table cannot tell.
    fn origins(&self, txn: &RoTxn) -> Option<BTreeSet<u32>> {
        let all = |table: &OriginTable, _| {
            let known = (0..200_u32).filter_map(|id| Some((id, table.get(id)?)));
            let checked = known.map(|(number, (point, origin))| {
                assert_eq!((point, origin.ordinal), (id(number as u8), number));
                number
            });
            checked.collect()
        };
        self.caches.origins.read(&self.kb, txn, self.entry.number, OriginTable::default, all).unwrap()
    }

    /// The internal ids of the pending points with term 1 on the snapshot, which their weights are; `None` if the table
    /// cannot tell.
    fn pending(&self, txn: &RoTxn) -> Option<BTreeSet<u32>> {
        let live = bitmap::read(&self.kb, txn, self.entry.number, Field::Live).unwrap();
        let query = SparseVector::from_pairs([(1, 1.0), (3, 1.0)]);
        let entries = |table: &PendingTable, ids| table.entries(&query, ids, &live);
        let found =
            self.caches.pending.read(&self.kb, txn, self.entry.number, PendingTable::default, entries);
        let [first, third] = <[Vec<Entry>; 2]>::try_from(found.unwrap()?).unwrap();
        assert!(third.is_empty() && first.is_sorted_by(|a, b| a.0 < b.0));
        assert!(first.iter().all(|(id, weight)| *id as f32 == *weight));
        Some(first.into_iter().map(|(id, _)| id).collect())
    }
}

#[test]
fn tables_have_the_points_of_a_snapshot_or_tell_that_they_have_not() {
    let fixture = fixture();
    fixture.add(0..60);
    let first = fixture.kb.snapshot().unwrap();
    let all: BTreeSet<u32> = (0..60).collect();
    assert_eq!((fixture.scan(&first), fixture.pending(&first)), (Some(all.clone()), Some(all.clone())));
    assert_eq!(fixture.origins(&first), Some(all.clone()));
    fixture.delete(0..40);
    fixture.add(60..70);
    let second = fixture.kb.snapshot().unwrap();
    let kept: BTreeSet<u32> = (40..70).collect();
    assert_eq!(fixture.scan(&second), Some(kept.clone()), "points that were gone were removed");
    assert_eq!(fixture.origins(&second), Some(kept.clone()), "so were their origins");
    assert_eq!(fixture.pending(&second), Some(kept));
    let unknown = (fixture.scan(&first), fixture.pending(&first), fixture.origins(&first));
    assert_eq!(unknown, (None, None, None), "the first snapshot has points that were removed");
    fixture.delete(40..50);
    let third = fixture.kb.snapshot().unwrap();
    let seen = fixture.scan(&third).unwrap();
    assert!(seen.is_superset(&(50..70).collect()), "{seen:?}");
    assert_eq!(fixture.pending(&third), Some((50..70).collect()));
    fixture.caches.forget(fixture.entry.number);
    assert_eq!((fixture.scan(&first), fixture.pending(&first)), (Some(all.clone()), Some(all)));
}

#[test]
fn pending_points_leave_their_table_when_they_are_posted() {
    let fixture = fixture();
    for n in 0..8 {
        fixture.add(10 * n..10 * n + 10);
        let snapshot = fixture.kb.snapshot().unwrap();
        assert_eq!(fixture.pending(&snapshot), Some((0..10 * u32::from(n) + 10).collect()));
    }
    let mut txn = fixture.kb.write_txn().unwrap();
    let ids = registry::ids(&fixture.kb, &txn, fixture.entry.number).unwrap();
    let ids = postings::post_slice(&fixture.kb, &mut txn, fixture.entry.number, ids, 100).unwrap();
    registry::set_ids(&fixture.kb, &mut txn, fixture.entry.number, ids).unwrap();
    txn.commit().unwrap();
    let left = |from: u32, end: u32| Some((from..end).collect::<BTreeSet<u32>>());
    assert_eq!(fixture.pending(&fixture.kb.snapshot().unwrap()), left(50, 80));
    fixture.add(80..90);
    assert_eq!(fixture.pending(&fixture.kb.snapshot().unwrap()), left(50, 90));
}

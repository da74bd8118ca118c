//! Tests of internals: ids beyond the first part of the bitmaps, damaged rows.

use std::collections::BTreeSet;

use lkr_domain::{DocId, PointId, Scope, SpaceName, SparseVector};
use lkr_vectors::{
    Collection, CollectionSpec, Condition, DenseSpec, Filter, Include, Point, PointOrigin, Tags,
};
use proptest::prelude::*;

use super::{
    bitmap,
    cache::{PendingTable, PointCache},
    filter, keys,
    migrate::migrate_from_format_2,
    postings, read, registry,
    registry::CollectionEntry,
    rows,
    scope::PointScope,
    sparse, stored_vector, value_key, verify, write,
};
use crate::{
    codec::with_checksum,
    env::{Kb, Map},
    error::{FailureKind, InternalResult},
};

struct Fixture {
    kb: Kb,
    entry: CollectionEntry,
    pending: PointCache<PendingTable>,
    _dir: tempfile::TempDir,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let kb = Kb::open(dir.path(), Map::default()).unwrap();
    let collection = Collection::new("points").unwrap();
    let dense = Some(DenseSpec { model: "model".to_owned(), dims: 2 });
    let spec = CollectionSpec { collection: collection.clone(), dense };
    let mut txn = kb.write_txn().unwrap();
    registry::ensure(&kb, &mut txn, &spec).unwrap();
    txn.commit().unwrap();
    let txn = kb.snapshot().unwrap();
    let entry = registry::require(&kb, &txn, &collection).unwrap();
    drop(txn);
    Fixture { kb, entry, pending: PointCache::default(), _dir: dir }
}

fn id(n: u32) -> PointId {
    PointId::from_bytes(u128::from(n).to_be_bytes())
}

fn point(n: u32) -> Point {
    let doc_id = DocId::from_bytes(u128::from(n / 10).to_be_bytes());
    Point {
        id: id(n),
        origin: PointOrigin { doc_id, revision: 1, ordinal: n, l2: None, l3: Some(id(7)) },
        tags: Tags::from([("third".to_owned(), (n % 3).to_string())]),
        dense: Some(vec![0.75, 0.5]),
        sparse: SparseVector::from_pairs([(1, 1.0 + n as f32), (100 + n % 5, 0.5)]),
        payload: serde_json::json!({ "n": n, "exact": 0.1 + f64::from(n) }),
    }
}

impl Fixture {
    fn change<T>(&self, work: impl FnOnce(&mut heed::RwTxn) -> T) -> T {
        let mut txn = self.kb.write_txn().unwrap();
        let done = work(&mut txn);
        txn.commit().unwrap();
        done
    }

    fn upsert(&self, points: Vec<Point>) {
        let points = write::encode_points(points).unwrap();
        self.change(|txn| write::upsert(&self.kb, txn, &self.entry, &points).unwrap());
    }

    fn delete(&self, condition: Condition) -> u64 {
        self.change(|txn| write::delete(&self.kb, txn, &self.entry, &Filter::only(condition)).unwrap())
    }

    /// Sets the id of the next point.
    fn skip_to(&self, next: u32) {
        let (kb, number) = (&self.kb, self.entry.number);
        self.change(|txn| {
            let ids = registry::ids(kb, txn, number).unwrap();
            registry::set_ids(kb, txn, number, registry::IdCounters { next, ..ids }).unwrap();
        });
    }

    /// The ordinals and scores of the points with term 1, whose weight identifies them.
    fn with_term_1(&self) -> InternalResult<Vec<(u32, f32)>> {
        let txn = self.kb.snapshot()?;
        let query = SparseVector::from_pairs([(1, 1.0)]);
        let found = self.search(&txn, &query, &Scope::All, 10_000)?;
        let hit = |(score, id)| Ok((rows::origin(&self.kb, &txn, self.entry.number, id)?.1.ordinal, score));
        let mut found = found.into_iter().map(hit).collect::<InternalResult<Vec<_>>>()?;
        found.sort_by_key(|(ordinal, _)| *ordinal);
        Ok(found)
    }

    fn search(
        &self,
        txn: &heed::RoTxn,
        query: &SparseVector,
        scope: &Scope,
        limit: usize,
    ) -> InternalResult<Vec<(f32, u32)>> {
        let scope = PointScope::read(&self.kb, txn, self.entry.number, scope)?;
        let collection = (self.entry.number, &self.pending);
        sparse::search(&self.kb, txn, collection, query, (&scope, scope.restriction()), limit)
    }

    /// The ordinals and scores of the points of a scope with term 1.
    fn in_scope(&self, scope: &Scope) -> Vec<(u32, f32)> {
        let txn = self.kb.snapshot().unwrap();
        let found = self.search(&txn, &SparseVector::from_pairs([(1, 1.0)]), scope, 10_000).unwrap();
        let ordinal = |id| rows::origin(&self.kb, &txn, self.entry.number, id).unwrap().1.ordinal;
        let mut found: Vec<_> = found.into_iter().map(|(score, id)| (ordinal(id), score)).collect();
        found.sort_by_key(|(ordinal, _)| *ordinal);
        found
    }

    /// Flips a bit in the body of the point with this internal id.
    fn damage_body(&self, id: u32, at: impl FnOnce(usize) -> usize) {
        let (table, key) = (self.kb.tables.bodies, keys::row(self.entry.number, id));
        let mut row = table.get(&self.kb.snapshot().unwrap(), &key).unwrap().unwrap().to_vec();
        let at = at(row.len());
        row[at] ^= 1;
        self.change(|txn| table.put(txn, &key, &row).unwrap());
    }

    fn get(&self, n: u32) -> InternalResult<Vec<Option<Point>>> {
        let txn = self.kb.snapshot()?;
        read::get(&self.kb, &txn, &self.entry, &[id(n)], Include::All)
    }

    fn is_posted(&self) -> bool {
        let txn = self.kb.snapshot().unwrap();
        !self.kb.tables.postings.is_empty(&txn).unwrap()
    }

    fn matching_ids(&self, filter: &Filter) -> Vec<u32> {
        let txn = self.kb.snapshot().unwrap();
        let ids = filter::matching_ids(&self.kb, &txn, self.entry.number, filter).unwrap();
        ids.iter().map(|id| rows::origin(&self.kb, &txn, self.entry.number, id).unwrap().1.ordinal).collect()
    }
}

#[test]
fn bitmaps_of_ids_in_several_parts_are_complete() {
    let fixture = fixture();
    fixture.skip_to(65_500);
    fixture.upsert((0..100).map(point).collect());
    fixture.skip_to(300_000);
    fixture.upsert((100..200).map(point).collect());
    assert_eq!(fixture.matching_ids(&Filter::all()), (0..200).collect::<Vec<_>>());
    let third = Condition::Tag { key: "third".to_owned(), any: vec!["1".to_owned()] };
    assert_eq!(
        fixture.matching_ids(&Filter::only(third)),
        (0..200).filter(|n| n % 3 == 1).collect::<Vec<_>>()
    );

    let txn = fixture.kb.snapshot().unwrap();
    let query = SparseVector::from_pairs([(1, 1.0), (103, 2.0)]);
    let best = fixture.search(&txn, &query, &Scope::All, 1_000).unwrap();
    assert_eq!(best.len(), 200);
    let idf = |n: f64| (1.0 + (200.0 - n + 0.5) / (n + 0.5)).ln();
    for (score, id) in best {
        let n = rows::origin(&fixture.kb, &txn, fixture.entry.number, id).unwrap().1.ordinal;
        let expected = idf(200.0) * f64::from(1 + n) + if n % 5 == 3 { idf(40.0) } else { 0.0 };
        assert!((f64::from(score) - expected).abs() < 1e-5, "{score} for {expected}");
    }
    drop(txn);
    assert_eq!(fixture.delete(Condition::Ids((50..150).map(id).collect())), 100);
    assert_eq!(fixture.matching_ids(&Filter::all()), (0..50).chain(150..200).collect::<Vec<_>>());
}

/// A store of format 2 had the tags of points in their bodies, and bitmaps under digests.
#[test]
fn migrated_bitmaps_are_those_of_new_points() {
    let fixture = fixture();
    fixture.upsert((0..5_000).map(point).collect());
    let (kb, number) = (&fixture.kb, fixture.entry.number);
    let rows = || -> Vec<(Vec<u8>, Vec<u8>)> {
        let txn = kb.snapshot().unwrap();
        let rows = kb.tables.bitmaps.iter(&txn).unwrap().map(|row| row.unwrap());
        rows.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    };
    let expected = rows();
    fixture.change(|txn| {
        for (key, value) in expected.iter().filter(|(key, _)| key[2] > 1) {
            kb.tables.bitmaps.delete(txn, key).unwrap();
            let digest = value_key::digest::<16>(key);
            let old = [&keys::collection(number)[..], &[bitmap::OLD_TAG], &digest, &[0, 0]].concat();
            kb.tables.bitmaps.put(txn, &old, value).unwrap();
        }
    });
    assert_ne!(rows(), expected);
    let mut next = Some(0);
    while let Some(from) = next {
        next = fixture.change(|txn| verify::migrate_bitmaps(kb, txn, number, from).unwrap());
    }
    assert_eq!(rows(), expected);
}

#[test]
fn set_of_tags_is_stored_once_and_removed_with_its_last_point() {
    let fixture = fixture();
    let long = |n: u32| Tags::from([("title".to_owned(), format!("{n} {}", "x".repeat(9_000)))]);
    let sets = || fixture.kb.tables.tag_sets.len(&fixture.kb.snapshot().unwrap()).unwrap();
    fixture.upsert((0..100).map(|n| Point { tags: long(n / 50), ..point(n) }).collect());
    assert_eq!(sets(), 2);
    assert_eq!(fixture.get(7).unwrap()[0].as_ref().unwrap().tags, long(0));
    fixture.delete(Condition::Ids((50..99).map(id).collect()));
    assert_eq!(sets(), 2);
    fixture.upsert(vec![Point { tags: long(7), ..point(99) }]);
    assert_eq!(sets(), 2);
    let all = Filter::all();
    fixture.change(|txn| write::set_tags(&fixture.kb, txn, &fixture.entry, &all, &long(9)).unwrap());
    assert_eq!(sets(), 1);
    fixture.change(|txn| write::set_tags(&fixture.kb, txn, &fixture.entry, &all, &Tags::new()).unwrap());
    assert_eq!(sets(), 0);
    assert_eq!(fixture.get(7).unwrap()[0].as_ref().unwrap().tags, Tags::new());
}

#[test]
fn pending_points_are_found_like_posted_ones() {
    let fixture = fixture();
    let mut expected_ids = BTreeSet::new();
    let mut was_posted = Vec::new();
    for hundred in (0..30).map(|n| n * 100) {
        fixture.upsert((hundred..hundred + 100).map(point).collect());
        expected_ids.extend(hundred..hundred + 100);
        // Some are in the posting lists, some are pending: of each ten, one is deleted and one replaced.
        let deleted: Vec<u32> =
            expected_ids.iter().copied().filter(|n| n % 10 == hundred / 100 % 10).collect();
        fixture.delete(Condition::Ids(deleted.iter().copied().map(id).collect()));
        deleted.iter().for_each(|n| assert!(expected_ids.remove(n)));
        let replaced =
            expected_ids.iter().copied().step_by(10).map(|n| Point { tags: Tags::new(), ..point(n) });
        fixture.upsert(replaced.collect());
        let all = expected_ids.len() as f64;
        let idf = (1.0 + 0.5 / (all + 0.5)).ln();
        let expected =
            expected_ids.iter().map(|n| (*n, (idf * f64::from(1.0 + *n as f32)) as f32)).collect::<Vec<_>>();
        assert_eq!(fixture.with_term_1().unwrap(), expected);
        was_posted.push(fixture.is_posted());
    }
    assert!(!was_posted[0] && was_posted[29], "{was_posted:?}");
}

fn in_space(n: u32, space: &str) -> Point {
    let tags = Tags::from([("space".to_owned(), space.to_owned())]);
    Point { tags, ..point(n) }
}

fn scope(space: &str) -> Scope {
    Scope::of(SpaceName::new(space).unwrap())
}

/// Posted and pending points of other spaces affect neither hits nor document frequencies.
#[test]
fn search_in_a_scope_equals_a_store_of_that_scope_alone() {
    let (mixed, alone) = (fixture(), fixture());
    for batch in (0..3_000).collect::<Vec<u32>>().chunks(250) {
        let of = |n: &u32| in_space(*n, ["a", "b", "c"][(*n % 3) as usize]);
        mixed.upsert(batch.iter().map(of).collect());
        alone.upsert(batch.iter().filter(|n| *n % 3 == 1).map(of).collect());
        assert_eq!(mixed.in_scope(&scope("b")), alone.in_scope(&Scope::All));
    }
    assert!(mixed.is_posted());
    let moved = Tags::from([("space".to_owned(), "b".to_owned())]);
    let filter = Filter::only(Condition::Docs(vec![DocId::from_bytes([0; 16])]));
    mixed.change(|txn| write::set_tags(&mixed.kb, txn, &mixed.entry, &filter, &moved).unwrap());
    alone.upsert((0..10).map(|n| in_space(n, "b")).collect());
    assert_eq!(mixed.in_scope(&scope("b")), alone.in_scope(&Scope::All));
    assert_eq!(mixed.in_scope(&scope("a")).len() + mixed.in_scope(&scope("c")).len(), 2_000 - 7);
}

/// Puts the posting lists back into the form of format 2.
fn undo_migration(fixture: &Fixture) {
    let table = fixture.kb.tables.postings;
    let txn = fixture.kb.snapshot().unwrap();
    let rows: Vec<_> = table.iter(&txn).unwrap().map(|row| row.unwrap()).collect();
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(key, block)| (key.to_vec(), [&key[..6], &key[14..]].concat(), block.to_vec()))
        .collect();
    drop(txn);
    assert!(!rows.is_empty());
    fixture.change(|txn| {
        for (key, old, block) in rows {
            table.delete(txn, &key).unwrap();
            table.put(txn, &old, &block).unwrap();
        }
    });
}

#[test]
fn migration_from_format_2_keeps_posting_lists() {
    for space in ["default", "another"] {
        let fixture = fixture();
        fixture.upsert((0..2_500).map(|n| in_space(n, space)).collect());
        let before = fixture.in_scope(&scope(space));
        assert_eq!(before.len(), 2_500);
        undo_migration(&fixture);
        fixture.change(|txn| migrate_from_format_2(&fixture.kb, txn).unwrap());
        fixture.upsert(vec![in_space(2_500, "other")]);
        assert_eq!(fixture.in_scope(&scope("other")).len(), 1);
        assert!(fixture.in_scope(&scope(space)) == before);
        fixture.delete(Condition::Ids(vec![id(2_500)]));
        fixture.delete(Condition::Ids((0..2_500).map(id).collect()));
        assert!(!fixture.is_posted());
    }
}

#[test]
fn damaged_point_does_not_affect_others() {
    let fixture = fixture();
    fixture.upsert((0..10).map(point).collect());
    // Weights follow three numbers and two terms; the payload at the end is not read by searches.
    fixture.damage_body(3, |_| 20);
    fixture.damage_body(5, |length| length - 3);
    let found =
        || -> Vec<u32> { fixture.with_term_1().unwrap().into_iter().map(|(ordinal, _)| ordinal).collect() };
    assert_eq!(found(), (0..10).filter(|n| *n != 3).collect::<Vec<_>>());
    for n in [3, 5] {
        let failure = fixture.get(n).unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Corrupt);
        assert_eq!(failure.to_string(), format!("the body of point {n:032} is damaged"));
    }
    fixture.upsert((10..2_000).map(point).collect());
    assert!(fixture.is_posted());
    assert_eq!(found(), (0..2_000).filter(|n| *n != 3).collect::<Vec<_>>());
}

#[test]
fn large_points_are_posted_early() {
    let fixture = fixture();
    let large = |n| Point { payload: "x".repeat(1 << 20).into(), ..point(n) };
    for n in 0..7 {
        fixture.upsert(vec![large(n)]);
        assert!(!fixture.is_posted(), "{n}");
    }
    fixture.upsert(vec![large(7)]);
    assert!(fixture.is_posted());
    assert_eq!(fixture.with_term_1().unwrap().len(), 8);
    // Later points are pending again.
    fixture.upsert(vec![point(8)]);
    let txn = fixture.kb.snapshot().unwrap();
    let ids = registry::ids(&fixture.kb, &txn, fixture.entry.number).unwrap();
    assert_eq!((ids.next, ids.posted), (9, 8));
}

#[test]
fn pending_points_are_posted_in_slices() {
    let fixture = fixture();
    fixture.upsert((0..100).map(point).collect());
    let before = fixture.with_term_1().unwrap();
    let (kb, number) = (&fixture.kb, fixture.entry.number);
    let mut posted = Vec::new();
    while posted.last() != Some(&100) {
        // Each point has two terms, so seventeen points make a slice.
        posted.push(fixture.change(|txn| {
            let ids = registry::ids(kb, txn, number).unwrap();
            let ids = postings::post_slice(kb, txn, number, ids, 33).unwrap();
            registry::set_ids(kb, txn, number, ids).unwrap();
            ids.posted
        }));
        assert_eq!(fixture.with_term_1().unwrap(), before);
    }
    assert_eq!(posted, [17, 34, 51, 68, 85, 100]);
}

#[test]
fn point_with_more_terms_than_a_slice_is_found_and_removed() {
    let fixture = fixture();
    let wide = |n: u32| {
        let terms = (0..5_000).map(|term| (1 + term * (1 + n % 3), 1.0 + n as f32));
        Point { sparse: SparseVector::from_pairs(terms), ..point(n) }
    };
    fixture.upsert((0..400).map(wide).collect());
    assert!(fixture.is_posted());
    let idf = (1.0_f64 + 0.5 / 400.5).ln();
    let expected = (0..400).map(|n| (n, (idf * f64::from(1.0 + n as f32)) as f32)).collect::<Vec<_>>();
    assert_eq!(fixture.with_term_1().unwrap(), expected);
    assert_eq!(fixture.delete(Condition::Ids((0..400).map(id).collect())), 400);
    assert!(!fixture.is_posted());
}

#[test]
fn deleted_points_leave_no_rows() {
    let fixture = fixture();
    fixture.upsert((0..1_000).map(point).collect());
    fixture.upsert((0..1_000).map(|n| Point { tags: Tags::new(), ..point(n) }).collect());
    assert_eq!(fixture.delete(Condition::Ids((0..1_000).map(id).collect())), 1_000);
    let txn = fixture.kb.snapshot().unwrap();
    let tables = &fixture.kb.tables;
    for table in [tables.ids, tables.origins, tables.bodies, tables.dense, tables.postings, tables.bitmaps] {
        assert_eq!(table.len(&txn).unwrap(), 0);
    }
    assert_eq!(
        registry::next_id(&fixture.kb, &txn, fixture.entry.number).unwrap(),
        2_000,
        "ids do not come back"
    );
}

#[test]
fn pages_of_vectors_are_full() {
    // The vectors that a page of 4 KiB holds, by their dimensions.
    for (dims, in_a_page) in [(768, 2), (512, 3), (448, 4), (384, 5)] {
        // Two collections, so that the rows of one are not the last of their table.
        let fixture = fixture();
        let entries = ["first", "second"].map(|name| {
            let collection = Collection::new(name).unwrap();
            let dense = Some(DenseSpec { model: "model".to_owned(), dims });
            fixture.change(|txn| {
                let spec = CollectionSpec { collection: collection.clone(), dense };
                registry::ensure(&fixture.kb, txn, &spec).unwrap();
                registry::require(&fixture.kb, txn, &collection).unwrap()
            })
        });
        for from in (0..600).step_by(40) {
            for entry in &entries {
                let points = (from..from + 40).map(|n| Point { dense: Some(vec![0.1; dims]), ..point(n) });
                let points = write::encode_points(points.collect()).unwrap();
                fixture.change(|txn| write::upsert(&fixture.kb, txn, entry, &points).unwrap());
            }
        }
        let txn = fixture.kb.snapshot().unwrap();
        let table = fixture.kb.tables.dense;
        assert_eq!(table.len(&txn).unwrap(), 1_200);
        let pages = table.stat(&txn).unwrap().leaf_pages;
        // LMDB moves a row from the page before to a page that would be nearly empty at the end of a transaction.
        assert!(pages * 20 <= 1_200 / in_a_page * 21 + 40, "{pages} pages of {dims} dimensions");
    }
}

#[test]
fn unchanged_point_keeps_its_internal_id() {
    let fixture = fixture();
    fixture.upsert((0..10).map(point).collect());
    fixture.upsert((0..11).map(point).collect());
    let txn = fixture.kb.snapshot().unwrap();
    assert_eq!(registry::next_id(&fixture.kb, &txn, fixture.entry.number).unwrap(), 11);
}

/// Values of four bytes are those of format 3, and of vectors that are not rounded.
#[test]
fn point_with_unrounded_values_is_unchanged_if_it_is_stored_again() {
    let fixture = fixture();
    let (kb, number) = (&fixture.kb, fixture.entry.number);
    let vectors = [[0.6_f32, 0.8], [-0.28, 0.96], [1e-30, 3e-30]];
    let points = |last: f32| {
        let vectors = vectors.iter().map(|[first, second]| vec![*first, second * last]);
        vectors.zip(0..).map(|(vector, n)| Point { dense: Some(vector), ..point(n) }).collect::<Vec<_>>()
    };
    let rows = || -> Vec<Vec<u8>> {
        let txn = kb.snapshot().unwrap();
        kb.tables.dense.iter(&txn).unwrap().map(|row| row.unwrap().1.to_vec()).collect()
    };
    fixture.upsert(points(1.0));
    let written = rows();
    fixture.change(|txn| {
        for (vector, id) in vectors.iter().zip(0..) {
            let row = stored_vector::row_of_format_3(vector);
            kb.tables.dense.put(txn, &keys::row(number, id), &row).unwrap();
        }
    });
    let old = rows();
    assert_eq!(
        old.iter().zip(&written).map(|(old, new)| old == new).collect::<Vec<_>>(),
        [false, false, true]
    );
    fixture.upsert(points(1.0));
    assert_eq!(rows(), old);
    assert_eq!(registry::next_id(kb, &kb.snapshot().unwrap(), number).unwrap(), 3);
    for (n, vector) in vectors.iter().enumerate() {
        assert_eq!(fixture.get(n as u32).unwrap()[0].as_ref().unwrap().dense.as_deref(), Some(&vector[..]));
    }
    fixture.upsert(points(1.01));
    assert_eq!(registry::next_id(kb, &kb.snapshot().unwrap(), number).unwrap(), 6);
    assert_eq!(rows().len(), 3);
}

#[test]
fn body_of_format_3_is_searched_kept_and_replaced() {
    let fixture = fixture();
    let (kb, number) = (&fixture.kb, fixture.entry.number);
    let wide = |n: u32| Point {
        sparse: SparseVector::from_pairs((1..30).map(|term| (term, 1.0 + ((n + term) % 3) as f32))),
        ..point(n)
    };
    fixture.upsert((0..10).map(wide).collect());
    let before = fixture.with_term_1().unwrap();
    let rows = || -> Vec<Vec<u8>> {
        let txn = kb.snapshot().unwrap();
        kb.tables.bodies.iter(&txn).unwrap().map(|row| row.unwrap().1.to_vec()).collect()
    };
    let new = rows();
    fixture.change(|txn| {
        for id in 0..10 {
            let row = with_checksum(&rows::stored_body(kb, txn, number, id).unwrap().encode_as_format_3());
            kb.tables.bodies.put(txn, &keys::row(number, id), &row).unwrap();
        }
    });
    let old = rows();
    assert!(old.iter().zip(&new).all(|(old, new)| old.len() > new.len()));
    assert_eq!(fixture.with_term_1().unwrap(), before);
    assert_eq!(fixture.get(3).unwrap(), [Some(wide(3))]);
    fixture.upsert((0..10).map(wide).collect());
    assert_eq!(rows(), old, "unchanged");
    assert_eq!(registry::next_id(kb, &kb.snapshot().unwrap(), number).unwrap(), 10);
    let fifth = Tags::from([("third".to_owned(), "5".to_owned())]);
    fixture.change(|txn| write::set_tags(kb, txn, &fixture.entry, &Filter::all(), &fifth).unwrap());
    assert_eq!(
        rows(),
        (0..10).map(|n| body_row(Point { tags: fifth.clone(), ..wide(n) })).collect::<Vec<_>>()
    );
    fixture.upsert((10..2_000).map(wide).collect());
    assert!(fixture.is_posted());
    fixture.delete(Condition::Ids((0..2_000).map(id).collect()));
    assert!(!fixture.is_posted());
}

/// The row of a point's body in a store of its own.
fn body_row(point: Point) -> Vec<u8> {
    let fixture = fixture();
    fixture.upsert(vec![point]);
    let txn = fixture.kb.snapshot().unwrap();
    fixture.kb.tables.bodies.first(&txn).unwrap().unwrap().1.to_vec()
}

#[test]
fn rows_of_dropped_collections_are_removed_in_the_background() {
    let fixture = fixture();
    fixture.upsert((0..100).map(point).collect());
    fixture.change(|txn| registry::remove(&fixture.kb, txn, &fixture.entry.spec.collection).unwrap());
    let mut rounds = 0;
    while registry::any_dropped(&fixture.kb, &fixture.kb.snapshot().unwrap()).unwrap() {
        fixture.change(|txn| registry::purge_dropped(&fixture.kb, txn, 60).unwrap());
        rounds += 1;
    }
    assert!(rounds > 5, "{rounds}");
    let txn = fixture.kb.snapshot().unwrap();
    let tables = &fixture.kb.tables;
    for table in [tables.ids, tables.origins, tables.bodies, tables.dense, tables.postings, tables.bitmaps] {
        assert_eq!(table.len(&txn).unwrap(), 0);
    }
    drop(txn);
    let dense = fixture.entry.spec.clone();
    fixture.change(|txn| registry::ensure(&fixture.kb, txn, &dense).unwrap());
    let txn = fixture.kb.snapshot().unwrap();
    let again = registry::require(&fixture.kb, &txn, &dense.collection).unwrap();
    assert_ne!(again.number, fixture.entry.number, "numbers do not come back");
}

#[test]
fn too_deeply_nested_payload_is_refused() {
    let nested = |levels| (1..levels).fold(serde_json::json!([]), |inner, _| serde_json::json!([inner]));
    let with = |levels| vec![Point { payload: nested(levels), ..point(1) }];
    assert_eq!(write::encode_points(with(121)).err().unwrap().kind(), FailureKind::Invalid);
    let fixture = fixture();
    fixture.upsert(with(120));
    let txn = fixture.kb.snapshot().unwrap();
    let found = read::get(&fixture.kb, &txn, &fixture.entry, &[id(1)], Include::All).unwrap();
    assert_eq!(found[0].as_ref().unwrap().payload, nested(120));
}

#[test]
fn damaged_rows_are_named_in_errors() {
    let fixture = fixture();
    fixture.upsert(vec![point(1)]);
    let (kb, number) = (&fixture.kb, fixture.entry.number);
    for (table, what) in [
        (kb.tables.dense, "the dense vector of point 00000000000000000000000000000001 is damaged"),
        (kb.tables.bodies, "the body of point 00000000000000000000000000000001 is damaged"),
        (kb.tables.origins, "the origin of point number 0 of collection number 1 is damaged"),
    ] {
        let mut row = table.get(&kb.snapshot().unwrap(), &keys::row(number, 0)).unwrap().unwrap().to_vec();
        let last = row.len() - 3;
        for flip in [1, 1] {
            row[last] ^= flip;
            fixture.change(|txn| table.put(txn, &keys::row(number, 0), &row).unwrap());
            let txn = kb.snapshot().unwrap();
            let found = read::get(kb, &txn, &fixture.entry, &[id(1)], Include::All);
            match found {
                Err(failure) => {
                    assert_eq!(failure.kind(), FailureKind::Corrupt);
                    assert_eq!(failure.to_string(), what);
                }
                Ok(found) => assert_eq!(found, [Some(point(1))], "flipped back"),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn posting_lists_equal_the_added_and_not_removed_entries(
        steps in proptest::collection::vec((1usize..3_000, proptest::collection::vec(any::<u16>(), 0..200)), 1..8),
        wide_every in prop_oneof![Just(u32::MAX), Just(900), Just(1)],
        of_format_4: bool,
    ) {
        let fixture = fixture();
        let space = keys::SpaceKey::of("a");
        // Most weights take two bytes.
        let weight = |id: u32| if id % wide_every == wide_every - 1 { 0.1 } else { 1.0 + (id % 64) as f32 / 64.0 };
        let vector = |id| SparseVector::from_pairs([(5, weight(id))]);
        let (mut next, mut expected_ids) = (0_u32, BTreeSet::new());
        for (added, removed) in steps {
            let mut changes = postings::PostingChanges::default();
            let present: Vec<u32> = expected_ids.iter().copied().collect();
            let removed: BTreeSet<u32> =
                removed.into_iter().filter_map(|n| present.get(usize::from(n) % present.len().max(1)).copied()).collect();
            for id in &removed {
                changes.remove(*id, space, &vector(*id));
                expected_ids.remove(id);
            }
            for id in (next..).step_by(7).take(added) {
                changes.add(id, space, &vector(id));
                expected_ids.insert(id);
                next = id + 1;
            }
            fixture.change(|txn| changes.apply(&fixture.kb, txn, 1).unwrap());
            let txn = fixture.kb.snapshot().unwrap();
            let (mut found, mut entries, mut rows) = (Vec::new(), Vec::new(), Vec::new());
            for block in postings::blocks(&fixture.kb, &txn, 1, 5, space).unwrap() {
                block.entries().unwrap().read_into(&mut entries).unwrap();
                prop_assert_eq!(usize::from(block.count()), entries.len());
                prop_assert!(!entries.is_empty() && entries.iter().all(|(id, stored)| *stored == weight(*id)));
                found.extend(entries.iter().map(|(id, _)| *id));
                rows.push((block.base(), postings::encode_as_format_4(block.base(), &entries)));
            }
            drop(txn);
            prop_assert_eq!(found, expected_ids.iter().copied().collect::<Vec<_>>());
            if of_format_4 {
                fixture.change(|txn| for (base, row) in rows {
                    fixture.kb.tables.postings.put(txn, &keys::block(1, 5, space, base), &row).unwrap();
                });
            }
        }
    }
}

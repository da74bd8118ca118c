//! Checks posting lists and bitmaps against the points, by comparing sums of hashes, so that memory does not grow
//! with the collection.

use std::{collections::BTreeSet, ops::Bound};

use heed::{RoTxn, RwTxn};
use lkr_vectors::PointOrigin;

use super::super::{
    bitmap::{self, BitmapChanges, FieldPrefixes},
    keys,
    postings::{self, Block},
    record::Body,
    registry::{self, CollectionEntry, IdCounters},
    rows,
    tag_sets::{TagReader, TagSetId},
};
use crate::{env::Kb, error::InternalResult, verify::Finding};

/// The number of points that are indexed at a time.
const BATCH: usize = 4_096;

/// The expected content of posting lists and bitmaps.
pub(super) struct ExpectedIndexes {
    stored_postings: u32,
    postings: SetHash,
    bitmaps: SetHash,
    prefixes: FieldPrefixes,
    /// The sets of tags that points refer to.
    tag_sets: BTreeSet<TagSetId>,
}

/// An order-independent hash of a set: its size and the sum of its hashes.
#[derive(Debug, Default, PartialEq, Eq)]
struct SetHash {
    count: u64,
    hashes: u64,
}

impl SetHash {
    fn add(&mut self, parts: [u64; 3]) {
        self.count += 1;
        self.hashes = self.hashes.wrapping_add(parts.into_iter().fold(0, |hash, part| mix(hash ^ part)));
    }
}

/// The finisher of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

fn hash(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |hash, chunk| {
        let mut word = [0; 8];
        word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
        mix(hash ^ u64::from_le_bytes(word))
    })
}

impl ExpectedIndexes {
    pub(super) fn new(stored_postings: u32) -> Self {
        Self {
            stored_postings,
            postings: SetHash::default(),
            bitmaps: SetHash::default(),
            prefixes: FieldPrefixes::default(),
            tag_sets: BTreeSet::new(),
        }
    }

    pub(super) fn add(&mut self, collection: u16, id: u32, origin: &PointOrigin, body: &Body) {
        if id < self.stored_postings {
            let space = keys::SpaceKey::of_tags(&body.tags);
            for (term, weight) in body.sparse.iter() {
                self.postings.add(posting(id, term, space, weight));
            }
        }
        for prefix in self.prefixes.of(collection, origin, &body.tags, body.set) {
            self.bitmaps.add([u64::from(id), hash(&prefix), 0]);
        }
        self.tag_sets.extend(body.set);
    }

    /// Reports missing and surplus index entries.
    pub(super) fn compare(
        &self,
        kb: &Kb,
        txn: &RoTxn,
        entry: &CollectionEntry,
        findings: &mut Vec<Finding>,
    ) -> InternalResult<()> {
        let name = &entry.spec.collection;
        if stored_postings(kb, txn, entry.number)?.as_ref() != Some(&self.postings) {
            let what = format!("the posting lists of {name} differ from its points");
            findings.push(Finding::indexes(what, entry.number));
        }
        if stored_bitmaps(kb, txn, entry.number)?.as_ref() != Some(&self.bitmaps) {
            let what = format!("the filter bitmaps of {name} differ from its points");
            findings.push(Finding::indexes(what, entry.number));
        }
        self.check_tag_sets(kb, txn, entry, findings)
    }

    /// Reports sets of tags that no point refers to.
    fn check_tag_sets(
        &self,
        kb: &Kb,
        txn: &RoTxn,
        entry: &CollectionEntry,
        findings: &mut Vec<Finding>,
    ) -> InternalResult<()> {
        for row in kb.tables.tag_sets.prefix_iter(txn, &keys::collection(entry.number))? {
            let (key, _) = row?;
            if key.last_chunk().is_none_or(|id| !self.tag_sets.contains(id)) {
                let what = format!("a set of tags of {} belongs to no point", entry.spec.collection);
                findings.push(Finding::wrong(what, "tag_sets", key));
            }
        }
        Ok(())
    }
}

/// An entry of a posting list.
fn posting(id: u32, term: u32, space: keys::SpaceKey, weight: f32) -> [u64; 3] {
    [u64::from(id) << 32 | u64::from(term), space.to_u64(), u64::from(weight.to_bits())]
}

/// The content of the posting lists; `None` if a block is damaged or out of order.
fn stored_postings(kb: &Kb, txn: &RoTxn, collection: u16) -> InternalResult<Option<SetHash>> {
    let (mut sum, mut entries, mut last) = (SetHash::default(), Vec::new(), None);
    for row in kb.tables.postings.prefix_iter(txn, &keys::collection(collection))? {
        let (key, checksummed) = row?;
        let Ok(block) = Block::parse(key, checksummed).and_then(|block| block.entries()) else {
            return Ok(None);
        };
        let list = keys::term_of(key).zip(keys::space_of(key));
        let (Some((term, space)), Ok(())) = (list, block.read_into(&mut entries)) else {
            return Ok(None);
        };
        if entries.is_empty() {
            return Ok(None);
        }
        for (id, weight) in &entries {
            if last.is_some_and(|last| last >= (term, space, *id)) {
                return Ok(None);
            }
            last = Some((term, space, *id));
            sum.add(posting(*id, term, space, *weight));
        }
    }
    Ok(Some(sum))
}

/// The content of the bitmaps; `None` if one is damaged.
fn stored_bitmaps(kb: &Kb, txn: &RoTxn, collection: u16) -> InternalResult<Option<SetHash>> {
    let mut sum = SetHash::default();
    for row in kb.tables.bitmaps.prefix_iter(txn, &keys::collection(collection))? {
        let (key, checksummed) = row?;
        let Some((field, part)) = key.split_last_chunk::<2>() else { return Ok(None) };
        let Ok(ids) = bitmap::decode(checksummed) else { return Ok(None) };
        let (field, part) = (hash(field), u32::from(u16::from_be_bytes(*part)));
        for id in ids {
            if id >> 16 != part {
                return Ok(None);
            }
            sum.add([u64::from(id), field, 0]);
        }
    }
    Ok(Some(sum))
}

/// Rebuilds the posting lists and bitmaps of a collection.
pub(crate) fn rebuild_indexes(kb: &Kb, txn: &mut RwTxn, collection: u16) -> InternalResult<()> {
    for table in [kb.tables.postings, kb.tables.bitmaps] {
        loop {
            let rows = table.prefix_iter(txn, &keys::collection(collection))?.take(BATCH);
            let rows = rows.map(|row| Ok(row?.0.to_vec())).collect::<InternalResult<Vec<_>>>()?;
            if rows.is_empty() {
                break;
            }
            for row in rows {
                table.delete(txn, &row)?;
            }
        }
    }
    rebuild_bitmaps(kb, txn, collection)?;
    let mut ids = IdCounters { posted: 0, pending_bytes: 0, ..registry::ids(kb, txn, collection)? };
    while ids.posted < ids.next {
        ids = postings::post_slice(kb, txn, collection, ids, postings::MAX_SLICE_ENTRIES)?;
    }
    registry::set_ids(kb, txn, collection, ids)
}

/// Writes the bitmaps of all points of a collection that has none.
fn rebuild_bitmaps(kb: &Kb, txn: &mut RwTxn, collection: u16) -> InternalResult<()> {
    let mut from = 0;
    while let Some(next) = add_bitmaps(kb, txn, collection, from)? {
        from = next;
    }
    Ok(())
}

/// Brings the bitmaps of a collection of format 2, in which those of tags had digests as keys, to the present format: a
/// step of bounded size from the internal id `from` on. Returns the id of the next step; `None` after the last. Steps may
/// be repeated.
pub(crate) fn migrate_bitmaps(
    kb: &Kb,
    txn: &mut RwTxn,
    collection: u16,
    from: u32,
) -> InternalResult<Option<u32>> {
    let old = [&keys::collection(collection)[..], &[bitmap::OLD_TAG]].concat();
    let rows = kb.tables.bitmaps.prefix_iter(txn, &old)?.take(BATCH);
    let rows = rows.map(|row| Ok(row?.0.to_vec())).collect::<InternalResult<Vec<_>>>()?;
    for row in &rows {
        kb.tables.bitmaps.delete(txn, row)?;
    }
    match add_bitmaps(kb, txn, collection, from)? {
        // The last points again, until no old row is left.
        None if rows.len() == BATCH => Ok(Some(from)),
        next => Ok(next),
    }
}

/// Adds a batch of points to the bitmaps, from the internal id `from` on. Returns the id that follows; `None` at the end.
fn add_bitmaps(kb: &Kb, txn: &mut RwTxn, collection: u16, from: u32) -> InternalResult<Option<u32>> {
    let (mut changes, mut prefixes, mut reader) =
        (BitmapChanges::default(), FieldPrefixes::default(), TagReader::default());
    let (first, last) = (keys::row(collection, from), keys::row(collection, u32::MAX));
    let range = (Bound::Included(&first[..]), Bound::Included(&last[..]));
    let (mut points, mut next) = (0, None);
    for row in kb.tables.origins.range(txn, &range)?.take(BATCH) {
        let id = keys::row_id(row?.0).unwrap_or_default();
        let (_, origin) = rows::origin(kb, txn, collection, id)?;
        let stored = rows::stored_body(kb, txn, collection, id)?.tags;
        let set = stored.set();
        let tags = reader.read(kb, txn, collection, stored)?;
        prefixes.of(collection, &origin, &tags, set).for_each(|prefix| changes.add(&prefix, id));
        (points, next) = (points + 1, Some(id + 1));
    }
    changes.apply(kb, txn)?;
    Ok(next.filter(|_| points == BATCH))
}

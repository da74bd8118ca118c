//! Posting lists: for each term and space, the ids of the points that contain it and their weights, in blocks. A search
//! reads only the lists of its scope, and counts document frequencies in them.
//!
//! A block's key ends with its base, a lower bound of its ids. Ids only grow, so new entries are appended to the last block.
//!
//! The terms of a point are on about as many pages as it has terms, so a write does not touch them. The newest points
//! are pending: searches have their terms in memory, until there are so many ([`PendingBounds`]) that all of them are added
//! to the lists at once, which writes each page only once.

mod block;

use std::{collections::BTreeMap, ops::Bound};

use heed::{RoTxn, RwTxn};
use lkr_domain::SparseVector;

use self::block::BlockBuilder;
#[cfg(test)]
pub(super) use self::block::tests::{encode, encode_as_format_4};
pub(crate) use self::block::{Block, Entry, NearEntries};
use super::{
    describe_point_part,
    keys::{self, SpaceKey},
    record::{tags_of_row, terms_of_row},
    registry::IdCounters,
    stored_terms::StoredTerms,
    tag_sets::TagReader,
};
use crate::{
    codec::damaged,
    env::Kb,
    error::{FailureKind, InternalResult},
};

/// How many points may be pending. The more points a collection has, the more pages the same number of new ones touches, so
/// the bounds grow with it: see docs/studies.md#pending-points. They are bounds of the memory that searches keep, too.
#[derive(Debug, PartialEq)]
struct PendingBounds {
    points: u32,
    /// The size of their bodies. A thousand ordinary passages take less than [`Self::LEAST`], whole documents far more.
    bytes: u64,
}

impl PendingBounds {
    const LEAST: Self = Self { points: 1_024, bytes: 8 << 20 };
    const MOST: Self = Self { points: 16_384, bytes: 32 << 20 };
    /// One of this many points may be pending.
    const SHARE: u32 = 64;

    /// Those of a collection whose lists contain the points below the id `posted`.
    fn of(posted: u32) -> Self {
        let points = (posted / Self::SHARE).clamp(Self::LEAST.points, Self::MOST.points);
        let bytes = Self::LEAST.bytes * u64::from(points / Self::LEAST.points);
        Self { points, bytes: bytes.min(Self::MOST.bytes) }
    }

    const fn are_reached(&self, ids: IdCounters) -> bool {
        ids.next - ids.posted >= self.points || ids.pending_bytes >= self.bytes
    }
}

/// The number of entries that are added at a time, which bounds the memory to some tens of megabytes. A thousand
/// ordinary passages have fewer.
pub(super) const MAX_SLICE_ENTRIES: usize = 1 << 18;

/// The size up to which a block is merged with the next one, if both fit into one.
const MERGE_BYTES: usize = block::MAX_BYTES / 4;

/// The blocks of a term in a space, in the order of their ids.
pub(crate) fn blocks<'t>(
    kb: &Kb,
    txn: &'t RoTxn,
    collection: u16,
    term: u32,
    space: SpaceKey,
) -> InternalResult<Vec<Block<'t>>> {
    let rows = kb.tables.postings.prefix_iter(txn, &keys::term_in(collection, term, space))?;
    rows.map(|row| row.map_err(Into::into).and_then(|(key, checksummed)| Block::parse(key, checksummed)))
        .collect()
}

/// The blocks of a term in each space that has some, in the order of their ids.
pub(crate) fn blocks_of_all_spaces<'t>(
    kb: &Kb,
    txn: &'t RoTxn,
    collection: u16,
    term: u32,
) -> InternalResult<Vec<Vec<Block<'t>>>> {
    let (mut lists, mut last) = (Vec::<Vec<Block>>::new(), None);
    for row in kb.tables.postings.prefix_iter(txn, &keys::term(collection, term))? {
        let (key, checksummed) = row?;
        let (block, space) = (Block::parse(key, checksummed)?, keys::space_of(key));
        match lists.last_mut().filter(|_| last == Some(space)) {
            Some(list) => list.push(block),
            None => lists.push(vec![block]),
        }
        last = Some(space);
    }
    Ok(lists)
}

/// The pending points in the order of their ids, with their rows.
fn pending_rows<'t>(
    kb: &Kb,
    txn: &'t RoTxn,
    collection: u16,
    ids: IdCounters,
) -> InternalResult<impl Iterator<Item = InternalResult<(u32, &'t [u8])>>> {
    let (first, end) = (keys::row(collection, ids.posted), keys::row(collection, ids.next));
    let range = (Bound::Included(&first[..]), Bound::Excluded(&end[..]));
    Ok(kb.tables.bodies.range(txn, &range)?.map(|row| {
        let (key, checksummed) = row?;
        let id = keys::row_id(key).ok_or_else(|| damaged(|| "the key of a body".to_owned()))?;
        Ok((id, checksummed))
    }))
}

/// Calls `visit` with the points that the counters call pending in the order of their ids, and with their terms. Damaged ones
/// are skipped and logged, so that the others are still found.
pub(crate) fn for_each_pending<'t>(
    kb: &Kb,
    txn: &'t RoTxn,
    collection: u16,
    ids: IdCounters,
    mut visit: impl FnMut(u32, StoredTerms<'t>),
) -> InternalResult<()> {
    pending_rows(kb, txn, collection, ids)?.try_for_each(|row| {
        let (id, checksummed) = row?;
        terms_of(kb, txn, collection, id, checksummed).into_iter().for_each(|terms| visit(id, terms));
        Ok(())
    })
}

/// The terms of a row; `None`, after logging, if they are damaged.
fn terms_of<'t>(
    kb: &Kb,
    txn: &RoTxn,
    collection: u16,
    id: u32,
    checksummed: &'t [u8],
) -> Option<StoredTerms<'t>> {
    let terms = terms_of_row(checksummed);
    if terms.is_none() {
        let failure = damaged(|| describe_point_part(kb, txn, collection, id, "the body"));
        tracing::error!(%failure, "point with damaged terms left out of sparse queries");
    }
    terms
}

/// Adds all pending points to the lists if there are too many of them, and returns the new counters.
pub(crate) fn post_pending_if_due(
    kb: &Kb,
    txn: &mut RwTxn,
    collection: u16,
    mut ids: IdCounters,
) -> InternalResult<IdCounters> {
    if !PendingBounds::of(ids.posted).are_reached(ids) {
        return Ok(ids);
    }
    while ids.posted < ids.next {
        ids = post_slice(kb, txn, collection, ids, MAX_SLICE_ENTRIES)?;
    }
    Ok(IdCounters { pending_bytes: 0, ..ids })
}

/// Adds pending points up to `max_entries` entries, and returns the new counters.
pub(super) fn post_slice(
    kb: &Kb,
    txn: &mut RwTxn,
    collection: u16,
    ids: IdCounters,
    max_entries: usize,
) -> InternalResult<IdCounters> {
    let (mut changes, mut tags) = (PostingChanges::default(), TagReader::default());
    let (mut posted, mut entries) = (ids.next, 0);
    for row in pending_rows(kb, txn, collection, ids)? {
        let (id, checksummed) = row?;
        if entries >= max_entries {
            posted = id;
            break;
        }
        let terms = terms_of(kb, txn, collection, id, checksummed);
        let stored = terms.zip(tags_of_row(checksummed));
        let Some((terms, stored)) = stored else { continue };
        let space = match tags.read(kb, txn, collection, stored) {
            Ok(tags) => SpaceKey::of_tags(&tags),
            Err(failure) if failure.kind() == FailureKind::Corrupt => {
                tracing::error!(%failure, "point with damaged tags left out of sparse queries");
                continue;
            }
            Err(failure) => return Err(failure),
        };
        entries += terms.len();
        changes.add(id, space, &terms.to_vector());
    }
    changes.apply(kb, txn, collection)?;
    Ok(IdCounters { posted, ..ids })
}

/// Entries to add and to remove, collected so that each block is written once.
#[derive(Debug, Default)]
pub(crate) struct PostingChanges {
    lists: BTreeMap<(u32, SpaceKey), ListChange>,
}

#[derive(Debug, Default)]
struct ListChange {
    added: Vec<Entry>,
    removed: Vec<u32>,
}

impl PostingChanges {
    /// Adds a point, whose id is above all existing ids.
    pub(crate) fn add(&mut self, id: u32, space: SpaceKey, sparse: &SparseVector) {
        for (term, weight) in sparse.iter() {
            self.lists.entry((term, space)).or_default().added.push((id, weight));
        }
    }

    pub(crate) fn remove(&mut self, id: u32, space: SpaceKey, sparse: &SparseVector) {
        for term in sparse.indices() {
            self.lists.entry((*term, space)).or_default().removed.push(id);
        }
    }

    pub(crate) fn apply(self, kb: &Kb, txn: &mut RwTxn, collection: u16) -> InternalResult<()> {
        for ((term, space), ListChange { added, mut removed }) in self.lists {
            removed.sort_unstable();
            let list = PostingList { kb, collection, term, space };
            list.remove(txn, &removed)?;
            list.append(txn, &added)?;
        }
        Ok(())
    }
}

/// The posting list of a term in a space, to be changed.
struct PostingList<'k> {
    kb: &'k Kb,
    collection: u16,
    term: u32,
    space: SpaceKey,
}

impl PostingList<'_> {
    fn key(&self, base: u32) -> [u8; 18] {
        keys::block(self.collection, self.term, self.space, base)
    }

    /// Writes a block in the place of the one with its base, or removes that one if it is empty.
    fn write(&self, txn: &mut RwTxn, block: &BlockBuilder) -> InternalResult<()> {
        let (table, key) = (self.kb.tables.postings, self.key(block.base()));
        if block.is_empty() {
            table.delete(txn, &key)?;
        } else {
            table.put(txn, &key, &block.row())?;
        }
        Ok(())
    }

    /// The last block whose base is at most `id`.
    fn block_containing<'t>(&self, txn: &'t RoTxn, id: u32) -> InternalResult<Option<Block<'t>>> {
        let row = self.kb.tables.postings.get_lower_than_or_equal_to(txn, &self.key(id))?;
        self.parsed(row)
    }

    /// The first block whose base is above `base`.
    fn block_after<'t>(&self, txn: &'t RoTxn, base: u32) -> InternalResult<Option<Block<'t>>> {
        let row = self.kb.tables.postings.get_greater_than(txn, &self.key(base))?;
        self.parsed(row)
    }

    /// The block of a row, if the row belongs to this list.
    fn parsed<'t>(&self, row: Option<(&'t [u8], &'t [u8])>) -> InternalResult<Option<Block<'t>>> {
        let row_of_list =
            row.filter(|(key, _)| key.starts_with(&keys::term_in(self.collection, self.term, self.space)));
        row_of_list.map(|(key, checksummed)| Block::parse(key, checksummed)).transpose()
    }

    /// Removes sorted ids, block by block.
    fn remove(&self, txn: &mut RwTxn, mut ids: &[u32]) -> InternalResult<()> {
        let mut entries = Vec::new();
        while let Some(id) = ids.first() {
            let Some(block) = self.block_containing(txn, *id)? else {
                return Err(damaged(|| format!("the posting list of term {}", self.term)));
            };
            block.entries()?.read_into(&mut entries)?;
            let last = entries.last().map_or(block.base(), |(id, _)| *id);
            let (in_block, rest) = ids.split_at(ids.partition_point(|id| *id <= last).max(1));
            let mut kept = BlockBuilder::new(block.base());
            let is_kept = |(id, _): &&Entry| in_block.binary_search(id).is_err();
            entries.iter().filter(is_kept).for_each(|entry| kept.push(*entry));
            if entries.len() - kept.len() != in_block.len() {
                return Err(damaged(|| format!("the posting list of term {}", self.term)));
            }
            self.write_merged(txn, kept, &mut entries)?;
            ids = rest;
        }
        Ok(())
    }

    /// Writes a block after a removal, merged with the next one if it is small and both are not too large together.
    /// Overwrites `entries`.
    fn write_merged(
        &self,
        txn: &mut RwTxn,
        mut block: BlockBuilder,
        entries: &mut Vec<Entry>,
    ) -> InternalResult<()> {
        if !block.is_empty()
            && block.bytes() <= MERGE_BYTES
            && let Some(next) = self.block_after(txn, block.base())?
            && block.fits_all_of(&next)
        {
            next.entries()?.read_into(entries)?;
            entries.iter().for_each(|entry| block.push(*entry));
            let base = next.base();
            self.kb.tables.postings.delete(txn, &self.key(base))?;
        }
        self.write(txn, &block)
    }

    /// Appends sorted entries, whose ids are above all existing ids.
    fn append(&self, txn: &mut RwTxn, added: &[Entry]) -> InternalResult<()> {
        let Some(first) = added.first() else { return Ok(()) };
        let last = self.block_containing(txn, u32::MAX)?.map(|block| BlockBuilder::of(&block)).transpose()?;
        let mut block = last.filter(|last| last.fits(*first)).unwrap_or_else(|| BlockBuilder::new(first.0));
        for entry in added {
            if !block.fits(*entry) {
                self.write(txn, &block)?;
                block = BlockBuilder::new(entry.0);
            }
            block.push(*entry);
        }
        self.write(txn, &block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_points_may_be_pending_in_larger_collections() {
        for (posted, points, megabytes) in
            [(0, 1_024, 8), (100_000, 1_562, 8), (300_000, 4_687, 32), (3_000_000, 16_384, 32)]
        {
            let bounds = PendingBounds::of(posted);
            assert_eq!(bounds, PendingBounds { points, bytes: megabytes << 20 });
            let ids = |pending, pending_bytes| IdCounters { next: posted + pending, posted, pending_bytes };
            assert!(!bounds.are_reached(ids(points - 1, bounds.bytes - 1)));
            assert!(bounds.are_reached(ids(points, 0)) && bounds.are_reached(ids(1, bounds.bytes)));
        }
    }
}

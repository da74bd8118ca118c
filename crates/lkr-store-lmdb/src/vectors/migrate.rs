//! Migration from format 2, which had one posting list for each term, and bitmaps of tags under digests. Format 3 has a
//! list for each term and space, and bitmaps under keys that sort like the values.

use std::ops::Bound;

use heed::{RoTxn, RwTxn};
use lkr_domain::SpaceName;
use lkr_vectors::SPACE_TAG;

use super::{
    bitmap::{self, Field},
    keys::{self, SpaceKey},
    migrate_bitmaps, rebuild_indexes,
    registry::{self, CollectionEntry},
};
use crate::{env::Kb, error::InternalResult};

/// The length of a block's key in format 2: collection, term, base.
const OLD_KEY_BYTES: usize = 10;
/// The number of blocks that are renamed at a time.
const BATCH: usize = 50_000;

/// Migrates all collections. The caller's transaction makes it atomic.
pub(crate) fn migrate_from_format_2(kb: &Kb, txn: &mut RwTxn) -> InternalResult<()> {
    for CollectionEntry { number, .. } in registry::all(kb, txn)? {
        let mut from = 0;
        while let Some(next) = migrate_bitmaps(kb, txn, number, from)? {
            from = next;
        }
        if is_in_default_space(kb, txn, number)? {
            rename_blocks(kb, txn, number)?;
        } else {
            rebuild_indexes(kb, txn, number)?;
        }
    }
    Ok(())
}

/// Whether all points of a collection are in the default space, as those of all versions without spaces are.
fn is_in_default_space(kb: &Kb, txn: &RoTxn, collection: u16) -> InternalResult<bool> {
    let live = bitmap::read(kb, txn, collection, Field::Live)?;
    let default = bitmap::read(kb, txn, collection, Field::Tag(SPACE_TAG, SpaceName::DEFAULT))?;
    Ok(live == default)
}

/// Inserts the default space into the keys of a collection's blocks.
fn rename_blocks(kb: &Kb, txn: &mut RwTxn, collection: u16) -> InternalResult<()> {
    let (table, space) = (kb.tables.postings, SpaceKey::of(SpaceName::DEFAULT));
    let end = keys::collection(collection.saturating_add(1));
    let mut after = keys::collection(collection).to_vec();
    loop {
        let range = (Bound::Excluded(&after[..]), Bound::Excluded(&end[..]));
        let rows = table.range(txn, &range)?.filter(|row| is_old(row.as_ref())).take(BATCH);
        let rows = rows.map(|row| row.map(|(key, block)| (key.to_vec(), block.to_vec())));
        let rows = rows.collect::<heed::Result<Vec<_>>>()?;
        let Some((last, _)) = rows.last() else { return Ok(()) };
        after.clone_from(last);
        for (key, block) in rows {
            table.delete(txn, &key)?;
            if let Some((term, base)) = keys::term_of(&key).zip(keys::row_id(&key)) {
                table.put(txn, &keys::block(collection, term, space, base), &block)?;
            }
        }
    }
}

/// Whether a row has a key of format 2. An error counts, so that it is reported.
fn is_old(row: Result<&(&[u8], &[u8]), &heed::Error>) -> bool {
    row.map_or(true, |(key, _)| key.len() == OLD_KEY_BYTES)
}

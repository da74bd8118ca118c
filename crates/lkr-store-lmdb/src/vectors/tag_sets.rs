//! The tags of points, stored once for all points that have the same.
//!
//! All points of a document have the same tags, whose values may be long. A body refers to them by their digest; only
//! short ones are in the body itself. A set is removed with its last point.

use std::collections::BTreeSet;

use heed::{RoTxn, RwTxn};
use lkr_vectors::Tags;

use super::{
    bitmap::{self, Field},
    keys, record,
    value_key::digest,
};
use crate::{
    codec::{FieldReader, damaged, strip_checksum, with_checksum},
    env::Kb,
    error::InternalResult,
};

/// Tags that take more bytes are stored once. A set costs a row and a bitmap, about a hundred bytes.
const MAX_INLINE_BYTES: usize = 64;

/// The digest of a set of tags.
pub(crate) type TagSetId = [u8; 16];

/// The tags of a body as they are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredTags {
    /// In the body.
    Inline(Tags),
    /// In the table of sets.
    Set(TagSetId),
}

/// Tags and how a body stores them.
#[derive(Debug, Clone)]
pub(crate) struct EncodedTags {
    pub(crate) tags: Tags,
    pub(crate) stored: StoredTags,
    /// The row of the set, if they are not in the body.
    row: Vec<u8>,
}

impl EncodedTags {
    pub(crate) fn new(tags: &Tags) -> Self {
        let bytes = record::encode_tags(tags);
        let stored = if bytes.len() <= MAX_INLINE_BYTES {
            StoredTags::Inline(tags.clone())
        } else {
            StoredTags::Set(digest(&bytes))
        };
        Self { tags: tags.clone(), stored, row: with_checksum(&bytes) }
    }

    /// Whether the set is stored and undamaged. Tags in bodies always are.
    pub(crate) fn is_stored(&self, kb: &Kb, txn: &RoTxn, collection: u16) -> InternalResult<bool> {
        let StoredTags::Set(id) = &self.stored else { return Ok(true) };
        Ok(kb.tables.tag_sets.get(txn, &keys::tag_set(collection, id))? == Some(&self.row))
    }

    /// Writes the set unless it is stored.
    pub(crate) fn put(&self, kb: &Kb, txn: &mut RwTxn, collection: u16) -> InternalResult<()> {
        let StoredTags::Set(id) = &self.stored else { return Ok(()) };
        if !self.is_stored(kb, txn, collection)? {
            kb.tables.tag_sets.put(txn, &keys::tag_set(collection, id), &self.row)?;
        }
        Ok(())
    }
}

impl StoredTags {
    pub(crate) const fn set(&self) -> Option<TagSetId> {
        match self {
            Self::Inline(_) => None,
            Self::Set(id) => Some(*id),
        }
    }
}

/// The row of a set without tags. A damaged set becomes it, until the tags are set again from the documents' records.
pub(super) fn empty_row() -> Vec<u8> {
    with_checksum(&record::encode_tags(&Tags::new()))
}

/// Reads tags of bodies; neighbours often have the same.
#[derive(Debug, Default)]
pub(crate) struct TagReader {
    last: Option<(TagSetId, Tags)>,
}

impl TagReader {
    pub(crate) fn read(
        &mut self,
        kb: &Kb,
        txn: &RoTxn,
        collection: u16,
        stored: StoredTags,
    ) -> InternalResult<Tags> {
        let id = match stored {
            StoredTags::Inline(tags) => return Ok(tags),
            StoredTags::Set(id) => id,
        };
        if let Some((_, tags)) = self.last.as_ref().filter(|(last, _)| *last == id) {
            return Ok(tags.clone());
        }
        let name = || format!("a set of tags of collection number {collection}");
        let row =
            kb.tables.tag_sets.get(txn, &keys::tag_set(collection, &id))?.ok_or_else(|| damaged(name))?;
        let tags = record::decode_tags(&mut FieldReader(strip_checksum(row, name)?));
        let tags = tags.ok_or_else(|| damaged(name))?;
        self.last = Some((id, tags.clone()));
        Ok(tags)
    }
}

/// Removes those of the sets that no point refers to.
pub(crate) fn remove_unused(
    kb: &Kb,
    txn: &mut RwTxn,
    collection: u16,
    sets: &BTreeSet<TagSetId>,
) -> InternalResult<()> {
    for id in sets {
        if bitmap::read(kb, txn, collection, Field::TagSet(*id))?.is_empty() {
            kb.tables.tag_sets.delete(txn, &keys::tag_set(collection, id))?;
        }
    }
    Ok(())
}

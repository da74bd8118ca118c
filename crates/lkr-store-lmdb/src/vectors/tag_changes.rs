//! Changes of the bitmaps and of the sets of tags that follow from changes of points.

use std::collections::BTreeSet;

use heed::{RoTxn, RwTxn};
use lkr_vectors::{PointOrigin, Tags};

use super::{
    bitmap::{BitmapChanges, FieldPrefixes},
    tag_sets::{self, EncodedTags, StoredTags, TagReader, TagSetId},
};
use crate::{env::Kb, error::InternalResult};

/// Changes of the bitmaps and of the sets of tags.
pub(super) struct TagChanges<'k> {
    kb: &'k Kb,
    collection: u16,
    bitmaps: BitmapChanges,
    reader: TagReader,
    added: FieldPrefixes,
    removed: FieldPrefixes,
    /// The sets that points referred to.
    left: BTreeSet<TagSetId>,
}

impl<'k> TagChanges<'k> {
    pub(super) fn new(kb: &'k Kb, collection: u16) -> Self {
        Self {
            kb,
            collection,
            bitmaps: BitmapChanges::default(),
            reader: TagReader::default(),
            added: FieldPrefixes::default(),
            removed: FieldPrefixes::default(),
            left: BTreeSet::new(),
        }
    }

    pub(super) fn add(&mut self, id: u32, origin: &PointOrigin, tags: &EncodedTags) {
        for prefix in self.added.of(self.collection, origin, &tags.tags, tags.stored.set()) {
            self.bitmaps.add(&prefix, id);
        }
    }

    /// The tags of a stored point.
    pub(super) fn read(&mut self, txn: &RoTxn, stored: StoredTags) -> InternalResult<Tags> {
        self.reader.read(self.kb, txn, self.collection, stored)
    }

    /// Removes a point from the bitmaps, and returns its tags.
    pub(super) fn remove(
        &mut self,
        txn: &RoTxn,
        id: u32,
        origin: &PointOrigin,
        stored: StoredTags,
    ) -> InternalResult<Tags> {
        let set = stored.set();
        self.left.extend(set);
        let tags = self.read(txn, stored)?;
        for prefix in self.removed.of(self.collection, origin, &tags, set) {
            self.bitmaps.remove(&prefix, id);
        }
        Ok(tags)
    }

    pub(super) fn apply(self, txn: &mut RwTxn) -> InternalResult<()> {
        self.bitmaps.apply(self.kb, txn)?;
        tag_sets::remove_unused(self.kb, txn, self.collection, &self.left)
    }
}

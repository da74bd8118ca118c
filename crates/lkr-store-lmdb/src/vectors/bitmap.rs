//! Bitmaps of internal ids by field and value, stored in parts of 65,536 ids, so that a change writes little.

use std::collections::BTreeMap;

use heed::{RoTxn, RwTxn};
use lkr_domain::DocId;
use roaring::RoaringBitmap;
use sha2::{Digest, Sha256};

use crate::{
    codec::{damaged, strip_checksum, with_checksum},
    env::Kb,
    error::{Failure, InternalResult},
};

/// The fields that points are filtered by. Bitmaps contain live points only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    /// All points.
    Live,
    /// The points of a document, of any revision.
    Doc(DocId),
    /// The points of a document's revision.
    Revision(DocId, u64),
    /// The points with a tag of this key and value.
    Tag(&'a str, &'a str),
}

impl Field<'_> {
    /// The key prefix of the field's parts. A document's prefix is also that of its revisions, which contain the ids.
    pub(super) fn prefix(self, collection: u16) -> Vec<u8> {
        let mut key = collection.to_be_bytes().to_vec();
        match self {
            Self::Live => key.push(0),
            Self::Doc(doc) => {
                key.push(1);
                key.extend_from_slice(doc.as_bytes());
            }
            Self::Revision(doc, revision) => {
                key.push(1);
                key.extend_from_slice(doc.as_bytes());
                key.extend_from_slice(&revision.to_be_bytes());
            }
            Self::Tag(name, value) => {
                key.push(2);
                key.extend_from_slice(&tag_digest(name, value));
            }
        }
        key
    }
}

/// Tags can be longer than keys may be, so a 128-bit digest represents them.
fn tag_digest(name: &str, value: &str) -> [u8; 16] {
    let length = (name.len() as u64).to_le_bytes();
    let digest = Sha256::new().chain_update(length).chain_update(name).chain_update(value).finalize();
    let mut short = [0; 16];
    short.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
    short
}

/// The ids in a field.
pub(crate) fn read(kb: &Kb, txn: &RoTxn, collection: u16, field: Field) -> InternalResult<RoaringBitmap> {
    let mut ids = RoaringBitmap::new();
    for part in kb.tables.bitmaps.prefix_iter(txn, &field.prefix(collection))? {
        ids |= decode(part?.1)?;
    }
    Ok(ids)
}

pub(super) fn decode(checksummed: &[u8]) -> InternalResult<RoaringBitmap> {
    let name = || "a filter bitmap".to_owned();
    RoaringBitmap::deserialize_from(strip_checksum(checksummed, name)?).map_err(|_| damaged(name))
}

/// Ids to add to bitmaps and to remove, collected so that each part is written once.
#[derive(Debug, Default)]
pub(crate) struct BitmapChanges {
    parts: BTreeMap<Vec<u8>, BitmapChange>,
}

#[derive(Debug, Default)]
struct BitmapChange {
    added: Vec<u32>,
    removed: Vec<u32>,
}

impl BitmapChanges {
    pub(crate) fn add(&mut self, collection: u16, field: Field, id: u32) {
        self.part(collection, field, id).added.push(id);
    }

    pub(crate) fn remove(&mut self, collection: u16, field: Field, id: u32) {
        self.part(collection, field, id).removed.push(id);
    }

    fn part(&mut self, collection: u16, field: Field, id: u32) -> &mut BitmapChange {
        let mut key = field.prefix(collection);
        key.extend_from_slice(&((id >> 16) as u16).to_be_bytes());
        self.parts.entry(key).or_default()
    }

    pub(crate) fn apply(self, kb: &Kb, txn: &mut RwTxn) -> InternalResult<()> {
        for (key, BitmapChange { added, removed }) in self.parts {
            let part = kb.tables.bitmaps.get(txn, &key)?.map(decode).transpose()?;
            let mut part = part.unwrap_or_default();
            removed.into_iter().for_each(|id| {
                part.remove(id);
            });
            part.extend(added);
            // Values that nearly all points have compress to few runs, which keeps parts short that every write
            // changes.
            part.optimize();
            if part.is_empty() {
                kb.tables.bitmaps.delete(txn, &key)?;
                continue;
            }
            let mut bytes = Vec::with_capacity(part.serialized_size());
            part.serialize_into(&mut bytes).map_err(Failure::internal)?;
            kb.tables.bitmaps.put(txn, &key, &with_checksum(&bytes))?;
        }
        Ok(())
    }
}

//! Bitmaps of internal ids by field and value, stored in parts of 65,536 ids, so that a change writes little.

use std::{borrow::Cow, collections::BTreeMap};

use heed::{RoTxn, RwTxn};
use lkr_domain::{
    DocId,
    filter::{Instant, Number},
};
use lkr_vectors::{PointOrigin, Tags};
use roaring::RoaringBitmap;

use super::{tag_sets::TagSetId, value_key::ValueKeys};
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
    /// The points whose tags are this set.
    TagSet(TagSetId),
}

/// The kinds of fields in keys.
const LIVE: u8 = 0;
const DOC: u8 = 1;
/// The kind of tags in format 2, with digests as keys.
pub(super) const OLD_TAG: u8 = 2;
const VALUE: u8 = 3;
const TAG_SET: u8 = 4;

impl Field<'_> {
    /// The key prefix of the field's parts. A document's prefix is also that of its revisions, which contain the ids.
    pub(super) fn prefix(self, collection: u16) -> Vec<u8> {
        match self {
            Self::Live => kind(collection, LIVE),
            Self::Doc(doc) => [&kind(collection, DOC)[..], doc.as_bytes()].concat(),
            Self::Revision(doc, revision) => {
                [&kind(collection, DOC)[..], doc.as_bytes(), &revision.to_be_bytes()].concat()
            }
            Self::Tag(key, value) => value_keys(collection, key).text(value),
            Self::TagSet(id) => [&kind(collection, TAG_SET)[..], &id].concat(),
        }
    }
}

fn kind(collection: u16, kind: u8) -> Vec<u8> {
    let [high, low] = collection.to_be_bytes();
    vec![high, low, kind]
}

/// The keys of a tag's values.
pub(super) fn value_keys(collection: u16, key: &str) -> ValueKeys {
    ValueKeys::new(kind(collection, VALUE), key)
}

/// The key prefixes of all bitmaps that contain a point with these tags, apart from those of its document: each value as
/// a text, and as a number and an instant if it is one.
fn tag_prefixes(collection: u16, tags: &Tags) -> Vec<Vec<u8>> {
    let mut prefixes = vec![Field::Live.prefix(collection)];
    for (key, value) in tags.iter() {
        let keys = value_keys(collection, key);
        prefixes.push(keys.text(value));
        if !value.is_empty() {
            prefixes.push(keys.present());
        }
        prefixes.extend(Number::parse(value).map(|number| keys.number(number)));
        prefixes.extend(Instant::parse(value).map(|at| keys.instant(at)));
    }
    prefixes
}

/// Makes the key prefixes of points. Neighbours often share their tags.
#[derive(Debug, Default)]
pub(crate) struct FieldPrefixes {
    last: Option<(Tags, Vec<Vec<u8>>)>,
}

impl FieldPrefixes {
    /// The key prefixes of all bitmaps that contain a point.
    pub(super) fn of(
        &mut self,
        collection: u16,
        origin: &PointOrigin,
        tags: &Tags,
        set: Option<TagSetId>,
    ) -> impl Iterator<Item = Cow<'_, [u8]>> {
        if self.last.as_ref().is_none_or(|(last, _)| !last.is_shared_with(tags)) {
            self.last = Some((tags.clone(), tag_prefixes(collection, tags)));
        }
        let own = [Some(Field::Revision(origin.doc_id, origin.revision)), set.map(Field::TagSet)];
        let own = own.into_iter().flatten().map(move |field| Cow::Owned(field.prefix(collection)));
        let shared =
            self.last.iter().flat_map(|(_, prefixes)| prefixes).map(|prefix| Cow::Borrowed(&prefix[..]));
        own.chain(shared)
    }
}

/// The ids in a field.
pub(crate) fn read(kb: &Kb, txn: &RoTxn, collection: u16, field: Field) -> InternalResult<RoaringBitmap> {
    read_parts(kb, txn, &field.prefix(collection))
}

/// The ids in the parts whose keys begin like this.
pub(super) fn read_parts(kb: &Kb, txn: &RoTxn, prefix: &[u8]) -> InternalResult<RoaringBitmap> {
    let mut ids = RoaringBitmap::new();
    for part in kb.tables.bitmaps.prefix_iter(txn, prefix)? {
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
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(crate) fn add(&mut self, prefix: &[u8], id: u32) {
        self.part(prefix, id).added.push(id);
    }

    pub(crate) fn remove(&mut self, prefix: &[u8], id: u32) {
        self.part(prefix, id).removed.push(id);
    }

    fn part(&mut self, prefix: &[u8], id: u32) -> &mut BitmapChange {
        let key = [prefix, &((id >> 16) as u16).to_be_bytes()].concat();
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

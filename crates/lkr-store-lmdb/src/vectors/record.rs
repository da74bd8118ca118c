//! The stored form of points.

use lkr_domain::{DocId, PointId, SparseVector};
use lkr_vectors::{PointOrigin, Tags};

use super::{
    stored_terms::{self, StoredTerms},
    tag_sets::{StoredTags, TagSetId},
};
use crate::codec::{FieldReader, verify_checksum, with_checksum};

/// The point id and origin: the few bytes that every hit needs.
pub(crate) fn encode_origin(id: PointId, origin: &PointOrigin) -> Vec<u8> {
    let PointOrigin { doc_id, revision, ordinal, l2, l3 } = origin;
    let mut bytes = Vec::with_capacity(77);
    bytes.extend_from_slice(id.as_bytes());
    bytes.extend_from_slice(doc_id.as_bytes());
    bytes.extend_from_slice(&revision.to_le_bytes());
    bytes.extend_from_slice(&ordinal.to_le_bytes());
    bytes.push(u8::from(l2.is_some()) | u8::from(l3.is_some()) << 1);
    for above in [l2, l3].into_iter().flatten() {
        bytes.extend_from_slice(above.as_bytes());
    }
    bytes
}

pub(crate) fn decode_origin(bytes: &[u8]) -> Option<(PointId, PointOrigin)> {
    let mut fields = FieldReader(bytes);
    let id = PointId::from_bytes(fields.array()?);
    let doc_id = DocId::from_bytes(fields.array()?);
    let (revision, ordinal, flags) = (fields.u64()?, fields.u32()?, fields.u8()?);
    let l2 = if flags & 1 == 0 { None } else { Some(PointId::from_bytes(fields.array()?)) };
    let l3 = if flags & 2 == 0 { None } else { Some(PointId::from_bytes(fields.array()?)) };
    Some((id, PointOrigin { doc_id, revision, ordinal, l2, l3 }))
}

/// Stands for the number of tags in a body that refers to a set of tags.
const TAG_SET: u32 = u32::MAX;

/// The part of a point that is needed only to return it and to remove it from the indexes.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) tags: Tags,
    pub(crate) sparse: SparseVector,
    /// JSON.
    pub(crate) payload: Vec<u8>,
    /// The set of its tags, unless they are in the body itself.
    pub(crate) set: Option<TagSetId>,
}

/// A body as it is stored.
#[derive(Debug)]
pub(crate) struct StoredBody {
    pub(crate) tags: StoredTags,
    pub(crate) sparse: SparseVector,
    /// JSON.
    pub(crate) payload: Vec<u8>,
}

impl StoredBody {
    /// The body with its tags.
    pub(crate) fn with_tags(self, tags: Tags) -> Body {
        Body { tags, sparse: self.sparse, payload: self.payload, set: self.tags.set() }
    }

    /// The terms come first with a checksum of their own, so that readers of terms need not read the rest.
    pub(crate) fn encode(&self) -> Vec<u8> {
        self.encode_with(&stored_terms::encode(&self.sparse))
    }

    /// The form of format 3.
    #[cfg(test)]
    pub(crate) fn encode_as_format_3(&self) -> Vec<u8> {
        self.encode_with(&stored_terms::encode_pairs(&self.sparse))
    }

    fn encode_with(&self, terms: &[u8]) -> Vec<u8> {
        let terms = with_checksum(terms);
        let mut bytes = Vec::with_capacity(64 + terms.len() + self.payload.len());
        put_number(&mut bytes, terms.len());
        bytes.extend_from_slice(&terms);
        match &self.tags {
            StoredTags::Inline(tags) => bytes.extend_from_slice(&encode_tags(tags)),
            StoredTags::Set(id) => {
                bytes.extend_from_slice(&TAG_SET.to_le_bytes());
                bytes.extend_from_slice(id);
            }
        }
        bytes.extend_from_slice(&self.payload);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = FieldReader(bytes);
        let sparse = read_terms(&mut fields)?.to_vector();
        let tags = decode_stored_tags(&mut fields)?;
        Some(Self { tags, sparse, payload: fields.0.to_vec() })
    }
}

/// Whether two rows have the same body: `stored` may be of format 3, whose terms took more bytes, and `new` is not.
pub(crate) fn is_same_body(stored: &[u8], new: &[u8]) -> bool {
    let is_reencoded = || {
        let body = verify_checksum(stored).and_then(StoredBody::decode);
        body.is_some_and(|body| with_checksum(&body.encode()) == new)
    };
    stored == new || (stored.len() > new.len() && is_reencoded())
}

/// The tags of a body's row; the payload is not read. `None` if they are damaged.
pub(crate) fn tags_of_row(checksummed: &[u8]) -> Option<StoredTags> {
    let (_, body) = checksummed.split_first_chunk::<4>()?;
    tags_and_payload(body).map(|(tags, _)| tags)
}

/// The tags and the payload of a body; its terms are not read. `None` if they are damaged.
pub(crate) fn tags_and_payload(body: &[u8]) -> Option<(StoredTags, &[u8])> {
    let mut fields = FieldReader(body);
    let terms = fields.u32()? as usize;
    fields.take(terms)?;
    Some((decode_stored_tags(&mut fields)?, fields.0))
}

fn decode_stored_tags(fields: &mut FieldReader) -> Option<StoredTags> {
    if fields.0.starts_with(&TAG_SET.to_le_bytes()) {
        fields.u32()?;
        return Some(StoredTags::Set(fields.array()?));
    }
    decode_tags(fields).map(StoredTags::Inline)
}

pub(super) fn encode_tags(tags: &Tags) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    put_number(&mut bytes, tags.len());
    for text in tags.iter().flat_map(|(key, value)| [key, value]) {
        put_number(&mut bytes, text.len());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

pub(super) fn decode_tags(fields: &mut FieldReader) -> Option<Tags> {
    (0..fields.u32()?).map(|_| Some((text(fields)?, text(fields)?))).collect()
}

/// The terms of a stored body; the rest is not read. `None` if they are damaged.
pub(crate) fn terms_of_row(checksummed: &[u8]) -> Option<StoredTerms<'_>> {
    let (_, body) = checksummed.split_first_chunk::<4>()?;
    read_terms(&mut FieldReader(body))
}

fn read_terms<'t>(fields: &mut FieldReader<'t>) -> Option<StoredTerms<'t>> {
    let length = fields.u32()? as usize;
    StoredTerms::decode(verify_checksum(fields.take(length)?)?)
}

/// Lengths are far below 2³²: LMDB accepts no larger value.
fn put_number(bytes: &mut Vec<u8>, number: usize) {
    bytes.extend_from_slice(&(number as u32).to_le_bytes());
}

fn text(fields: &mut FieldReader) -> Option<String> {
    let length = fields.u32()? as usize;
    String::from_utf8(fields.take(length)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vectors::stored_terms::tests::vectors;

    fn ids() -> impl Strategy<Value = PointId> {
        any::<[u8; 16]>().prop_map(PointId::from_bytes)
    }

    proptest! {
        #[test]
        fn origins_read_back(
            id in ids(),
            doc in any::<[u8; 16]>(),
            revision: u64,
            ordinal: u32,
            l2 in proptest::option::of(ids()),
            l3 in proptest::option::of(ids()),
        ) {
            let origin = PointOrigin { doc_id: DocId::from_bytes(doc), revision, ordinal, l2, l3 };
            prop_assert_eq!(decode_origin(&encode_origin(id, &origin)), Some((id, origin)));
        }

        #[test]
        fn bodies_read_back(
            tags in proptest::collection::btree_map(".{0,8}", ".{0,8}", 0..4),
            sparse in vectors(),
            payload in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let body = StoredBody { tags: StoredTags::Inline(tags.into()), sparse, payload };
            let new = with_checksum(&body.encode());
            for bytes in [body.encode(), body.encode_as_format_3()] {
                let row = with_checksum(&bytes);
                prop_assert!(is_same_body(&row, &new));
                prop_assert_eq!(&terms_of_row(&row).unwrap().to_vector(), &body.sparse);
                prop_assert_eq!(tags_and_payload(&bytes), Some((body.tags.clone(), &body.payload[..])));
                let read = StoredBody::decode(&bytes).unwrap();
                prop_assert_eq!(&(read.tags, read.sparse, read.payload), &(body.tags.clone(), body.sparse.clone(), body.payload.clone()));
            }
        }

        #[test]
        fn damaged_terms_are_none_and_other_damage_does_not_matter(
            sparse in vectors(),
            payload in proptest::collection::vec(any::<u8>(), 0..20),
            of_format_3: bool,
            at: usize,
            bit in 0u8..8,
        ) {
            let body = StoredBody { tags: StoredTags::Inline(Tags::new()), sparse, payload };
            let bytes = if of_format_3 { body.encode_as_format_3() } else { body.encode() };
            let mut row = with_checksum(&bytes);
            // The checksum of the row, then the length, the checksum, the terms and the weights, then the number of tags.
            let (first, behind) = (4, row.len() - body.payload.len() - 4);
            let at = at % row.len();
            row[at] ^= 1u8 << bit;
            let found = terms_of_row(&row).map(StoredTerms::to_vector);
            let expected = (at < first || at >= behind).then_some(&body.sparse);
            prop_assert_eq!(found.as_ref(), expected);
            prop_assert!(verify_checksum(&row).is_none());
            prop_assert!(!is_same_body(&row, &with_checksum(&body.encode())));
        }

        #[test]
        fn decode_of_arbitrary_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            decode_origin(&bytes);
            StoredBody::decode(&bytes);
            tags_and_payload(&bytes);
            terms_of_row(&bytes).map(|terms| terms.len());
        }
    }
}

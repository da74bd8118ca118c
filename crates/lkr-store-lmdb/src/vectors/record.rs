//! The stored form of points.

use lkr_domain::{DocId, PointId, SparseVector};
use lkr_vectors::{PointOrigin, Tags};

use super::tag_sets::{StoredTags, TagSetId};
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
        let terms = with_checksum(&encode_terms(&self.sparse));
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
        let sparse = StoredTerms::read(&mut fields)?.to_vector();
        let tags = decode_stored_tags(&mut fields)?;
        Some(Self { tags, sparse, payload: fields.0.to_vec() })
    }
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

fn encode_terms(sparse: &SparseVector) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 * sparse.len());
    sparse.indices().iter().for_each(|term| bytes.extend_from_slice(&term.to_le_bytes()));
    sparse.values().iter().for_each(|weight| bytes.extend_from_slice(&weight.to_le_bytes()));
    bytes
}

/// A sparse vector inside a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredTerms<'t> {
    /// In ascending order.
    terms: &'t [[u8; 4]],
    weights: &'t [[u8; 4]],
}

impl<'t> StoredTerms<'t> {
    /// The terms of a stored body; the rest is not read. `None` if they are damaged.
    pub(crate) fn of_row(checksummed: &'t [u8]) -> Option<Self> {
        let (_, body) = checksummed.split_first_chunk::<4>()?;
        Self::read(&mut FieldReader(body))
    }

    fn read(fields: &mut FieldReader<'t>) -> Option<Self> {
        let length = fields.u32()? as usize;
        let bytes = verify_checksum(fields.take(length)?)?;
        let (terms, weights) = bytes.split_at_checked(bytes.len() / 2)?;
        Some(Self { terms: terms.as_chunks().0, weights: weights.as_chunks().0 })
    }

    /// The weight of a term, if the vector has it.
    pub(crate) fn weight(&self, term: u32) -> Option<f32> {
        let at = self.terms.binary_search_by_key(&term, |bytes| u32::from_le_bytes(*bytes)).ok()?;
        self.weights.get(at).copied().map(f32::from_le_bytes)
    }

    /// The number of terms.
    pub(crate) const fn len(&self) -> usize {
        self.terms.len()
    }

    /// The terms with their weights.
    pub(crate) fn iter(self) -> impl Iterator<Item = (u32, f32)> {
        let terms = self.terms.iter().copied().map(u32::from_le_bytes);
        terms.zip(self.weights.iter().copied().map(f32::from_le_bytes))
    }

    pub(crate) fn to_vector(self) -> SparseVector {
        SparseVector::from_pairs(self.iter())
    }
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
            pairs in proptest::collection::vec((any::<u32>(), -9f32..9f32), 0..20),
            payload in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let body = StoredBody { tags: StoredTags::Inline(tags.into()), sparse: SparseVector::from_pairs(pairs), payload };
            let bytes = body.encode();
            let row = with_checksum(&bytes);
            let terms = StoredTerms::of_row(&row).unwrap();
            prop_assert_eq!(terms.len(), body.sparse.len());
            for (term, weight) in body.sparse.iter() {
                prop_assert_eq!(terms.weight(term), Some(weight));
                let next = term.wrapping_add(1);
                prop_assert_eq!(terms.weight(next).is_some(), body.sparse.indices().contains(&next));
            }
            prop_assert_eq!(tags_and_payload(&bytes), Some((body.tags.clone(), &body.payload[..])));
            let read = StoredBody::decode(&bytes).unwrap();
            prop_assert_eq!((read.tags, read.sparse, read.payload), (body.tags, body.sparse, body.payload));
        }

        #[test]
        fn damaged_terms_are_none_and_other_damage_does_not_matter(
            pairs in proptest::collection::vec((any::<u32>(), -9f32..9f32), 0..20),
            payload in proptest::collection::vec(any::<u8>(), 0..20),
            at: usize,
            bit in 0u8..8,
        ) {
            let body = StoredBody { tags: StoredTags::Inline(Tags::new()), sparse: SparseVector::from_pairs(pairs), payload };
            let mut row = with_checksum(&body.encode());
            // The checksum of the row, then the length, the checksum, the terms and the weights.
            let (first, behind) = (4, 4 + 8 + 8 * body.sparse.len());
            let at = at % row.len();
            row[at] ^= 1u8 << bit;
            let found = StoredTerms::of_row(&row).map(StoredTerms::to_vector);
            let expected = (at < first || at >= behind).then_some(body.sparse);
            prop_assert_eq!(found, expected);
            prop_assert!(verify_checksum(&row).is_none());
        }

        #[test]
        fn decode_of_arbitrary_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            decode_origin(&bytes);
            StoredBody::decode(&bytes);
            tags_and_payload(&bytes);
            StoredTerms::of_row(&bytes);
        }
    }
}

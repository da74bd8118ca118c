//! Keys of the tables of points. Numbers are big-endian, so that keys sort like numbers.

use lkr_domain::PointId;
use lkr_vectors::{SPACE_TAG, Tags};
use sha2::{Digest, Sha256};

pub(crate) fn collection(number: u16) -> [u8; 2] {
    number.to_be_bytes()
}

/// The key of an internal id.
pub(crate) fn row(number: u16, id: u32) -> [u8; 6] {
    let [a, b] = number.to_be_bytes();
    let [c, d, e, f] = id.to_be_bytes();
    [a, b, c, d, e, f]
}

/// The internal id of a row key.
pub(crate) fn row_id(key: &[u8]) -> Option<u32> {
    key.last_chunk().copied().map(u32::from_be_bytes)
}

/// The key of a point id.
pub(crate) fn point(number: u16, id: PointId) -> [u8; 18] {
    let mut key = [0; 18];
    let (head, tail) = key.split_at_mut(2);
    head.copy_from_slice(&number.to_be_bytes());
    tail.copy_from_slice(id.as_bytes());
    key
}

/// The point id of its key.
pub(crate) fn point_id(key: &[u8]) -> Option<PointId> {
    key.last_chunk().copied().map(PointId::from_bytes)
}

/// A space in keys: 64 bits of the SHA-256 of its name. Zero for points without a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct SpaceKey([u8; 8]);

impl SpaceKey {
    pub(crate) fn of(space: &str) -> Self {
        let mut key = [0; 8];
        key.iter_mut().zip(Sha256::digest(space)).for_each(|(to, from)| *to = from);
        Self(key)
    }

    pub(crate) const fn to_u64(self) -> u64 {
        u64::from_be_bytes(self.0)
    }

    /// The space of a point with these tags.
    pub(crate) fn of_tags(tags: &Tags) -> Self {
        tags.get(SPACE_TAG).map(|space| Self::of(space)).unwrap_or_default()
    }
}

/// The key of a set of tags.
pub(crate) fn tag_set(number: u16, id: &[u8; 16]) -> [u8; 18] {
    point(number, PointId::from_bytes(*id))
}

/// The key prefix of a term's posting blocks in all spaces.
pub(crate) fn term(number: u16, term: u32) -> [u8; 6] {
    row(number, term)
}

/// The key prefix of a term's posting blocks in a space.
pub(crate) fn term_in(number: u16, term: u32, SpaceKey(space): SpaceKey) -> [u8; 14] {
    let mut key = [0; 14];
    let (head, tail) = key.split_at_mut(6);
    head.copy_from_slice(&row(number, term));
    tail.copy_from_slice(&space);
    key
}

/// The term of a posting block's key.
pub(crate) fn term_of(key: &[u8]) -> Option<u32> {
    key.get(2..)?.first_chunk().copied().map(u32::from_be_bytes)
}

/// The space of a posting block's key.
pub(crate) fn space_of(key: &[u8]) -> Option<SpaceKey> {
    key.get(6..)?.first_chunk().copied().map(SpaceKey)
}

/// The key of the posting block whose ids begin at `base`.
pub(crate) fn block(number: u16, term: u32, space: SpaceKey, base: u32) -> [u8; 18] {
    let mut key = [0; 18];
    let (head, tail) = key.split_at_mut(14);
    head.copy_from_slice(&term_in(number, term, space));
    tail.copy_from_slice(&base.to_be_bytes());
    key
}

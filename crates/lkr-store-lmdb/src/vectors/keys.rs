//! Keys of the tables of points. Numbers are big-endian, so that keys sort like numbers.

use lkr_domain::PointId;

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

/// The key of a set of tags.
pub(crate) fn tag_set(number: u16, id: &[u8; 16]) -> [u8; 18] {
    point(number, PointId::from_bytes(*id))
}

/// The key prefix of a term's posting blocks.
pub(crate) fn term(number: u16, term: u32) -> [u8; 6] {
    row(number, term)
}

/// The term of a posting block's key.
pub(crate) fn term_of(key: &[u8]) -> Option<u32> {
    key.get(2..)?.first_chunk().copied().map(u32::from_be_bytes)
}

/// The key of the posting block whose ids begin at `base`.
pub(crate) fn block(number: u16, term: u32, base: u32) -> [u8; 10] {
    let mut key = [0; 10];
    let (head, tail) = key.split_at_mut(6);
    head.copy_from_slice(&row(number, term));
    tail.copy_from_slice(&base.to_be_bytes());
    key
}

//! Reads the rows of points.

use heed::RoTxn;
use lkr_domain::PointId;
use lkr_vectors::{PointOrigin, Tags};

use super::{
    dense, describe_point_part, keys,
    record::{self, Body, StoredBody, decode_origin},
    registry::CollectionEntry,
    tag_sets::TagReader,
};
use crate::{
    codec::{damaged, strip_checksum},
    env::Kb,
    error::InternalResult,
};

/// The point id and origin of an internal id, which must exist.
pub(crate) fn origin(
    kb: &Kb,
    txn: &RoTxn,
    collection: u16,
    id: u32,
) -> InternalResult<(PointId, PointOrigin)> {
    let name = || format!("the origin of point number {id} of collection number {collection}");
    let checksummed = kb.tables.origins.get(txn, &keys::row(collection, id))?.ok_or_else(|| damaged(name))?;
    decode_origin(strip_checksum(checksummed, name)?).ok_or_else(|| damaged(name))
}

/// The body of an internal id, which must exist, with its tags.
pub(crate) fn body(kb: &Kb, txn: &RoTxn, collection: u16, id: u32) -> InternalResult<Body> {
    let stored = stored_body(kb, txn, collection, id)?;
    let tags = TagReader::default().read(kb, txn, collection, stored.tags.clone())?;
    Ok(stored.with_tags(tags))
}

/// The tags and the payload of an internal id, which must exist.
pub(crate) fn tags_and_payload<'t>(
    kb: &Kb,
    txn: &'t RoTxn,
    collection: u16,
    id: u32,
) -> InternalResult<(Tags, &'t [u8])> {
    let name = || describe_point_part(kb, txn, collection, id, "the body");
    let row = body_row(kb, txn, collection, id)?;
    let (tags, payload) = record::tags_and_payload(row).ok_or_else(|| damaged(name))?;
    Ok((TagReader::default().read(kb, txn, collection, tags)?, payload))
}

/// The payload of an internal id, which must exist. Its tags are not read, which may be those of another row.
pub(crate) fn payload<'t>(kb: &Kb, txn: &'t RoTxn, collection: u16, id: u32) -> InternalResult<&'t [u8]> {
    let name = || describe_point_part(kb, txn, collection, id, "the body");
    let parts = record::tags_and_payload(body_row(kb, txn, collection, id)?);
    parts.map(|(_, payload)| payload).ok_or_else(|| damaged(name))
}

/// The body of an internal id, which must exist.
pub(crate) fn stored_body(kb: &Kb, txn: &RoTxn, collection: u16, id: u32) -> InternalResult<StoredBody> {
    let name = || describe_point_part(kb, txn, collection, id, "the body");
    StoredBody::decode(body_row(kb, txn, collection, id)?).ok_or_else(|| damaged(name))
}

fn body_row<'t>(kb: &Kb, txn: &'t RoTxn, collection: u16, id: u32) -> InternalResult<&'t [u8]> {
    let name = || describe_point_part(kb, txn, collection, id, "the body");
    let checksummed = kb.tables.bodies.get(txn, &keys::row(collection, id))?.ok_or_else(|| damaged(name))?;
    strip_checksum(checksummed, name)
}

/// The dense vector of an internal id, if the point has one.
pub(crate) fn vector(
    kb: &Kb,
    txn: &RoTxn,
    entry: &CollectionEntry,
    id: u32,
) -> InternalResult<Option<Vec<f32>>> {
    entry.dims().map_or(Ok(None), |dims| dense::vector(kb, txn, entry.number, id, dims))
}

//! Evaluates filters to sets of internal ids.

use heed::RoTxn;
use lkr_domain::PointId;
use lkr_vectors::{Condition, Filter};
use roaring::{MultiOps, RoaringBitmap};

use super::{
    bitmap::{self, Field},
    keys,
    value_filter::TestedTag,
};
use crate::{
    codec::{damaged, strip_checksum, with_checksum},
    env::Kb,
    error::InternalResult,
};

/// The ids of the matching points; `None` if all match.
pub(crate) fn selected(
    kb: &Kb,
    txn: &RoTxn,
    collection: u16,
    filter: &Filter,
) -> InternalResult<Option<RoaringBitmap>> {
    let mut selected: Option<RoaringBitmap> = None;
    for condition in &filter.must {
        let met = condition_ids(kb, txn, collection, condition)?;
        selected = Some(match selected {
            Some(selected) => selected & met,
            None => met,
        });
        if selected.as_ref().is_some_and(RoaringBitmap::is_empty) {
            return Ok(selected);
        }
    }
    for condition in &filter.must_not {
        let kept = selected.map_or_else(|| bitmap::read(kb, txn, collection, Field::Live), Ok)?;
        selected = Some(kept - condition_ids(kb, txn, collection, condition)?);
    }
    Ok(selected)
}

/// The ids of the matching points.
pub(crate) fn matching_ids(
    kb: &Kb,
    txn: &RoTxn,
    collection: u16,
    filter: &Filter,
) -> InternalResult<RoaringBitmap> {
    selected(kb, txn, collection, filter)?.map_or_else(|| bitmap::read(kb, txn, collection, Field::Live), Ok)
}

fn condition_ids(
    kb: &Kb,
    txn: &RoTxn,
    collection: u16,
    condition: &Condition,
) -> InternalResult<RoaringBitmap> {
    let read = |field| bitmap::read(kb, txn, collection, field);
    match condition {
        Condition::Ids(ids) => {
            let ids = ids.iter().map(|id| internal(kb, txn, collection, *id));
            ids.filter_map(Result::transpose).collect()
        }
        Condition::Docs(docs) => docs.iter().map(|doc| read(Field::Doc(*doc))).union(),
        Condition::Revision(doc, revision) => read(Field::Revision(*doc, *revision)),
        Condition::Value { key, test } => TestedTag::new(kb, txn, collection, key).passing(test),
        Condition::Any(filters) => {
            filters.iter().map(|filter| matching_ids(kb, txn, collection, filter)).union()
        }
        Condition::Tag { key, any } => any.iter().map(|value| read(Field::Tag(key, value))).union(),
    }
}

/// The internal id of a point.
pub(crate) fn internal(kb: &Kb, txn: &RoTxn, collection: u16, id: PointId) -> InternalResult<Option<u32>> {
    let entry = kb.tables.ids.get(txn, &keys::point(collection, id))?;
    entry.map(|entry| decode_internal(entry, || format!("the entry of point {id}"))).transpose()
}

pub(crate) fn encode_internal(id: u32) -> Vec<u8> {
    with_checksum(&id.to_le_bytes())
}

pub(crate) fn decode_internal(entry: &[u8], name: impl Fn() -> String) -> InternalResult<u32> {
    let bytes = strip_checksum(entry, &name)?.try_into().map_err(|_| damaged(name))?;
    Ok(u32::from_le_bytes(bytes))
}

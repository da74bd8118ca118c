//! Filters as sets of internal ids.

use heed::RoTxn;
use lkr_domain::PointId;
use lkr_vectors::{Condition, Filter};
use roaring::RoaringBitmap;

use super::{
    bitmap::{self, Field},
    keys,
};
use crate::{
    codec::{damaged, seal, unseal},
    env::Kb,
    error::{Done, Failure},
};

/// The ids of the points that pass; `None` where all do.
pub(crate) fn selected(
    kb: &Kb,
    txn: &RoTxn,
    collection: u16,
    filter: &Filter,
) -> Done<Option<RoaringBitmap>> {
    let mut selected: Option<RoaringBitmap> = None;
    for condition in &filter.must {
        let met = meeting(kb, txn, collection, condition)?;
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
        selected = Some(kept - meeting(kb, txn, collection, condition)?);
    }
    Ok(selected)
}

/// The ids of the points that pass.
pub(crate) fn passing(kb: &Kb, txn: &RoTxn, collection: u16, filter: &Filter) -> Done<RoaringBitmap> {
    selected(kb, txn, collection, filter)?.map_or_else(|| bitmap::read(kb, txn, collection, Field::Live), Ok)
}

fn meeting(kb: &Kb, txn: &RoTxn, collection: u16, condition: &Condition) -> Done<RoaringBitmap> {
    let read = |field| bitmap::read(kb, txn, collection, field);
    match condition {
        Condition::Ids(ids) => {
            let ids = ids.iter().map(|id| internal(kb, txn, collection, *id));
            ids.filter_map(Result::transpose).collect()
        }
        Condition::Docs(docs) => union(docs.iter().map(|doc| read(Field::Doc(*doc)))),
        Condition::Revision(doc, revision) => read(Field::Revision(*doc, *revision)),
        Condition::Tag { key, any } => union(any.iter().map(|value| read(Field::Tag(key, value)))),
    }
}

fn union(mut bitmaps: impl Iterator<Item = Done<RoaringBitmap>>) -> Done<RoaringBitmap> {
    bitmaps.try_fold(RoaringBitmap::new(), |all, bitmap| Ok::<_, Failure>(all | bitmap?))
}

/// The internal id of a point.
pub(crate) fn internal(kb: &Kb, txn: &RoTxn, collection: u16, id: PointId) -> Done<Option<u32>> {
    let entry = kb.tables.ids.get(txn, &keys::point(collection, id))?;
    entry.map(|entry| decode_internal(entry, || format!("the entry of point {id}"))).transpose()
}

pub(crate) fn encode_internal(id: u32) -> Vec<u8> {
    seal(&id.to_le_bytes())
}

pub(crate) fn decode_internal(entry: &[u8], name: impl Fn() -> String) -> Done<u32> {
    let bytes = unseal(entry, &name)?.try_into().map_err(|_| damaged(name))?;
    Ok(u32::from_le_bytes(bytes))
}

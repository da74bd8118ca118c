//! Points by id and by pages.

use std::ops::Bound;

use heed::RoTxn;
use lkr_domain::{PointId, SparseVector};
use lkr_vectors::{Filter, Include, Page, Point, ScrollCursor};
use roaring::RoaringBitmap;

use super::{
    filter, keys, named,
    registry::Known,
    write::{body, origin, vector},
};
use crate::{
    codec::damaged,
    env::Kb,
    error::{Done, Failure},
};

/// Up to so many passing points are looked up and sorted; among more, the ids are walked in their order.
const SORTED: u64 = 4_096;

/// The point of an internal id.
pub(crate) fn point(kb: &Kb, txn: &RoTxn, known: &Known, id: u32, with: Include) -> Done<Point> {
    let (point, origin) = origin(kb, txn, known.number, id)?;
    let body = body(kb, txn, known.number, id)?;
    let name = || named(kb, txn, known.number, id, "the payload");
    let payload = serde_json::from_slice(&body.payload).map_err(|_| damaged(name))?;
    let (dense, sparse) = match with {
        Include::Payload => (None, SparseVector::default()),
        Include::All => (vector(kb, txn, known, id)?, body.sparse),
    };
    Ok(Point { id: point, origin, tags: body.tags, dense, sparse, payload })
}

/// The points of these ids, in their order.
pub(crate) fn get(
    kb: &Kb,
    txn: &RoTxn,
    known: &Known,
    ids: &[PointId],
    with: Include,
) -> Done<Vec<Option<Point>>> {
    let find = |id: &PointId| {
        let internal = filter::internal(kb, txn, known.number, *id)?;
        internal.map(|internal| point(kb, txn, known, internal, with)).transpose()
    };
    ids.iter().map(find).collect()
}

/// A page of the points that pass, in the order of their ids. The cursor is the last id of the page before.
pub(crate) fn scroll(
    kb: &Kb,
    txn: &RoTxn,
    known: &Known,
    wanted: &Filter,
    after: Option<&ScrollCursor>,
    limit: usize,
    with: Include,
) -> Done<Page> {
    let after = after.map(cursor_id).transpose()?;
    let selected = filter::selected(kb, txn, known.number, wanted)?;
    // One more than the page holds tells whether there is a next one.
    let count = limit.saturating_add(1);
    let mut ids = match selected {
        Some(selected) if selected.len() <= SORTED => sorted(kb, txn, known, &selected, after, count)?,
        selected => walked(kb, txn, known, selected.as_ref(), after, count)?,
    };
    let more = ids.len() > limit;
    ids.truncate(limit);
    let points = ids.into_iter().map(|id| point(kb, txn, known, id, with)).collect::<Done<Vec<_>>>()?;
    let next = points.last().filter(|_| more).map(|last| ScrollCursor(last.id.as_bytes().to_vec()));
    Ok(Page { points, next })
}

fn cursor_id(ScrollCursor(bytes): &ScrollCursor) -> Done<PointId> {
    let id = bytes.as_slice().try_into();
    id.map(PointId::from_bytes).map_err(|_| Failure::invalid(format!("a cursor of {} bytes", bytes.len())))
}

fn sorted(
    kb: &Kb,
    txn: &RoTxn,
    known: &Known,
    selected: &RoaringBitmap,
    after: Option<PointId>,
    count: usize,
) -> Done<Vec<u32>> {
    let ids = selected.iter().map(|id| Ok((origin(kb, txn, known.number, id)?.0, id)));
    let mut ids = ids.collect::<Done<Vec<_>>>()?;
    ids.retain(|(point, _)| after.is_none_or(|after| *point > after));
    ids.sort_unstable();
    Ok(ids.into_iter().take(count).map(|(_, id)| id).collect())
}

fn walked(
    kb: &Kb,
    txn: &RoTxn,
    known: &Known,
    selected: Option<&RoaringBitmap>,
    after: Option<PointId>,
    count: usize,
) -> Done<Vec<u32>> {
    let first = keys::point(known.number, after.unwrap_or(PointId::from_bytes([0; 16])));
    let last = keys::point(known.number, PointId::from_bytes([u8::MAX; 16]));
    let start = if after.is_some() { Bound::Excluded(&first[..]) } else { Bound::Included(&first[..]) };
    let range = (start, Bound::Included(&last[..]));
    let mut ids = Vec::new();
    for row in kb.tables.ids.range(txn, &range)? {
        if ids.len() == count {
            break;
        }
        let (key, bytes) = row?;
        let name = || keys::point_id(key).map_or_else(String::new, |id| format!("the entry of point {id}"));
        let id = filter::decode_internal(bytes, name)?;
        if selected.is_none_or(|selected| selected.contains(id)) {
            ids.push(id);
        }
    }
    Ok(ids)
}

//! Reads points by id and by page.

use std::ops::Bound;

use heed::RoTxn;
use lkr_domain::{PointId, SparseVector};
use lkr_vectors::{Filter, Include, Page, Point, ScrollCursor, Tags};
use roaring::RoaringBitmap;

use super::{
    describe_point_part, filter, keys,
    record::Body,
    registry::CollectionEntry,
    rows::{body, origin, payload, tags_and_payload, vector},
};
use crate::{
    codec::damaged,
    env::Kb,
    error::{Failure, InternalResult},
};

/// Up to this many matching points are looked up and sorted; of more, ids are walked in order.
const MAX_SORTED_POINTS: u64 = 4_096;

/// The point with an internal id.
pub(crate) fn point(
    kb: &Kb,
    txn: &RoTxn,
    entry: &CollectionEntry,
    id: u32,
    with: Include,
) -> InternalResult<Point> {
    let (point, origin) = origin(kb, txn, entry.number, id)?;
    let name = || describe_point_part(kb, txn, entry.number, id, "the payload");
    let parse = |payload: &[u8]| serde_json::from_slice(payload).map_err(|_| damaged(name));
    Ok(match with {
        Include::Content => {
            let payload = parse(payload(kb, txn, entry.number, id)?)?;
            let (dense, sparse) = (None, SparseVector::default());
            Point { id: point, origin, tags: Tags::new(), dense, sparse, payload }
        }
        Include::Payload => {
            let (tags, payload) = tags_and_payload(kb, txn, entry.number, id)?;
            let (dense, sparse) = (None, SparseVector::default());
            Point { id: point, origin, tags, dense, sparse, payload: parse(payload)? }
        }
        Include::All => {
            let Body { tags, sparse, payload, .. } = body(kb, txn, entry.number, id)?;
            let dense = vector(kb, txn, entry, id)?;
            Point { id: point, origin, tags, dense, sparse, payload: parse(&payload)? }
        }
    })
}

/// The points with these ids, in order.
pub(crate) fn get(
    kb: &Kb,
    txn: &RoTxn,
    entry: &CollectionEntry,
    ids: &[PointId],
    with: Include,
) -> InternalResult<Vec<Option<Point>>> {
    let find = |id: &PointId| {
        let internal = filter::internal(kb, txn, entry.number, *id)?;
        internal.map(|internal| point(kb, txn, entry, internal, with)).transpose()
    };
    ids.iter().map(find).collect()
}

/// A page of the matching points, ordered by id. The cursor is the last id of the previous page.
pub(crate) fn scroll(
    kb: &Kb,
    txn: &RoTxn,
    entry: &CollectionEntry,
    filter_expr: &Filter,
    after: Option<&ScrollCursor>,
    limit: usize,
    with: Include,
) -> InternalResult<Page> {
    let after = after.map(cursor_id).transpose()?;
    let selected = filter::selected(kb, txn, entry.number, filter_expr)?;
    // One point more than the page shows whether there is a next page.
    let count = limit.saturating_add(1);
    let mut ids = match selected {
        Some(selected) if selected.len() <= MAX_SORTED_POINTS => {
            first_sorted(kb, txn, entry, &selected, after, count)?
        }
        selected => first_walked(kb, txn, entry, selected.as_ref(), after, count)?,
    };
    let more = ids.len() > limit;
    ids.truncate(limit);
    let points =
        ids.into_iter().map(|id| point(kb, txn, entry, id, with)).collect::<InternalResult<Vec<_>>>()?;
    let next = points.last().filter(|_| more).map(|last| ScrollCursor(last.id.as_bytes().to_vec()));
    Ok(Page { points, next })
}

fn cursor_id(ScrollCursor(bytes): &ScrollCursor) -> InternalResult<PointId> {
    let id = bytes.as_slice().try_into();
    id.map(PointId::from_bytes).map_err(|_| Failure::invalid(format!("a cursor of {} bytes", bytes.len())))
}

fn first_sorted(
    kb: &Kb,
    txn: &RoTxn,
    entry: &CollectionEntry,
    selected: &RoaringBitmap,
    after: Option<PointId>,
    count: usize,
) -> InternalResult<Vec<u32>> {
    let ids = selected.iter().map(|id| Ok((origin(kb, txn, entry.number, id)?.0, id)));
    let mut ids = ids.collect::<InternalResult<Vec<_>>>()?;
    ids.retain(|(point, _)| after.is_none_or(|after| *point > after));
    ids.sort_unstable();
    Ok(ids.into_iter().take(count).map(|(_, id)| id).collect())
}

fn first_walked(
    kb: &Kb,
    txn: &RoTxn,
    entry: &CollectionEntry,
    selected: Option<&RoaringBitmap>,
    after: Option<PointId>,
    count: usize,
) -> InternalResult<Vec<u32>> {
    let first = keys::point(entry.number, after.unwrap_or(PointId::from_bytes([0; 16])));
    let last = keys::point(entry.number, PointId::from_bytes([u8::MAX; 16]));
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

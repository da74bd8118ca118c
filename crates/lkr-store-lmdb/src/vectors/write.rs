//! Changes of points. A replaced point gets a new internal id, because clusters cannot change a vector.

use std::{collections::HashSet, sync::Arc};

use heed::{RoTxn, RwTxn};
use lkr_domain::PointId;
use lkr_vectors::{Filter, Point, PointOrigin, Tags};
use serde_json::Value;

use super::{
    filter,
    keys::{self, SpaceKey},
    postings::{self, PostingChanges},
    record::{StoredBody, encode_origin, is_same_body},
    registry::{self, CollectionEntry, IdCounters},
    rows::{origin, stored_body},
    stored_vector,
    tag_changes::TagChanges,
    tag_sets::EncodedTags,
};
use crate::{
    codec::with_checksum,
    env::{Kb, Table},
    error::{Failure, FailureKind, InternalResult},
};

/// The highest internal id. The margin to 2³² keeps arithmetic from overflowing.
const MAX_ID: u32 = u32::MAX - (1 << 17);

/// The rows behind new points: enough for pages of five. See docs/studies.md#full-pages.
const END_ROWS: u32 = 4;

/// The JSON parser supports 128 levels.
const MAX_PAYLOAD_DEPTH: usize = 120;

/// A point as it will be stored.
pub(crate) struct EncodedPoint {
    id: PointId,
    origin: PointOrigin,
    tags: Arc<EncodedTags>,
    /// The rows with their checksums.
    origin_row: Vec<u8>,
    body_row: Vec<u8>,
    dense_row: Option<Vec<u8>>,
    dims: Option<usize>,
}

impl EncodedPoint {
    /// Whether this row of an earlier point has the vector of the point.
    fn has_vector_of(&self, stored: Option<&[u8]>) -> bool {
        match (stored, self.dense_row.as_deref()) {
            (Some(stored), Some(new)) => {
                stored_vector::is_same_row(stored, new, self.dims.unwrap_or_default())
            }
            (stored, new) => stored == new,
        }
    }
}

/// Encodes points; of several points with the same id, only the last. Refuses numbers that are not finite.
pub(crate) fn encode_points(points: Vec<Point>) -> InternalResult<Vec<EncodedPoint>> {
    let mut seen = HashSet::with_capacity(points.len());
    let last_of_each = points.into_iter().rev().filter(|point| seen.insert(point.id));
    let mut last_tags: Option<Arc<EncodedTags>> = None;
    let encode = |point: Point| {
        let shared = last_tags.take().filter(|last| last.tags.is_shared_with(&point.tags));
        let tags = shared.unwrap_or_else(|| Arc::new(EncodedTags::new(&point.tags)));
        encode_point(point, Arc::clone(last_tags.insert(tags)))
    };
    let mut prepared = last_of_each.map(encode).collect::<InternalResult<Vec<_>>>()?;
    prepared.reverse();
    Ok(prepared)
}

fn encode_point(point: Point, tags: Arc<EncodedTags>) -> InternalResult<EncodedPoint> {
    let Point { id, origin, tags: _, dense, sparse, payload } = point;
    if let Some(value) = dense.iter().flatten().find(|value| !value.is_finite()) {
        return Err(Failure::invalid(format!("{value} in the dense vector of point {id}")));
    }
    if exceeds_depth(&payload, MAX_PAYLOAD_DEPTH) {
        return Err(Failure::invalid(format!(
            "the payload of point {id} is nested too deep to be read back"
        )));
    }
    let payload = serde_json::to_vec(&payload).map_err(Failure::internal)?;
    let body = StoredBody { tags: tags.stored.clone(), sparse, payload };
    Ok(EncodedPoint {
        id,
        origin,
        origin_row: with_checksum(&encode_origin(id, &origin)),
        body_row: with_checksum(&body.encode()),
        dense_row: dense.as_deref().map(|vector| with_checksum(&stored_vector::encode(vector))),
        dims: dense.map(|vector| vector.len()),
        tags,
    })
}

fn exceeds_depth(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return true };
    match value {
        Value::Array(values) => values.iter().any(|value| exceeds_depth(value, below)),
        Value::Object(values) => values.values().any(|value| exceeds_depth(value, below)),
        _ => false,
    }
}

/// Stores points, all of them or none.
pub(crate) fn upsert(
    kb: &Kb,
    txn: &mut RwTxn,
    entry: &CollectionEntry,
    points: &[EncodedPoint],
) -> InternalResult<()> {
    check_points(entry, points)?;
    let mut changes = PointChanges::new(kb, txn, entry)?;
    for point in points {
        let old = filter::internal(kb, txn, entry.number, point.id)?;
        if let Some(old) = old {
            if is_unchanged(kb, txn, entry.number, old, point)? {
                continue;
            }
            changes.remove_point(txn, old)?;
        }
        changes.insert(txn, point)?;
    }
    changes.apply(txn)
}

/// Checks that points fit the collection.
pub(crate) fn check_points(entry: &CollectionEntry, points: &[EncodedPoint]) -> InternalResult<()> {
    points.iter().filter_map(|point| point.dims).try_for_each(|dims| check_dims(entry, dims))
}

/// Checks that vectors of `dims` dimensions fit the collection.
pub(crate) fn check_dims(entry: &CollectionEntry, dims: usize) -> InternalResult<()> {
    let name = &entry.spec.collection;
    match entry.dims() {
        Some(expected) if expected == dims => Ok(()),
        Some(expected) => {
            Err(Failure::invalid(format!("a vector of {dims} dimensions for {name}, which has {expected}")))
        }
        None => Err(Failure::invalid(format!("{name} has no dense vectors"))),
    }
}

/// Whether the identical point is stored already. Repeating a write then uses no id and does not change clusters.
fn is_unchanged(
    kb: &Kb,
    txn: &RoTxn,
    collection: u16,
    id: u32,
    point: &EncodedPoint,
) -> InternalResult<bool> {
    let key = keys::row(collection, id);
    Ok(point.tags.is_stored(kb, txn, collection)?
        && kb.tables.origins.get(txn, &key)? == Some(&point.origin_row)
        && point.has_vector_of(kb.tables.dense.get(txn, &key)?)
        && kb.tables.bodies.get(txn, &key)?.is_some_and(|stored| is_same_body(stored, &point.body_row)))
}

/// Removes the matching points and returns their number.
pub(crate) fn delete(
    kb: &Kb,
    txn: &mut RwTxn,
    entry: &CollectionEntry,
    filter_expr: &Filter,
) -> InternalResult<u64> {
    let ids = filter::matching_ids(kb, txn, entry.number, filter_expr)?;
    let mut changes = PointChanges::new(kb, txn, entry)?;
    for id in &ids {
        let point = changes.remove_point(txn, id)?;
        kb.tables.ids.delete(txn, &keys::point(entry.number, point))?;
    }
    changes.apply(txn)?;
    Ok(ids.len())
}

/// Replaces the tags of the matching points and returns their number.
pub(crate) fn set_tags(
    kb: &Kb,
    txn: &mut RwTxn,
    entry: &CollectionEntry,
    filter_expr: &Filter,
    tags: &Tags,
) -> InternalResult<u64> {
    let ids = filter::matching_ids(kb, txn, entry.number, filter_expr)?;
    let tags = EncodedTags::new(tags);
    let (number, space) = (entry.number, SpaceKey::of_tags(&tags.tags));
    let is_stored = tags.is_stored(kb, txn, number)?;
    let mut changes = PointChanges::new(kb, txn, entry)?;
    for id in &ids {
        let stored = stored_body(kb, txn, number, id)?;
        if is_stored && stored.tags == tags.stored {
            continue;
        }
        let before = changes.tags.read(txn, stored.tags.clone())?;
        if SpaceKey::of_tags(&before) == space {
            changes.replace_tags(txn, id, stored, &tags)?;
        } else {
            changes.move_to_space(txn, id, stored, &tags)?;
        }
    }
    changes.apply(txn)?;
    Ok(ids.len())
}

/// Changes of a collection's points: rows are written at once, indexes at the end.
struct PointChanges<'k> {
    kb: &'k Kb,
    entry: &'k CollectionEntry,
    collection: u16,
    /// The counters before the changes. Posting lists contain the points below `posted`.
    before: IdCounters,
    /// The counters with the inserted points.
    after: IdCounters,
    tags: TagChanges<'k>,
    postings: PostingChanges,
}

impl<'k> PointChanges<'k> {
    fn new(kb: &'k Kb, txn: &RoTxn, entry: &'k CollectionEntry) -> InternalResult<Self> {
        let before = registry::ids(kb, txn, entry.number)?;
        let (tags, postings) = (TagChanges::new(kb, entry.number), PostingChanges::default());
        Ok(Self { kb, entry, collection: entry.number, before, after: before, tags, postings })
    }

    /// Writes a point under the next id.
    fn insert(&mut self, txn: &mut RwTxn, point: &EncodedPoint) -> InternalResult<()> {
        let id = self.after.next;
        if id >= MAX_ID {
            let name = &self.entry.spec.collection;
            let message = format!("{name} has used up its ids; switch to a new collection");
            return Err(Failure::new(FailureKind::Internal, message));
        }
        if !self.has_inserted() {
            self.with_end_rows(|table, key| Ok(table.put(txn, key, &[])?))?;
        }
        self.after.next += 1;
        self.after.pending_bytes += point.body_row.len() as u64;
        let (tables, key) = (&self.kb.tables, keys::row(self.collection, id));
        tables.ids.put(txn, &keys::point(self.collection, point.id), &filter::encode_internal(id))?;
        tables.origins.put(txn, &key, &point.origin_row)?;
        tables.bodies.put(txn, &key, &point.body_row)?;
        if let Some(row) = &point.dense_row {
            tables.dense.put(txn, &key, row)?;
        }
        self.tags.add(id, &point.origin, &point.tags);
        point.tags.put(self.kb, txn, self.collection)
    }

    /// Replaces the tags of a point that stays in its space.
    fn replace_tags(
        &mut self,
        txn: &mut RwTxn,
        id: u32,
        stored: StoredBody,
        tags: &EncodedTags,
    ) -> InternalResult<()> {
        let (_, origin) = origin(self.kb, txn, self.collection, id)?;
        self.tags.remove(txn, id, &origin, stored.tags.clone())?;
        self.tags.add(id, &origin, tags);
        let body = StoredBody { tags: tags.stored.clone(), ..stored };
        let row = with_checksum(&body.encode());
        self.kb.tables.bodies.put(txn, &keys::row(self.collection, id), &row)?;
        tags.put(self.kb, txn, self.collection)
    }

    /// Gives a point tags of another space. It gets a new internal id, because posting lists grow only at their ends.
    fn move_to_space(
        &mut self,
        txn: &mut RwTxn,
        id: u32,
        stored: StoredBody,
        tags: &EncodedTags,
    ) -> InternalResult<()> {
        let (point, origin) = origin(self.kb, txn, self.collection, id)?;
        let dense_row = self.kb.tables.dense.get(txn, &keys::row(self.collection, id))?.map(<[u8]>::to_vec);
        let body = StoredBody { tags: tags.stored.clone(), ..stored };
        let moved = EncodedPoint {
            id: point,
            origin,
            origin_row: with_checksum(&encode_origin(point, &origin)),
            body_row: with_checksum(&body.encode()),
            dense_row,
            dims: self.entry.dims(),
            tags: Arc::new(tags.clone()),
        };
        self.remove_point(txn, id)?;
        self.insert(txn, &moved)
    }

    /// Removes all rows of a point except the entry of its id, and returns its id.
    fn remove_point(&mut self, txn: &mut RwTxn, id: u32) -> InternalResult<PointId> {
        let (point, origin) = origin(self.kb, txn, self.collection, id)?;
        let body = stored_body(self.kb, txn, self.collection, id)?;
        let (tables, key) = (&self.kb.tables, keys::row(self.collection, id));
        tables.origins.delete(txn, &key)?;
        tables.bodies.delete(txn, &key)?;
        tables.dense.delete(txn, &key)?;
        let tags = self.tags.remove(txn, id, &origin, body.tags)?;
        if id < self.before.posted {
            self.postings.remove(id, SpaceKey::of_tags(&tags), &body.sparse);
        }
        Ok(point)
    }

    const fn has_inserted(&self) -> bool {
        self.after.next != self.before.next
    }

    /// Writes or deletes the rows that are behind new points until these are written. LMDB moves the last row of a full page to
    /// the next page if a row is added behind it, so pages of two vectors would keep one. With enough rows behind it, the new row
    /// alone begins the next page. See docs/studies.md#full-pages.
    fn with_end_rows(
        &self,
        mut change: impl FnMut(Table, &[u8]) -> InternalResult<()>,
    ) -> InternalResult<()> {
        let tables = [self.kb.tables.bodies, self.kb.tables.dense];
        for id in (0..END_ROWS).map(|n| u32::MAX - n) {
            let key = keys::row(self.collection, id);
            tables.into_iter().try_for_each(|table| change(table, &key))?;
        }
        Ok(())
    }

    fn apply(self, txn: &mut RwTxn) -> InternalResult<()> {
        if self.has_inserted() {
            self.with_end_rows(|table, key| {
                table.delete(txn, key)?;
                Ok(())
            })?;
        }
        self.tags.apply(txn)?;
        self.postings.apply(self.kb, txn, self.collection)?;
        let after = if self.after == self.before {
            self.after
        } else {
            postings::post_pending_if_due(self.kb, txn, self.collection, self.after)?
        };
        if after != self.before {
            registry::set_ids(self.kb, txn, self.collection, after)?;
        }
        Ok(())
    }
}

//! Dense queries: the nearest clusters for the points that are in clusters, an exact scan for the others. Of a small collection,
//! the scan reads quantised vectors, and the exact ones of the few points that may be among the nearest.

use std::ops::Bound;

use heed::RoTxn;
use roaring::RoaringBitmap;

use super::{
    cache::{CodeTable, PointCache},
    keys,
    registry::{self, IdCounters},
    stored_vector::StoredVector,
    top_k::TopK,
};
use crate::{
    clusters::Clusters,
    codec::{damaged, strip_checksum},
    env::Kb,
    error::{FailureKind, InternalResult},
};

/// Extra candidates beyond the limit: they are chosen by single-precision products, whose order may differ from that
/// of the exact cosines by a place or two.
const MARGIN: usize = 16;
/// Reading all rows is faster than looking up each selected one if at least one of this many rows is selected.
const LOOKUP_FACTOR: u64 = 8;
/// The same for quantised rows, which are in memory.
const CODES_LOOKUP_FACTOR: u64 = 64;

/// While more than one of this many points is not in the clusters, the quantised vectors stay in memory.
const BUILDING_SHARE: u64 = 10;

/// A dense query of a collection.
pub(crate) struct DenseQuery<'q> {
    pub(crate) collection: u16,
    pub(crate) vector: &'q [f32],
    /// The points to search.
    pub(crate) points: &'q RoaringBitmap,
    /// The number of points of the collection.
    pub(crate) total: u64,
    pub(crate) limit: usize,
}

impl DenseQuery<'_> {
    /// Whether all points of the collection are searched.
    pub(crate) fn has_all(&self) -> bool {
        self.points.len() == self.total
    }
}

/// The points with the highest cosines, including ties with the last.
pub(crate) fn search(
    kb: &Kb,
    txn: &RoTxn,
    (clusters, codes): (&Clusters, &PointCache<CodeTable>),
    query: &DenseQuery,
) -> InternalResult<Vec<(f32, u32)>> {
    if query.limit == 0 {
        return Ok(Vec::new());
    }
    let found = if clusters.scans_all(query.total) {
        scan_codes(kb, txn, codes, query)?
    } else {
        scan_clusters(kb, txn, (clusters, codes), query)?
    };
    rescore(kb, txn, query, found)
}

/// A point that may be among the nearest, behind the most that its cosine can be.
pub(crate) type Candidate = (f32, u32);

/// The points that may be among the nearest: those in the nearest clusters, and the newer ones.
fn scan_clusters(
    kb: &Kb,
    txn: &RoTxn,
    (clusters, codes): (&Clusters, &PointCache<CodeTable>),
    query: &DenseQuery,
) -> InternalResult<Vec<Candidate>> {
    let open = clusters.open(query.collection);
    let newer = open.as_ref().map_or(query.total, |open| query.points.range_cardinality(open.watermark()..));
    // The collection has become large, and its clusters are being built.
    if newer > query.points.len() / BUILDING_SHARE && codes.has(query.collection) {
        return scan_codes(kb, txn, codes, query);
    }
    codes.forget(query.collection);
    let scanned = open.filter(|_| clusters.suit(query.points.len()));
    let scanned = scanned.and_then(|open| Some((open.nearest(query)?, open.watermark())));
    let (mut found, from) = scanned.unwrap_or_default();
    found.extend(scan_vectors(kb, txn, query, from)?);
    Ok(found)
}

/// All points that may be among the nearest, by a scan of quantised vectors.
fn scan_codes(
    kb: &Kb,
    txn: &RoTxn,
    codes: &PointCache<CodeTable>,
    query: &DenseQuery,
) -> InternalResult<Vec<Candidate>> {
    if query.points.len() * CODES_LOOKUP_FACTOR < query.total {
        return Ok(query.points.iter().map(|id| (f32::INFINITY, id)).collect());
    }
    let new = || CodeTable::new(query.vector.len());
    let nearest = |table: &CodeTable, ids: IdCounters, end| {
        let admits = |id| id < end && query.points.contains(id);
        (table.nearest(query.vector, query.limit, admits), end..ids.next)
    };
    let (mut found, missing) = codes.read(kb, txn, query.collection, new, nearest)?;
    if !missing.is_empty() {
        found.extend(scan_vectors(kb, txn, query, missing.start)?);
    }
    Ok(found)
}

/// The nearest points with ids from `from` on, by an exact scan.
fn scan_vectors(kb: &Kb, txn: &RoTxn, query: &DenseQuery, from: u32) -> InternalResult<Vec<Candidate>> {
    let end = registry::next_id(kb, txn, query.collection)?;
    let mut top = TopK::new(query.limit.saturating_add(MARGIN));
    let mut score = |id, checksummed: &[u8]| {
        // Only the best candidates are verified later.
        let vector = StoredVector::of_row(checksummed, query.vector.len());
        top.push(vector.map_or(0.0, |vector| vector.scaled_cosine(query.vector)), id);
    };
    if query.points.range_cardinality(from..) * LOOKUP_FACTOR < u64::from(end.saturating_sub(from)) {
        for id in query.points.range(from..) {
            if let Some(checksummed) = kb.tables.dense.get(txn, &keys::row(query.collection, id))? {
                score(id, checksummed);
            }
        }
    } else {
        let (first, last) = (keys::row(query.collection, from), keys::row(query.collection, u32::MAX));
        let range = (Bound::Included(&first[..]), Bound::Included(&last[..]));
        for row in kb.tables.dense.range(txn, &range)? {
            let (key, checksummed) = row?;
            let id = keys::row_id(key).unwrap_or_default();
            if query.has_all() || query.points.contains(id) {
                score(id, checksummed);
            }
        }
    }
    Ok(top.into_top().into_iter().map(|(_, id)| (f32::INFINITY, id)).collect())
}

/// The exact cosines of the nearest candidates from verified vectors, cut to the limit. A damaged vector is skipped and
/// logged, so that the others are still found.
fn rescore(
    kb: &Kb,
    txn: &RoTxn,
    query: &DenseQuery,
    mut found: Vec<Candidate>,
) -> InternalResult<Vec<(f32, u32)>> {
    // Most of those whose cosines may be the highest raise the threshold above what the others can reach.
    found.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let mut top = TopK::new(query.limit);
    let square = query.vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
    for (at_most, id) in found {
        if !top.admits(at_most) {
            break;
        }
        match cosine(kb, txn, query, square, id) {
            Ok(Some(cosine)) => {
                top.push(cosine, id);
                top.raise_threshold();
            }
            Ok(None) => {}
            Err(failure) if failure.kind() == FailureKind::Corrupt => {
                tracing::error!(%failure, "point with a damaged vector left out of dense queries");
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(top.into_top())
}

/// The cosine of a query, whose squared length is `square`, and the vector of a point, if the point has one; 0 if one of
/// them has length 0.
fn cosine(kb: &Kb, txn: &RoTxn, query: &DenseQuery, square: f64, id: u32) -> InternalResult<Option<f32>> {
    let Some(vector) = stored(kb, txn, query.collection, id, query.vector.len())? else { return Ok(None) };
    let (dot, own_square) = vector.exact_products(query.vector);
    let length = (square * own_square).sqrt();
    let cosine = if length > 0.0 { dot / length } else { 0.0 };
    // Adding zero makes −0 and 0, which are equal, tie.
    Ok(Some(cosine as f32 + 0.0))
}

/// The dense vector of a point, if it has one.
pub(crate) fn vector(
    kb: &Kb,
    txn: &RoTxn,
    collection: u16,
    id: u32,
    dims: usize,
) -> InternalResult<Option<Vec<f32>>> {
    Ok(stored(kb, txn, collection, id, dims)?.map(StoredVector::to_vec))
}

/// The stored form of the dense vector of a point, if it has one.
fn stored<'t>(
    kb: &Kb,
    txn: &'t RoTxn,
    collection: u16,
    id: u32,
    dims: usize,
) -> InternalResult<Option<StoredVector<'t>>> {
    let Some(checksummed) = kb.tables.dense.get(txn, &keys::row(collection, id))? else { return Ok(None) };
    let name = || super::describe_point_part(kb, txn, collection, id, "the dense vector");
    let bytes = strip_checksum(checksummed, name)?;
    StoredVector::decode(bytes, dims).map(Some).ok_or_else(|| damaged(name))
}

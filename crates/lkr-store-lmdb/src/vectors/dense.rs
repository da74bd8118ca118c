//! Dense queries: the graph for the points that it contains, an exact scan for the others.

use std::ops::Bound;

use heed::RoTxn;
use roaring::RoaringBitmap;

use super::{
    bitmap::{self, Field},
    kernel, keys,
    record::decode_dense,
    registry,
    top_k::TopK,
};
use crate::{
    codec::{damaged, strip_checksum},
    env::Kb,
    error::{FailureKind, InternalResult},
    graph::Graphs,
};

/// Extra candidates beyond the limit: they are chosen by single-precision products, whose order may differ from that
/// of the exact cosines by a place or two.
const MARGIN: usize = 16;
/// Reading all rows is faster than looking up each selected one if at least one of this many rows is selected.
const LOOKUP_FACTOR: u64 = 8;
/// A dense query of a collection.
pub(crate) struct DenseQuery<'q> {
    pub(crate) collection: u16,
    pub(crate) vector: &'q [f32],
    pub(crate) selected: Option<&'q RoaringBitmap>,
    pub(crate) limit: usize,
}

/// The points with the highest cosines, including ties with the last.
pub(crate) fn search(
    kb: &Kb,
    txn: &RoTxn,
    graphs: &Graphs,
    query: &DenseQuery,
) -> InternalResult<Vec<(f32, u32)>> {
    if query.limit == 0 {
        return Ok(Vec::new());
    }
    let (mut found, from) = search_graph(kb, txn, graphs, query)?.unwrap_or_default();
    found.extend(scan_vectors(kb, txn, query, from)?);
    rescore(kb, txn, query, found)
}

/// The candidates of the graph and its watermark; `None` if an exact scan is better.
fn search_graph(
    kb: &Kb,
    txn: &RoTxn,
    graphs: &Graphs,
    query: &DenseQuery,
) -> InternalResult<Option<(Vec<u32>, u32)>> {
    let Some(graph) = graphs.open(query.collection) else { return Ok(None) };
    let live;
    let candidates = match query.selected {
        Some(selected) => selected,
        None => {
            live = bitmap::read(kb, txn, query.collection, Field::Live)?;
            &live
        }
    };
    if !graphs.prefers_graph(candidates.len(), graph.items()) {
        return Ok(None);
    }
    let limit = query.limit.saturating_add(MARGIN);
    Ok(graph.nearest(query.vector, candidates, limit).map(|found| (found, graph.watermark())))
}

/// The nearest points with ids from `from` on, by an exact scan.
fn scan_vectors(kb: &Kb, txn: &RoTxn, query: &DenseQuery, from: u32) -> InternalResult<Vec<u32>> {
    let end = registry::next_id(kb, txn, query.collection)?;
    let mut top = TopK::new(query.limit.saturating_add(MARGIN));
    let mut score = |id, checksummed: &[u8]| {
        // Only the best candidates are verified later.
        let inverse =
            checksummed.get(4..8).and_then(|bytes| bytes.try_into().ok()).map_or(0.0, f32::from_le_bytes);
        let values = checksummed.get(8..).unwrap_or_default();
        top.push(kernel::dot(query.vector, values) * inverse, id);
    };
    match query.selected {
        Some(selected)
            if selected.range_cardinality(from..) * LOOKUP_FACTOR < u64::from(end.saturating_sub(from)) =>
        {
            for id in selected.iter().skip_while(|id| *id < from) {
                if let Some(checksummed) = kb.tables.dense.get(txn, &keys::row(query.collection, id))? {
                    score(id, checksummed);
                }
            }
        }
        selected => {
            let (first, last) = (keys::row(query.collection, from), keys::row(query.collection, u32::MAX));
            let range = (Bound::Included(&first[..]), Bound::Included(&last[..]));
            for row in kb.tables.dense.range(txn, &range)? {
                let (key, checksummed) = row?;
                let id = keys::row_id(key).unwrap_or_default();
                if selected.is_none_or(|selected| selected.contains(id)) {
                    score(id, checksummed);
                }
            }
        }
    }
    Ok(top.into_top().into_iter().map(|(_, id)| id).collect())
}

/// The exact cosines of the candidates from verified vectors, cut to the limit. A damaged vector is skipped and
/// logged, so that the others are still found.
fn rescore(kb: &Kb, txn: &RoTxn, query: &DenseQuery, found: Vec<u32>) -> InternalResult<Vec<(f32, u32)>> {
    let mut top = TopK::new(query.limit);
    for id in found {
        match vector(kb, txn, query.collection, id, query.vector.len()) {
            Ok(Some(vector)) => top.push(cosine(query.vector, &vector), id),
            Ok(None) => {}
            Err(failure) if failure.kind() == FailureKind::Corrupt => {
                tracing::error!(%failure, "point with a damaged vector left out of dense queries");
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(top.into_top())
}

/// The cosine of two vectors; 0 if one of them has length 0.
fn cosine(query: &[f32], vector: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let length = (dot(query, query) * dot(vector, vector)).sqrt();
    let cosine = if length > 0.0 { dot(query, vector) / length } else { 0.0 };
    // Adding zero makes −0 and 0, which are equal, tie.
    cosine as f32 + 0.0
}

/// The dense vector of a point, if it has one.
pub(crate) fn vector(
    kb: &Kb,
    txn: &RoTxn,
    collection: u16,
    id: u32,
    dims: usize,
) -> InternalResult<Option<Vec<f32>>> {
    let Some(checksummed) = kb.tables.dense.get(txn, &keys::row(collection, id))? else { return Ok(None) };
    let name = || super::describe_point_part(kb, txn, collection, id, "the dense vector");
    decode_dense(strip_checksum(checksummed, name)?, dims).map(Some).ok_or_else(|| damaged(name))
}

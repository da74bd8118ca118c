//! The quantised vectors of a collection, in memory.

use std::ops::Bound;

use heed::RoTxn;
use roaring::RoaringBitmap;

use super::{GONE_SHARE, PointTable};
use crate::{
    env::Kb,
    error::InternalResult,
    vectors::{
        bitmap::{self, Field},
        dense::Candidate,
        keys,
        quantised::{Quantised, QuantisedQuery, QuantisedRow},
        registry::IdCounters,
        stored_vector::StoredVector,
        top_k::TopK,
    },
};

/// Quantised vectors, ordered by id.
#[derive(Debug)]
pub(crate) struct CodeTable {
    dims: usize,
    rows: Vec<CodeRow>,
    /// The codes of all rows, one after the other.
    codes: Vec<u8>,
}

/// A quantised vector but its codes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CodeRow {
    id: u32,
    scale: f32,
    error: f32,
}

impl CodeTable {
    pub(crate) const fn new(dims: usize) -> Self {
        Self { dims, rows: Vec::new(), codes: Vec::new() }
    }

    /// Adds the vector of a row. A row without one of the collection's dimensions is left to the check of the candidates: it
    /// is always one.
    fn push(&mut self, id: u32, checksummed: &[u8]) {
        let vector = StoredVector::of_row(checksummed, self.dims).map(StoredVector::to_vec);
        let quantised = vector.as_deref().and_then(Quantised::of);
        self.push_row(&quantised.unwrap_or_else(|| Quantised::anywhere(self.dims)).row(id));
    }

    fn push_row(&mut self, row: &QuantisedRow) {
        self.rows.push(CodeRow { id: row.id, scale: row.scale, error: row.error });
        self.codes.extend_from_slice(row.codes);
    }

    fn retain(&mut self, live: &RoaringBitmap) {
        let mut kept = Self::new(self.dims);
        self.rows().filter(|row| live.contains(row.id)).for_each(|row| kept.push_row(&row));
        (self.rows, self.codes) = (kept.rows, kept.codes);
    }

    fn rows(&self) -> impl Iterator<Item = QuantisedRow<'_>> {
        // A collection has no vectors of no dimensions.
        let rows = self.rows.iter().zip(self.codes.chunks_exact(self.dims.max(1)));
        rows.map(|(row, codes)| QuantisedRow { id: row.id, scale: row.scale, error: row.error, codes })
    }

    /// A few more than the `limit` points nearest to `query` among the admitted ones: all that may be among them, and all
    /// that may tie with the last.
    pub(crate) fn nearest(
        &self,
        query: &[f32],
        limit: usize,
        admits: impl Fn(u32) -> bool,
    ) -> Vec<Candidate> {
        let Some(query) = QuantisedQuery::new(query) else {
            let admitted = self.rows.iter().map(|row| row.id).filter(|id| admits(*id));
            return admitted.map(|id| (f32::INFINITY, id)).collect();
        };
        let bounds: Vec<[f32; 2]> = self.rows().map(|row| query.bounds(&row)).collect();
        let mut lowest = TopK::new(limit);
        for (row, [at_least, _]) in self.rows.iter().zip(&bounds) {
            if lowest.admits(*at_least) && admits(row.id) {
                lowest.push(*at_least, row.id);
            }
        }
        let threshold = lowest.into_threshold();
        let near = self.rows.iter().zip(&bounds).filter(|(_, [_, at_most])| *at_most >= threshold);
        near.map(|(row, [_, at_most])| (*at_most, row.id)).filter(|(_, id)| admits(*id)).collect()
    }
}

impl PointTable for CodeTable {
    /// Adds the new points, and removes those that are gone if they are many.
    fn extend(
        &mut self,
        kb: &Kb,
        txn: &RoTxn,
        collection: u16,
        from: u32,
        ids: IdCounters,
    ) -> InternalResult<bool> {
        let live = bitmap::read(kb, txn, collection, Field::Live)?;
        let mut added = Self::new(self.dims);
        let (first, last) = (keys::row(collection, from), keys::row(collection, ids.next));
        let range = (Bound::Included(&first[..]), Bound::Excluded(&last[..]));
        for row in kb.tables.dense.range(txn, &range)? {
            let (key, checksummed) = row?;
            let id = keys::row_id(key).unwrap_or_default();
            added.push(id, checksummed);
        }
        self.rows.append(&mut added.rows);
        self.codes.append(&mut added.codes);
        let gone = (self.rows.len() as u64).saturating_sub(live.len());
        let has_removed = gone * GONE_SHARE > self.rows.len() as u64;
        if has_removed {
            self.retain(&live);
        }
        Ok(has_removed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{codec::with_checksum, vectors::stored_vector};

    const DIMS: usize = 40;

    fn table(vectors: &[Vec<f32>]) -> CodeTable {
        let mut table = CodeTable::new(DIMS);
        for (vector, id) in vectors.iter().zip(0..) {
            table.push(id, &with_checksum(&stored_vector::encode(vector)));
        }
        table
    }

    fn ids(found: Vec<Candidate>) -> Vec<u32> {
        found.into_iter().map(|(_, id)| id).collect()
    }

    /// The vector as it is stored.
    fn stored(vector: &[f32]) -> Vec<f32> {
        StoredVector::decode(&stored_vector::encode(vector), DIMS).unwrap().to_vec()
    }

    fn cosine(a: &[f32], b: &[f32]) -> f64 {
        let dot =
            |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
        let length = (dot(a, a) * dot(b, b)).sqrt();
        if length > 0.0 { dot(a, b) / length } else { 0.0 }
    }

    /// Vectors of few different values, so that many cosines tie, and of very different lengths.
    fn vectors() -> impl Strategy<Value = Vec<Vec<f32>>> {
        let value = prop_oneof![Just(0.0_f32), Just(1.0), -1.0_f32..1.0, -1e-3_f32..1e-3];
        let length = prop_oneof![Just(1.0_f32), Just(1e-18), Just(1e15)];
        let vector = (prop::collection::vec(value, DIMS), length)
            .prop_map(|(values, length)| values.into_iter().map(|value| value * length).collect());
        prop::collection::vec(vector, 1..120)
    }

    proptest! {
        #[test]
        fn nearest_has_all_points_that_an_exact_scan_finds(
            vectors in vectors(), query in 0_usize..120, limit in 0_usize..30, every in 1_u32..4,
        ) {
            let table = table(&vectors);
            let query = &vectors[query % vectors.len()];
            let admits = |id: u32| id.is_multiple_of(every);
            let found = ids(table.nearest(query, limit, admits));
            prop_assert!(found.iter().all(|id| admits(*id)));
            let mut exact: Vec<(f32, u32)> =
                vectors.iter().zip(0..).map(|(vector, id)| (cosine(query, &stored(vector)) as f32, id)).collect();
            exact.retain(|(_, id)| admits(*id));
            exact.sort_by(|a, b| b.0.total_cmp(&a.0));
            let last = limit.checked_sub(1).map(|last| exact.get(last).map_or(-1.0, |(cosine, _)| *cosine));
            for (cosine, id) in exact {
                prop_assert!(last.is_none_or(|last| cosine < last) || found.contains(&id));
            }
        }
    }

    #[test]
    fn damaged_vector_is_always_a_candidate() {
        let mut table = table(&[vec![1.0; DIMS], vec![-1.0; DIMS]]);
        table.push(2, &[0; 3]);
        for (id, bytes) in [(3, 2), (4, 4)] {
            table.push(id, &vec![u8::MAX; 8 + bytes * DIMS]);
        }
        assert_eq!(ids(table.nearest(&[1.0; DIMS], 1, |_| true)), [0, 2, 3, 4]);
    }

    #[test]
    fn retain_removes_the_points_that_are_gone() {
        let mut table = table(&[vec![1.0; DIMS], vec![-1.0; DIMS], vec![0.5; DIMS]]);
        table.retain(&RoaringBitmap::from([0, 2]));
        assert_eq!((table.rows.len(), table.codes.len()), (2, 2 * DIMS));
        assert_eq!(ids(table.nearest(&[1.0; DIMS], 1, |_| true)), [0, 2], "they tie");
    }
}

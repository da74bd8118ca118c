//! Scans the clusters that are nearest to a query.

use std::{iter, sync::Arc};

use heed::{RoTxn, WithoutTls};

use super::{
    Clusters, WITHOUT_DIRECTION,
    table::{ClusterEnv, ClusterInfo},
};
use crate::{
    error::InternalResult,
    vectors::{Candidate, DenseQuery, QuantisedQuery, QuantisedRow, TopK},
};

/// The clusters of a collection on the snapshot of a read transaction.
pub(crate) struct OpenClusters<'c> {
    clusters: &'c Clusters,
    env: Arc<ClusterEnv>,
    txn: RoTxn<'static, WithoutTls>,
    info: ClusterInfo,
}

impl<'c> OpenClusters<'c> {
    pub(super) fn open(clusters: &'c Clusters, env: Arc<ClusterEnv>, collection: u16) -> Option<Self> {
        let opened = env.env.clone().static_read_txn().map_err(Into::into).and_then(|txn| {
            let row = env.row(&txn, collection)?;
            Ok((txn, row))
        });
        match opened {
            Ok((txn, Some(row))) if row.current.items > 0 => {
                Some(Self { clusters, env, txn, info: row.current })
            }
            Ok(_) => None,
            Err(failure) => {
                clusters.report_failure(&failure);
                None
            }
        }
    }

    /// Points from this id on are not in the clusters.
    pub(crate) const fn watermark(&self) -> u32 {
        self.info.watermark
    }

    /// The points that may be among the nearest in the clusters that are scanned; `None` if the clusters are damaged, or the
    /// query has no direction.
    pub(crate) fn nearest(&self, query: &DenseQuery) -> Option<Vec<Candidate>> {
        let unit = QuantisedQuery::new(query.vector)?;
        let found = self.scan(query, &unit);
        found.inspect_err(|failure| self.clusters.report_failure(failure)).ok()
    }

    fn scan(&self, query: &DenseQuery, unit: &QuantisedQuery) -> InternalResult<Vec<Candidate>> {
        let centroids = self.env.centroids(&self.txn, &self.info, query.vector.len())?;
        let mut nearest: Vec<(f32, u32)> = centroids.map(|row| (unit.cosine(&row), row.id)).collect();
        nearest.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let mut scan = Scan::new(query, unit);
        let enough = self.clusters.points_to_scan(query.points.len(), query.limit);
        for cluster in iter::once(WITHOUT_DIRECTION).chain(nearest.into_iter().map(|(_, id)| id)) {
            for block in self.env.blocks(&self.txn, &self.info, cluster, query.vector.len())? {
                block?.for_each(|row| scan.see(&row));
                scan.lowest.raise_threshold();
            }
            if scan.seen >= enough {
                break;
            }
        }
        Ok(scan.into_near())
    }
}

/// How many rows ahead a scan prefetches. The clusters that a query scans are rarely in the processor's cache, and its own prefetcher
/// stops at the end of a page.
const ROWS_AHEAD: usize = 4;

/// What a scan has found so far.
struct Scan<'q> {
    query: &'q DenseQuery<'q>,
    unit: &'q QuantisedQuery,
    /// Whether all points of the collection are searched.
    has_all: bool,
    /// The number of points that were scanned and are searched.
    seen: u64,
    /// The least that the cosines of the nearest points can be.
    lowest: TopK,
    may_be_near: Vec<Candidate>,
}

impl<'q> Scan<'q> {
    fn new(query: &'q DenseQuery<'q>, unit: &'q QuantisedQuery) -> Self {
        let lowest = TopK::new(query.limit);
        Self { query, unit, has_all: query.has_all(), seen: 0, lowest, may_be_near: Vec::new() }
    }

    fn see(&mut self, row: &QuantisedRow) {
        row.prefetch_later(ROWS_AHEAD);
        // Most points of a query in all of a collection are searched: the bitmap is asked for near ones alone.
        if !self.has_all && !self.query.points.contains(row.id) {
            return;
        }
        self.seen += 1;
        let [at_least, at_most] = self.unit.likely_bounds(row);
        if self.lowest.admits(at_most) && (!self.has_all || self.query.points.contains(row.id)) {
            self.lowest.push(at_least, row.id);
            self.may_be_near.push((at_most, row.id));
        }
    }

    /// All points that may be among the nearest of those that were scanned, or tie with the last.
    fn into_near(mut self) -> Vec<Candidate> {
        let threshold = self.lowest.into_threshold();
        self.may_be_near.retain(|(at_most, _)| *at_most >= threshold);
        self.may_be_near
    }
}

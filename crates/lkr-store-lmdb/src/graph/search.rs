//! Searches a graph.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use hannoy::{Reader, distances::Cosine};
use heed::{RoTxn, WithoutTls};
use roaring::RoaringBitmap;

use super::{
    Graphs,
    table::{GraphEnv, GraphInfo},
};

/// A graph on the snapshot of a read transaction.
pub(crate) struct OpenGraph<'g> {
    graphs: &'g Graphs,
    env: Arc<GraphEnv>,
    txn: RoTxn<'static, WithoutTls>,
    graph: GraphInfo,
}

impl<'g> OpenGraph<'g> {
    pub(super) fn open(graphs: &'g Graphs, env: Arc<GraphEnv>, collection: u16) -> Option<Self> {
        let opened = env.env.clone().static_read_txn().map_err(Into::into).and_then(|txn| {
            let row = env.row(&txn, collection)?;
            Ok((txn, row))
        });
        match opened {
            Ok((txn, Some(row))) if row.current.items > 0 => {
                Some(Self { graphs, env, txn, graph: row.current })
            }
            Ok(_) => None,
            Err(failure) => {
                graphs.report_failure(&failure);
                None
            }
        }
    }

    /// Points from this id on are not in the graph.
    pub(crate) const fn watermark(&self) -> u32 {
        self.graph.watermark
    }

    /// The number of points in the graph, including deleted ones.
    pub(crate) fn items(&self) -> u64 {
        self.graph.items.into()
    }

    /// Approximately the `limit` nearest candidates in the graph; `None` if the graph is damaged.
    pub(crate) fn nearest(
        &self,
        vector: &[f32],
        candidates: &RoaringBitmap,
        limit: usize,
    ) -> Option<Vec<u32>> {
        // Damaged pages may contain anything, and may make hannoy panic.
        let found = catch_unwind(AssertUnwindSafe(|| self.walk(vector, candidates, limit)));
        match found {
            Ok(Ok(found)) => Some(found),
            Ok(Err(error)) => {
                self.graphs.report_damage(&error.to_string());
                None
            }
            Err(_) => {
                self.graphs.report_damage("a search panicked");
                None
            }
        }
    }

    fn walk(&self, vector: &[f32], candidates: &RoaringBitmap, limit: usize) -> hannoy::Result<Vec<u32>> {
        let txn: &RoTxn = &self.txn;
        let reader = Reader::<Cosine>::open(txn, self.graph.index, self.env.graphs)?;
        let ef = self.graphs.options.ef_search.max(limit.saturating_mul(2));
        let mut query = reader.nns(limit);
        query.ef_search(ef).linear_below(0).candidates(candidates);
        Ok(query.by_vector(txn, vector)?.into_nns().into_iter().map(|(id, _)| id).collect())
    }
}

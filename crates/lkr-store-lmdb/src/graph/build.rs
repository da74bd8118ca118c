//! The thread that builds the graphs.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use heed::{RoTxn, RwTxn};
use rand::{SeedableRng, rngs::StdRng};
use rayon::{ThreadPool, ThreadPoolBuilder};
use roaring::RoaringBitmap;

use super::{
    Graphs, StartupState, folder,
    table::{GraphEnv, GraphInfo, GraphRow},
};
use crate::{
    env::Kb,
    error::{Failure, FailureKind, InternalResult},
    state,
    vectors::{Field, read_bitmap, read_vector, registry},
    writer::Writer,
};

/// The maximum number of links of a point, above the lowest layer and in it. See docs/studies.md#dense-graph.
const MAX_LINKS: usize = 16;
const MAX_LINKS_LOWEST: usize = 32;
/// How long the thread sleeps if nothing changes, and after a failure.
const IDLE: Duration = Duration::from_secs(10);
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// The minimum time between rounds, so that single writes do not keep the thread busy.
const ROUND_INTERVAL: Duration = Duration::from_millis(50);
/// The largest batch, unless `graph_batch` is larger: closing the store waits for its end.
const MAX_BATCH: u64 = 4_000;
/// The number of rows that one cleanup job removes.
const CLEANUP_ROWS: usize = 2_000;
/// How often free pages are looked for.
const GIVE_BACK_INTERVAL: Duration = Duration::from_secs(10);

pub(super) struct Builder {
    pub(super) graphs: Arc<Graphs>,
    pub(super) kb: Kb,
    pub(super) writer: Writer,
}

/// A collection's points, as `kb` has them.
struct CollectionPoints {
    collection: u16,
    dims: usize,
    live: RoaringBitmap,
    next_id: u32,
}

impl Builder {
    pub(super) const fn new(graphs: Arc<Graphs>, kb: Kb, writer: Writer) -> Self {
        Self { graphs, kb, writer }
    }

    pub(super) fn run(&self, entry: &StartupState) {
        let pool = ThreadPoolBuilder::new()
            .num_threads(self.graphs.options.build_threads)
            .thread_name(|_| "lkr-graph-build".to_owned())
            .build();
        let pool = match pool {
            Ok(pool) => pool,
            Err(error) => {
                tracing::error!(%error, "vector graph threads could not be started; searches scan all vectors");
                return;
            }
        };
        self.log_failure("open the vector graph", || self.load(entry));
        let mut look_at = Instant::now();
        let mut has_holes = true;
        while !self.graphs.stopped() {
            self.log_failure("clean up", || self.clean_up());
            if has_holes && Instant::now() >= look_at {
                self.log_failure("give free space back", || self.give_back(&mut has_holes));
                look_at = Instant::now() + GIVE_BACK_INTERVAL;
            }
            if let Some(failure) = self.log_failure("build the vector graph", || self.feed_all(&pool)) {
                self.graphs.report_failure(&failure);
            }
            self.graphs.wait(IDLE);
            self.graphs.pause(ROUND_INTERVAL);
        }
        self.with_checksum();
    }

    /// Runs `work`. A failure is logged, and the next round tries again after a pause.
    fn log_failure(&self, what: &str, work: impl FnOnce() -> InternalResult<()>) -> Option<Failure> {
        let done = catch_unwind(AssertUnwindSafe(work));
        let failure = done.unwrap_or_else(|_| Err(Failure::corrupt("the builder panicked"))).err()?;
        tracing::warn!(%failure, "could not {what}; retrying");
        self.graphs.pause(AFTER_FAILURE);
        Some(failure)
    }

    /// Removes expired records and rows of dropped collections.
    fn clean_up(&self) -> InternalResult<()> {
        loop {
            let txn = self.kb.snapshot()?;
            let (expired, dropped) =
                (state::any_expired(&self.kb, &txn)?, registry::any_dropped(&self.kb, &txn)?);
            drop(txn);
            if self.graphs.stopped() || !(expired || dropped) {
                return Ok(());
            }
            let kb = self.kb.clone();
            self.writer.write_blocking(move |txn| {
                state::purge(&kb, txn, CLEANUP_ROWS)?;
                registry::purge_dropped(&kb, txn, CLEANUP_ROWS)
            })?;
        }
    }

    /// Gives free pages back to the file system, in slices between other writes. `has_holes` becomes false if the file
    /// system cannot take them.
    fn give_back(&self, has_holes: &mut bool) -> InternalResult<()> {
        let spare = self.graphs.options.spare_bytes;
        let (mut next, mut bytes) = (Some(0), 0);
        while let Some(from) = next.filter(|_| !self.graphs.stopped()) {
            let kb = self.kb.clone();
            let Some(given) = self.writer.between_blocking(move || kb.give_back(spare, from))? else {
                *has_holes = false;
                return Ok(());
            };
            (next, bytes) = (given.next, bytes + given.bytes);
            self.graphs.pause(ROUND_INTERVAL);
        }
        if bytes > 0 {
            tracing::debug!(bytes, "free space given back to the file system");
        }
        Ok(())
    }

    /// Updates all graphs until they are complete.
    fn feed_all(&self, pool: &ThreadPool) -> InternalResult<()> {
        if self.graphs.damaged.load(Ordering::Relaxed) || self.graphs.current().is_none() {
            self.graphs.publish(None);
            self.start_over()?;
        }
        let Some(env) = self.graphs.current() else { return Ok(()) };
        self.drop_orphan_graphs(&env)?;
        let collections = self.collections().map_err(kb_failure)?;
        for entry in collections {
            let Some(dims) = entry.dims() else { continue };
            while !self.graphs.stopped() && self.feed(&env, pool, entry.number, dims)? {}
        }
        self.with_checksum();
        Ok(())
    }

    /// Removes the graphs of dropped collections.
    fn drop_orphan_graphs(&self, env: &GraphEnv) -> InternalResult<()> {
        let rows = env.all_rows(&*env.env.read_txn()?)?;
        let entry = self.collections().map_err(kb_failure)?;
        for (collection, row) in rows {
            if entry.iter().all(|entry| entry.number != collection) {
                folder::remove_fingerprint(&env.path)?;
                let mut txn = env.env.write_txn()?;
                for index in row.indexes() {
                    env.writer(&GraphInfo::empty(index), 0).clear(&mut txn).map_err(failure)?;
                }
                env.rows.delete(&mut txn, &super::row_key(collection))?;
                txn.commit()?;
            }
        }
        Ok(())
    }

    /// Adds one batch to a collection's graph, or to its replacement; `false` if there was nothing to do.
    fn feed(&self, env: &GraphEnv, pool: &ThreadPool, collection: u16, dims: usize) -> InternalResult<bool> {
        let rows = env.all_rows(&*env.env.read_txn()?)?;
        let present = rows.iter().find(|(number, _)| *number == collection).map(|(_, row)| *row);
        let kb_txn = self.kb.snapshot()?;
        let points = self.points(&kb_txn, collection, dims).map_err(kb_failure)?;
        let Some((row, target)) = plan(&self.graphs, &rows, present, &points) else { return Ok(false) };
        let batch = self.batch(&points, target.watermark);
        folder::remove_fingerprint(&env.path)?;
        let mut txn = env.env.write_txn()?;
        let fed = self.insert(env, &mut txn, &kb_txn, &points, target, &batch)?;
        drop(kb_txn);
        if fed.items > target.items {
            build(env, &mut txn, pool, fed.index, dims, self.graphs.options.ef_construction)?;
        }
        let row = updated_row(env, &mut txn, row, fed, dims)?;
        env.put_row(&mut txn, collection, &row)?;
        txn.commit()?;
        Ok(true)
    }

    fn collections(&self) -> InternalResult<Vec<registry::CollectionEntry>> {
        registry::all(&self.kb, &*self.kb.snapshot()?)
    }

    fn points(&self, txn: &RoTxn, collection: u16, dims: usize) -> InternalResult<CollectionPoints> {
        let live = read_bitmap(&self.kb, txn, collection, Field::Live)?;
        let next_id = registry::next_id(&self.kb, txn, collection)?;
        Ok(CollectionPoints { collection, dims, live, next_id })
    }

    /// The ids of the next batch. It grows with the collection, because each build also costs time in proportion to
    /// the graph.
    fn batch(&self, points: &CollectionPoints, watermark: u32) -> Vec<u32> {
        let smallest = u64::from(self.graphs.options.graph_batch);
        let size = smallest.max((points.live.len() / 50).min(MAX_BATCH)) as usize;
        let mut ids = points.live.iter();
        ids.advance_to(watermark);
        ids.take(size).collect()
    }

    /// Inserts the vectors of the batch, and returns the updated graph.
    fn insert(
        &self,
        env: &GraphEnv,
        txn: &mut RwTxn,
        kb_txn: &RoTxn,
        points: &CollectionPoints,
        graph: GraphInfo,
        batch: &[u32],
    ) -> InternalResult<GraphInfo> {
        let writer = env.writer(&graph, points.dims);
        let mut items = graph.items;
        for id in batch {
            match read_vector(&self.kb, kb_txn, points.collection, *id, points.dims) {
                Ok(Some(vector)) => {
                    writer.add_item(txn, *id, &vector).map_err(failure)?;
                    items += 1;
                }
                Ok(None) => {}
                Err(failure) if failure.kind() == FailureKind::Corrupt => {
                    tracing::error!(%failure, "point with a damaged vector left out of the graph");
                }
                Err(failure) => return Err(kb_failure(failure)),
            }
        }
        let rest = batch.last().is_none_or(|last| points.live.max() == Some(*last));
        let watermark =
            if rest { points.next_id } else { batch.last().map_or(graph.watermark, |last| last + 1) };
        Ok(GraphInfo { items, watermark, ..graph })
    }

    /// Writes the fingerprint of the folder after changes.
    fn with_checksum(&self) {
        if let Some(env) = self.graphs.current()
            && let Err(error) = folder::write_fingerprint(&env.path)
        {
            tracing::warn!(%error, "fingerprint of the vector graph could not be written");
        }
    }
}

/// Which graph is updated next, if any, and its row. A collection that is always scanned keeps the graph that it had when it
/// was larger, as it is: it may grow again.
fn plan(
    graphs: &Graphs,
    rows: &[(u16, GraphRow)],
    present: Option<GraphRow>,
    points: &CollectionPoints,
) -> Option<(GraphRow, GraphInfo)> {
    if graphs.scans_all(points.live.len()) {
        return None;
    }
    let Some(row) = present else {
        let current = GraphInfo::empty(free_index(rows)?);
        return Some((GraphRow { current, next: None }, current));
    };
    if let Some(next) = row.next {
        return Some((row, next));
    }
    let waiting = points.live.range_cardinality(row.current.watermark..);
    let dead =
        u64::from(row.current.items).saturating_sub(points.live.range_cardinality(..row.current.watermark));
    if dead * 3 > row.current.items.into() {
        let next = GraphInfo::empty(free_index(rows)?);
        return Some((GraphRow { next: Some(next), ..row }, next));
    }
    let enough = u64::from(graphs.options.graph_batch).max(points.live.len() / 100);
    (waiting >= enough).then_some((row, row.current))
}

/// The smallest unused graph number.
fn free_index(rows: &[(u16, GraphRow)]) -> Option<u16> {
    let taken: Vec<u16> = rows.iter().flat_map(|(_, row)| row.indexes()).collect();
    (0..=u16::MAX).find(|index| !taken.contains(index))
}

/// Builds the links of the inserted points.
fn build(
    env: &GraphEnv,
    txn: &mut RwTxn,
    pool: &ThreadPool,
    index: u16,
    dims: usize,
    ef: usize,
) -> InternalResult<()> {
    let writer = env.writer(&GraphInfo::empty(index), dims);
    let mut rng = StdRng::from_rng(&mut rand::rng());
    pool.install(|| {
        let mut builder = writer.builder(&mut rng);
        builder.ef_construction(ef).build::<MAX_LINKS, MAX_LINKS_LOWEST>(txn)
    })
    .map_err(failure)
}

/// The row after an update. A replacement takes over when it has reached the watermark of the current graph.
fn updated_row(
    env: &GraphEnv,
    txn: &mut RwTxn,
    row: GraphRow,
    fed: GraphInfo,
    dims: usize,
) -> InternalResult<GraphRow> {
    if row.current.index == fed.index {
        return Ok(GraphRow { current: fed, ..row });
    }
    if fed.watermark < row.current.watermark {
        return Ok(GraphRow { next: Some(fed), ..row });
    }
    env.writer(&row.current, dims).clear(txn).map_err(failure)?;
    Ok(GraphRow { current: fed, next: None })
}

/// A failure to read `kb` is no damage of the graph, whatever its kind.
fn kb_failure(failure: Failure) -> Failure {
    failure.into_kind(FailureKind::Unavailable)
}

fn failure(error: hannoy::Error) -> Failure {
    match error {
        hannoy::Error::Heed(error) => error.into(),
        hannoy::Error::Io(error) => error.into(),
        other => Failure::corrupt(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::LmdbOptions;

    /// The graph that is updated next in a collection with these points.
    fn planned(present: Option<GraphRow>, live: std::ops::Range<u32>) -> Option<GraphInfo> {
        let options = LmdbOptions { codes_below: 100, graph_batch: 10, ..LmdbOptions::default() };
        let graphs = Graphs::new(PathBuf::new(), &options);
        let points = CollectionPoints {
            collection: 1,
            dims: 2,
            next_id: live.end,
            live: live.into_iter().collect::<RoaringBitmap>(),
        };
        let rows: Vec<(u16, GraphRow)> = present.into_iter().map(|row| (1, row)).collect();
        plan(&graphs, &rows, present, &points).map(|(_, graph)| graph)
    }

    #[test]
    fn graph_of_a_collection_that_is_scanned_is_not_updated() {
        let current = GraphInfo { index: 0, watermark: 200, items: 200 };
        let row = GraphRow { current, next: None };
        let replaced = GraphRow { next: Some(GraphInfo::empty(1)), ..row };
        for (present, larger) in [
            (None, GraphInfo::empty(0)),
            (Some(row), GraphInfo::empty(1)),
            (Some(replaced), GraphInfo::empty(1)),
        ] {
            assert_eq!(planned(present, 150..250), None, "{present:?}");
            assert_eq!(planned(present, 150..251), Some(larger), "{present:?}");
        }
        // Nothing is dead, and fifty points wait.
        assert_eq!(planned(Some(row), 0..250), Some(current));
        assert_eq!(planned(Some(row), 0..205), None);
        assert_eq!(planned(Some(GraphRow { current: GraphInfo::empty(0), next: None }), 0..100), None);
    }
}

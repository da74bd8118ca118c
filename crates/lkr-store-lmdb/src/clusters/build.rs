//! The thread that builds the clusters.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use heed::{RoTxn, RwTxn};
use lkr_threads::give_way;
use roaring::RoaringBitmap;

use super::{
    Clusters, StartupState,
    centroids::{self, Centroids},
    folder,
    table::{ClusterEnv, ClusterInfo, ClusterRow},
};
use crate::{
    env::{Kb, Snapshot},
    error::{Failure, FailureKind, InternalResult},
    open_files::OpenFiles,
    packing::Packing,
    state,
    vectors::{Field, Quantised, QuantisedRow, read_bitmap, read_vector, registry},
    writer::Writer,
};

/// How long the thread sleeps if nothing changes, and after a failure.
const IDLE: Duration = Duration::from_secs(10);
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// The longest pause after clusters could not be built. Each attempt may make centroids anew, which takes seconds.
const AFTER_FAILURES: Duration = Duration::from_secs(60);
/// The minimum time between rounds, so that single writes do not keep the thread busy.
const ROUND_INTERVAL: Duration = Duration::from_millis(50);
/// The largest batch, unless `cluster_batch` is larger: closing the store waits for its end.
const MAX_BATCH: u32 = 20_000;
/// Centroids are made again when a collection has this many times the points that it had.
const OUTGROWN: u64 = 4;
/// New points are added to clusters when they are one of this many.
const BATCH_SHARE: u64 = 200;
/// The same once nothing was written for a while: a search scans what is not in clusters. Each batch ends in reading the
/// whole file for its fingerprint.
const IDLE_BATCH_SHARE: u64 = 2_000;
/// The number of rows that one cleanup job removes.
const CLEANUP_ROWS: usize = 2_000;
/// How often free pages are looked for.
const GIVE_BACK_INTERVAL: Duration = Duration::from_secs(10);
/// How often tables are looked at whose pages may be part empty.
const PACKING_INTERVAL: Duration = Duration::from_secs(10);
/// Pages are packed while nothing was written for so long, for so long at a time.
const BEFORE_PACKING: Duration = Duration::from_millis(20);
const PACKING_TIME: Duration = Duration::from_millis(100);
/// How long no pass is begun after one that failed.
const AFTER_FAILED_PACKING: Duration = Duration::from_secs(600);

pub(super) struct Builder {
    pub(super) clusters: Arc<Clusters>,
    /// Those of the store.
    pub(super) files: Arc<OpenFiles>,
    pub(super) kb: Kb,
    pub(super) writer: Writer,
    pub(super) startup: StartupState,
}

/// Whether points are being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Busy,
    /// Nothing was written for [`IDLE`].
    Idle,
}

/// A collection's points, as `kb` has them.
struct CollectionPoints {
    collection: u16,
    dims: usize,
    live: RoaringBitmap,
    next_id: u32,
}

/// What centroids are made from.
struct Sample {
    /// The number of points of the collection.
    live: u32,
    /// The number of centroids.
    clusters: usize,
    /// Encoded rows.
    rows: Vec<u8>,
}

/// How far free pages are given back to the file system.
struct GivingBack {
    /// The page that the next slice begins at, if one was begun.
    from: Option<u64>,
    /// The bytes that were given back so far.
    bytes: u64,
    /// When to begin anew.
    look_at: Instant,
    /// Whether the file system cannot take pages back.
    is_refused: bool,
}

impl Default for GivingBack {
    fn default() -> Self {
        Self { from: None, bytes: 0, look_at: Instant::now(), is_refused: false }
    }
}

/// When clusters are built again that could not be built.
struct Retry {
    failures: u32,
    at: Instant,
}

impl Default for Retry {
    fn default() -> Self {
        Self { failures: 0, at: Instant::now() }
    }
}

impl Retry {
    /// Takes note of an attempt.
    fn note(&mut self, has_failed: bool) {
        *self = if has_failed {
            let failures = self.failures.saturating_add(1);
            Self { failures, at: Instant::now() + Self::pause(failures) }
        } else {
            Self::default()
        };
    }

    /// The pause after so many failures in a row, besides [`AFTER_FAILURE`]. With that, each is twice as long as the one before.
    fn pause(failures: u32) -> Duration {
        AFTER_FAILURE.saturating_mul((1 << failures.clamp(1, 16)) / 2 - 1).min(AFTER_FAILURES)
    }
}

impl CollectionPoints {
    /// Points below this id are in the clusters once `batch`, which begins at `watermark`, was added.
    fn watermark_after(&self, batch: &[u32], watermark: u32) -> u32 {
        match batch.last() {
            Some(last) if self.live.max() != Some(*last) => last + 1,
            Some(_) => self.next_id,
            None if self.live.range_cardinality(watermark..) == 0 => self.next_id,
            None => watermark,
        }
    }
}

impl Builder {
    pub(super) fn run(&self) {
        self.log_failure("open the clusters of vectors", || {
            let loaded = self.load();
            self.end_opening();
            loaded
        });
        self.end_opening();
        let (mut giving_back, mut packing) = (GivingBack::default(), Packing::default());
        let mut retry = Retry::default();
        let mut look_at = Instant::now() + PACKING_INTERVAL;
        while !self.clusters.stopped() {
            // Files are made by their paths, and another store may be there.
            if self.log_failure("work on the store", || self.files.verify()).is_some() {
                continue;
            }
            self.log_failure("clean up", || self.clean_up());
            self.feed_and_report(Pace::Busy, &mut retry);
            self.log_failure("give free space back", || self.give_back(&mut giving_back));
            if Instant::now() >= look_at {
                look_at = Instant::now() + PACKING_INTERVAL;
                self.log_failure("look for part empty pages", || packing.begin_if_due(&self.kb));
            }
            let until = if packing.is_under_way() { BEFORE_PACKING } else { IDLE };
            if giving_back.from.is_none() && !self.clusters.wait(until) {
                if packing.is_under_way() {
                    if self.log_failure("pack pages", || self.pack(&mut packing)).is_some() {
                        // A full disk, for example, fails every slice.
                        (packing, look_at) = (Packing::default(), Instant::now() + AFTER_FAILED_PACKING);
                    }
                } else {
                    // Nothing was written for a while.
                    self.feed_and_report(Pace::Idle, &mut retry);
                    // Reading all of the file for its fingerprint pays off once nothing changes it.
                    self.with_checksum();
                }
            }
            self.clusters.pause(ROUND_INTERVAL);
        }
        if self.files.verify().is_ok() {
            self.with_checksum();
        }
    }

    /// Lets searches that wait for the clusters go on. Nobody waits for this thread from here on, so it gives way to them.
    pub(super) fn end_opening(&self) {
        self.clusters.update(|signal| signal.opening = false);
        give_way();
    }

    /// Runs `work`. A failure is logged, and the next round follows after a pause.
    fn log_failure(&self, what: &str, work: impl FnOnce() -> InternalResult<()>) -> Option<Failure> {
        let done = catch_unwind(AssertUnwindSafe(work));
        let failure = done.unwrap_or_else(|_| Err(Failure::corrupt("the builder panicked"))).err()?;
        tracing::warn!(%failure, "could not {what}; retrying");
        self.clusters.pause(AFTER_FAILURE);
        Some(failure)
    }

    /// Removes expired records and rows of dropped collections.
    fn clean_up(&self) -> InternalResult<()> {
        loop {
            let txn = self.kb.snapshot()?;
            let (expired, dropped) =
                (state::any_expired(&self.kb, &txn)?, registry::any_dropped(&self.kb, &txn)?);
            drop(txn);
            if self.clusters.stopped() || !(expired || dropped) {
                return Ok(());
            }
            let kb = self.kb.clone();
            self.writer.write_blocking(move |txn| {
                state::purge(&kb, txn, CLEANUP_ROWS)?;
                registry::purge_dropped(&kb, txn, CLEANUP_ROWS)
            })?;
        }
    }

    /// Gives a slice of the free pages back to the file system, or begins anew after a while. A large file has many slices, which
    /// must not delay the clusters of new points.
    fn give_back(&self, giving_back: &mut GivingBack) -> InternalResult<()> {
        let from = giving_back.from.or_else(|| (Instant::now() >= giving_back.look_at).then_some(0));
        let Some(from) = from.filter(|_| !giving_back.is_refused) else { return Ok(()) };
        let (spare, kb) = (self.clusters.options.spare_bytes, self.kb.clone());
        // After a failure, it begins anew.
        giving_back.from = None;
        giving_back.look_at = Instant::now() + GIVE_BACK_INTERVAL;
        let Some(given) = self.writer.between_blocking(move || kb.give_back(spare, from))? else {
            giving_back.is_refused = true;
            return Ok(());
        };
        giving_back.from = given.next;
        giving_back.bytes += given.bytes;
        if giving_back.from.is_none() {
            match std::mem::take(&mut giving_back.bytes) {
                0 => {}
                bytes => tracing::debug!(bytes, "free space given back to the file system"),
            }
        }
        Ok(())
    }

    /// Packs some slices of pages.
    fn pack(&self, packing: &mut Packing) -> InternalResult<()> {
        let until = Instant::now() + PACKING_TIME;
        while packing.is_under_way() && !self.clusters.stopped() && Instant::now() < until {
            packing.step(&self.kb, &self.writer)?;
        }
        Ok(())
    }

    /// Updates all clusters unless that failed a moment ago, and has them rebuilt if it finds damage.
    fn feed_and_report(&self, pace: Pace, retry: &mut Retry) {
        if Instant::now() < retry.at {
            return;
        }
        let failure = self.log_failure("build the clusters of vectors", || self.feed_all(pace));
        retry.note(failure.is_some());
        if let Some(failure) = failure {
            self.clusters.report_failure(&failure);
        }
    }

    /// Updates all clusters until they are complete.
    fn feed_all(&self, pace: Pace) -> InternalResult<()> {
        if self.clusters.damaged.load(Ordering::Relaxed) {
            self.clusters.publish(None);
            self.start_over()?;
        } else if self.clusters.current().is_none() {
            self.load()?;
        }
        let Some(env) = self.clusters.current() else { return Ok(()) };
        self.drop_orphans(&env)?;
        let collections = self.collections().map_err(kb_failure)?;
        for entry in collections {
            let Some(dims) = entry.dims() else { continue };
            while !self.clusters.stopped() && self.feed(&env, (entry.number, dims), pace)? {}
        }
        Ok(())
    }

    /// Removes the clusters of dropped collections.
    fn drop_orphans(&self, env: &ClusterEnv) -> InternalResult<()> {
        let rows = env.all_rows(&*env.env.read_txn()?)?;
        let entry = self.collections().map_err(kb_failure)?;
        for (collection, row) in rows {
            if entry.iter().all(|entry| entry.number != collection) {
                folder::remove_fingerprint(&env.path)?;
                let mut txn = env.env.write_txn()?;
                for info in row.all() {
                    env.clear(&mut txn, &info)?;
                }
                env.delete_row(&mut txn, collection)?;
                txn.commit()?;
            }
        }
        Ok(())
    }

    /// Adds one batch to a collection's clusters, or to their replacement; `false` if there was nothing to do.
    fn feed(&self, env: &ClusterEnv, (collection, dims): (u16, usize), pace: Pace) -> InternalResult<bool> {
        let rows = env.all_rows(&*env.env.read_txn()?)?;
        let present = rows.iter().find(|(number, _)| *number == collection).map(|(_, row)| *row);
        let kb_txn = self.kb.snapshot()?;
        let points = self.points(&kb_txn, collection, dims).map_err(kb_failure)?;
        let Some((row, target)) = plan(&self.clusters, &rows, present, (&points, pace)) else {
            return Ok(false);
        };
        if target.trained == 0 {
            let sample = self.sample(&kb_txn, &points)?;
            // Nothing is kept from being freed for the seconds that this can take.
            drop((kb_txn, points));
            return self.add_centroids(env, (collection, dims), &sample, (row, target));
        }
        self.add_batch(env, kb_txn, &points, (row, target))
    }

    /// Makes the centroids of new clusters; `false` if the store is being closed.
    fn add_centroids(
        &self,
        env: &ClusterEnv,
        (collection, dims): (u16, usize),
        sample: &Sample,
        (row, target): (ClusterRow, ClusterInfo),
    ) -> InternalResult<bool> {
        let Some(centroids) = self.train(sample, dims) else { return Ok(false) };
        let trained = ClusterInfo { trained: sample.live, ..target };
        folder::remove_fingerprint(&env.path)?;
        let mut txn = env.env.write_txn()?;
        env.put_centroids(&mut txn, &trained, centroids.rows())?;
        env.put_row(&mut txn, collection, &replaced(row, trained))?;
        txn.commit()?;
        Ok(true)
    }

    /// Adds the next points to their clusters.
    fn add_batch(
        &self,
        env: &ClusterEnv,
        kb_txn: Snapshot,
        points: &CollectionPoints,
        (row, target): (ClusterRow, ClusterInfo),
    ) -> InternalResult<bool> {
        let (collection, dims) = (points.collection, points.dims);
        let centroids = Centroids::of_rows(env.centroids(&*env.env.read_txn()?, &target, dims)?, dims);
        let batch = self.batch(points, target.watermark);
        let (mut rows, watermark) = (Vec::new(), points.watermark_after(&batch, target.watermark));
        self.quantise(&kb_txn, points, batch, |row| row.encode(&mut rows))?;
        drop(kb_txn);
        let added: Vec<QuantisedRow> = QuantisedRow::all(&rows, dims).into_iter().flatten().collect();
        let clusters = centroids.assign(&added, self.clusters.options.build_threads);
        let mut rows_of = BTreeMap::<u32, Vec<u8>>::new();
        let assigned = added.iter().zip(clusters);
        assigned.for_each(|(point, cluster)| point.encode(rows_of.entry(cluster).or_default()));
        folder::remove_fingerprint(&env.path)?;
        let mut txn = env.env.write_txn()?;
        let fed = ClusterInfo { watermark, items: target.items + added.len() as u32, ..target };
        for (cluster, rows) in &rows_of {
            env.add(&mut txn, &target, (*cluster, rows), QuantisedRow::bytes(dims))?;
        }
        let row = updated_row(env, &mut txn, row, fed)?;
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

    /// The ids of the next batch, as many as possible, because each batch writes the last block of most clusters again.
    fn batch(&self, points: &CollectionPoints, watermark: u32) -> Vec<u32> {
        let size = self.clusters.options.cluster_batch.max(MAX_BATCH) as usize;
        let mut ids = points.live.iter();
        ids.advance_to(watermark);
        ids.take(size).collect()
    }

    /// A sample of the points of a collection, evenly by age, because documents that were added together are often alike.
    fn sample(&self, kb_txn: &RoTxn, points: &CollectionPoints) -> InternalResult<Sample> {
        let live = points.live.len();
        let clusters = centroids::clusters_of(live);
        let sampled = centroids::sample_of(clusters).min(live);
        let place = |n: u64| (n * live / sampled.max(1)) as u32;
        let ids = (0..sampled).filter_map(|n| points.live.select(place(n))).collect();
        let mut rows = Vec::new();
        self.quantise(kb_txn, points, ids, |row| {
            if row.has_direction() {
                row.encode(&mut rows);
            }
        })?;
        Ok(Sample { live: live.max(1) as u32, clusters, rows })
    }

    /// Makes centroids; `None` if the store is being closed.
    fn train(&self, sample: &Sample, dims: usize) -> Option<Centroids> {
        let (started, threads) = (Instant::now(), self.clusters.options.build_threads);
        let Sample { live, clusters, rows } = sample;
        let trained = Centroids::train(rows, (dims, *clusters), threads, || self.clusters.stopped());
        tracing::debug!(live, clusters, took = ?started.elapsed(), "centroids made");
        trained
    }

    /// Quantises the vectors of points that have one.
    fn quantise(
        &self,
        kb_txn: &RoTxn,
        points: &CollectionPoints,
        ids: Vec<u32>,
        mut each: impl FnMut(QuantisedRow),
    ) -> InternalResult<()> {
        for id in ids {
            match read_vector(&self.kb, kb_txn, points.collection, id, points.dims) {
                Ok(Some(vector)) => {
                    let quantised = Quantised::of(&vector);
                    each(quantised.unwrap_or_else(|| Quantised::anywhere(points.dims)).row(id));
                }
                Ok(None) => {}
                Err(failure) if failure.kind() == FailureKind::Corrupt => {
                    tracing::error!(%failure, "point with a damaged vector left out of the clusters");
                }
                Err(failure) => return Err(kb_failure(failure)),
            }
        }
        Ok(())
    }

    /// Writes the fingerprint of the folder after changes.
    fn with_checksum(&self) {
        if let Some(env) = self.clusters.current()
            && let Err(error) = folder::write_fingerprint(&env.path)
        {
            tracing::warn!(%error, "fingerprint of the clusters of vectors could not be written");
        }
    }
}

/// Which clusters are updated next, if any, and their row. A collection that is always scanned keeps those that it had when it
/// was larger, as they are: it may grow again.
fn plan(
    clusters: &Clusters,
    rows: &[(u16, ClusterRow)],
    present: Option<ClusterRow>,
    (points, pace): (&CollectionPoints, Pace),
) -> Option<(ClusterRow, ClusterInfo)> {
    if clusters.scans_all(points.live.len()) {
        return None;
    }
    let Some(row) = present else {
        let current = ClusterInfo::empty(free_number(rows)?);
        return Some((ClusterRow { current, next: None }, current));
    };
    if let Some(next) = row.next {
        return Some((row, next));
    }
    let waiting = points.live.range_cardinality(row.current.watermark..);
    let dead =
        u64::from(row.current.items).saturating_sub(points.live.range_cardinality(..row.current.watermark));
    let outgrown = points.live.len() >= u64::from(row.current.trained).saturating_mul(OUTGROWN);
    if dead * 3 > row.current.items.into() || outgrown {
        let next = ClusterInfo::empty(free_number(rows)?);
        return Some((ClusterRow { next: Some(next), ..row }, next));
    }
    let (batch, live) = (u64::from(clusters.options.cluster_batch), points.live.len());
    let enough = match pace {
        Pace::Busy => batch.max(live / BATCH_SHARE),
        Pace::Idle => (batch / 4).max(live / IDLE_BATCH_SHARE).max(1),
    };
    (waiting >= enough).then_some((row, row.current))
}

/// The smallest unused number of clusters.
fn free_number(rows: &[(u16, ClusterRow)]) -> Option<u16> {
    let taken: Vec<u16> = rows.iter().flat_map(|(_, row)| row.all().map(|info| info.number)).collect();
    (0..=u16::MAX).find(|number| !taken.contains(number))
}

/// The row after an update. A replacement takes over when it has reached the watermark of the current clusters.
fn updated_row(
    env: &ClusterEnv,
    txn: &mut RwTxn,
    row: ClusterRow,
    fed: ClusterInfo,
) -> InternalResult<ClusterRow> {
    if row.current.number == fed.number || fed.watermark < row.current.watermark {
        return Ok(replaced(row, fed));
    }
    env.clear(txn, &row.current)?;
    Ok(ClusterRow { current: fed, next: None })
}

/// The row with what is known of the clusters with the number of `info` replaced.
fn replaced(row: ClusterRow, info: ClusterInfo) -> ClusterRow {
    if row.current.number == info.number {
        ClusterRow { current: info, ..row }
    } else {
        ClusterRow { next: Some(info), ..row }
    }
}

/// A failure to read `kb` is no damage of the clusters, whatever its kind.
fn kb_failure(failure: Failure) -> Failure {
    failure.into_kind(FailureKind::Unavailable)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::LmdbOptions;

    /// The clusters that are updated next in a collection with these points.
    fn planned(present: Option<ClusterRow>, live: std::ops::Range<u32>) -> Option<ClusterInfo> {
        planned_at(Pace::Busy, present, live)
    }

    fn planned_at(
        pace: Pace,
        present: Option<ClusterRow>,
        live: std::ops::Range<u32>,
    ) -> Option<ClusterInfo> {
        let options = LmdbOptions { codes_below: 100, cluster_batch: 10, ..LmdbOptions::default() };
        let clusters = Clusters::new(Path::new(""), &options);
        let points = CollectionPoints {
            collection: 1,
            dims: 2,
            next_id: live.end,
            live: live.into_iter().collect::<RoaringBitmap>(),
        };
        let rows: Vec<(u16, ClusterRow)> = present.into_iter().map(|row| (1, row)).collect();
        plan(&clusters, &rows, present, (&points, pace)).map(|(_, info)| info)
    }

    #[test]
    fn each_failure_doubles_the_pause_until_one_succeeds() {
        let pauses = [1, 2, 3, 4, 5, 6, u32::MAX].map(|failures| Retry::pause(failures).as_secs());
        assert_eq!(pauses, [0, 5, 15, 35, 60, 60, 60]);
        let mut retry = Retry::default();
        for (has_failed, failures) in [(true, 1), (true, 2), (false, 0), (true, 1)] {
            retry.note(has_failed);
            assert_eq!(retry.failures, failures);
        }
    }

    #[test]
    fn clusters_are_updated_replaced_or_left() {
        let current = ClusterInfo { number: 0, watermark: 200, items: 200, trained: 200 };
        let row = ClusterRow { current, next: None };
        let replaced = ClusterRow { next: Some(ClusterInfo::empty(1)), ..row };
        for (present, larger) in [
            (None, ClusterInfo::empty(0)),
            (Some(row), ClusterInfo::empty(1)),
            (Some(replaced), ClusterInfo::empty(1)),
        ] {
            assert_eq!(planned(present, 150..250), None, "{present:?}");
            assert_eq!(planned(present, 150..251), Some(larger), "{present:?}");
        }
        let small = ClusterInfo { trained: 62, ..current };
        assert_eq!(planned(Some(ClusterRow { current: small, next: None }), 0..205), None, "few points wait");
        assert_eq!(
            planned(Some(ClusterRow { current: small, next: None }), 0..248),
            Some(ClusterInfo::empty(1))
        );
        // Nothing is dead, and fifty points wait.
        assert_eq!(planned(Some(row), 0..250), Some(current));
        assert_eq!(planned(Some(row), 0..205), None);
        // At rest, a quarter of a batch is enough.
        assert_eq!(planned_at(Pace::Idle, Some(row), 0..201), None);
        assert_eq!(planned_at(Pace::Idle, Some(row), 0..202), Some(current));
        assert_eq!(planned_at(Pace::Idle, Some(row), 0..200), None);
        assert_eq!(planned(Some(ClusterRow { current: ClusterInfo::empty(0), next: None }), 0..100), None);
    }
}

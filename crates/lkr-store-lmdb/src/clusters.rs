//! Clusters of the dense vectors (an inverted file): derived from `kb`, updated in the background, and rebuilt if they are
//! damaged.
//!
//! The points of a large collection are divided by the centroids that they are nearest to, and kept quantised, cluster by
//! cluster. A query scans the clusters whose centroids are nearest to it. Clusters contain the points below their watermark;
//! newer points are scanned. Deleted points are filtered out by the bitmap of live points. When they are a third, or the
//! collection has outgrown its centroids, new clusters are built beside the old ones and replace them.

mod build;
mod centroids;
mod folder;
mod load;
mod search;
mod table;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use self::{build::Builder, search::OpenClusters, table::ClusterEnv};
use crate::{
    LmdbOptions,
    env::Kb,
    error::{Failure, FailureKind, InternalResult},
    open_files::OpenFiles,
    vectors::{keys, registry},
    writer::Writer,
};

/// The folder of clusters in that of a store, and that of the graphs which earlier versions had in their place.
pub(crate) const FOLDER: &str = "clusters";
pub(crate) const EARLIER_FOLDER: &str = "graph";
/// The fewest points that are scanned for each hit.
const SCANNED_PER_HIT: u64 = 4;
/// The cluster of vectors without a direction, or with one that is not known. Each query scans it.
const WITHOUT_DIRECTION: u32 = u32::MAX;
/// The key of the record that ties a folder of clusters to `kb`.
pub(crate) const LINEAGE: &[u8] = b"lineage";

/// The clusters of all collections of a store.
#[derive(Debug)]
pub(crate) struct Clusters {
    dir: PathBuf,
    options: LmdbOptions,
    /// `None` until a folder is opened, and while it is replaced.
    current: RwLock<Option<Arc<ClusterEnv>>>,
    /// Set by a search that found damage.
    damaged: AtomicBool,
    signal: Mutex<BuilderSignal>,
    signalled: Condvar,
}

#[derive(Debug, Default)]
struct BuilderSignal {
    stop: bool,
    work: bool,
    /// Whether the thread is about to open the folder of the last session. Read-only stores have no thread.
    opening: bool,
}

impl Clusters {
    /// The clusters of the store in `store`.
    pub(crate) fn new(store: &Path, options: &LmdbOptions) -> Self {
        Self {
            dir: store.join(FOLDER),
            options: options.clone(),
            current: RwLock::default(),
            damaged: AtomicBool::new(false),
            signal: Mutex::default(),
            signalled: Condvar::new(),
        }
    }

    /// The clusters of a collection; `None` if there are no usable ones. Waits while the folder of the last session is
    /// opened, which takes less time than scanning a collection that suits clusters.
    pub(crate) fn open(&self, collection: u16) -> Option<OpenClusters<'_>> {
        let env = self.current().or_else(|| {
            self.wait_while_opening();
            self.current()
        })?;
        OpenClusters::open(self, env, collection)
    }

    /// Whether scanning clusters is faster than scanning `candidates` points. See docs/studies.md#clusters.
    pub(crate) const fn suit(&self, candidates: u64) -> bool {
        candidates > self.options.linear_below
    }

    /// The number of points among `candidates` that a query for `limit` of them scans in clusters. See docs/studies.md#clusters.
    fn points_to_scan(&self, candidates: u64, limit: usize) -> u64 {
        let for_recall = self.options.probe.saturating_mul(candidates.isqrt());
        for_recall.max((limit as u64).saturating_mul(SCANNED_PER_HIT))
    }

    /// Whether a collection of this many points is always scanned, and so needs no clusters.
    pub(crate) const fn scans_all(&self, points: u64) -> bool {
        points <= self.options.codes_below
    }

    /// Reports that `kb` has changed.
    pub(crate) fn wake(&self) {
        self.update(|signal| signal.work = true);
    }

    pub(crate) fn stop(&self) {
        self.update(|signal| signal.stop = true);
    }

    fn update(&self, change: impl FnOnce(&mut BuilderSignal)) {
        change(&mut self.signal.lock().unwrap_or_else(PoisonError::into_inner));
        self.signalled.notify_all();
    }

    fn stopped(&self) -> bool {
        self.signal.lock().unwrap_or_else(PoisonError::into_inner).stop
    }

    fn wait_while_opening(&self) {
        let signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        // A poisoned lock only means that the wait is over.
        drop(self.signalled.wait_while(signal, |signal| !signal.stop && signal.opening));
    }

    /// Waits until there may be work, or until the timeout. Returns whether there may be.
    fn wait(&self, timeout: Duration) -> bool {
        let signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |signal: &mut BuilderSignal| !signal.stop && !signal.work;
        let waited = self.signalled.wait_timeout_while(signal, timeout, idle);
        let mut signal = waited.unwrap_or_else(PoisonError::into_inner).0;
        std::mem::take(&mut signal.work) || signal.stop
    }

    /// Waits for `time`, or until the store is being closed.
    fn pause(&self, time: Duration) {
        let signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        // A poisoned lock only means that the wait is over.
        let _ = self.signalled.wait_timeout_while(signal, time, |signal| !signal.stop);
    }

    fn current(&self) -> Option<Arc<ClusterEnv>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn publish(&self, env: Option<Arc<ClusterEnv>>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = env;
    }

    /// Reports a failed read: every failure except an unavailable resource counts as damage.
    fn report_failure(&self, failure: &Failure) {
        if failure.kind() != FailureKind::Unavailable {
            self.report_damage(&failure.to_string());
        }
    }

    /// Reports damage, so that the clusters are rebuilt.
    fn report_damage(&self, what: &str) {
        if !self.damaged.swap(true, Ordering::Relaxed) {
            tracing::error!(what, "clusters of vectors are damaged; rebuilding them");
        }
        self.wake();
    }
}

/// The state of `kb` when it was opened, before any write. It reveals clusters of another store, or of a later state of
/// this one.
#[derive(Debug)]
pub(crate) struct StartupState {
    /// The lineage that the last session wrote to `kb` and to its folder of clusters.
    lineage: Option<Vec<u8>>,
    /// The next ids of the collections.
    next_ids: HashMap<u16, u32>,
}

impl StartupState {
    pub(crate) fn read(kb: &Kb) -> InternalResult<Self> {
        let txn = kb.snapshot()?;
        let lineage = kb.tables.meta.get(&txn, LINEAGE)?.map(<[u8]>::to_vec);
        let collections = registry::all(kb, &txn)?.into_iter();
        let next_ids =
            collections.map(|startup| Ok((startup.number, registry::next_id(kb, &txn, startup.number)?)));
        Ok(Self { lineage, next_ids: next_ids.collect::<InternalResult<_>>()? })
    }
}

/// Starts the thread that builds clusters and removes expired and dropped rows from `kb`.
pub(crate) fn start(
    clusters: Arc<Clusters>,
    files: Arc<OpenFiles>,
    kb: Kb,
    writer: Writer,
    startup: StartupState,
) -> std::io::Result<JoinHandle<()>> {
    clusters.update(|signal| signal.opening = true);
    let builder = Builder { clusters, files, kb, writer, startup };
    thread::Builder::new().name("lkr-clusters".to_owned()).spawn(move || builder.run())
}

/// The key of a collection's row.
fn row_key(collection: u16) -> [u8; 2] {
    keys::collection(collection)
}

//! HNSW graphs over the dense vectors: derived from `kb`, updated in the background, and rebuilt if they are damaged.
//!
//! Graphs support neither deletion nor reuse of ids. A graph contains the points below its watermark; newer points
//! are scanned. Deleted points are filtered out by the bitmap of live points. When they are a third of a graph, a new
//! graph is built beside it and replaces it.

mod build;
mod folder;
mod load;
mod search;
mod table;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use self::{build::Builder, search::OpenGraph, table::GraphEnv};
use crate::{
    LmdbOptions,
    env::Kb,
    error::{Failure, FailureKind, InternalResult},
    vectors::{keys, registry},
    writer::Writer,
};

/// The key of the record that ties a graph folder to `kb`.
pub(crate) const LINEAGE: &[u8] = b"lineage";

/// The graphs of a store.
#[derive(Debug)]
pub(crate) struct Graphs {
    dir: PathBuf,
    options: LmdbOptions,
    /// `None` until the folder is loaded, and while it is replaced.
    current: RwLock<Option<Arc<GraphEnv>>>,
    /// Set by a search that found damage.
    damaged: AtomicBool,
    signal: Mutex<BuilderSignal>,
    signalled: Condvar,
}

#[derive(Debug, Default)]
struct BuilderSignal {
    stop: bool,
    work: bool,
}

impl Graphs {
    pub(crate) fn new(dir: PathBuf, options: &LmdbOptions) -> Self {
        Self {
            dir,
            options: options.clone(),
            current: RwLock::default(),
            damaged: AtomicBool::new(false),
            signal: Mutex::default(),
            signalled: Condvar::new(),
        }
    }

    /// The graph of a collection; `None` if there is no usable one.
    pub(crate) fn open(&self, collection: u16) -> Option<OpenGraph<'_>> {
        let env = self.current()?;
        OpenGraph::open(self, env, collection)
    }

    /// Whether searching a graph with `items` points is faster than scanning `candidates` points. See
    /// docs/studies.md#dense-graph.
    pub(crate) const fn prefers_graph(&self, candidates: u64, items: u64) -> bool {
        let LmdbOptions { linear_below, break_even, .. } = self.options;
        candidates > linear_below && candidates.saturating_mul(candidates) > break_even.saturating_mul(items)
    }

    /// Whether a collection of this many points is always scanned, and so needs no graph.
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

    /// Waits until there may be work, or until the timeout.
    fn wait(&self, timeout: Duration) {
        let signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |signal: &mut BuilderSignal| !signal.stop && !signal.work;
        let waited = self.signalled.wait_timeout_while(signal, timeout, idle);
        waited.unwrap_or_else(PoisonError::into_inner).0.work = false;
    }

    /// Waits for `time`, or until the store is being closed.
    fn pause(&self, time: Duration) {
        let signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        // A poisoned lock only means that the wait is over.
        let _ = self.signalled.wait_timeout_while(signal, time, |signal| !signal.stop);
    }

    fn current(&self) -> Option<Arc<GraphEnv>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn publish(&self, env: Option<Arc<GraphEnv>>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = env;
    }

    /// Reports a failed read: every failure except an unavailable resource counts as damage.
    fn report_failure(&self, failure: &Failure) {
        if failure.kind() != FailureKind::Unavailable {
            self.report_damage(&failure.to_string());
        }
    }

    /// Reports damage, so that the graphs are rebuilt.
    fn report_damage(&self, what: &str) {
        if !self.damaged.swap(true, Ordering::Relaxed) {
            tracing::error!(what, "vector graph is damaged; rebuilding it");
        }
        self.wake();
    }
}

/// The state of `kb` when it was opened, before any write. It reveals graphs of another store, or of a later state of
/// this one.
#[derive(Debug)]
pub(crate) struct StartupState {
    /// The lineage that the last session wrote to `kb` and to its graph folder.
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

/// Starts the thread that builds graphs and removes expired and dropped rows from `kb`.
pub(crate) fn start(
    graphs: Arc<Graphs>,
    kb: Kb,
    writer: Writer,
    startup: StartupState,
) -> std::io::Result<JoinHandle<()>> {
    let builder = Builder::new(graphs, kb, writer);
    thread::Builder::new().name("lkr-graph".to_owned()).spawn(move || builder.run(&startup))
}

/// The key of a collection's row.
fn row_key(collection: u16) -> [u8; 2] {
    keys::collection(collection)
}

//! Graphs over the dense vectors: derived from `kb`, fed behind its back, and made anew where they are damaged.
//!
//! Nothing is ever deleted from a graph, and no id comes back: a graph bears neither. It knows the points below its
//! watermark; those above are scanned. The dead among its points are cut away by the bitmap of the live, until they
//! are a third: then another graph is built beside it, and takes its place.

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

/// The name of the record that ties a graph folder to `kb`.
pub(crate) const LINEAGE: &[u8] = b"lineage";

/// The graphs of a store, where searches find them.
#[derive(Debug)]
pub(crate) struct Graphs {
    dir: PathBuf,
    options: LmdbOptions,
    /// `None` until the folder was looked at, and again while it is replaced.
    current: RwLock<Option<Arc<GraphEnv>>>,
    /// Set by a search that met damage.
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

    /// The graph of a collection; `None` where there is none that can be asked.
    pub(crate) fn open(&self, collection: u16) -> Option<OpenGraph<'_>> {
        let env = self.current()?;
        OpenGraph::open(self, env, collection)
    }

    /// Whether a graph of so many items finds the nearest of so many candidates faster than looking at each.
    pub(crate) const fn prefers_graph(&self, candidates: u64, items: u64) -> bool {
        let LmdbOptions { linear_below, break_even, .. } = self.options;
        candidates > linear_below && candidates.saturating_mul(candidates) > break_even.saturating_mul(items)
    }

    /// Says that `kb` has changed.
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

    /// Waits until there may be work, but no longer than `timeout`.
    fn wait(&self, timeout: Duration) {
        let signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |signal: &mut BuilderSignal| !signal.stop && !signal.work;
        let waited = self.signalled.wait_timeout_while(signal, timeout, idle);
        waited.unwrap_or_else(PoisonError::into_inner).0.work = false;
    }

    /// Waits for as long as it takes, unless the store is being closed.
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

    /// Takes note of a failure to read: what is not for want of something is damage.
    fn report_failure(&self, failure: &Failure) {
        if failure.kind() != FailureKind::Unavailable {
            self.report_damage(&failure.to_string());
        }
    }

    /// Takes note that the graphs cannot be read, so that they are made anew.
    fn report_damage(&self, what: &str) {
        if !self.damaged.swap(true, Ordering::Relaxed) {
            tracing::error!(what, "the vector graph is damaged and will be built anew");
        }
        self.wake();
    }
}

/// What `kb` said of itself when it was opened, before anything was written to it: a graph of another, or of a later
/// state of this one, is told by that.
#[derive(Debug)]
pub(crate) struct StartupState {
    /// The mark that the last session left in `kb`, and in its graph folder.
    lineage: Option<Vec<u8>>,
    /// The next ids of the collections.
    next_ids: HashMap<u16, u32>,
}

impl StartupState {
    pub(crate) fn read(kb: &Kb) -> InternalResult<Self> {
        let txn = kb.env.read_txn()?;
        let lineage = kb.tables.meta.get(&txn, LINEAGE)?.map(<[u8]>::to_vec);
        let collections = registry::all(kb, &txn)?.into_iter();
        let next_ids =
            collections.map(|startup| Ok((startup.number, registry::next_id(kb, &txn, startup.number)?)));
        Ok(Self { lineage, next_ids: next_ids.collect::<InternalResult<_>>()? })
    }
}

/// Starts the thread that feeds the graphs, and cleans up in `kb`.
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

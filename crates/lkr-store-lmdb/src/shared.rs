//! The state that all handles of a store share.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread::JoinHandle,
};

use heed::{RoTxn, RwTxn};
use lkr_state::FairTags;
use lkr_threads::ThreadPool;
use lkr_vectors::may_block;
use tokio::sync::{Notify, Semaphore};

use crate::{
    LmdbOptions,
    clusters::{self, Clusters},
    env::Kb,
    error::{Error, Failure, InternalResult, Result},
    lock::FolderLock,
    open_files::OpenFiles,
    open_marker::OpenMarker,
    vectors::PointCaches,
    writer::Writer,
};

/// The maximum number of query batches that run at once.
pub(crate) const MAX_CONCURRENT_BATCHES: usize = 32;

/// An open store. Dropping it ends its threads.
#[derive(Debug)]
pub(crate) struct StoreShared {
    pub(crate) writer: Writer,
    pub(crate) clusters: Arc<Clusters>,
    /// What queries keep of points in memory.
    pub(crate) caches: PointCaches,
    pub(crate) options: LmdbOptions,
    /// Wakes workers that wait for a task.
    pub(crate) tasks: Notify,
    /// The order of flows in the queue; read from the store by the first write to the queue.
    pub(crate) fair_tags: Arc<Mutex<Option<FairTags>>>,
    /// Limits concurrent query batches. They wait here rather than with open transactions. The query threads hold the
    /// permits.
    pub(crate) searches: Arc<Semaphore>,
    /// The threads that run queries of a batch beside the one that asks.
    pub(crate) helpers: ThreadPool,
    pub(crate) kb: Kb,
    /// `None` if the store is read-only.
    files: Option<Arc<OpenFiles>>,
    threads: Vec<JoinHandle<()>>,
    /// `None` if the store is read-only.
    opened: Option<OpenMarker>,
    /// The last field, so that the lock is released after everything else is closed.
    _lock: FolderLock,
}

impl StoreShared {
    pub(crate) fn start(
        kb: Kb,
        dir: &Path,
        options: LmdbOptions,
        opened: OpenMarker,
        lock: FolderLock,
    ) -> Result<Self> {
        let clusters = Arc::new(Clusters::new(dir, &options));
        let startup = clusters::StartupState::read(&kb).map_err(Error::on_open)?;
        let signalled = Arc::clone(&clusters);
        let files = Arc::new(OpenFiles::of(dir).map_err(|error| Error::io("open", error))?);
        let written = Arc::clone(&files);
        let (writer, writing) =
            Writer::start(kb.writing(), move || written.verify(), move || signalled.wake())
                .map_err(|error| Error::io("start a thread", error))?;
        let mut threads = Vec::new();
        if options.build_threads > 0 {
            let clusters = Arc::clone(&clusters);
            let builder = clusters::start(clusters, Arc::clone(&files), kb.clone(), writer.clone(), startup);
            threads.push(builder.map_err(|error| Error::io("start a thread", error))?);
        }
        threads.push(writing);
        let (tasks, searches) = (Notify::new(), Arc::new(Semaphore::new(MAX_CONCURRENT_BATCHES)));
        let (fair_tags, caches) = (Arc::default(), PointCaches::default());
        let helpers = ThreadPool::new("store-queries", MAX_CONCURRENT_BATCHES);
        let opened = Some(opened);
        Ok(Self {
            writer,
            clusters,
            caches,
            options,
            tasks,
            fair_tags,
            searches,
            helpers,
            kb,
            files: Some(files),
            threads,
            opened,
            _lock: lock,
        })
    }

    /// A read-only store, without threads of its own.
    pub(crate) fn read_only(kb: Kb, dir: &Path, options: LmdbOptions, lock: FolderLock) -> Self {
        let clusters = Arc::new(Clusters::new(dir, &options));
        let (tasks, searches) = (Notify::new(), Arc::new(Semaphore::new(MAX_CONCURRENT_BATCHES)));
        let (writer, threads) = (Writer::closed(), Vec::new());
        let (fair_tags, caches) = (Arc::default(), PointCaches::default());
        let helpers = ThreadPool::new("store-queries", MAX_CONCURRENT_BATCHES);
        Self {
            writer,
            clusters,
            caches,
            options,
            tasks,
            fair_tags,
            searches,
            helpers,
            kb,
            files: None,
            threads,
            opened: None,
            _lock: lock,
        }
    }

    /// Whether the store is read-only. A read-only store may be damaged.
    pub(crate) fn is_read_only(&self) -> bool {
        self.opened.is_none()
    }

    /// Runs `work` on the blocking pool. It runs to its end even if the future is dropped.
    pub(crate) async fn blocking<T, F>(shared: &Arc<Self>, work: F) -> InternalResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&Self) -> InternalResult<T> + Send + 'static,
    {
        if may_block() {
            return work(shared);
        }
        let shared = Arc::clone(shared);
        let done = tokio::task::spawn_blocking(move || work(&shared)).await;
        done.unwrap_or_else(|error| Err(Failure::internal(error)))
    }

    /// Reads `kb` on the blocking pool, on one snapshot.
    pub(crate) async fn read<T, F>(shared: &Arc<Self>, work: F) -> InternalResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&Kb, &RoTxn) -> InternalResult<T> + Send + 'static,
    {
        let on_snapshot = move |shared: &Self| {
            let snapshot = shared.kb.snapshot()?;
            work(&shared.kb, &snapshot)
        };
        Self::blocking(shared, on_snapshot).await
    }

    /// Reads some rows of `kb` on the calling thread. They are found in memory within microseconds, less than it takes to wake
    /// another thread; a page that only the disk has makes the caller wait for one read. See docs/studies.md#reads-in-place.
    pub(crate) fn read_in_place<T>(
        &self,
        work: impl FnOnce(&Kb, &RoTxn) -> InternalResult<T>,
    ) -> InternalResult<T> {
        let snapshot = self.kb.snapshot()?;
        work(&self.kb, &snapshot)
    }

    /// Writes to `kb`, as [`Writer::write`] does.
    pub(crate) async fn write<T, F>(&self, mut work: F) -> InternalResult<T>
    where
        T: Send + 'static,
        F: FnMut(&Kb, &mut RwTxn) -> InternalResult<T> + Send + 'static,
    {
        let kb = self.kb.clone();
        lkr_fail_points::reach("store.write");
        let written = self.writer.write(move |txn| work(&kb, txn)).await;
        lkr_fail_points::reach("store.written");
        written
    }

    pub(crate) async fn snapshot(shared: &Arc<Self>, to: &Path) -> InternalResult<()> {
        let to: PathBuf = to.to_owned();
        Self::blocking(shared, move |shared| shared.kb.copy(&to)).await
    }

    pub(crate) async fn health(shared: &Arc<Self>) -> InternalResult<()> {
        if !shared.writer.is_alive() {
            return Err(Failure::unavailable("the writer thread has ended"));
        }
        let read = |shared: &Self| {
            shared.files.as_ref().map_or(Ok(()), |files| files.verify())?;
            let txn = shared.kb.snapshot()?;
            shared.kb.tables.meta.get(&txn, b"format")?;
            Ok(())
        };
        Self::blocking(shared, read).await
    }
}

impl Drop for StoreShared {
    fn drop(&mut self) {
        self.clusters.stop();
        // The builder of clusters sends jobs to the writer, which ends when no sender is left.
        self.writer = Writer::closed();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("store thread panicked");
            }
        }
    }
}

use std::{path::Path, sync::Arc};

use crate::{
    LmdbOptions, LmdbQueue, LmdbState, LmdbVectors,
    env::Kb,
    error::{Error, FailureKind, Result},
    file_system,
    lock::FolderLock,
    open_marker::OpenMarker,
    queue,
    shared::StoreShared,
    store_check,
};

/// A store in a folder, which it has for itself.
///
/// It is closed when it and all the handles that it gave are dropped. That waits for the writes that were handed in
/// and for the batch of vectors that is being built into a graph, some seconds at the most. A process that just ends
/// loses nothing.
#[derive(Debug, Clone)]
pub struct LmdbStore {
    shared: Arc<StoreShared>,
}

impl LmdbStore {
    /// Whether there is a store in `dir`, whole or damaged.
    #[must_use]
    pub fn is_in(dir: &Path) -> bool {
        store_check::missing_data(&dir.join("kb")).is_none() || dir.join("graph").exists()
    }

    /// Opens the store in `dir`, which is made where it is not there. Blocks on the file system, for milliseconds; for
    /// a second, or some on large stores now and then, where a process ended without closing it: then its pages are
    /// looked at first.
    ///
    /// Tasks that were claimed when the store was last closed are claimable again.
    ///
    /// # Errors
    /// `Locked` where another process, or another store of this process, has the folder; `OtherFormat`, `Corrupt`,
    /// `Unavailable` and `Io` as they say.
    pub fn open(dir: &Path, options: LmdbOptions) -> Result<Self> {
        let lock = FolderLock::take(dir)?;
        if let Some(kind) = file_system::network_file_system(dir) {
            tracing::warn!(dir = %dir.display(), kind, "the store lies on a network file system, where LMDB is not safe");
        }
        open_locked(dir, options, lock)
    }

    /// Writes a compacted copy of all that is true, consistent while reads and writes go on, into the new folder `to`,
    /// which [`open`](Self::open) opens. What is derived from it, the graphs, is not copied: it will be made anew.
    ///
    /// # Errors
    /// `Invalid` where `to` exists; it is left as it is.
    pub async fn snapshot(&self, to: &Path) -> lkr_state::Result<()> {
        lkr_state::StateStore::snapshot(&self.state(), to).await
    }

    /// The vectors.
    #[must_use]
    pub fn vectors(&self) -> LmdbVectors {
        LmdbVectors::new(Arc::clone(&self.shared))
    }

    /// The records.
    #[must_use]
    pub fn state(&self) -> LmdbState {
        LmdbState::new(Arc::clone(&self.shared))
    }

    /// The tasks.
    #[must_use]
    pub fn queue(&self) -> LmdbQueue {
        LmdbQueue::new(Arc::clone(&self.shared))
    }
}

/// Opens the store in a locked folder.
pub(crate) fn open_locked(dir: &Path, options: LmdbOptions, lock: FolderLock) -> Result<LmdbStore> {
    refuse_missing_data(dir)?;
    let open_locked = OpenMarker::begin(dir)?;
    let kb = Kb::open(&dir.join("kb"), options.map_size)?;
    match queue::clear_leases(&kb) {
        // They run out by themselves; a full disk keeps nobody from reading.
        Err(failure) if failure.kind() == FailureKind::Unavailable => {
            tracing::warn!(%failure, "tasks that were claimed wait until their leases run out");
        }
        cleared => cleared.map_err(Error::on_open)?,
    }
    let shared = StoreShared::start(kb, dir, options, open_locked, lock)?;
    Ok(LmdbStore { shared: Arc::new(shared) })
}

/// Refuses a folder whose graphs tell that there was a store, the truth of which is gone: a new one in its place would
/// take everything else for what belongs to nothing.
fn refuse_missing_data(dir: &Path) -> Result<()> {
    let kb = dir.join("kb");
    match store_check::missing_data(&kb).filter(|_| dir.join("graph").exists()) {
        None => Ok(()),
        Some(ill) => {
            let reason =
                format!("{} {ill}: {}", kb.join(store_check::DATA).display(), store_check::BACKUP_NEEDED);
            Err(Error::corrupt_store(&reason))
        }
    }
}

/// A store that is only looked at: whatever is written to it is refused.
pub(crate) fn read_only_store(kb: Kb, dir: &Path, options: LmdbOptions, lock: FolderLock) -> LmdbStore {
    LmdbStore { shared: Arc::new(StoreShared::read_only(kb, dir, options, lock)) }
}

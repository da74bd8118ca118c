use std::{path::Path, sync::Arc};

use crate::{
    LmdbOptions, LmdbQueue, LmdbState, LmdbVectors, clusters,
    env::{DATA, Kb},
    error::{Error, FailureKind, Result},
    file_system,
    lock::FolderLock,
    open_marker::OpenMarker,
    queue,
    shared::StoreShared,
    store_check,
};

/// A store in a folder that no other process uses.
///
/// It is closed when it and all its handles are dropped. Closing waits for accepted writes and for the current batch
/// of points for clusters, a few seconds at most. A process that just ends loses nothing.
#[derive(Debug, Clone)]
pub struct LmdbStore {
    shared: Arc<StoreShared>,
}

impl LmdbStore {
    /// Whether `dir` contains a store, damaged or not.
    #[must_use]
    pub fn is_in(dir: &Path) -> bool {
        store_check::missing_data(&dir.join("kb")).is_none() || has_clusters(dir)
    }

    /// Opens the store in `dir`, or creates it. Blocks on the file system for milliseconds. After an unclean shutdown
    /// it checks the pages first, which takes about a second, sometimes longer for large stores.
    ///
    /// Tasks that were claimed when the store was last closed are claimable again.
    ///
    /// # Errors
    /// `Locked` if another process, or another store of this process, still uses the folder after a second; `OtherFormat`, `Corrupt`,
    /// `Unavailable` and `Io` as documented there.
    pub fn open(dir: &Path, options: LmdbOptions) -> Result<Self> {
        let lock = FolderLock::take(dir)?;
        if let Some(kind) = file_system::network_file_system(dir) {
            tracing::warn!(dir = %dir.display(), kind, "store is on a network file system, where LMDB is not safe");
        }
        open_locked(dir, options, lock)
    }

    /// Writes a compacted, consistent copy of the primary data to the new folder `to` while reads and writes
    /// continue; [`open`](Self::open) opens it. Clusters are derived data: they are not copied, but rebuilt.
    ///
    /// # Errors
    /// `Invalid` if `to` exists; it is not changed.
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
    let kb = Kb::open(&dir.join("kb"), options.map())?;
    match queue::clear_leases(&kb) {
        // Leases also expire by themselves, and a full disk must not prevent reading.
        Err(failure) if failure.kind() == FailureKind::Unavailable => {
            tracing::warn!(%failure, "leases could not be cleared; claimed tasks wait until their leases expire");
        }
        cleared => cleared.map_err(Error::on_open)?,
    }
    let shared = StoreShared::start(kb, dir, options, open_locked, lock)?;
    Ok(LmdbStore { shared: Arc::new(shared) })
}

/// Refuses a folder that has clusters but no primary data. A new empty store would make all other data look orphaned.
fn refuse_missing_data(dir: &Path) -> Result<()> {
    let kb = dir.join("kb");
    match store_check::missing_data(&kb).filter(|_| has_clusters(dir)) {
        None => Ok(()),
        Some(ill) => {
            let reason = format!("{} {ill}: {}", kb.join(DATA).display(), store_check::BACKUP_NEEDED);
            Err(Error::corrupt_store(&reason))
        }
    }
}

/// Whether a store, of this version or an earlier one, has clustered its vectors in `dir`.
fn has_clusters(dir: &Path) -> bool {
    [clusters::FOLDER, clusters::EARLIER_FOLDER].iter().any(|name| dir.join(name).exists())
}

/// Opens a store read-only: every write is refused.
pub(crate) fn read_only_store(kb: Kb, dir: &Path, options: LmdbOptions, lock: FolderLock) -> LmdbStore {
    LmdbStore { shared: Arc::new(StoreShared::read_only(kb, dir, options, lock)) }
}

//! Reopens the clusters of the last session, or starts new ones.

use std::{
    fs,
    panic::catch_unwind,
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use super::{EARLIER_FOLDER, LINEAGE, StartupState, build::Builder, folder, table::ClusterEnv};
use crate::error::{Failure, InternalResult};

/// The length of a lineage in bytes.
pub(super) const LINEAGE_BYTES: usize = 16;

impl Builder {
    /// Opens the folder of the last session if it belongs to this `kb` and is undamaged; otherwise creates a
    /// new one. Searches use the folder once the structure of its file was checked; damage elsewhere, which is found after that,
    /// can only hide points from them. After a failure, for example because the disk is full, it may be called again.
    pub(super) fn load(&self) -> InternalResult<()> {
        folder::remove(&self.clusters.dir.with_file_name(EARLIER_FOLDER))?;
        let mut kept = None;
        for path in folder::list(&self.clusters.dir)? {
            if kept.is_none() {
                kept = self.reopen(&path)?;
            }
            if kept.is_none() {
                fs::remove_dir_all(&path)?;
            }
        }
        let Some(env) = kept else { return self.start_over() };
        let path = env.path.clone();
        self.publish_env(env, self.startup.lineage.as_deref())?;
        self.end_opening();
        if folder::matches_fingerprint(&path)? {
            return Ok(());
        }
        tracing::warn!("the file of the clusters of vectors was changed or damaged; rebuilding them");
        self.start_over()
    }

    /// Opens a folder; `None` if it cannot be used.
    ///
    /// # Errors
    /// A failure that may pass, after which the folder may be used.
    fn reopen(&self, path: &Path) -> InternalResult<Option<ClusterEnv>> {
        let Some(lineage) = self.startup.lineage.as_deref() else { return Ok(None) };
        let opened = catch_unwind(|| {
            let env = folder::open(path, self.clusters.options.map(), lineage)?;
            Ok(match env {
                Some(env) if is_consistent(&env, &self.startup)? => Some(env),
                _ => None,
            })
        });
        let opened =
            opened.unwrap_or_else(|_| Err(Failure::corrupt("opening the clusters of vectors panicked")));
        match &opened {
            Err(failure) if failure.may_pass() => return opened,
            Err(failure) => {
                tracing::warn!(%failure, "clusters of vectors cannot be read; rebuilding them");
            }
            Ok(None) => {
                tracing::warn!("clusters of vectors belong to another state of the store; rebuilding them");
            }
            Ok(Some(_)) => {}
        }
        Ok(opened.unwrap_or_default())
    }

    /// Creates a new folder and removes the old ones. Searches may still read an old one through its map;
    /// folder names are random and never reused.
    pub(super) fn start_over(&self) -> InternalResult<()> {
        for old in folder::list(&self.clusters.dir)? {
            fs::remove_dir_all(old)?;
        }
        let path = self.clusters.dir.join(rand::random::<u64>().to_string());
        let env = ClusterEnv::open(&path, self.clusters.options.map())?;
        self.publish_env(env, None)
    }

    /// Writes a new lineage to the folder and to `kb`, then publishes the folder to searches. The folder keeps the
    /// old lineage as well, because the process may end before `kb` has the new one.
    fn publish_env(&self, env: ClusterEnv, old: Option<&[u8]>) -> InternalResult<()> {
        let new: [u8; LINEAGE_BYTES] = rand::random();
        let marks: Vec<&[u8]> = old.into_iter().chain([&new[..]]).collect();
        folder::write_lineage(&env.path, &marks)?;
        let kb = self.kb.clone();
        self.writer.write_blocking(move |txn| Ok(kb.tables.meta.put(txn, LINEAGE, &new)?))?;
        self.clusters.publish(Some(Arc::new(env)));
        self.clusters.damaged.store(false, Ordering::Relaxed);
        Ok(())
    }
}

/// Whether an environment is consistent with this state of `kb`: it contains no unknown collection and no id
/// that `kb` has not assigned. Ids and numbers are never reused, so its content is then correct.
fn is_consistent(env: &ClusterEnv, startup: &StartupState) -> InternalResult<bool> {
    let rows = env.all_rows(&*env.env.read_txn()?)?;
    Ok(rows.iter().all(|(collection, row)| {
        let next_id = startup.next_ids.get(collection);
        row.all().all(|info| next_id.is_some_and(|next_id| info.watermark <= *next_id))
    }))
}

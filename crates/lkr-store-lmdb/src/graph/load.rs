//! Reopens the graph of the last session, or starts a new one.

use std::{
    fs,
    panic::catch_unwind,
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use super::{LINEAGE, StartupState, build::Builder, folder, table::GraphEnv};
use crate::error::{Failure, InternalResult};

/// The length of a lineage in bytes.
pub(super) const LINEAGE_BYTES: usize = 16;

impl Builder {
    /// Opens the graph folder of the last session if it belongs to this `kb` and is undamaged; otherwise creates a
    /// new one.
    pub(super) fn load(&self, startup: &StartupState) -> InternalResult<()> {
        let mut kept = None;
        for path in folder::list(&self.graphs.dir)? {
            if kept.is_none() {
                kept = self.reopen(&path, startup);
            }
            if kept.is_none() {
                fs::remove_dir_all(&path)?;
            }
        }
        match kept {
            Some(env) => self.publish_env(env, startup.lineage.as_deref()),
            None => self.start_over(),
        }
    }

    fn reopen(&self, path: &Path, startup: &StartupState) -> Option<GraphEnv> {
        let lineage = startup.lineage.as_deref()?;
        let opened = catch_unwind(|| {
            let env = folder::open(path, self.graphs.options.map_size, lineage)?;
            Ok(match env {
                Some(env) if is_consistent(&env, startup)? => Some(env),
                _ => None,
            })
        });
        let opened = opened.unwrap_or_else(|_| Err(Failure::corrupt("opening the vector graph panicked")));
        match opened {
            Ok(None) => {
                tracing::warn!("vector graph belongs to another state of the store; rebuilding it");
            }
            Ok(Some(env)) => return Some(env),
            Err(failure) => {
                tracing::warn!(%failure, "vector graph cannot be read; rebuilding it");
            }
        }
        None
    }

    /// Creates a new graph folder and removes the old ones. Searches may still read an old one through its map;
    /// folder names are random and never reused.
    pub(super) fn start_over(&self) -> InternalResult<()> {
        for old in folder::list(&self.graphs.dir)? {
            fs::remove_dir_all(old)?;
        }
        let path = self.graphs.dir.join(rand::random::<u64>().to_string());
        let env = GraphEnv::open(&path, self.graphs.options.map_size)?;
        self.publish_env(env, None)
    }

    /// Writes a new lineage to the folder and to `kb`, then publishes the folder to searches. The folder keeps the
    /// old lineage as well, because the process may end before `kb` has the new one.
    fn publish_env(&self, env: GraphEnv, old: Option<&[u8]>) -> InternalResult<()> {
        let new: [u8; LINEAGE_BYTES] = rand::random();
        let marks: Vec<&[u8]> = old.into_iter().chain([&new[..]]).collect();
        folder::write_lineage(&env.path, &marks)?;
        let kb = self.kb.clone();
        self.writer.write_blocking(move |txn| Ok(kb.tables.meta.put(txn, LINEAGE, &new)?))?;
        self.graphs.publish(Some(Arc::new(env)));
        self.graphs.damaged.store(false, Ordering::Relaxed);
        Ok(())
    }
}

/// Whether a graph environment is consistent with this state of `kb`: it contains no unknown collection and no id
/// that `kb` has not assigned. Ids and numbers are never reused, so its content is then correct.
fn is_consistent(env: &GraphEnv, startup: &StartupState) -> InternalResult<bool> {
    let rows = env.all_rows(&*env.env.read_txn()?)?;
    Ok(rows.iter().all(|(collection, row)| {
        let watermark = row.next.map_or(0, |next| next.watermark).max(row.current.watermark);
        startup.next_ids.get(collection).is_some_and(|next_id| watermark <= *next_id)
    }))
}

//! Taking over the graph of the last session, or beginning a new one.

use std::{
    fs,
    panic::catch_unwind,
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use super::{LINEAGE, StartupState, build::Builder, folder, table::GraphEnv};
use crate::error::{Failure, InternalResult};

/// The bytes of a mark.
pub(super) const LINEAGE_BYTES: usize = 16;

impl Builder {
    /// Opens the graph folder of the last session, where it belongs to this `kb` and is whole; else makes a new one.
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
        let opened = opened.unwrap_or_else(|_| Err(Failure::corrupt("opening it panicked")));
        match opened {
            Ok(None) => {
                tracing::warn!("the vector graph is not of this state of the store and will be built anew");
            }
            Ok(Some(env)) => return Some(env),
            Err(failure) => {
                tracing::warn!(%failure, "the vector graph cannot be read and will be built anew");
            }
        }
        None
    }

    /// Makes a new graph folder in place of those that were there before. Searches that still read an old one keep
    /// what they have mapped; its name does not come back, so that the two do not meet.
    pub(super) fn start_over(&self) -> InternalResult<()> {
        for old in folder::list(&self.graphs.dir)? {
            fs::remove_dir_all(old)?;
        }
        let path = self.graphs.dir.join(rand::random::<u64>().to_string());
        let env = GraphEnv::open(&path, self.graphs.options.map_size)?;
        self.publish_env(env, None)
    }

    /// Marks `kb` and the folder with a new mark of this session, and lets searches have the folder. It answers to
    /// the old mark as well, because the process may end before `kb` has the new one.
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

/// Whether a graph environment can have come of this state of `kb`: it knows no collection that `kb` does not know,
/// and no point that `kb` has not given an id yet. Ids and numbers are given once, so what it knows is then right.
fn is_consistent(env: &GraphEnv, startup: &StartupState) -> InternalResult<bool> {
    let rows = env.all_rows(&*env.env.read_txn()?)?;
    Ok(rows.iter().all(|(collection, row)| {
        let watermark = row.next.map_or(0, |next| next.watermark).max(row.current.watermark);
        startup.next_ids.get(collection).is_some_and(|next_id| watermark <= *next_id)
    }))
}

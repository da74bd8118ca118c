//! Garbage collection: waking the janitor, pausing it, and removing originals at once.

use std::{sync::Arc, time::Duration};

use lkr_catalog::{Garbage, Originals, Task};
use lkr_domain::DocId;
use tokio::sync::{Notify, OwnedRwLockWriteGuard, RwLock, RwLockReadGuard};

/// Shared by the janitor, which collects garbage, and by everything that makes some.
#[derive(Debug)]
pub(crate) struct Gc {
    originals: Originals,
    /// Collectors share the lock; a [`GcPause`] holds it exclusively.
    collecting: Arc<RwLock<()>>,
    wake: Arc<Notify>,
}

impl Gc {
    pub(crate) fn new(originals: Originals) -> Self {
        Self { originals, collecting: Arc::default(), wake: Arc::default() }
    }

    /// Tells the janitor that there is something to do.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits for [`wake`](Self::wake), but not longer than `timeout`.
    pub(crate) async fn wait(&self, timeout: Duration) {
        let _ = tokio::time::timeout(timeout, self.wake.notified()).await;
    }

    /// Keeps collection from being paused while the guard exists; `None` while it is paused.
    pub(crate) fn try_collect(&self) -> Option<RwLockReadGuard<'_, ()>> {
        self.collecting.try_read().ok()
    }

    /// Waits for running collections, then pauses collection until the guard is dropped.
    pub(crate) async fn pause(&self) -> GcPause {
        let collecting = Arc::clone(&self.collecting).write_owned().await;
        GcPause { collecting: Some(collecting), wake: Arc::clone(&self.wake) }
    }

    /// Removes originals that are garbage. The janitor would do it later, but a client that deletes or replaces a file
    /// expects it to be gone when the request or task ends.
    pub(crate) async fn remove_originals(&self, doc_id: DocId, paths: &[String]) {
        let Some(_collecting) = self.try_collect() else { return };
        for path in paths {
            if let Err(error) = self.originals.delete(path).await {
                tracing::warn!(%doc_id, %error, "cannot delete an original; the janitor will retry");
            }
        }
    }

    /// Removes the original of a task that no longer needs it.
    pub(crate) async fn remove_original_of(&self, task: &Task) {
        if let Some(Garbage { doc_id, original: Some(path), .. }) = Garbage::of_task(task) {
            self.remove_originals(doc_id, &[path]).await;
        }
    }
}

/// While it exists, no text, original or point is collected. Garbage is collected afterwards.
#[derive(Debug)]
pub struct GcPause {
    collecting: Option<OwnedRwLockWriteGuard<()>>,
    wake: Arc<Notify>,
}

impl Drop for GcPause {
    fn drop(&mut self) {
        self.collecting = None;
        self.wake.notify_one();
    }
}

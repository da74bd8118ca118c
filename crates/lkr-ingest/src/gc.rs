//! Garbage collection: waking the janitor, pausing it, and removing originals at once.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lkr_catalog::{Catalog, Garbage, Originals, Task};
use lkr_domain::DocId;
use lkr_state::Peers;
use tokio::{
    runtime::Handle,
    sync::{Notify, OwnedRwLockWriteGuard, RwLock, RwLockReadGuard},
    task::AbortHandle,
    time::Instant,
};
use uuid::Uuid;

use crate::Result;

/// How long garbage collection of other processes stays paused after each time that the pause is written.
const PAUSED: Duration = Duration::from_secs(60);

/// How often a pause is written.
const RENEWAL: Duration = Duration::from_secs(15);

/// The time between two tries to write a pause.
const RETRY: Duration = Duration::from_secs(1);

/// Shared by the janitor, which collects garbage, and by everything that makes some.
#[derive(Debug)]
pub(crate) struct Gc {
    originals: Originals,
    catalog: Catalog,
    /// Whether other processes may pause collection.
    is_shared: bool,
    /// Collectors share the lock; a [`GcPause`] holds it exclusively.
    collecting: Arc<RwLock<()>>,
    wake: Arc<Notify>,
}

impl Gc {
    pub(crate) fn new(originals: Originals, catalog: Catalog, peers: &Peers) -> Self {
        let is_shared = peers.is_shared();
        Self { originals, catalog, is_shared, collecting: Arc::default(), wake: Arc::default() }
    }

    /// Tells the janitor that there is something to do.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits for [`wake`](Self::wake), but not longer than `timeout`.
    pub(crate) async fn wait(&self, timeout: Duration) {
        let _ = tokio::time::timeout(timeout, self.wake.notified()).await;
    }

    /// Keeps this process from pausing collection while the guard exists; `None` while any process pauses it. What is to be
    /// collected must have been found to be garbage before: then no pause that another process begins later needs it.
    pub(crate) async fn try_collect(&self) -> Result<Option<RwLockReadGuard<'_, ()>>> {
        let Ok(collecting) = self.collecting.try_read() else { return Ok(None) };
        let is_paused = self.is_shared && self.catalog.is_gc_paused().await?;
        Ok((!is_paused).then_some(collecting))
    }

    /// Waits for running collections of this process, then pauses collection in all processes until the guard is dropped.
    pub(crate) async fn pause(&self) -> Result<GcPause> {
        let collecting = Arc::clone(&self.collecting).write_owned().await;
        let shared = match self.is_shared {
            true => Some(SharedPause::begin(self.catalog.clone()).await?),
            false => None,
        };
        Ok(GcPause { collecting: Some(collecting), wake: Arc::clone(&self.wake), shared })
    }

    /// Removes originals that are garbage. The janitor would do it later, but a client that deletes or replaces a file
    /// expects it to be gone when the request or task ends.
    pub(crate) async fn remove_originals(&self, doc_id: DocId, paths: &[String]) {
        let collecting = self.try_collect().await;
        let Ok(Some(_collecting)) = collecting else { return };
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
    shared: Option<SharedPause>,
}

impl GcPause {
    /// Whether collection has been paused in all processes until now. It is not if the state store could not be reached for a
    /// minute.
    #[must_use]
    pub fn is_unbroken(&self) -> bool {
        self.shared.as_ref().is_none_or(SharedPause::is_unbroken)
    }
}

impl Drop for GcPause {
    fn drop(&mut self) {
        self.collecting = None;
        self.wake.notify_one();
    }
}

/// A pause in all processes: a record that is written again before it expires.
#[derive(Debug)]
struct SharedPause {
    id: Uuid,
    catalog: Catalog,
    /// Until when the record exists for sure.
    paused_until: Arc<Mutex<Instant>>,
    renewing: AbortHandle,
}

impl SharedPause {
    async fn begin(catalog: Catalog) -> Result<Self> {
        let id = Uuid::new_v4();
        let until = Instant::now() + PAUSED;
        catalog.pause_gc(id, PAUSED).await?;
        let paused_until = Arc::new(Mutex::new(until));
        let renewing = tokio::spawn(renew(catalog.clone(), id, Arc::clone(&paused_until))).abort_handle();
        Ok(Self { id, catalog, paused_until, renewing })
    }

    fn is_unbroken(&self) -> bool {
        Instant::now() < *lock(&self.paused_until)
    }
}

impl Drop for SharedPause {
    fn drop(&mut self) {
        self.renewing.abort();
        let (catalog, id) = (self.catalog.clone(), self.id);
        // Without a runtime, or if this fails, the record expires.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = catalog.end_gc_pause(id).await {
                    tracing::warn!(%error, "cannot end a pause of garbage collection; it ends by itself within a minute");
                }
            });
        }
    }
}

/// Writes a pause again and again until it is broken.
async fn renew(catalog: Catalog, id: Uuid, paused_until: Arc<Mutex<Instant>>) {
    let mut wait = RENEWAL;
    loop {
        tokio::time::sleep(wait).await;
        let until = Instant::now() + PAUSED;
        let renewed = catalog.pause_gc(id, PAUSED).await;
        let mut paused_until = lock(&paused_until);
        // A record that expired in between did not keep others from collecting.
        if *paused_until <= Instant::now() {
            return;
        }
        match renewed {
            Ok(()) => (*paused_until, wait) = (until, RENEWAL),
            Err(_) => wait = RETRY,
        }
    }
}

fn lock(instant: &Mutex<Instant>) -> MutexGuard<'_, Instant> {
    instant.lock().unwrap_or_else(PoisonError::into_inner)
}

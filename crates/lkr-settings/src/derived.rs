use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::sync::Mutex as AsyncMutex;

use crate::{Result, RuntimeSettings, Settings, Snapshot, settings::Forget};

/// What is built from the settings, and kept while they stay: a client, a parser. Cheap to clone.
///
/// What callers hold lives on after a change; nobody gets it any more.
pub struct Derived<T> {
    settings: Settings,
    slot: Arc<Slot<T>>,
    build: Arc<dyn Fn(&RuntimeSettings) -> T + Send + Sync>,
}

struct Slot<T> {
    /// Held while one is built, so that callers that come meanwhile wait for it.
    building: AsyncMutex<()>,
    held: Mutex<Held<T>>,
}

struct Held<T> {
    /// What was built from settings before this version is not held.
    oldest: u64,
    /// What is held, and from which version it was built.
    built: Option<(u64, Arc<T>)>,
}

impl<T: Send + Sync + 'static> Derived<T> {
    pub(crate) fn new(
        settings: Settings,
        build: impl Fn(&RuntimeSettings) -> T + Send + Sync + 'static,
    ) -> Self {
        let held = Mutex::new(Held { oldest: 0, built: None });
        let slot = Slot { building: AsyncMutex::default(), held };
        Self { settings, slot: Arc::new(slot), build: Arc::new(build) }
    }

    /// What belongs to the settings in force. It is built at the first call after a change, once.
    pub async fn get(&self) -> Result<Arc<T>> {
        let snapshot = self.settings.current().await?;
        if let Some(built) = self.slot.of_version(snapshot.version) {
            return Ok(built);
        }
        let _turn = self.slot.building.lock().await;
        // Read anew: what was read before the turn came may be older than what is held.
        let snapshot = self.settings.current().await?;
        Ok(self.slot.of_version(snapshot.version).unwrap_or_else(|| self.build(&snapshot)))
    }

    pub(crate) fn slot(&self) -> Weak<dyn Forget> {
        let slot: Weak<Slot<T>> = Arc::downgrade(&self.slot);
        slot
    }

    fn build(&self, snapshot: &Snapshot) -> Arc<T> {
        let built = Arc::new((self.build)(&snapshot.settings));
        self.slot.hold(snapshot.version, Arc::clone(&built));
        built
    }
}

impl<T> Slot<T> {
    fn of_version(&self, version: u64) -> Option<Arc<T>> {
        self.lock().built.as_ref().filter(|(of, _)| *of == version).map(|(_, built)| Arc::clone(built))
    }

    /// Holds `built`, unless a change has made it old meanwhile.
    fn hold(&self, version: u64, built: Arc<T>) {
        let mut held = self.lock();
        if version >= held.oldest {
            let before = held.built.replace((version, built));
            release(held, before);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held<T>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + Sync> Forget for Slot<T> {
    fn forget_before(&self, version: u64) {
        let mut held = self.lock();
        held.oldest = held.oldest.max(version);
        let old = held.built.take_if(|(of, _)| *of < version);
        release(held, old);
    }
}

/// Drops what was held after the lock is free: it may take its time, or ask for settings itself.
fn release<T>(held: MutexGuard<'_, Held<T>>, old: Option<(u64, Arc<T>)>) {
    drop(held);
    drop(old);
}

impl<T> Clone for Derived<T> {
    fn clone(&self) -> Self {
        Self { settings: self.settings.clone(), slot: Arc::clone(&self.slot), build: Arc::clone(&self.build) }
    }
}

impl<T> fmt::Debug for Derived<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Derived").field("settings", &self.settings).finish_non_exhaustive()
    }
}

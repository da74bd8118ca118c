use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::sync::Mutex as AsyncMutex;

use crate::{Result, RuntimeSettings, Settings, Snapshot, settings::Invalidate};

/// A value that is built from the settings and cached until they change, for example a client or a parser. Cheap to
/// clone.
///
/// After a change, callers keep the values that they have, and new calls get a new one.
pub struct Derived<T> {
    settings: Settings,
    cache: Arc<DerivedCache<T>>,
    build: Arc<dyn Fn(&RuntimeSettings) -> T + Send + Sync>,
}

impl Settings {
    /// A value that `build` makes from the settings, cached until they change.
    ///
    /// `build` runs on the task of the first caller, so it must not block.
    pub fn derive<T: Send + Sync + 'static>(
        &self,
        build: impl Fn(&RuntimeSettings) -> T + Send + Sync + 'static,
    ) -> Derived<T> {
        let derived = Derived::new(self.clone(), build);
        self.register(derived.cache());
        derived
    }
}

struct DerivedCache<T> {
    /// Held while a value is built, so that other callers wait for that value.
    building: AsyncMutex<()>,
    cached: Mutex<CachedValue<T>>,
}

struct CachedValue<T> {
    /// Values from earlier versions of the settings are not cached.
    min_version: u64,
    /// The value, and the version of the settings that it was built from.
    value: Option<(u64, Arc<T>)>,
}

impl<T: Send + Sync + 'static> Derived<T> {
    fn new(settings: Settings, build: impl Fn(&RuntimeSettings) -> T + Send + Sync + 'static) -> Self {
        let cached = Mutex::new(CachedValue { min_version: 0, value: None });
        let cache = DerivedCache { building: AsyncMutex::default(), cached };
        Self { settings, cache: Arc::new(cache), build: Arc::new(build) }
    }

    /// The value for the settings in force. The first call after a change builds it.
    pub async fn get(&self) -> Result<Arc<T>> {
        let snapshot = self.settings.current().await?;
        if let Some(built) = self.cache.get(snapshot.version) {
            return Ok(built);
        }
        let _guard = self.cache.building.lock().await;
        // The settings may have changed while this call waited.
        let snapshot = self.settings.current().await?;
        Ok(self.cache.get(snapshot.version).unwrap_or_else(|| self.build(&snapshot)))
    }

    fn cache(&self) -> Weak<dyn Invalidate> {
        let cache: Weak<DerivedCache<T>> = Arc::downgrade(&self.cache);
        cache
    }

    fn build(&self, snapshot: &Snapshot) -> Arc<T> {
        let built = Arc::new((self.build)(&snapshot.settings));
        self.cache.put(snapshot.version, Arc::clone(&built));
        built
    }
}

impl<T> DerivedCache<T> {
    fn get(&self, version: u64) -> Option<Arc<T>> {
        self.lock()
            .value
            .as_ref()
            .filter(|(built_from, _)| *built_from == version)
            .map(|(_, built)| Arc::clone(built))
    }

    /// Caches `built`, unless the settings have changed since.
    fn put(&self, version: u64, built: Arc<T>) {
        let mut cached = self.lock();
        if version >= cached.min_version {
            let previous = cached.value.replace((version, built));
            release(cached, previous);
        }
    }

    fn lock(&self) -> MutexGuard<'_, CachedValue<T>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + Sync> Invalidate for DerivedCache<T> {
    fn invalidate_before(&self, version: u64) {
        let mut cached = self.lock();
        cached.min_version = cached.min_version.max(version);
        let old = cached.value.take_if(|(built_from, _)| *built_from < version);
        release(cached, old);
    }
}

/// Drops the old value after the lock is released: its destructor may be slow or use the settings.
fn release<T>(guard: MutexGuard<'_, CachedValue<T>>, old: Option<(u64, Arc<T>)>) {
    drop(guard);
    drop(old);
}

impl<T> Clone for Derived<T> {
    fn clone(&self) -> Self {
        Self {
            settings: self.settings.clone(),
            cache: Arc::clone(&self.cache),
            build: Arc::clone(&self.build),
        }
    }
}

impl<T> fmt::Debug for Derived<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Derived").field("settings", &self.settings).finish_non_exhaustive()
    }
}

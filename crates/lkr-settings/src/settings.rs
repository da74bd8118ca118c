use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use lkr_state::{Expect, Record, StateStore, StateStoreExt, Write, retry_on_conflict};
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, watch};

use crate::{
    Error, IfMatch, ModelEntry, ModelEntryChange, Models, Plugins, Result, RuntimeSettings, SealingKey,
    SettingsChange,
    check::{check_change, check_model, check_ocr},
    merge::{merge, merge_model},
    records::{KEY, SettingsV1, decode, encode},
    resolve::Resolver,
    schema::schema,
};

/// Checks whether an address may be called. The reason of a refusal continues a sentence that begins with the setting's
/// name.
pub type AddressCheck = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// The runtime settings in a state store. Cheap to clone.
///
/// Every process reads the same record of the store, so a change takes effect everywhere from the next read.
#[derive(Clone)]
pub struct Settings {
    shared: Arc<SettingsShared>,
}

struct SettingsShared {
    state: Arc<dyn StateStore>,
    resolver: Resolver,
    /// An additional check of addresses.
    check_address: AddressCheck,
    schema: Value,
    /// A hash of the schema, as part of the entity tag: programs with other defaults or plugins have other tags.
    fingerprint: u64,
    cached: Mutex<Option<Arc<Snapshot>>>,
    /// Serialises the changes of this process, so that they do not conflict with each other.
    changing: AsyncMutex<()>,
    versions: watch::Sender<u64>,
    derived: Mutex<Vec<Weak<dyn Invalidate>>>,
}

/// The settings at one version.
#[derive(Debug)]
pub struct Snapshot {
    /// The settings in force.
    pub settings: RuntimeSettings,
    /// The version of the record; 0 if there is none.
    pub(crate) version: u64,
    etag: String,
    pub(crate) stored: SettingsV1,
}

/// A cache of values that were built from settings.
pub(crate) trait Invalidate: Send + Sync {
    /// Drops values from settings before `version`.
    fn invalidate_before(&self, version: u64);
}

impl Snapshot {
    /// The strong entity tag, quotes included. It changes with every update and reset, and with the program's defaults
    /// and plugins.
    #[must_use]
    pub fn etag(&self) -> &str {
        &self.etag
    }
}

impl Settings {
    /// Opens the settings in `state`; `key` seals their secrets.
    ///
    /// # Errors
    /// `Invalid` if a kind of file has no plugin or the first OCR plugin is not `none`.
    pub fn open(state: Arc<dyn StateStore>, key: SealingKey, plugins: Plugins) -> Result<Self> {
        Self::open_checking(state, key, plugins, Arc::new(|_| Ok(())))
    }

    /// Like [`open`](Self::open), with an additional check of every changed `base_url`.
    pub fn open_checking(
        state: Arc<dyn StateStore>,
        key: SealingKey,
        plugins: Plugins,
        check_address: AddressCheck,
    ) -> Result<Self> {
        plugins.check()?;
        let resolver = Resolver::new(key, plugins);
        let schema = schema(&resolver.settings(&SettingsV1::default()), &resolver.plugins);
        let shared = SettingsShared {
            state,
            fingerprint: fnv1a(schema.to_string().as_bytes()),
            resolver,
            check_address,
            schema,
            cached: Mutex::default(),
            changing: AsyncMutex::default(),
            versions: watch::Sender::new(0),
            derived: Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The settings in force. Every call reads the record; only a new version is decoded.
    pub async fn current(&self) -> Result<Arc<Snapshot>> {
        let record = self.shared.state.get(KEY).await?;
        self.shared.snapshot(record.as_ref())
    }

    /// Applies a change, and `alongside` in the same step of the store. Returns the new settings.
    ///
    /// An empty change writes nothing, `alongside` included. If the settings cannot be read back after the step, this
    /// returns an error although the change is stored.
    ///
    /// # Errors
    /// `Invalid` if a value is not allowed; `Conflict` if `if_match` or an expectation of `alongside` does not hold.
    /// Nothing is written then.
    pub async fn update(
        &self,
        change: &SettingsChange,
        if_match: &IfMatch,
        alongside: Vec<Write>,
    ) -> Result<Arc<Snapshot>> {
        if change.is_empty() {
            let current = self.current().await?;
            if_match.check(current.etag())?;
            return Ok(current);
        }
        check_change(change, &self.shared.resolver.plugins, &*self.shared.check_address)?;
        let merged = |shared: &SettingsShared, record: Option<&Record>| {
            let resolver = &shared.resolver;
            let stored = merge(shared.snapshot(record)?.stored.clone(), change, &resolver.sealing)?;
            check_ocr(change, &resolver.ocr(&stored), &resolver.plugins)?;
            Ok(stored)
        };
        self.replace(if_match, &alongside, merged).await
    }

    /// Restores the defaults, even if the record is damaged, and applies `alongside` in the same step of the store.
    /// Returns the new settings.
    ///
    /// # Errors
    /// `Conflict` if `if_match` or an expectation of `alongside` does not hold. Nothing is written then.
    pub async fn reset(&self, if_match: &IfMatch, alongside: Vec<Write>) -> Result<Arc<Snapshot>> {
        // The record is emptied and not deleted, so its version and the entity tag keep growing.
        self.replace(if_match, &alongside, |_, _| Ok(SettingsV1::default())).await
    }

    /// The model entry `name` as it would be after `change`. Stores nothing.
    ///
    /// # Errors
    /// `Invalid` if there is no such entry or a value is not allowed.
    pub async fn preview(&self, name: &str, change: &ModelEntryChange) -> Result<ModelEntry> {
        if !Models::NAMES.contains(&name) {
            let reason = format!("models.{name} is unknown; allowed are {}", Models::NAMES.join(", "));
            return Err(Error::invalid("preview settings", reason));
        }
        check_model(name, change, &*self.shared.check_address)?;
        let before = self.current().await?.stored.models.get(name).cloned().unwrap_or_default();
        let resolver = &self.shared.resolver;
        Ok(resolver.model(name, &merge_model(before, name, change, &resolver.sealing)?))
    }

    /// Registers a cache, which is invalidated at every change.
    pub(crate) fn register(&self, cache: Weak<dyn Invalidate>) {
        let mut caches = self.shared.derived.lock().unwrap_or_else(PoisonError::into_inner);
        caches.retain(|cache| cache.strong_count() > 0);
        caches.push(cache);
    }

    /// The latest version of the settings that this handle or a clone of it has read or written. It is 0 before the
    /// first read and while nothing was ever set.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.shared.versions.subscribe()
    }

    /// The JSON Schema (2020-12) of the settings as responses show them.
    #[must_use]
    pub fn schema(&self) -> Value {
        self.shared.schema.clone()
    }

    /// The built-in plugins.
    #[must_use]
    pub fn plugins(&self) -> &Plugins {
        &self.shared.resolver.plugins
    }

    pub(crate) fn state(&self) -> &dyn StateStore {
        &*self.shared.state
    }

    pub(crate) fn resolver(&self) -> &Resolver {
        &self.shared.resolver
    }

    /// Replaces the record by the result of `next`.
    async fn replace(
        &self,
        if_match: &IfMatch,
        alongside: &[Write],
        next: impl Fn(&SettingsShared, Option<&Record>) -> Result<SettingsV1>,
    ) -> Result<Arc<Snapshot>> {
        let _guard = self.shared.changing.lock().await;
        // The version that the last attempt met a conflict with.
        let refused = Mutex::new(None);
        let lock = || refused.lock().unwrap_or_else(PoisonError::into_inner);
        let version = retry_on_conflict(&*self.shared.state, "change settings", || async {
            let record = self.shared.state.get(KEY).await?;
            let version = version_of(record.as_ref());
            if_match.check(&self.shared.etag(version))?;
            if *lock() == Some(version) {
                return Err(Error::conflict("a record that is written with the settings has changed"));
            }
            let stored = encode(&next(&self.shared, record.as_ref())?)?;
            *lock() = Some(version);
            self.shared.state.apply(step(record.as_ref(), stored, alongside)).await?;
            Ok(version)
        })
        .await?;
        self.shared.invalidate_before(version + 1);
        self.current().await
    }
}

impl SettingsShared {
    fn snapshot(&self, record: Option<&Record>) -> Result<Arc<Snapshot>> {
        let version = version_of(record);
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(snapshot) = cached.as_ref().filter(|snapshot| snapshot.version == version) {
            return Ok(Arc::clone(snapshot));
        }
        let stored = record.map(|record| decode(&record.value)).transpose()?.unwrap_or_default();
        let snapshot = Arc::new(Snapshot {
            settings: self.resolver.settings(&stored),
            version,
            etag: self.etag(version),
            stored,
        });
        *cached = Some(Arc::clone(&snapshot));
        drop(cached);
        // Of two concurrent reads, the one of the older version may arrive last.
        self.versions.send_if_modified(|latest| {
            let is_newer = version > *latest;
            *latest = version.max(*latest);
            is_newer
        });
        Ok(snapshot)
    }

    fn etag(&self, version: u64) -> String {
        format!("\"{version}-{:016x}\"", self.fingerprint)
    }

    fn invalidate_before(&self, version: u64) {
        let caches = self.derived.lock().unwrap_or_else(PoisonError::into_inner).clone();
        caches.iter().filter_map(Weak::upgrade).for_each(|cache| cache.invalidate_before(version));
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("plugins", &self.shared.resolver.plugins).finish_non_exhaustive()
    }
}

fn version_of(record: Option<&Record>) -> u64 {
    record.map_or(0, |record| record.version)
}

/// The step that replaces `record`, if it is unchanged, by `stored`.
fn step(record: Option<&Record>, stored: Vec<u8>, alongside: &[Write]) -> Vec<Write> {
    let expect = record.map_or(Expect::Absent, |record| Expect::Version(record.version));
    let mut writes = vec![Write::put(KEY, expect, stored)];
    writes.extend_from_slice(alongside);
    writes
}

/// FNV-1a of 64 bits: the same in every process, unlike the hashers of the standard library.
/// <http://www.isthe.com/chongo/tech/comp/fnv/>
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv1a_equals_the_published_values() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use lkr_state::{ErrorKind as StateErrorKind, Expect, Record, StateStore, StateStoreExt, Write};
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, watch};

use crate::{
    Error, ErrorKind, IfMatch, ModelEntry, ModelEntryChange, Models, Plugins, Result, RuntimeSettings,
    SealingKey, SettingsChange,
    check::{check_change, check_model, check_ocr},
    derived::Derived,
    merge::{merge, merge_model},
    records::{KEY, SettingsV1, decode, encode},
    resolve::Resolver,
    schema::schema,
};

/// How often a change is tried anew that one of another process overtook.
const TRIES: usize = 32;

/// Refuses addresses that may not be called, and says why: the reason reads on after the name of the setting.
pub type AddressCheck = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// The runtime settings in a state store. Cheap to clone.
///
/// Every process reads the one record in the store, so that a change counts everywhere from the next read on.
#[derive(Clone)]
pub struct Settings {
    inner: Arc<Inner>,
}

struct Inner {
    state: Arc<dyn StateStore>,
    resolver: Resolver,
    /// What addresses must pass, besides having the right form.
    addresses: AddressCheck,
    schema: Value,
    /// Tells this program's defaults and plugins from another's, as part of the entity tag.
    fingerprint: u64,
    cached: Mutex<Option<Arc<Snapshot>>>,
    /// Changes of this process wait for each other, so that they need not overtake each other.
    changing: AsyncMutex<()>,
    versions: watch::Sender<u64>,
    derived: Mutex<Vec<Weak<dyn Forget>>>,
}

/// The settings at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// The settings in force.
    pub settings: RuntimeSettings,
    /// That of the record; 0 where there is none.
    pub(crate) version: u64,
    etag: String,
    pub(crate) stored: SettingsV1,
}

/// Something that holds what was built from settings.
pub(crate) trait Forget: Send + Sync {
    /// Lets go of what was built from settings before `version`.
    fn forget_before(&self, version: u64);
}

impl Snapshot {
    /// The entity tag: a strong one, in its quotes. It changes with every update and reset, and with what is built in.
    #[must_use]
    pub fn etag(&self) -> &str {
        &self.etag
    }
}

impl Settings {
    /// The settings in `state`, whose secrets `key` seals.
    ///
    /// # Errors
    /// `Invalid` where a kind of file has no plugin or the first OCR plugin is not `none`.
    pub fn open(state: Arc<dyn StateStore>, key: SealingKey, plugins: Plugins) -> Result<Self> {
        Self::open_checking(state, key, plugins, Arc::new(|_| Ok(())))
    }

    /// [`open`](Self::open) with a check that every `base_url` of a change must pass.
    pub fn open_checking(
        state: Arc<dyn StateStore>,
        key: SealingKey,
        plugins: Plugins,
        addresses: AddressCheck,
    ) -> Result<Self> {
        plugins.check()?;
        let resolver = Resolver::new(key, plugins);
        let schema = schema(&resolver.settings(&SettingsV1::default()), &resolver.plugins);
        let inner = Inner {
            state,
            fingerprint: fnv1a(schema.to_string().as_bytes()),
            resolver,
            addresses,
            schema,
            cached: Mutex::default(),
            changing: AsyncMutex::default(),
            versions: watch::Sender::new(0),
            derived: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The settings in force. The store is asked each time; the record is decoded where it is another than before.
    pub async fn current(&self) -> Result<Arc<Snapshot>> {
        let record = self.inner.state.get(KEY).await?;
        self.inner.snapshot(record.as_ref())
    }

    /// Does a change, and `alongside` in the same step of the store. Answers the settings after it.
    ///
    /// A change that names nothing writes nothing, `alongside` neither. Where the settings cannot be read back after the step, the
    /// answer is an error although the change is stored.
    ///
    /// # Errors
    /// `Invalid` where a value is not allowed; `Conflict` where `if_match` or an expectation of `alongside` does not
    /// hold. Nothing is written then.
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
        check_change(change, &self.inner.resolver.plugins, &*self.inner.addresses)?;
        let merged = |inner: &Inner, record: Option<&Record>| {
            let resolver = &inner.resolver;
            let stored = merge(inner.snapshot(record)?.stored.clone(), change, &resolver.sealing)?;
            check_ocr(change, &resolver.ocr(&stored), &resolver.plugins)?;
            Ok(stored)
        };
        self.replace(if_match, &alongside, merged).await
    }

    /// Goes back to the defaults, also from a record that is damaged, and does `alongside` in the same step of the
    /// store. Answers the settings after it.
    ///
    /// # Errors
    /// `Conflict` where `if_match` or an expectation of `alongside` does not hold. Nothing is written then.
    pub async fn reset(&self, if_match: &IfMatch, alongside: Vec<Write>) -> Result<Arc<Snapshot>> {
        // An empty record and none at all: its versions, and so the entity tags, go on.
        self.replace(if_match, &alongside, |_, _| Ok(SettingsV1::default())).await
    }

    /// The model entry `name` as it would be after `change`. Nothing is stored.
    ///
    /// # Errors
    /// `Invalid` where there is no such entry or a value is not allowed.
    pub async fn preview(&self, name: &str, change: &ModelEntryChange) -> Result<ModelEntry> {
        if !Models::NAMES.contains(&name) {
            let reason = format!("models.{name} is unknown; there are {}", Models::NAMES.join(", "));
            return Err(Error::invalid("preview settings", reason));
        }
        check_model(name, change, &*self.inner.addresses)?;
        let before = self.current().await?.stored.models.get(name).cloned().unwrap_or_default();
        let resolver = &self.inner.resolver;
        Ok(resolver.model(name, &merge_model(before, name, change, &resolver.sealing)?))
    }

    /// What is built from the settings by `build`, and kept while they stay.
    ///
    /// `build` runs on the task that asks first, so it must not block.
    pub fn derive<T: Send + Sync + 'static>(
        &self,
        build: impl Fn(&RuntimeSettings) -> T + Send + Sync + 'static,
    ) -> Derived<T> {
        let derived = Derived::new(self.clone(), build);
        let mut all = self.inner.derived.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|slot| slot.strong_count() > 0);
        all.push(derived.slot());
        derived
    }

    /// The version of the settings, as it was last seen here: by a read or a change through this handle or a clone
    /// of it. It is 0 before the first read and while nothing was ever set.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.inner.versions.subscribe()
    }

    /// The JSON Schema (2020-12) of the settings as answers show them.
    #[must_use]
    pub fn schema(&self) -> Value {
        self.inner.schema.clone()
    }

    /// The plugins that are built in.
    #[must_use]
    pub fn plugins(&self) -> &Plugins {
        &self.inner.resolver.plugins
    }

    pub(crate) fn state(&self) -> &dyn StateStore {
        &*self.inner.state
    }

    pub(crate) fn resolver(&self) -> &Resolver {
        &self.inner.resolver
    }

    /// Puts what `next` makes of the record in its place.
    async fn replace(
        &self,
        if_match: &IfMatch,
        alongside: &[Write],
        next: impl Fn(&Inner, Option<&Record>) -> Result<SettingsV1>,
    ) -> Result<Arc<Snapshot>> {
        let _turn = self.inner.changing.lock().await;
        let mut refused = None;
        for _ in 0..TRIES {
            let record = self.inner.state.get(KEY).await?;
            let version = version_of(record.as_ref());
            if_match.check(&self.inner.etag(version))?;
            if refused == Some(version) {
                return Err(Error::conflict("what was to be written with the settings has changed"));
            }
            let stored = encode(&next(&self.inner, record.as_ref())?)?;
            match self.inner.state.apply(step(record.as_ref(), stored, alongside)).await {
                Ok(()) => {
                    self.inner.forget_before(version + 1);
                    return self.current().await;
                }
                Err(error) if error.kind() == StateErrorKind::Conflict => refused = Some(version),
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::new(ErrorKind::Unavailable, "change settings", "they keep being changed elsewhere"))
    }
}

impl Inner {
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
        // Of two reads at once the earlier one may get here last.
        self.versions.send_if_modified(|known| {
            let newer = version > *known;
            *known = version.max(*known);
            newer
        });
        Ok(snapshot)
    }

    fn etag(&self, version: u64) -> String {
        format!("\"{version}-{:016x}\"", self.fingerprint)
    }

    fn forget_before(&self, version: u64) {
        let all = self.derived.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.iter().filter_map(Weak::upgrade).for_each(|slot| slot.forget_before(version));
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("plugins", &self.inner.resolver.plugins).finish_non_exhaustive()
    }
}

fn version_of(record: Option<&Record>) -> u64 {
    record.map_or(0, |record| record.version)
}

/// The writes that put `stored` in the place of `record`, which must still be there.
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
    fn fnv1a_as_published() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}

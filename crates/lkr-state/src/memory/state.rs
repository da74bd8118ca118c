use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Bound,
    path::Path,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Instant,
};

use async_trait::async_trait;
use bytes::Bytes;

use super::dump;
use crate::{Error, ErrorKind, Expect, Key, Op, Record, Result, ScanOrder, StateStore, Write};

const KEY_BYTES: usize = 400;
const VALUE_BYTES: usize = 1 << 20;
const SWEEP_EVERY: u64 = 1024;

/// A [`StateStore`] in memory. It keeps what it is given for as long as it lives.
#[derive(Default)]
pub struct MemoryState {
    inner: RwLock<Inner>,
}

/// Everything under the one lock, so that each operation is one step.
#[derive(Default, Clone)]
pub(super) struct Inner {
    pub(super) records: BTreeMap<Key, Stored>,
    /// The last version given to any key: one count for all, so that no key sees a version twice.
    pub(super) version: u64,
}

#[derive(Clone)]
pub(super) struct Stored {
    pub(super) record: Record,
    /// When it is gone; never when `None`.
    pub(super) expires: Option<Instant>,
}

impl MemoryState {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The store of which `folder` holds a [`snapshot`](StateStore::snapshot).
    ///
    /// # Errors
    /// `Corrupt` where the folder holds something else, `Internal` where it cannot be read.
    pub fn open_snapshot(folder: &Path) -> Result<Self> {
        let inner = dump::read(folder).map_err(|error| Error::io("open_snapshot", error))?;
        Ok(Self { inner: RwLock::new(inner) })
    }

    // A panic elsewhere does not make the records wrong: every step is checked before it is begun.
    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl StateStore for MemoryState {
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        keys.iter().try_for_each(|key| check_key("get_many", key))?;
        let (inner, now) = (self.read(), Instant::now());
        Ok(keys.iter().map(|key| inner.live(key, now).map(|stored| stored.record.clone())).collect())
    }

    async fn apply(&self, writes: Vec<Write>) -> Result<()> {
        check_writes(&writes)?;
        let (mut inner, now) = (self.write(), Instant::now());
        writes.iter().try_for_each(|write| inner.expect(write, now))?;
        writes.into_iter().for_each(|write| inner.do_write(write, now));
        Ok(())
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>> {
        let (inner, now) = (self.read(), Instant::now());
        Ok(match order {
            ScanOrder::Ascending => inner.ascending(prefix, after, now).take(limit).collect(),
            ScanOrder::Descending => inner.descending(prefix, after, now).take(limit).collect(),
        })
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        let inner = self.read().clone();
        let to = to.to_owned();
        // The blocking task runs to its end also where this future is dropped, so that a copy is whole.
        tokio::task::spawn_blocking(move || dump::write(&inner, &to))
            .await
            .map_err(|error| Error::new(ErrorKind::Internal, "snapshot", error))?
            .map_err(|error| Error::io("snapshot", error))
    }

    async fn health(&self) -> Result<()> {
        Ok(())
    }
}

impl Inner {
    fn live(&self, key: &str, now: Instant) -> Option<&Stored> {
        self.records.get(key).filter(|stored| stored.is_live(now))
    }

    fn expect(&self, write: &Write, now: Instant) -> Result<()> {
        let present = self.live(&write.key, now).map(|stored| stored.record.version);
        let holds = match write.expect {
            Expect::Any => true,
            Expect::Absent => present.is_none(),
            Expect::Version(version) => present == Some(version),
        };
        let conflict = || {
            let message = format!("{}: {:?} was expected, not {present:?}", write.key, write.expect);
            Error::new(ErrorKind::Conflict, "apply", message)
        };
        if holds { Ok(()) } else { Err(conflict()) }
    }

    fn do_write(&mut self, write: Write, now: Instant) {
        match write.op {
            Op::Put { value, ttl } => {
                self.sweep(now);
                let expires = ttl.and_then(|ttl| now.checked_add(ttl));
                self.put(write.key, value, expires);
            }
            Op::Delete => drop(self.records.remove(&write.key)),
            Op::Increment => {
                let present = self.live(&write.key, now);
                let count = present.map_or(0, |stored| stored.record.as_counter()).saturating_add(1);
                let expires = present.and_then(|stored| stored.expires);
                self.put(write.key, Bytes::from(count.to_string()), expires);
            }
            Op::Check => {}
        }
    }

    /// Now and then frees what has expired, so that records that nobody asks for again do not pile up.
    fn sweep(&mut self, now: Instant) {
        if self.version.is_multiple_of(SWEEP_EVERY) {
            self.records.retain(|_, stored| stored.is_live(now));
        }
    }

    fn put(&mut self, key: Key, value: Bytes, expires: Option<Instant>) {
        self.version += 1;
        let record = Record { value, version: self.version };
        self.records.insert(key, Stored { record, expires });
    }

    fn ascending(
        &self,
        prefix: &str,
        after: Option<&str>,
        now: Instant,
    ) -> impl Iterator<Item = (Key, Record)> {
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let range = self.records.range::<str, _>((start, Bound::Unbounded));
        range.take_while(move |(key, _)| key.starts_with(prefix)).filter_map(move |entry| found(entry, now))
    }

    fn descending(
        &self,
        prefix: &str,
        after: Option<&str>,
        now: Instant,
    ) -> impl Iterator<Item = (Key, Record)> {
        let behind = successor(prefix);
        let end = match (after, &behind) {
            (Some(after), _) if after < prefix => Bound::Excluded(prefix),
            (Some(after), _) if after.starts_with(prefix) => Bound::Excluded(after),
            // `after` lies behind all keys of the prefix.
            (_, Some(behind)) => Bound::Excluded(behind.as_str()),
            (_, None) => Bound::Unbounded,
        };
        let range = self.records.range::<str, _>((Bound::Unbounded, end)).rev();
        range.take_while(move |(key, _)| key.starts_with(prefix)).filter_map(move |entry| found(entry, now))
    }
}

impl Stored {
    fn is_live(&self, now: Instant) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

impl fmt::Debug for MemoryState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryState").field("records", &self.read().records.len()).finish_non_exhaustive()
    }
}

/// The smallest text behind all that begin with `prefix`; `None` where there is none.
///
/// UTF-8 sorts by code points, so that the last character that has a next one is raised to it.
fn successor(prefix: &str) -> Option<String> {
    let mut head = prefix.to_owned();
    while let Some(last) = head.pop() {
        if let Some(next) = (last..=char::MAX).nth(1) {
            head.push(next);
            return Some(head);
        }
    }
    None
}

fn found((key, stored): (&Key, &Stored), now: Instant) -> Option<(Key, Record)> {
    stored.is_live(now).then(|| (key.clone(), stored.record.clone()))
}

fn check_writes(writes: &[Write]) -> Result<()> {
    let mut keys = BTreeSet::new();
    for write in writes {
        check_key("apply", &write.key)?;
        if !keys.insert(write.key.as_str()) {
            return Err(Error::new(ErrorKind::Invalid, "apply", format!("{} comes twice", write.key)));
        }
        if let Op::Put { value, .. } = &write.op
            && value.len() > VALUE_BYTES
        {
            let message = format!("a value of {} bytes for {}", value.len(), write.key);
            return Err(Error::new(ErrorKind::Invalid, "apply", message));
        }
    }
    Ok(())
}

fn check_key(operation: &'static str, key: &str) -> Result<()> {
    if (1..=KEY_BYTES).contains(&key.len()) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Invalid, operation, format!("a key of {} bytes", key.len())))
}

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
use crate::{
    Error, ErrorKind, Expect, Key, Op, Record, RecordExport, RecordSink, Result, Scan, ScanOrder, StateStore,
    Write,
};

/// The maximum length of a key.
const MAX_KEY_BYTES: usize = 400;
/// The maximum length of a value: 1 MiB.
const MAX_VALUE_BYTES: usize = 1 << 20;
/// The records that an export gives at a time.
const EXPORTED: usize = 1000;
/// Expired records are removed after this many writes.
const SWEEP_INTERVAL: u64 = 1024;

/// A [`StateStore`] in memory. Records are lost when the value is dropped.
#[derive(Default)]
pub struct MemoryState {
    state: RwLock<MemoryStateRecords>,
}

/// The whole state is behind one lock, so each operation is atomic.
#[derive(Default, Clone)]
pub(super) struct MemoryStateRecords {
    pub(super) records: BTreeMap<Key, MemoryRecord>,
    /// The last version of any key. All keys share one counter, so no version of a key is reused.
    pub(super) version: u64,
}

#[derive(Clone)]
pub(super) struct MemoryRecord {
    pub(super) record: Record,
    /// The time of expiry; `None` means never.
    pub(super) expires: Option<Instant>,
}

impl MemoryState {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Loads the [`snapshot`](StateStore::snapshot) in `folder`.
    ///
    /// # Errors
    /// `Corrupt` if the file in the folder is not a snapshot, `Internal` if it cannot be read.
    pub fn open_snapshot(folder: &Path) -> Result<Self> {
        let state = dump::read(folder).map_err(|error| Error::io("open_snapshot", error))?;
        Ok(Self { state: RwLock::new(state) })
    }

    // A poisoned lock is safe to use: every step is validated before it begins.
    fn read(&self) -> RwLockReadGuard<'_, MemoryStateRecords> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, MemoryStateRecords> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl StateStore for MemoryState {
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        keys.iter().try_for_each(|key| check_key("get_many", key))?;
        let (state, now) = (self.read(), Instant::now());
        Ok(keys.iter().map(|key| state.live(key, now).map(|stored| stored.record.clone())).collect())
    }

    async fn apply(&self, writes: Vec<Write>) -> Result<()> {
        check_writes(&writes)?;
        let (mut state, now) = (self.write(), Instant::now());
        writes.iter().try_for_each(|write| state.check_expectation(write, now))?;
        writes.into_iter().for_each(|write| state.apply_write(write, now));
        Ok(())
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>> {
        let (state, now) = (self.read(), Instant::now());
        Ok(state.scan(prefix, after, order, limit, now))
    }

    async fn scan_many(&self, scans: &[Scan]) -> Result<Vec<Vec<(Key, Record)>>> {
        let (state, now) = (self.read(), Instant::now());
        let scan = |scan: &Scan| state.scan(&scan.prefix, scan.after.as_deref(), scan.order, scan.limit, now);
        Ok(scans.iter().map(scan).collect())
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        let state = self.read().clone();
        let to = to.to_owned();
        // The blocking task runs to its end even if this future is dropped, so the copy is complete.
        tokio::task::spawn_blocking(move || dump::write(&state, &to))
            .await
            .map_err(|error| Error::new(ErrorKind::Internal, "snapshot", error))?
            .map_err(|error| Error::io("snapshot", error))
    }

    async fn health(&self) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl RecordExport for MemoryState {
    async fn export(&self, sink: &mut dyn RecordSink) -> Result<()> {
        let now = Instant::now();
        let live: Vec<_> = self.read().ascending("", None, now).collect();
        for records in live.chunks(EXPORTED) {
            let records = records.iter().map(|(key, record)| (key.clone(), record.value.clone()));
            sink.add(records.collect()).await?;
        }
        Ok(())
    }
}

impl MemoryStateRecords {
    fn live(&self, key: &str, now: Instant) -> Option<&MemoryRecord> {
        self.records.get(key).filter(|stored| stored.is_live(now))
    }

    fn check_expectation(&self, write: &Write, now: Instant) -> Result<()> {
        let current = self.live(&write.key, now).map(|stored| stored.record.version);
        let holds = match write.expect {
            Expect::Any => true,
            Expect::Absent => current.is_none(),
            Expect::Version(version) => current == Some(version),
        };
        let conflict = || {
            let message = format!("{}: expected {:?}, found version {current:?}", write.key, write.expect);
            Error::new(ErrorKind::Conflict, "apply", message)
        };
        if holds { Ok(()) } else { Err(conflict()) }
    }

    fn apply_write(&mut self, write: Write, now: Instant) {
        match write.op {
            Op::Put { value, ttl } => {
                self.sweep(now);
                let expires = ttl.and_then(|ttl| now.checked_add(ttl));
                self.put(write.key, value, expires);
            }
            Op::Delete => drop(self.records.remove(&write.key)),
            Op::Increment => {
                let current = self.live(&write.key, now);
                let count = current.map_or(0, |stored| stored.record.as_counter()).saturating_add(1);
                let expires = current.and_then(|stored| stored.expires);
                self.put(write.key, Bytes::from(count.to_string()), expires);
            }
            Op::Check => {}
        }
    }

    /// Removes expired records from time to time, so that they do not accumulate.
    fn sweep(&mut self, now: Instant) {
        if self.version.is_multiple_of(SWEEP_INTERVAL) {
            self.records.retain(|_, stored| stored.is_live(now));
        }
    }

    fn put(&mut self, key: Key, value: Bytes, expires: Option<Instant>) {
        self.version += 1;
        let record = Record { value, version: self.version };
        self.records.insert(key, MemoryRecord { record, expires });
    }

    fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
        now: Instant,
    ) -> Vec<(Key, Record)> {
        match order {
            ScanOrder::Ascending => self.ascending(prefix, after, now).take(limit).collect(),
            ScanOrder::Descending => self.descending(prefix, after, now).take(limit).collect(),
        }
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
        range
            .take_while(move |(key, _)| key.starts_with(prefix))
            .filter_map(move |entry| live_entry(entry, now))
    }

    fn descending(
        &self,
        prefix: &str,
        after: Option<&str>,
        now: Instant,
    ) -> impl Iterator<Item = (Key, Record)> {
        let prefix_end = successor(prefix);
        let end = match (after, &prefix_end) {
            (Some(after), _) if after < prefix => Bound::Excluded(prefix),
            (Some(after), _) if after.starts_with(prefix) => Bound::Excluded(after),
            // `after` is greater than all keys with the prefix.
            (_, Some(prefix_end)) => Bound::Excluded(prefix_end.as_str()),
            (_, None) => Bound::Unbounded,
        };
        let range = self.records.range::<str, _>((Bound::Unbounded, end)).rev();
        range
            .take_while(move |(key, _)| key.starts_with(prefix))
            .filter_map(move |entry| live_entry(entry, now))
    }
}

impl MemoryRecord {
    fn is_live(&self, now: Instant) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

impl fmt::Debug for MemoryState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryState").field("records", &self.read().records.len()).finish_non_exhaustive()
    }
}

/// The smallest string greater than all strings that begin with `prefix`; `None` if there is none.
///
/// UTF-8 sorts by code point, so the last character that is not the largest one is replaced by its successor.
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

fn live_entry((key, stored): (&Key, &MemoryRecord), now: Instant) -> Option<(Key, Record)> {
    stored.is_live(now).then(|| (key.clone(), stored.record.clone()))
}

fn check_writes(writes: &[Write]) -> Result<()> {
    let mut keys = BTreeSet::new();
    for write in writes {
        check_key("apply", &write.key)?;
        if !keys.insert(write.key.as_str()) {
            return Err(Error::new(
                ErrorKind::Invalid,
                "apply",
                format!("the step contains the key {} twice", write.key),
            ));
        }
        if let Op::Put { value, .. } = &write.op
            && value.len() > MAX_VALUE_BYTES
        {
            let message = format!(
                "the value of {} has {} bytes; at most {MAX_VALUE_BYTES} are allowed",
                write.key,
                value.len()
            );
            return Err(Error::new(ErrorKind::Invalid, "apply", message));
        }
    }
    Ok(())
}

fn check_key(operation: &'static str, key: &str) -> Result<()> {
    if (1..=MAX_KEY_BYTES).contains(&key.len()) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Invalid,
        operation,
        format!("the key has {} bytes; 1 to {MAX_KEY_BYTES} are allowed", key.len()),
    ))
}

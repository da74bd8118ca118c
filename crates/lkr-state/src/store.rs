use std::{fmt::Debug, path::Path, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use time::OffsetDateTime;

use crate::Result;

/// A key: 1 to 400 bytes of UTF-8, ordered by its bytes. `/` separates its parts.
pub type Key = String;

/// A store of small records, with compare-and-set over several keys at once.
///
/// Operations are cancellation-safe: if a future is dropped at an await, its operation takes effect completely or not at
/// all. When the future of a write returns, the write is durable and visible to every later read.
#[async_trait]
pub trait StateStore: Debug + Send + Sync + 'static {
    /// The records of these keys, in the same order; `None` for records that do not exist or have expired. A key that
    /// occurs twice is returned twice.
    ///
    /// # Errors
    /// `Invalid` if a key is empty or too long.
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>>;

    /// Applies all writes atomically, or none of them. An expired record counts as absent.
    ///
    /// # Errors
    /// `Conflict` if an expectation does not hold. `Invalid` if a key is empty, is too long or occurs twice, or if a
    /// value is too large.
    async fn apply(&self, writes: Vec<Write>) -> Result<()>;

    /// Up to `limit` records whose keys begin with `prefix`, in key order, starting after the key `after`.
    ///
    /// `after` need not exist nor begin with `prefix`. In descending order, the keys after it are the smaller ones. Every
    /// key begins with the empty prefix.
    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>>;

    /// The results of several scans, in their order, as [`scan`](Self::scan) returns them. All scans see the same
    /// state: no write takes effect between them. So a record that one step moves from one prefix to another is in
    /// exactly one of two scans of these prefixes.
    ///
    /// A store may read all of it without a pause, so the limits should be small.
    async fn scan_many(&self, scans: &[Scan]) -> Result<Vec<Vec<(Key, Record)>>>;

    /// Writes a consistent copy of the whole store into the folder `to`, which must not exist. Reads and writes continue
    /// meanwhile.
    ///
    /// # Errors
    /// `Invalid` if `to` exists; it is not changed.
    async fn snapshot(&self, to: &Path) -> Result<()>;

    /// Whether the store is reachable.
    async fn health(&self) -> Result<()>;

    /// The present time by the clock that all processes on the store share, as this process estimates it. What one process
    /// writes and another compares with the time, such as when a session ends, is counted by it.
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }

    /// [`retry_on_conflict`](crate::retry_on_conflict) calls this when `operation` gives up because of contention. Stores
    /// ignore it; [`ObservedState`](crate::ObservedState) passes it to an observer.
    fn report_contention(&self, operation: &'static str) {
        let _ = operation;
    }
}

/// Convenience methods of every [`StateStore`].
#[async_trait]
pub trait StateStoreExt: StateStore {
    /// The record of one key.
    async fn get(&self, key: &str) -> Result<Option<Record>> {
        Ok(self.get_many(&[key.to_owned()]).await?.pop().flatten())
    }

    /// The value of a counter of [`Op::Increment`]; 0 if it does not exist.
    async fn counter(&self, key: &str) -> Result<u64> {
        Ok(self.get(key).await?.map_or(0, |record| record.as_counter()))
    }
}

impl<S: StateStore + ?Sized> StateStoreExt for S {}

/// A stored value and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The value.
    pub value: Bytes,
    /// Grows with each write of the key. It is never reused for the key, even after a delete.
    pub version: u64,
}

impl Record {
    /// The value as a counter, which is stored as decimal digits; 0 if the value is not a counter.
    #[must_use]
    pub fn as_counter(&self) -> u64 {
        std::str::from_utf8(&self.value).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }
}

/// One write of an atomic step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The key. A step may contain each key once.
    pub key: Key,
    /// The condition under which the step is applied.
    pub expect: Expect,
    /// The operation.
    pub op: Op,
}

/// The expected state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Any state.
    Any,
    /// No record exists.
    Absent,
    /// The record has this version.
    Version(u64),
}

/// The operation on a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Stores the value; the record expires after `ttl`.
    Put {
        /// The value, of at most 1 MiB.
        value: Bytes,
        /// The time to live. The record never expires if it is `None` or too large for the clock.
        ttl: Option<Duration>,
    },
    /// Removes the record if it exists.
    Delete,
    /// Adds one to a counter. A missing record, or a value that is not a counter, counts as 0. The expiry stays unchanged.
    Increment,
    /// Changes nothing; only the expectation is checked.
    Check,
}

impl Write {
    /// Stores a value that never expires.
    pub fn put(key: impl Into<Key>, expect: Expect, value: impl Into<Bytes>) -> Self {
        Self { key: key.into(), expect, op: Op::Put { value: value.into(), ttl: None } }
    }

    /// Stores a value that expires after `ttl`.
    pub fn put_for(key: impl Into<Key>, expect: Expect, value: impl Into<Bytes>, ttl: Duration) -> Self {
        Self { key: key.into(), expect, op: Op::Put { value: value.into(), ttl: Some(ttl) } }
    }

    /// Removes a record.
    pub fn delete(key: impl Into<Key>, expect: Expect) -> Self {
        Self { key: key.into(), expect, op: Op::Delete }
    }

    /// Adds one to a counter.
    pub fn increment(key: impl Into<Key>) -> Self {
        Self { key: key.into(), expect: Expect::Any, op: Op::Increment }
    }

    /// Checks an expectation and changes nothing.
    pub fn check(key: impl Into<Key>, expect: Expect) -> Self {
        Self { key: key.into(), expect, op: Op::Check }
    }
}

/// A scan of [`StateStore::scan_many`]. The fields are the parameters of [`StateStore::scan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The beginning of the keys.
    pub prefix: String,
    /// The key after which the scan starts.
    pub after: Option<Key>,
    /// The order of the keys.
    pub order: ScanOrder,
    /// The largest number of records.
    pub limit: usize,
}

/// The order of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanOrder {
    /// From the smallest key to the largest.
    Ascending,
    /// From the largest key to the smallest.
    Descending,
}

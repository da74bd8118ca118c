use std::{fmt::Debug, path::Path, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;

use crate::Result;

/// A key: 1 to 400 bytes of UTF-8, ordered by its bytes. Parts are set apart by `/`.
pub type Key = String;

/// A store of small records, with compare-and-set over several keys at once.
///
/// Every future may be dropped at any await: the operation then happens whole or not at all. A write is durable,
/// and seen by every later read, when its future answers.
#[async_trait]
pub trait StateStore: Debug + Send + Sync + 'static {
    /// The records of these keys, in their order; `None` for those that are not there or have expired. A key that
    /// comes twice is answered twice.
    ///
    /// # Errors
    /// `Invalid` where a key is empty or too long.
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>>;

    /// Does all writes in one step, or none. A record that has expired is absent.
    ///
    /// # Errors
    /// `Conflict` where an expectation does not hold. `Invalid` where a key is empty, too long or comes twice, or a
    /// value is too large.
    async fn apply(&self, writes: Vec<Write>) -> Result<()>;

    /// Up to `limit` records whose key begins with `prefix`, in the order of their keys, beyond `after`.
    /// `after` need not be there, nor begin with `prefix`; in descending order, beyond it are the smaller keys. The
    /// empty prefix is every key's.
    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>>;

    /// Writes a consistent copy of everything into the folder `to`, which must not exist. Reads and writes go on.
    ///
    /// # Errors
    /// `Invalid` where `to` exists; it is left as it is.
    async fn snapshot(&self, to: &Path) -> Result<()>;

    /// Whether the store answers.
    async fn health(&self) -> Result<()>;

    /// Is called by [`retry_on_conflict`](crate::retry_on_conflict) when `operation` gave up because of contention. Stores
    /// ignore it; [`ObservedState`](crate::ObservedState) passes it to an observer.
    fn report_contention(&self, operation: &'static str) {
        let _ = operation;
    }
}

/// Shorthands over [`StateStore`].
#[async_trait]
pub trait StateStoreExt: StateStore {
    /// The record of one key.
    async fn get(&self, key: &str) -> Result<Option<Record>> {
        Ok(self.get_many(&[key.to_owned()]).await?.pop().flatten())
    }

    /// The value of a counter that [`Op::Increment`] counts; 0 where it is not there.
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
    /// Grows with each write of the key and is never used for it again, also after a delete.
    pub version: u64,
}

impl Record {
    /// The value as a counter: decimal digits; 0 where it is none.
    #[must_use]
    pub fn as_counter(&self) -> u64 {
        std::str::from_utf8(&self.value).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }
}

/// One write of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The key; each key at most once in a step.
    pub key: Key,
    /// What must hold for the step to be done.
    pub expect: Expect,
    /// What is done.
    pub op: Op,
}

/// What must hold of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    Any,
    /// There is no record.
    Absent,
    /// The record has this version.
    Version(u64),
}

/// What is done to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// The value is put there; after `ttl` it is gone.
    Put {
        /// The value, of at most 1 MiB.
        value: Bytes,
        /// How long it is kept; for ever when `None` or beyond what a clock can tell.
        ttl: Option<Duration>,
    },
    /// The record is removed; nothing where there is none.
    Delete,
    /// The counter grows by one; it begins at 0, also where the value is no counter. It expires when it would have.
    Increment,
    /// Nothing: the expectation alone counts.
    Check,
}

impl Write {
    /// Puts a value that is kept for ever.
    pub fn put(key: impl Into<Key>, expect: Expect, value: impl Into<Bytes>) -> Self {
        Self { key: key.into(), expect, op: Op::Put { value: value.into(), ttl: None } }
    }

    /// Puts a value that is gone after `ttl`.
    pub fn put_for(key: impl Into<Key>, expect: Expect, value: impl Into<Bytes>, ttl: Duration) -> Self {
        Self { key: key.into(), expect, op: Op::Put { value: value.into(), ttl: Some(ttl) } }
    }

    /// Removes a record.
    pub fn delete(key: impl Into<Key>, expect: Expect) -> Self {
        Self { key: key.into(), expect, op: Op::Delete }
    }

    /// Counts one more.
    pub fn increment(key: impl Into<Key>) -> Self {
        Self { key: key.into(), expect: Expect::Any, op: Op::Increment }
    }

    /// Only checks.
    pub fn check(key: impl Into<Key>, expect: Expect) -> Self {
        Self { key: key.into(), expect, op: Op::Check }
    }
}

/// The order of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanOrder {
    /// From the smallest key on.
    Ascending,
    /// From the largest key on.
    Descending,
}

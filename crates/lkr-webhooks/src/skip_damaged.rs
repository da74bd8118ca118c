use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use lkr_state::{Error, ErrorKind, Key, Record, Result, ScanOrder, StateStore, Write};

/// What the keys of this crate are made of, in the order of their bytes.
const LETTERS: &str = "-/0123456789abcdefghijklmnopqrstuvwxyz";

/// A store whose ascending scans pass over records that cannot be read: one of them fails a whole scan of the store
/// below, and would keep all others from being delivered. Each is named in the log once.
///
/// No key may be the beginning of another, as none of this crate's is.
#[derive(Debug)]
pub(crate) struct SkipDamagedScan {
    inner: Arc<dyn StateStore>,
    damaged: Mutex<BTreeSet<Key>>,
}

impl SkipDamagedScan {
    pub(crate) fn new(inner: Arc<dyn StateStore>) -> Self {
        Self { inner, damaged: Mutex::default() }
    }

    async fn ascending(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(Key, Record)>> {
        let (mut found, mut after, mut most) = (Vec::new(), after.map(str::to_owned), limit);
        while found.len() < limit {
            let count = most.min(limit - found.len());
            match self.inner.scan(prefix, after.as_deref(), ScanOrder::Ascending, count).await {
                Ok(page) => {
                    let is_last = page.len() < count;
                    found.extend(page);
                    if is_last {
                        break;
                    }
                    after = found.last().map(|(key, _)| key.clone());
                }
                // Those before it can be read.
                Err(error) if is_damage(&error) && count > 1 => most = count / 2,
                Err(error) if is_damage(&error) => {
                    let key = self.damaged(prefix, after.as_deref()).await?;
                    if after.as_ref().is_some_and(|after| key <= *after) {
                        return Err(error);
                    }
                    (after, most) = (Some(key), limit);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// The key beyond `after`, whose record cannot be read.
    async fn damaged(&self, prefix: &str, after: Option<&str>) -> Result<Key> {
        if let Some(known) = self.known(prefix, after)
            && self.is_next(prefix, after, &known).await?
        {
            return Ok(known);
        }
        let key = self.first_key(prefix, after).await?;
        if self.lock().insert(key.clone()) {
            tracing::error!(key, "a record of webhooks cannot be read, and is passed over");
        }
        Ok(key)
    }

    /// The first key beyond `after` of those that cannot be read, as far as is known.
    fn known(&self, prefix: &str, after: Option<&str>) -> Option<Key> {
        let is_beyond =
            |key: &&Key| key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after);
        self.lock().iter().find(is_beyond).cloned()
    }

    /// Whether there is nothing between `after` and `key`.
    async fn is_next(&self, prefix: &str, after: Option<&str>, key: &str) -> Result<bool> {
        match self.inner.scan(prefix, Some(key), ScanOrder::Descending, 1).await {
            Ok(before) => {
                let is_before = |(key, _): &(Key, Record)| after.is_some_and(|after| key.as_str() <= after);
                Ok(before.first().is_none_or(is_before))
            }
            Err(error) if is_damage(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The first key beyond `after`, letter by letter, because a scan that fails does not tell it.
    async fn first_key(&self, prefix: &str, after: Option<&str>) -> Result<Key> {
        let mut key = prefix.to_owned();
        'longer: loop {
            for letter in LETTERS.chars() {
                let longer = format!("{key}{letter}");
                if self.has_any(&longer, after).await? {
                    key = longer;
                    continue 'longer;
                }
            }
            return Ok(key);
        }
    }

    async fn has_any(&self, prefix: &str, after: Option<&str>) -> Result<bool> {
        match self.inner.scan(prefix, after, ScanOrder::Ascending, 1).await {
            Ok(page) => Ok(!page.is_empty()),
            Err(error) if is_damage(&error) => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Key>> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_damage(error: &Error) -> bool {
    error.kind() == ErrorKind::Corrupt
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for SkipDamagedScan {
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        self.inner.get_many(keys).await
    }

    async fn apply(&self, writes: Vec<Write>) -> Result<()> {
        self.inner.apply(writes).await
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>> {
        match order {
            ScanOrder::Ascending => self.ascending(prefix, after, limit).await,
            ScanOrder::Descending => self.inner.scan(prefix, after, order, limit).await,
        }
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        self.inner.snapshot(to).await
    }

    async fn health(&self) -> Result<()> {
        self.inner.health().await
    }

    fn report_contention(&self, operation: &'static str) {
        self.inner.report_contention(operation);
    }
}

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use lkr_state::{Error, ErrorKind, Key, Record, Result, Scan, ScanOrder, StateStore, Write};
use time::OffsetDateTime;

/// The characters of this crate's keys, in byte order.
const KEY_CHARS: &str = "-/0123456789abcdefghijklmnopqrstuvwxyz";

/// A store whose ascending scans skip damaged records. In the store below, one damaged record fails a whole scan and
/// would block all other deliveries. Each damaged record is logged once.
///
/// No key may be a prefix of another key, and none of this crate's keys is.
#[derive(Debug)]
pub(crate) struct SkipDamagedScan {
    store: Arc<dyn StateStore>,
    damaged: Mutex<BTreeSet<Key>>,
}

impl SkipDamagedScan {
    pub(crate) fn new(store: Arc<dyn StateStore>) -> Self {
        Self { store, damaged: Mutex::default() }
    }

    async fn scan_ascending(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>> {
        let (mut found, mut after, mut page_size) = (Vec::new(), after.map(str::to_owned), limit);
        while found.len() < limit {
            let count = page_size.min(limit - found.len());
            match self.store.scan(prefix, after.as_deref(), ScanOrder::Ascending, count).await {
                Ok(page) => {
                    let is_last = page.len() < count;
                    found.extend(page);
                    if is_last {
                        break;
                    }
                    after = found.last().map(|(key, _)| key.clone());
                }
                // Smaller pages read the records before the damaged one.
                Err(error) if is_damage(&error) && count > 1 => page_size = count / 2,
                Err(error) if is_damage(&error) => {
                    let key = self.next_damaged_key(prefix, after.as_deref()).await?;
                    if after.as_ref().is_some_and(|after| key <= *after) {
                        return Err(error);
                    }
                    (after, page_size) = (Some(key), limit);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// The first key after `after`, whose record is damaged.
    async fn next_damaged_key(&self, prefix: &str, after: Option<&str>) -> Result<Key> {
        if let Some(key) = self.cached_damaged_key(prefix, after)
            && self.is_next(prefix, after, &key).await?
        {
            return Ok(key);
        }
        let key = self.first_key(prefix, after).await?;
        if self.lock().insert(key.clone()) {
            tracing::error!(key, "webhook record is damaged; skipped");
        }
        Ok(key)
    }

    /// The first key after `after` that earlier scans found damaged.
    fn cached_damaged_key(&self, prefix: &str, after: Option<&str>) -> Option<Key> {
        let is_after = |key: &&Key| key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after);
        self.lock().iter().find(is_after).cloned()
    }

    /// Whether there is no key between `after` and `key`.
    async fn is_next(&self, prefix: &str, after: Option<&str>, key: &str) -> Result<bool> {
        match self.store.scan(prefix, Some(key), ScanOrder::Descending, 1).await {
            Ok(page) => {
                let is_not_after =
                    |(previous, _): &(Key, Record)| after.is_some_and(|after| previous.as_str() <= after);
                Ok(page.first().is_none_or(is_not_after))
            }
            Err(error) if is_damage(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The first key after `after`. A scan that fails does not name the key, so it is found character by character.
    async fn first_key(&self, prefix: &str, after: Option<&str>) -> Result<Key> {
        let mut key = prefix.to_owned();
        'next_char: loop {
            for char in KEY_CHARS.chars() {
                let longer = format!("{key}{char}");
                if self.has_any(&longer, after).await? {
                    key = longer;
                    continue 'next_char;
                }
            }
            return Ok(key);
        }
    }

    async fn has_any(&self, prefix: &str, after: Option<&str>) -> Result<bool> {
        match self.store.scan(prefix, after, ScanOrder::Ascending, 1).await {
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
        self.store.get_many(keys).await
    }

    async fn apply(&self, writes: Vec<Write>) -> Result<()> {
        self.store.apply(writes).await
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>> {
        match order {
            ScanOrder::Ascending => self.scan_ascending(prefix, after, limit).await,
            ScanOrder::Descending => self.store.scan(prefix, after, order, limit).await,
        }
    }

    /// Fails on a damaged record: smaller scans, which would skip it, are not of one state.
    async fn scan_many(&self, scans: &[Scan]) -> Result<Vec<Vec<(Key, Record)>>> {
        self.store.scan_many(scans).await
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        self.store.snapshot(to).await
    }

    async fn health(&self) -> Result<()> {
        self.store.health().await
    }

    fn now(&self) -> OffsetDateTime {
        self.store.now()
    }

    fn report_contention(&self, operation: &'static str) {
        self.store.report_contention(operation);
    }
}

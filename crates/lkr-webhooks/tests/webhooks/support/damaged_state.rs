use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use lkr_state::{Error, ErrorKind, Key, MemoryState, Record, Result, Scan, ScanOrder, StateStore, Write};

/// A store in which the records of some keys are damaged: every operation that touches one fails.
#[derive(Debug)]
pub(crate) struct DamagedState {
    pub(crate) inner: MemoryState,
    keys: Mutex<Vec<Key>>,
}

impl DamagedState {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { inner: MemoryState::new(), keys: Mutex::default() })
    }

    pub(crate) fn damage(&self, key: Key) {
        self.keys.lock().unwrap().push(key);
    }

    pub(crate) fn repair(&self) {
        self.keys.lock().unwrap().clear();
    }

    fn check<'k>(&self, mut keys: impl Iterator<Item = &'k Key>) -> Result<()> {
        let damaged = self.keys.lock().unwrap();
        match keys.find(|key| damaged.contains(key)) {
            Some(_) => Err(Error::new(ErrorKind::Corrupt, "read", "some record is damaged")),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl StateStore for DamagedState {
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        self.check(keys.iter())?;
        self.inner.get_many(keys).await
    }

    async fn apply(&self, writes: Vec<Write>) -> Result<()> {
        self.check(writes.iter().map(|write| &write.key))?;
        self.inner.apply(writes).await
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>> {
        let found = self.inner.scan(prefix, after, order, limit).await?;
        self.check(found.iter().map(|(key, _)| key))?;
        Ok(found)
    }

    async fn scan_many(&self, scans: &[Scan]) -> Result<Vec<Vec<(Key, Record)>>> {
        let found = self.inner.scan_many(scans).await?;
        self.check(found.iter().flatten().map(|(key, _)| key))?;
        Ok(found)
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        self.inner.snapshot(to).await
    }

    async fn health(&self) -> Result<()> {
        self.inner.health().await
    }
}

use lkr_state::{Record, ScanOrder, StateStore};

use crate::Result;

/// The smallest number of records that one scan reads.
const BATCH: usize = 64;

/// A part of a listing. Every page but the last is full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, K> {
    /// The items.
    pub items: Vec<T>,
    /// The next page begins after this key. `None` on the last page.
    pub next: Option<K>,
}

impl<T, K> Page<T, K> {
    /// The first `limit` items of `found`. One more item means that another page follows.
    fn cut(mut found: Vec<T>, limit: usize, key: impl Fn(&T) -> K) -> Self {
        let has_more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| has_more).map(key);
        Self { items: found, next }
    }
}

/// A listing of the records with a prefix.
pub(crate) struct RecordListing<'a> {
    pub(crate) state: &'a dyn StateStore,
    pub(crate) prefix: &'a str,
    pub(crate) order: ScanOrder,
    /// The listing begins after this key.
    pub(crate) after: Option<String>,
}

impl RecordListing<'_> {
    /// Up to `limit` items that `pick` returns, and where the next page begins. Reads further if `pick` skips records.
    pub(crate) async fn page<T, K>(
        self,
        limit: usize,
        pick: impl Fn(&str, &Record) -> Result<Option<T>>,
        key: impl Fn(&T) -> K,
    ) -> Result<Page<T, K>> {
        let found = self.first(limit.saturating_add(1), pick).await?;
        Ok(Page::cut(found, limit, key))
    }

    /// Up to `count` items that `pick` returns.
    pub(crate) async fn first<T>(
        mut self,
        count: usize,
        pick: impl Fn(&str, &Record) -> Result<Option<T>>,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        loop {
            let size = count.saturating_sub(found.len()).clamp(BATCH, 16 * BATCH);
            let batch = self.state.scan(self.prefix, self.after.as_deref(), self.order, size).await?;
            for (key, record) in &batch {
                found.extend(pick(key, record)?);
                if found.len() >= count {
                    return Ok(found);
                }
            }
            if batch.len() < size {
                return Ok(found);
            }
            self.after = batch.into_iter().next_back().map(|(key, _)| key);
        }
    }
}

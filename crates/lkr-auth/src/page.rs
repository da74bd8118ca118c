use lkr_state::{Record, ScanOrder, StateStore};

use crate::Result;

/// How many records are read at once, at least.
const BATCH: usize = 64;

/// A part of a listing. Every page but the last is full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, K> {
    /// What it lists.
    pub items: Vec<T>,
    /// Where the next page begins: after this one. `None` where nothing follows.
    pub next: Option<K>,
}

impl<T, K> Page<T, K> {
    /// The first `limit` of `found`; the one behind them tells that more follow.
    fn cut(mut found: Vec<T>, limit: usize, key: impl Fn(&T) -> K) -> Self {
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(key);
        Self { items: found, next }
    }
}

/// What to list of which records.
pub(crate) struct Listing<'a> {
    pub(crate) state: &'a dyn StateStore,
    pub(crate) prefix: &'a str,
    pub(crate) order: ScanOrder,
    /// The key behind which it begins.
    pub(crate) after: Option<String>,
}

impl Listing<'_> {
    /// Up to `limit` of what `pick` makes of the records, and where the next page begins. It reads on where `pick`
    /// leaves records out.
    pub(crate) async fn page<T, K>(
        self,
        limit: usize,
        pick: impl Fn(&str, &Record) -> Result<Option<T>>,
        key: impl Fn(&T) -> K,
    ) -> Result<Page<T, K>> {
        let found = self.first(limit.saturating_add(1), pick).await?;
        Ok(Page::cut(found, limit, key))
    }

    /// Up to `count` of what `pick` makes of the records.
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

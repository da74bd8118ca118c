//! Reading several indexes of ids as one list in the order of the ids.

use std::{collections::VecDeque, error::Error as StdError, fmt::Display, str::FromStr};

use crate::{Catalog, Error, ListOrder, Page, Result};

/// The number of entries that are read at a time.
const BATCH: usize = 100;

/// The ids in some indexes, in order and each once. The keys of an index are its prefix, followed by an id.
pub(crate) struct MergedIds<'a, K> {
    catalog: &'a Catalog,
    order: ListOrder,
    cursors: Vec<Cursor<K>>,
    last: Option<K>,
}

/// The ids of one index that were read and not returned yet.
struct Cursor<K> {
    prefix: String,
    read: VecDeque<K>,
    /// The key of the last entry that was read.
    after: Option<String>,
    is_at_end: bool,
}

impl<'a, K: Copy + Ord + Display + FromStr<Err: StdError + Send + Sync + 'static>> MergedIds<'a, K> {
    /// The ids of the indexes with these prefixes, beyond `after`.
    pub(crate) fn new(
        catalog: &'a Catalog,
        order: ListOrder,
        prefixes: impl IntoIterator<Item = String>,
        after: Option<K>,
    ) -> Self {
        let cursor = |prefix: String| Cursor {
            after: after.map(|after| format!("{prefix}{after}")),
            prefix,
            read: VecDeque::new(),
            is_at_end: false,
        };
        Self { catalog, order, cursors: prefixes.into_iter().map(cursor).collect(), last: None }
    }

    /// A page of up to `limit` items. `read` returns the items of some ids, in their order, without those that the page
    /// leaves out.
    pub(crate) async fn page<T, F: Future<Output = Result<Vec<T>>>>(
        mut self,
        limit: usize,
        read: impl Fn(Vec<K>) -> F,
        id_of: impl Fn(&T) -> K,
    ) -> Result<Page<T, K>> {
        let mut items: Vec<T> = Vec::new();
        loop {
            let batch = self.next_batch().await?;
            if batch.is_empty() {
                return Ok(Page { items, next: None });
            }
            for item in read(batch).await? {
                if items.len() == limit {
                    return Ok(Page { next: items.last().map(id_of), items });
                }
                items.push(item);
            }
        }
    }

    /// The next ids, at most 100; none at the end.
    async fn next_batch(&mut self) -> Result<Vec<K>> {
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH {
            for cursor in &mut self.cursors {
                cursor.fill(self.catalog, self.order).await?;
            }
            let first = self.first_cursor();
            let Some(id) = first.and_then(|cursor| cursor.read.pop_front()) else { break };
            if self.last.replace(id) != Some(id) {
                batch.push(id);
            }
        }
        Ok(batch)
    }

    /// The index whose next id is the next of all.
    fn first_cursor(&mut self) -> Option<&mut Cursor<K>> {
        let unread = self.cursors.iter_mut().filter(|cursor| !cursor.read.is_empty());
        match self.order {
            ListOrder::NewestFirst => unread.max_by_key(|cursor| cursor.read.front().copied()),
            ListOrder::OldestFirst => unread.min_by_key(|cursor| cursor.read.front().copied()),
        }
    }
}

impl<K: FromStr<Err: StdError + Send + Sync + 'static>> Cursor<K> {
    /// Reads more entries if none is left.
    async fn fill(&mut self, catalog: &Catalog, order: ListOrder) -> Result<()> {
        if self.is_at_end || !self.read.is_empty() {
            return Ok(());
        }
        let records = catalog.state.scan(&self.prefix, self.after.as_deref(), order.scan(), BATCH).await?;
        self.is_at_end = records.len() < BATCH;
        for (key, _) in &records {
            let id = key.strip_prefix(&self.prefix).unwrap_or_default().parse();
            self.read.push_back(id.map_err(|e| Error::corrupt("read index", e))?);
        }
        self.after = records.into_iter().next_back().map(|(key, _)| key);
        Ok(())
    }
}

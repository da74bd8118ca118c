//! Reading several indexes of ids as one list in the order of the ids.

mod ranges;

use std::{collections::VecDeque, error::Error as StdError, fmt::Display, str::FromStr};

pub(crate) use self::ranges::IdRanges;
use crate::{Catalog, ListOrder, Page, Result};

/// The number of items that are read at a time.
const BATCH: usize = 100;

/// The ids in some indexes, in order and each once. The keys of an index are its prefix, followed by an id.
pub(crate) struct MergedIds<'a, K> {
    ranges: IdRanges<'a, K>,
    limit: usize,
    /// The number of ids that the page begins with: those of a page that leaves none out, and one more, which says whether another
    /// page follows.
    first: usize,
    /// The ids that were read and not returned yet.
    read: VecDeque<K>,
}

impl<'a, K: Copy + Ord + Display + FromStr<Err: StdError + Send + Sync + 'static>> MergedIds<'a, K> {
    /// The ids of the indexes with these prefixes, beyond `after`, for a page of up to `limit` items.
    pub(crate) fn new(
        catalog: &'a Catalog,
        order: ListOrder,
        prefixes: impl IntoIterator<Item = String>,
        after: Option<K>,
        limit: usize,
    ) -> Self {
        let first = limit.saturating_add(1).min(BATCH);
        let ranges = IdRanges::new(catalog, order, prefixes, after, BATCH).beginning_with(first);
        Self { ranges, limit, first, read: VecDeque::new() }
    }

    /// The page. `read` returns the items of some ids, in their order, without those that the page leaves out.
    pub(crate) async fn page<T, F: Future<Output = Result<Vec<T>>>>(
        mut self,
        read: impl Fn(Vec<K>) -> F,
        id_of: impl Fn(&T) -> K,
    ) -> Result<Page<T, K>> {
        let mut items: Vec<T> = Vec::new();
        let mut size = self.first;
        loop {
            let batch = self.next_batch(size).await?;
            if batch.is_empty() {
                return Ok(Page { items, next: None });
            }
            for item in read(batch).await? {
                if items.len() == self.limit {
                    return Ok(Page { next: items.last().map(id_of), items });
                }
                items.push(item);
            }
            size = BATCH;
        }
    }

    /// The next ids, at most `size`; none at the end.
    async fn next_batch(&mut self, size: usize) -> Result<Vec<K>> {
        while self.read.len() < size {
            let range = self.ranges.next().await?;
            if range.is_empty() {
                break;
            }
            self.read.extend(range.into_iter().map(|(id, _)| id));
        }
        Ok(self.read.drain(..size.min(self.read.len())).collect())
    }
}

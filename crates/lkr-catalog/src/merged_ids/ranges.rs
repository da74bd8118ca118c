//! Reading several indexes of ids range by range.

use std::{cmp::Ordering, error::Error as StdError, fmt::Display, str::FromStr};

use lkr_state::{Key, Record, Scan, ScanOrder};

use crate::{Catalog, Error, ErrorKind, ListOrder, Result};

/// The entries of an index that a range asks for at least, and that a range may have on average over all indexes.
/// Small, because a listing may have hundreds of indexes; not smaller, because the index that has most of the ids
/// would then take many ranges.
const PER_INDEX: usize = 8;

/// Keys that are read at a time to find the indexes: those of several small ones, and not many of a large one.
const ROOT_PAGE: usize = 100;

/// Greater than all characters of keys.
const LAST: char = char::MAX;

/// The entries of some indexes, in the order of their ids. The keys of an index are its prefix, followed by an id.
///
/// A document can move from one index to another at any time. So all indexes of a range of ids are read in one state
/// of the store: an id that is in one of the indexes at any time is found once.
pub(crate) struct IdRanges<'a, K> {
    catalog: &'a Catalog,
    order: ListOrder,
    indexes: Vec<Index>,
    /// The beginning of all indexes, if the ranges also contain those of which no entry was seen yet.
    root: Option<&'static str>,
    /// The number of entries that a range of few indexes has.
    size: usize,
    /// The last id of the last range.
    after: Option<K>,
    is_at_end: bool,
}

/// An index, and the number of entries to ask for.
struct Index {
    prefix: String,
    limit: usize,
}

impl<'a, K: Copy + Ord + Display + FromStr<Err: StdError + Send + Sync + 'static>> IdRanges<'a, K> {
    /// The indexes with these prefixes, beyond `after`. A range has about `size` entries.
    pub(crate) fn new(
        catalog: &'a Catalog,
        order: ListOrder,
        prefixes: impl IntoIterator<Item = String>,
        after: Option<K>,
        size: usize,
    ) -> Self {
        let indexes = prefixes.into_iter().map(|prefix| Index { prefix, limit: size }).collect();
        Self { catalog, order, indexes, root: None, size, after, is_at_end: false }.beginning_with(size)
    }

    /// The same, if nothing was read yet, with about `first` entries in the first range.
    pub(crate) fn beginning_with(mut self, first: usize) -> Self {
        let limit = match self.indexes.len() {
            // One index has nothing to wait for, so it needs no more than the range.
            0 | 1 => first,
            count => (2 * first / count).min(first).max(PER_INDEX),
        };
        self.indexes.iter_mut().for_each(|index| index.limit = limit);
        self
    }

    /// All indexes whose prefixes are `root`, followed by a name and a slash.
    pub(crate) async fn of_all(
        catalog: &'a Catalog,
        order: ListOrder,
        root: &'static str,
        size: usize,
    ) -> Result<Self> {
        let (mut prefixes, mut after) = (Vec::<String>::new(), None);
        loop {
            let page = catalog.state.scan(root, after.as_deref(), ScanOrder::Ascending, ROOT_PAGE).await?;
            for (key, _) in &page {
                let prefix = prefix_of(key, root)?;
                if prefixes.last() != Some(&prefix) {
                    prefixes.push(prefix);
                }
            }
            if page.len() < ROOT_PAGE {
                break;
            }
            after = prefixes.last().map(|prefix| format!("{prefix}{LAST}"));
        }
        Ok(Self { root: Some(root), ..Self::new(catalog, order, prefixes, None, size) })
    }

    /// The entries of the next range, in order; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Vec<(K, Record)>> {
        if self.is_at_end || self.indexes.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.read().await?;
        let mut read = Vec::with_capacity(found.len());
        for (index, records) in self.indexes.iter().zip(found) {
            read.push(index.parse(records)?);
        }
        // Beyond the last entry of an index that was not read to its end, the entries of that index are unknown.
        let unfinished = self.indexes.iter().zip(&read).filter(|(index, found)| found.len() >= index.limit);
        let ends = unfinished.filter_map(|(_, found)| Some(found.last()?.0));
        let end = ends.min_by(|a, b| self.compare(*a, *b));
        if let Some(end) = end {
            for found in &mut read {
                found.retain(|(id, _)| self.compare(*id, end).is_le());
            }
            self.after = Some(end);
        }
        self.is_at_end = end.is_none();
        self.set_limits(&read.iter().map(Vec::len).collect::<Vec<_>>());
        let mut range: Vec<_> = read.into_iter().flatten().collect();
        range.sort_by(|(a, _), (b, _)| self.compare(*a, *b));
        // The index of an account and that of a space may contain the same task.
        range.dedup_by_key(|(id, _)| *id);
        Ok(range)
    }

    /// The entries of all indexes beyond the last range, in one state.
    async fn read(&mut self) -> Result<Vec<Vec<(Key, Record)>>> {
        loop {
            let mut scans: Vec<Scan> = self.indexes.iter().map(|index| self.scan(index)).collect();
            scans.extend(self.root.into_iter().flat_map(|root| self.gaps(root)));
            let mut found = self.catalog.state.scan_many(&scans).await?;
            let in_gaps = found.split_off(self.indexes.len().min(found.len()));
            if !self.add_missing(in_gaps)? {
                return Ok(found);
            }
        }
    }

    fn scan(&self, Index { prefix, limit }: &Index) -> Scan {
        let after = self.after.map(|after| format!("{prefix}{after}"));
        Scan { prefix: prefix.clone(), after, order: self.order.scan(), limit: *limit }
    }

    /// Scans for the first entries before, between and after the known indexes.
    fn gaps(&self, root: &'static str) -> impl Iterator<Item = Scan> {
        let ends = self.indexes.iter().map(|index| Some(format!("{}{LAST}", index.prefix)));
        let scan = |after| Scan { prefix: root.to_owned(), after, order: ScanOrder::Ascending, limit: 1 };
        [None].into_iter().chain(ends).map(scan)
    }

    /// Adds the indexes of these entries, and returns whether one was missing: a document was the first that moved
    /// there.
    fn add_missing(&mut self, entries: Vec<Vec<(Key, Record)>>) -> Result<bool> {
        let Some(root) = self.root else { return Ok(false) };
        let before = self.indexes.len();
        for (key, _) in entries.into_iter().flatten() {
            let prefix = prefix_of(&key, root)?;
            if let Err(place) = self.indexes.binary_search_by(|index| index.prefix.cmp(&prefix)) {
                self.indexes.insert(place, Index { prefix, limit: PER_INDEX });
            }
        }
        Ok(self.indexes.len() > before)
    }

    /// Asks each index for about twice as many entries as the last range took of it, so the next range is longer. A
    /// range that is long enough is followed by one of about the same length.
    fn set_limits(&mut self, taken: &[usize]) {
        let longest = self.size.max(PER_INDEX * self.indexes.len());
        let total = taken.iter().sum::<usize>().max(1);
        for (index, taken) in self.indexes.iter_mut().zip(taken) {
            let share = (2 * taken).min(2 * longest * taken / total);
            index.limit = (PER_INDEX + share).min(longest);
        }
    }

    fn compare(&self, a: K, b: K) -> Ordering {
        match self.order {
            ListOrder::OldestFirst => a.cmp(&b),
            ListOrder::NewestFirst => b.cmp(&a),
        }
    }
}

impl Index {
    fn parse<K: FromStr<Err: StdError + Send + Sync + 'static>>(
        &self,
        records: Vec<(Key, Record)>,
    ) -> Result<Vec<(K, Record)>> {
        let parse = |(key, record): (Key, Record)| {
            let id = key.strip_prefix(&self.prefix).unwrap_or_default().parse();
            Ok((id.map_err(|e| Error::corrupt("read index", e))?, record))
        };
        records.into_iter().map(parse).collect()
    }
}

/// The prefix of the index that a key belongs to.
fn prefix_of(key: &str, root: &str) -> Result<String> {
    let name = key.strip_prefix(root).and_then(|rest| rest.split_once('/'));
    let (name, _) = name.ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, "read index", format!("the key {key} belongs to no index"))
    })?;
    Ok(format!("{root}{name}/"))
}

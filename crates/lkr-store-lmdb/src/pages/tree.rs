//! The trees of a file, page by page.

use std::{cmp::Ordering, io, str};

use super::{
    Findings, Source,
    node::{Data, HEADER, Page, TreeRecord, overflow_pages, u64_at},
};

/// LMDB's trees are no deeper.
const DEEPEST: u16 = 32;
/// The keys of a tree are numbers in the byte order of the machine.
const INTEGER_KEYS: u16 = 0x08;
const NO_ROOT: u64 = u64::MAX;

/// A row of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'r> {
    pub(crate) table: &'r str,
    pub(crate) key: &'r [u8],
    pub(crate) value: &'r [u8],
}

/// The trees of a file while they are walked.
pub(super) struct Trees<'w> {
    source: &'w Source,
    last_page: u64,
    /// A bit for every page that belongs to something.
    seen: Vec<u64>,
    findings: &'w mut Findings,
    each: &'w mut dyn FnMut(Row<'_>) -> io::Result<()>,
}

/// What is known of the place of a page in its tree.
#[derive(Clone, Copy)]
struct Place<'k> {
    number: u64,
    level: u16,
    /// No key of it is below the first, nor as high as the second.
    from: Option<&'k [u8]>,
    to: Option<&'k [u8]>,
}

/// The tree at hand, and what was counted of it.
struct Tree<'t> {
    name: &'t str,
    kind: Kind,
    record: TreeRecord,
    counted: [u64; 4],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Names and the records of tables.
    Main,
    /// Lists of free pages, by transaction.
    Free,
    Table,
}

impl Tree<'_> {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self.kind {
            Kind::Free => u64_at(a, 0).cmp(&u64_at(b, 0)),
            _ => a.cmp(b),
        }
    }

    fn in_order(&self, keys: &[&[u8]], place: Place<'_>) -> bool {
        let below = |a: &[u8], b: &[u8]| self.compare(a, b) == Ordering::Less;
        let fits = self.kind != Kind::Free || keys.iter().all(|key| key.len() == 8);
        fits && keys.windows(2).all(|pair| matches!(pair, [a, b] if below(a, b)))
            && keys.first().zip(place.from).is_none_or(|(first, from)| !below(first, from))
            && keys.last().zip(place.to).is_none_or(|(last, to)| below(last, to))
    }
}

impl<'w> Trees<'w> {
    pub(super) fn new(
        source: &'w Source,
        last_page: u64,
        findings: &'w mut Findings,
        each: &'w mut dyn FnMut(Row<'_>) -> io::Result<()>,
    ) -> Self {
        let pages = usize::try_from(source.end.min(last_page.saturating_add(1))).unwrap_or_default();
        let mut seen = vec![0; pages / 64 + 1];
        // The first two pages belong to the file itself.
        seen.iter_mut().take(1).for_each(|word| *word = 0b11);
        Self { source, last_page, seen, findings, each }
    }

    pub(super) fn walk_main(&mut self, record: &TreeRecord) -> io::Result<()> {
        self.walk("the list of tables", Kind::Main, record)
    }

    pub(super) fn walk_free(&mut self, record: &TreeRecord) -> io::Result<()> {
        self.walk("the list of free pages", Kind::Free, record)
    }

    fn walk(&mut self, name: &str, kind: Kind, record: &TreeRecord) -> io::Result<()> {
        let flags = if kind == Kind::Free { INTEGER_KEYS } else { 0 };
        if record.flags & 0x7f != flags || record.depth > DEEPEST {
            self.findings.add(format!("{name}: its record is damaged"));
            return Ok(());
        }
        let mut tree = Tree { name, kind, record: *record, counted: [0; 4] };
        if record.root != NO_ROOT {
            let root = Place { number: record.root, level: 1, from: None, to: None };
            let before = (self.findings.lines.len(), self.findings.more);
            self.page(&mut tree, root)?;
            if before != (self.findings.lines.len(), self.findings.more) {
                return Ok(());
            }
        }
        if tree.counted != [record.branches, record.leaves, record.overflows, record.entries] {
            self.findings.add(format!("{name}: it has not as many pages and rows as its record says"));
        }
        Ok(())
    }

    /// Takes pages for a tree; false where they are not there, or another's.
    fn take(&mut self, number: u64, count: u64) -> bool {
        let end = number.checked_add(count);
        if end.is_none_or(|end| end > self.last_page.saturating_add(1) || end > self.source.end) {
            return false;
        }
        (number..number + count).all(|page| {
            let bit = 1_u64 << (page % 64);
            let word = usize::try_from(page / 64).ok().and_then(|at| self.seen.get_mut(at));
            word.is_some_and(|word| {
                let is_new = *word & bit == 0;
                *word |= bit;
                is_new
            })
        })
    }

    fn damaged(&mut self, tree: &Tree, number: u64) {
        self.findings.add(format!("{}: page {number} is damaged", tree.name));
    }

    fn page(&mut self, tree: &mut Tree, place: Place<'_>) -> io::Result<()> {
        let Place { number, level, .. } = place;
        let bytes = if self.take(number, 1) { self.source.read(number, 1)? } else { None };
        let page = bytes.as_deref().and_then(|bytes| Page::parse(bytes, number));
        let leaf = level == tree.record.depth;
        match page {
            Some(Page::Branch(children)) if !leaf => self.branch(tree, place, &children),
            Some(Page::Leaf(rows)) if leaf => self.leaf(tree, place, &rows),
            _ => {
                self.damaged(tree, number);
                Ok(())
            }
        }
    }

    fn branch(&mut self, tree: &mut Tree, place: Place<'_>, children: &[(&[u8], u64)]) -> io::Result<()> {
        // The first key of a branch is never looked at, and mostly empty.
        let keys: Vec<&[u8]> = children.iter().skip(1).map(|(key, _)| *key).collect();
        let fewest = if tree.kind == Kind::Free { 1 } else { 2 };
        if children.len() < fewest || place.level >= tree.record.depth || !tree.in_order(&keys, place) {
            self.damaged(tree, place.number);
            return Ok(());
        }
        if let Some(count) = tree.counted.first_mut() {
            *count += 1;
        }
        for (at, (key, child)) in children.iter().enumerate() {
            let from = if at == 0 { place.from } else { Some(*key) };
            let to = keys.get(at).copied().or(place.to);
            self.page(tree, Place { number: *child, level: place.level + 1, from, to })?;
        }
        Ok(())
    }

    fn leaf(&mut self, tree: &mut Tree, place: Place<'_>, rows: &[(&[u8], Data<'_>)]) -> io::Result<()> {
        let keys: Vec<&[u8]> = rows.iter().map(|(key, _)| *key).collect();
        if keys.is_empty() || !tree.in_order(&keys, place) {
            self.damaged(tree, place.number);
            return Ok(());
        }
        let [_, leaves, _, entries] = &mut tree.counted;
        (*leaves, *entries) = (*leaves + 1, *entries + rows.len() as u64);
        for (key, data) in rows {
            self.row(tree, place.number, key, *data)?;
        }
        Ok(())
    }

    fn row(&mut self, tree: &mut Tree, page: u64, key: &[u8], data: Data<'_>) -> io::Result<()> {
        match (tree.kind, data) {
            (Kind::Main, Data::Tree(record)) => self.table(tree, page, key, record),
            (Kind::Table, Data::Here(value)) => (self.each)(Row { table: tree.name, key, value }),
            (Kind::Free, Data::Here(value)) => {
                self.free(tree, page, value);
                Ok(())
            }
            (Kind::Table | Kind::Free, Data::Elsewhere(first, length)) => {
                let Some(bytes) = self.overflow(tree, first, length)? else {
                    self.damaged(tree, first);
                    return Ok(());
                };
                let value = bytes.get(HEADER..HEADER + length).unwrap_or_default();
                if tree.kind == Kind::Free {
                    self.free(tree, page, value);
                    return Ok(());
                }
                (self.each)(Row { table: tree.name, key, value })
            }
            _ => {
                self.damaged(tree, page);
                Ok(())
            }
        }
    }

    fn table(&mut self, tree: &Tree, page: u64, name: &[u8], record: &[u8]) -> io::Result<()> {
        match (str::from_utf8(name), TreeRecord::parse(record)) {
            (Ok(name), Some(record)) => self.walk(name, Kind::Table, &record),
            _ => {
                self.damaged(tree, page);
                Ok(())
            }
        }
    }

    /// The pages of a long value, header and all; `None` where they are damaged. A value that took the place of a
    /// longer one keeps the pages of that.
    fn overflow(&mut self, tree: &mut Tree, first: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        let needed = ((HEADER - 1 + length) / self.source.page + 1) as u64;
        let head = self.source.read(first, 1)?;
        let pages = head.and_then(|head| overflow_pages(&head, first)).filter(|pages| *pages >= needed);
        let Some(pages) = pages.filter(|pages| self.take(first, *pages)) else { return Ok(None) };
        let [_, _, overflows, _] = &mut tree.counted;
        *overflows += pages;
        self.source.read(first, needed)
    }

    /// A list of free pages: how many, and their numbers, the highest first. What is free must be nobody's, or the
    /// next write destroys it.
    fn free(&mut self, tree: &Tree, page: u64, list: &[u8]) {
        let count = u64_at(list, 0).and_then(|count| usize::try_from(count).ok());
        let numbers = list.as_chunks::<8>().0.get(1..).unwrap_or_default();
        let Some(numbers) = count.and_then(|count| numbers.get(..count)) else {
            return self.damaged(tree, page);
        };
        let numbers: Vec<u64> = numbers.iter().copied().map(u64::from_ne_bytes).collect();
        let descending = numbers.windows(2).all(|pair| matches!(pair, [a, b] if a > b));
        if !descending || !numbers.iter().all(|number| self.is_free(*number)) {
            self.damaged(tree, page);
        }
    }

    /// Whether a page can be free. It may lie behind the end of the file.
    fn is_free(&mut self, number: u64) -> bool {
        (2..=self.last_page).contains(&number) && (number >= self.source.end || self.take(number, 1))
    }
}

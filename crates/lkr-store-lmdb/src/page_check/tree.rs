//! Walks the trees of a file page by page.

use std::{cmp::Ordering, io, str};

use super::{
    PageFindings, PageSource, VisitRow,
    node::{HEADER, NodeValue, Page, TreeRecord, overflow_pages, u64_at},
};

/// The maximum depth of a tree in LMDB.
pub(super) const DEEPEST: u16 = 32;
/// The keys of a tree are integers in native byte order.
const INTEGER_KEYS: u16 = 0x08;
pub(super) const NO_ROOT: u64 = u64::MAX;

/// A row of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableRow<'r> {
    pub(crate) table: &'r str,
    pub(crate) key: &'r [u8],
    pub(crate) value: &'r [u8],
}

/// The state of a walk over all trees of a file.
pub(super) struct Trees<'w, 'v> {
    source: &'w PageSource,
    last_page: u64,
    /// One bit for each page that is already claimed by a tree or a free list.
    claimed: Vec<u64>,
    findings: &'w mut PageFindings,
    visit_row: Option<VisitRow<'v>>,
}

/// The expected position of a page in its tree.
#[derive(Clone, Copy)]
struct PagePosition<'k> {
    number: u64,
    level: u16,
    /// Keys must be at least `from` and below `to`.
    from: Option<&'k [u8]>,
    to: Option<&'k [u8]>,
}

/// A tree, with the branches, leaves, overflow pages and entries that were counted so far.
struct Tree<'t> {
    name: &'t str,
    kind: TreeKind,
    record: TreeRecord,
    counts: [u64; 4],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TreeKind {
    /// Names and the records of tables.
    Main,
    /// Lists of free pages, by transaction.
    Free,
    Table,
}

impl Tree<'_> {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self.kind {
            TreeKind::Free => u64_at(a, 0).cmp(&u64_at(b, 0)),
            _ => a.cmp(b),
        }
    }

    fn in_order(&self, keys: &[&[u8]], position: PagePosition<'_>) -> bool {
        let below = |a: &[u8], b: &[u8]| self.compare(a, b) == Ordering::Less;
        let fits = self.kind != TreeKind::Free || keys.iter().all(|key| key.len() == 8);
        fits && keys.windows(2).all(|pair| matches!(pair, [a, b] if below(a, b)))
            && keys.first().zip(position.from).is_none_or(|(first, from)| !below(first, from))
            && keys.last().zip(position.to).is_none_or(|(last, to)| below(last, to))
    }
}

impl<'w, 'v> Trees<'w, 'v> {
    pub(super) fn new(
        source: &'w PageSource,
        last_page: u64,
        findings: &'w mut PageFindings,
        visit_row: Option<VisitRow<'v>>,
    ) -> Self {
        let pages = usize::try_from(source.end.min(last_page.saturating_add(1))).unwrap_or_default();
        let mut claimed = vec![0; pages / 64 + 1];
        // The first two pages are the meta pages.
        claimed.iter_mut().take(1).for_each(|word| *word = 0b11);
        Self { source, last_page, claimed, findings, visit_row }
    }

    pub(super) fn walk_main(&mut self, record: &TreeRecord) -> io::Result<()> {
        self.walk("the list of tables", TreeKind::Main, record)
    }

    pub(super) fn walk_free(&mut self, record: &TreeRecord) -> io::Result<()> {
        self.walk("the list of free pages", TreeKind::Free, record)
    }

    fn walk(&mut self, name: &str, kind: TreeKind, record: &TreeRecord) -> io::Result<()> {
        let flags = if kind == TreeKind::Free { INTEGER_KEYS } else { 0 };
        if record.flags & 0x7f != flags || record.depth > DEEPEST {
            self.findings.add(format!("{name}: the tree record is damaged"));
            return Ok(());
        }
        let mut tree = Tree { name, kind, record: *record, counts: [0; 4] };
        if record.root != NO_ROOT {
            let root = PagePosition { number: record.root, level: 1, from: None, to: None };
            let before = (self.findings.lines.len(), self.findings.more);
            self.check_page(&mut tree, root)?;
            if before != (self.findings.lines.len(), self.findings.more) {
                return Ok(());
            }
        }
        if tree.counts != [record.branches, record.leaves, record.overflows, record.entries] {
            self.findings.add(format!("{name}: the page and row counts differ from the tree record"));
        }
        Ok(())
    }

    /// Claims pages for a tree; `false` if they are out of range or already claimed.
    fn claim_pages(&mut self, number: u64, count: u64) -> bool {
        let end = number.checked_add(count);
        if end.is_none_or(|end| end > self.last_page.saturating_add(1) || end > self.source.end) {
            return false;
        }
        (number..number + count).all(|page| {
            let bit = 1_u64 << (page % 64);
            let word = usize::try_from(page / 64).ok().and_then(|at| self.claimed.get_mut(at));
            word.is_some_and(|word| {
                let is_new = *word & bit == 0;
                *word |= bit;
                is_new
            })
        })
    }

    fn report_page(&mut self, tree: &Tree, number: u64) {
        self.findings.add(format!("{}: page {number} is damaged", tree.name));
    }

    fn check_page(&mut self, tree: &mut Tree, position: PagePosition<'_>) -> io::Result<()> {
        let PagePosition { number, level, .. } = position;
        let bytes = if self.claim_pages(number, 1) { self.source.read(number, 1)? } else { None };
        let page = bytes.as_deref().and_then(|bytes| Page::parse(bytes, number));
        let check_leaf = level == tree.record.depth;
        match page {
            Some(Page::Branch(children)) if !check_leaf => self.check_branch(tree, position, &children),
            Some(Page::Leaf(rows)) if check_leaf => self.check_leaf(tree, position, &rows),
            _ => {
                self.report_page(tree, number);
                Ok(())
            }
        }
    }

    fn check_branch(
        &mut self,
        tree: &mut Tree,
        position: PagePosition<'_>,
        children: &[(&[u8], u64)],
    ) -> io::Result<()> {
        // The first key of a branch is never compared, and is usually empty.
        let keys: Vec<&[u8]> = children.iter().skip(1).map(|(key, _)| *key).collect();
        let fewest = if tree.kind == TreeKind::Free { 1 } else { 2 };
        if children.len() < fewest || position.level >= tree.record.depth || !tree.in_order(&keys, position) {
            self.report_page(tree, position.number);
            return Ok(());
        }
        if let Some(count) = tree.counts.first_mut() {
            *count += 1;
        }
        for (at, (key, child)) in children.iter().enumerate() {
            let from = if at == 0 { position.from } else { Some(*key) };
            let to = keys.get(at).copied().or(position.to);
            self.check_page(tree, PagePosition { number: *child, level: position.level + 1, from, to })?;
        }
        Ok(())
    }

    fn check_leaf(
        &mut self,
        tree: &mut Tree,
        position: PagePosition<'_>,
        rows: &[(&[u8], NodeValue<'_>)],
    ) -> io::Result<()> {
        let keys: Vec<&[u8]> = rows.iter().map(|(key, _)| *key).collect();
        if keys.is_empty() || !tree.in_order(&keys, position) {
            self.report_page(tree, position.number);
            return Ok(());
        }
        let [_, leaves, _, entries] = &mut tree.counts;
        (*leaves, *entries) = (*leaves + 1, *entries + rows.len() as u64);
        for (key, data) in rows {
            self.check_row(tree, position.number, key, *data)?;
        }
        Ok(())
    }

    fn check_row(&mut self, tree: &mut Tree, page: u64, key: &[u8], data: NodeValue<'_>) -> io::Result<()> {
        match (tree.kind, data) {
            (TreeKind::Main, NodeValue::Tree(record)) => self.check_table(tree, page, key, record),
            (TreeKind::Table, NodeValue::Inline(value)) => self.visit(tree, key, value),
            (TreeKind::Free, NodeValue::Inline(value)) => {
                self.check_free_list(tree, page, value);
                Ok(())
            }
            (TreeKind::Table | TreeKind::Free, NodeValue::Overflow(first, length)) => {
                let Some(bytes) = self.overflow(tree, first, length)? else {
                    self.report_page(tree, first);
                    return Ok(());
                };
                let value = bytes.get(HEADER..HEADER + length).unwrap_or_default();
                if tree.kind == TreeKind::Free {
                    self.check_free_list(tree, page, value);
                    return Ok(());
                }
                self.visit(tree, key, value)
            }
            _ => {
                self.report_page(tree, page);
                Ok(())
            }
        }
    }

    fn visit(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> io::Result<()> {
        let Some(visit_row) = &mut self.visit_row else { return Ok(()) };
        visit_row(TableRow { table: tree.name, key, value })
    }

    fn check_table(&mut self, tree: &Tree, page: u64, name: &[u8], record: &[u8]) -> io::Result<()> {
        match (str::from_utf8(name), TreeRecord::parse(record)) {
            (Ok(name), Some(record)) => self.walk(name, TreeKind::Table, &record),
            _ => {
                self.report_page(tree, page);
                Ok(())
            }
        }
    }

    /// Reads an overflow value with its page header, or the header alone if nobody looks at the value; `None` if its pages are
    /// damaged. A value that replaced a longer one keeps the pages of the longer one.
    fn overflow(&mut self, tree: &mut Tree, first: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        let needed = ((HEADER - 1 + length) / self.source.page + 1) as u64;
        let head = self.source.read(first, 1)?;
        let pages =
            head.as_ref().and_then(|head| overflow_pages(head, first)).filter(|pages| *pages >= needed);
        let Some(pages) = pages.filter(|pages| self.claim_pages(first, *pages)) else { return Ok(None) };
        let [_, _, overflows, _] = &mut tree.counts;
        *overflows += pages;
        let is_used = tree.kind == TreeKind::Free || self.visit_row.is_some();
        if is_used { self.source.read(first, needed) } else { Ok(head) }
    }

    /// Checks a list of free pages. A free page must not be in use, because the next write would overwrite it.
    fn check_free_list(&mut self, tree: &Tree, page: u64, list: &[u8]) {
        if !free_numbers(list).is_some_and(|numbers| numbers.iter().all(|number| self.is_free(*number))) {
            self.report_page(tree, page);
        }
    }

    /// Whether a page may be listed as free. It may be beyond the end of the file.
    fn is_free(&mut self, number: u64) -> bool {
        (2..=self.last_page).contains(&number) && (number >= self.source.end || self.claim_pages(number, 1))
    }
}

/// The pages of a list of free pages: their count, then their numbers in descending order. `None` if it is damaged.
pub(super) fn free_numbers(list: &[u8]) -> Option<Vec<u64>> {
    let count = usize::try_from(u64_at(list, 0)?).ok()?;
    let numbers = list.as_chunks::<8>().0.get(1..)?.get(..count)?;
    let numbers: Vec<u64> = numbers.iter().copied().map(u64::from_ne_bytes).collect();
    let descending = numbers.windows(2).all(|pair| matches!(pair, [a, b] if a > b));
    descending.then_some(numbers)
}

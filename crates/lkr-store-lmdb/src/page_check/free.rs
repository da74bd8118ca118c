//! The pages of a file that are free.

use std::{fs::File, io};

use super::{
    PageSource,
    node::{HEADER, Meta, NodeValue, Page, overflow_pages, u64_at},
    tree::{DEEPEST, NO_ROOT, free_numbers},
};

/// The free pages of a file that nothing is writing to.
#[derive(Debug, Default)]
pub(crate) struct FreePages {
    /// The bytes of a page.
    pub(crate) page: usize,
    /// The number of pages in the file's trees, with the two meta pages.
    pub(crate) used: u64,
    /// The free pages that no state from the transaction `oldest` on contains, as ranges `(first, number)` in ascending
    /// order.
    pub(crate) runs: Vec<(u64, u64)>,
}

impl FreePages {
    /// Reads the list of free pages. `None` if it is damaged, which a check of the pages tells more about.
    ///
    /// A list that the transaction `n` wrote has the pages that were in the state before `n`, so states from `n` on do not
    /// contain them. As LMDB itself, this waits for one transaction more: were the last meta page lost, the state before it would
    /// be whole.
    pub(crate) fn read(file: File, oldest: u64) -> io::Result<Option<Self>> {
        let length = file.metadata()?.len();
        let Ok(meta) = Meta::latest(&file)? else { return Ok(None) };
        let source = PageSource { file, page: meta.page, end: length / meta.page as u64 };
        let mut lists = FreeLists { source, oldest, numbers: Vec::new(), free: 0 };
        if meta.free.root != NO_ROOT && lists.read_page(meta.free.root, meta.free.depth)?.is_none() {
            return Ok(None);
        }
        let Some(used) = (meta.last_page + 1).checked_sub(lists.free) else { return Ok(None) };
        Ok(Some(Self { page: meta.page, used, runs: runs(lists.numbers) }))
    }
}

struct FreeLists {
    source: PageSource,
    oldest: u64,
    numbers: Vec<u64>,
    /// The number of all free pages.
    free: u64,
}

impl FreeLists {
    /// Reads a page of the tree of lists, `depth` levels above nothing; `None` if it is damaged.
    fn read_page(&mut self, number: u64, depth: u16) -> io::Result<Option<()>> {
        if depth == 0 || depth > DEEPEST {
            return Ok(None);
        }
        let Some(bytes) = self.source.read(number, 1)? else { return Ok(None) };
        match Page::parse(&bytes, number) {
            Some(Page::Branch(children)) => {
                for (_, child) in children {
                    if self.read_page(child, depth - 1)?.is_none() {
                        return Ok(None);
                    }
                }
                Ok(Some(()))
            }
            Some(Page::Leaf(rows)) if depth == 1 => {
                for (key, value) in rows {
                    if self.read_list(key, value)?.is_none() {
                        return Ok(None);
                    }
                }
                Ok(Some(()))
            }
            _ => Ok(None),
        }
    }

    fn read_list(&mut self, key: &[u8], value: NodeValue<'_>) -> io::Result<Option<()>> {
        let Some(transaction) = u64_at(key, 0) else { return Ok(None) };
        let overflow;
        let list = match value {
            NodeValue::Inline(list) => list,
            NodeValue::Overflow(first, length) => {
                let needed = ((HEADER - 1 + length) / self.source.page + 1) as u64;
                match self.source.read(first, needed)? {
                    Some(bytes) if overflow_pages(&bytes, first).is_some_and(|pages| pages >= needed) => {
                        overflow = bytes;
                        overflow.get(HEADER..HEADER + length).unwrap_or_default()
                    }
                    _ => return Ok(None),
                }
            }
            NodeValue::Tree(_) => return Ok(None),
        };
        let Some(numbers) = free_numbers(list) else { return Ok(None) };
        self.free += numbers.len() as u64;
        if transaction < self.oldest {
            self.numbers.extend(numbers.into_iter().filter(|number| *number < self.source.end));
        }
        Ok(Some(()))
    }
}

/// Puts pages that follow one another together.
fn runs(mut numbers: Vec<u64>) -> Vec<(u64, u64)> {
    numbers.sort_unstable();
    numbers.chunk_by(|a, b| a + 1 == *b).filter_map(|run| Some((*run.first()?, run.len() as u64))).collect()
}

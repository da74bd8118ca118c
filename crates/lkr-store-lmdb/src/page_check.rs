//! The pages of a file of LMDB, looked at without LMDB: its pages have no checksums, and it follows what it reads off
//! them wherever that leads, which may end the process. What is whole here can be given to it.
//!
//! The form of the file is that of LMDB's data version 1 in the byte order of the machine. A tree's nodes are checked
//! to lie in their pages, its keys to be in order, its pages to be its own; values are not looked at.

mod node;
mod tree;

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

pub(crate) use self::tree::TableRow;
use self::{node::Meta, tree::Trees};

/// More findings than this tell nothing more.
const MAX_FINDINGS: usize = 50;
/// The last page of a file without any tree.
const META_PAGES: u64 = 2;

/// What is wrong with the pages of a file; nothing where LMDB can be trusted with it. A file that is not there, or has
/// nothing in it, is one that LMDB makes.
pub(crate) fn check(path: &Path) -> io::Result<Vec<String>> {
    walk(path, &mut |_| Ok(()))
}

/// [`check`], which hands out the rows of all tables on the way: of damaged pages none, of whole ones all.
pub(crate) fn walk(
    path: &Path,
    visit_row: &mut dyn FnMut(TableRow<'_>) -> io::Result<()>,
) -> io::Result<Vec<String>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    let length = file.metadata()?.len();
    if length == 0 {
        return Ok(Vec::new());
    }
    let meta = match Meta::latest(&file)? {
        Ok(meta) => meta,
        Err(finding) => return Ok(vec![finding]),
    };
    let mut findings = PageFindings::default();
    let source = PageSource { file, page: meta.page, end: length / meta.page as u64 };
    let mut trees = Trees::new(&source, meta.last_page, &mut findings, visit_row);
    trees.walk_main(&meta.main)?;
    trees.walk_free(&meta.free)?;
    Ok(findings.into_lines())
}

/// What was found, as many as tell something.
#[derive(Debug, Default)]
struct PageFindings {
    lines: Vec<String>,
    more: u64,
}

impl PageFindings {
    fn add(&mut self, line: String) {
        if self.lines.len() < MAX_FINDINGS { self.lines.push(line) } else { self.more += 1 }
    }

    fn into_lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.lines.push(format!("and {} more", self.more));
        }
        self.lines
    }
}

/// The file, page by page.
struct PageSource {
    file: File,
    page: usize,
    /// How many whole pages there are.
    end: u64,
}

impl PageSource {
    /// The bytes of so many pages; `None` where the file ends before.
    fn read(&self, number: u64, count: u64) -> io::Result<Option<Vec<u8>>> {
        if number.checked_add(count).is_none_or(|end| end > self.end) {
            return Ok(None);
        }
        let mut bytes = vec![0; self.page * usize::try_from(count).unwrap_or_default()];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(number * self.page as u64))?;
        file.read_exact(&mut bytes)?;
        Ok(Some(bytes))
    }
}

#[cfg(test)]
mod tests;

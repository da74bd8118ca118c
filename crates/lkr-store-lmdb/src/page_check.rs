//! Checks the structure of an LMDB data file without LMDB. LMDB pages have no checksums, and LMDB follows damaged
//! page numbers wherever they lead, which can end the process. So a file that may be damaged is checked here before
//! LMDB opens it.
//!
//! The file format is LMDB data version 1 in native byte order. Checked are: the meta pages; that each page is inside
//! the file and used once; that nodes are inside their pages; that keys are sorted; that page and row counts match
//! the tree records; that no page in use is listed as free. Values are not checked.

mod free;
mod node;
mod tree;

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

pub(crate) use self::{
    free::FreePages,
    node::{HEADER as PAGE_HEADER, NODE_HEADER},
    tree::TableRow,
};
use self::{node::Meta, tree::Trees};

/// Further findings are only counted.
const MAX_FINDINGS: usize = 50;
/// The number of meta pages at the start of a file.
const META_PAGES: u64 = 2;

/// Lists the damage in the pages of a file. If the list is empty, LMDB can open the file safely. A missing or empty
/// file has no damage, because LMDB creates its content.
pub(crate) fn check(path: &Path) -> io::Result<Vec<String>> {
    examine(path, None)
}

/// Like [`check`], and passes every row of all undamaged pages to `visit_row`.
pub(crate) fn walk(
    path: &Path,
    visit_row: &mut dyn FnMut(TableRow<'_>) -> io::Result<()>,
) -> io::Result<Vec<String>> {
    examine(path, Some(visit_row))
}

/// Without `visit_row`, long values are not read.
fn examine(path: &Path, visit_row: Option<VisitRow<'_>>) -> io::Result<Vec<String>> {
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

type VisitRow<'v> = &'v mut dyn FnMut(TableRow<'_>) -> io::Result<()>;

/// The findings, up to a limit, and how many more there were.
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

/// Reads a file by pages.
struct PageSource {
    file: File,
    page: usize,
    /// The number of complete pages.
    end: u64,
}

impl PageSource {
    /// Reads `count` pages; `None` if the file ends before.
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

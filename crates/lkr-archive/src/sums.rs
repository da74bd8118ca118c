//! The names of entries, and the lines that hold their checksums.

use crate::{Result, error::damaged};

pub(crate) const ABOUT: &str = "lkr-backup.json";
const SUMS: &str = "SHA256SUMS.";
const LAST: &str = "SHA256SUMS.last";

/// So many entries have their checksums in one list, so that neither side holds those of all.
const ENTRIES: usize = 1_000;

/// The checksums of the entries since the last list.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    lines: Vec<String>,
    lists: u64,
}

impl Sums {
    pub(crate) fn add(&mut self, path: &str, sha256: &str) {
        self.lines.push(format!("{sha256}  {path}\n"));
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lines.len() >= ENTRIES
    }

    /// The path and content of the list of what was added since the one before.
    pub(crate) fn take(&mut self, last: bool) -> (String, String) {
        self.lists += 1;
        let path = if last { LAST.to_owned() } else { format!("{SUMS}{}", self.lists) };
        (path, std::mem::take(&mut self.lines).concat())
    }

    /// Holds a list that was read against what was added; answers whether it is the last one.
    pub(crate) fn check(&mut self, path: &str, list: &str) -> Result<bool> {
        let last = path == LAST;
        let mut listed = list.split_inclusive('\n');
        for line in &self.lines {
            if listed.next() != Some(line) {
                let path = line.get(66..).unwrap_or_default().trim_end();
                return Err(damaged(format!("{path} is not as it was written")));
            }
        }
        if let Some(line) = listed.next() {
            return Err(damaged(format!("what {path} calls {} is not there", line.trim_end())));
        }
        let (expected, _) = self.take(last);
        if path != expected {
            return Err(damaged(format!("{path} stands where {expected} should")));
        }
        Ok(last)
    }
}

/// Whether an entry of this path holds checksums.
pub(crate) fn is_list(path: &str) -> bool {
    path.starts_with(SUMS)
}

/// Whether this can be the path of an entry: relative, of plain names, without line breaks, and none of the archive's
/// own.
pub(crate) fn is_path(path: &str) -> bool {
    let plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['\0', '\n', '\r', '\\']);
    path != ABOUT && !is_list(path) && path.split('/').all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_nowhere_else() {
        for path in ["a", "a/b.txt", "blobs/ef/0-1", "späte Öfen/月.pdf", "...", "a b"] {
            assert!(is_path(path), "{path}");
        }
        for path in ["", "/", "/a", "a/", "a//b", "..", "a/../b", "./a", "a\nb", "a\\b", ABOUT, LAST] {
            assert!(!is_path(path), "{path}");
        }
    }
}

//! Checksum lists, and the paths that entries may have.

use crate::{Result, error::damaged};

pub(crate) const INFO_PATH: &str = "lkr-backup.json";
const LIST_PREFIX: &str = "SHA256SUMS.";
const LAST_LIST: &str = "SHA256SUMS.last";

/// The number of checksums in one list. Bounded, so that neither side holds the checksums of all entries in memory.
/// Chosen, not measured.
const ENTRIES_PER_LIST: usize = 1_000;

/// The checksums of the entries since the last list.
#[derive(Debug, Default)]
pub(crate) struct ChecksumList {
    lines: Vec<String>,
    lists: u64,
}

impl ChecksumList {
    pub(crate) fn add(&mut self, path: &str, sha256: &str) {
        self.lines.push(format!("{sha256}  {path}\n"));
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lines.len() >= ENTRIES_PER_LIST
    }

    /// Returns the path and the content of the next list, and begins a new one.
    pub(crate) fn take_list(&mut self, last: bool) -> (String, String) {
        self.lists += 1;
        let path = if last { LAST_LIST.to_owned() } else { format!("{LIST_PREFIX}{}", self.lists) };
        (path, std::mem::take(&mut self.lines).concat())
    }

    /// Compares a list from the archive with the checksums that were added. Returns whether it is the last list.
    pub(crate) fn verify_list(&mut self, path: &str, list: &str) -> Result<bool> {
        let last = path == LAST_LIST;
        let mut listed = list.split_inclusive('\n');
        for line in &self.lines {
            if listed.next() != Some(line) {
                let path = line.get(66..).unwrap_or_default().trim_end();
                return Err(damaged(format!("{path} does not match the checksum list")));
            }
        }
        if let Some(line) = listed.next() {
            return Err(damaged(format!("an entry of {path} is missing: {}", line.trim_end())));
        }
        let (expected, _) = self.take_list(last);
        if path != expected {
            return Err(damaged(format!("found {path} in the place of {expected}")));
        }
        Ok(last)
    }
}

/// Whether an entry with this path is a checksum list.
pub(crate) fn is_checksum_list(path: &str) -> bool {
    path.starts_with(LIST_PREFIX)
}

/// Whether an entry may have this path: relative, without `.` and `..`, without line breaks, and not a path that the
/// format reserves.
pub(crate) fn is_entry_path(path: &str) -> bool {
    let is_plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['\0', '\n', '\r', '\\']);
    path != INFO_PATH && !is_checksum_list(path) && path.split('/').all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_paths_are_relative_and_stay_below_the_root() {
        for path in ["a", "a/b.txt", "blobs/ef/0-1", "späte Öfen/月.pdf", "...", "a b"] {
            assert!(is_entry_path(path), "{path}");
        }
        for path in ["", "/", "/a", "a/", "a//b", "..", "a/../b", "./a", "a\nb", "a\\b", INFO_PATH, LAST_LIST]
        {
            assert!(!is_entry_path(path), "{path}");
        }
    }
}

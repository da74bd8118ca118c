//! Files with one record in each line.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;

/// Reads the rows of a JSON Lines file. Blank lines are skipped.
///
/// # Errors
/// The error names the file and the invalid line.
pub(crate) fn json_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    parse_lines(path, |line| Ok(serde_json::from_str(line)?))
}

/// Reads a text file and parses each line. Blank lines are skipped, and a byte order mark, as programs on Windows write it.
pub(crate) fn parse_lines<T>(path: &Path, parse: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    let file = File::open(path).with_context(|| format!("open {}", path.display()))?;
    let mut rows = Vec::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let place = || format!("{}, line {}", path.display(), number + 1);
        let line = line.with_context(place)?;
        let mark = if number == 0 { "\u{feff}" } else { "" };
        let line = line.strip_prefix(mark).unwrap_or(&line);
        if !line.trim().is_empty() {
            rows.push(parse(line).with_context(place)?);
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn byte_order_mark_is_skipped_at_the_beginning_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.tsv");
        fs::write(&path, "\u{feff}one\r\n\u{feff}two\r\n").unwrap();
        let rows = parse_lines(&path, |line| Ok(line.to_owned())).unwrap();
        assert_eq!(rows, ["one", "\u{feff}two"]);
        fs::write(&path, "\u{feff}").unwrap();
        assert!(json_lines::<u32>(&path).unwrap().is_empty());
    }

    #[test]
    fn error_names_file_and_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.jsonl");
        fs::write(&path, "1\n\n2\n").unwrap();
        assert_eq!(json_lines::<u32>(&path).unwrap(), [1, 2]);
        fs::write(&path, "1\nx\n").unwrap();
        let error = json_lines::<u32>(&path).unwrap_err().to_string();
        assert!(error.ends_with("rows.jsonl, line 2"), "{error}");
        let error = json_lines::<u32>(&dir.path().join("none.jsonl")).unwrap_err().to_string();
        assert!(error.ends_with("none.jsonl"), "{error}");
    }
}

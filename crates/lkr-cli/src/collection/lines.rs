//! Files of one record a line.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;

/// The rows of a JSON Lines file; blank lines do not count.
///
/// # Errors
/// Names the file, and the line that does not hold what it should.
pub(crate) fn json_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    read(path, |line| Ok(serde_json::from_str(line)?))
}

/// The lines of a text file, each as `parse` reads it; blank lines do not count.
pub(crate) fn read<T>(path: &Path, parse: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    let file = File::open(path).with_context(|| format!("open {}", path.display()))?;
    let mut rows = Vec::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let place = || format!("{}, line {}", path.display(), number + 1);
        let line = line.with_context(place)?;
        if !line.trim().is_empty() {
            rows.push(parse(&line).with_context(place)?);
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn errors_name_file_and_line() {
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

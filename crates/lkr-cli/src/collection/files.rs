use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use lkr::files::Format;

/// Whether a folder is a collection.
pub(crate) fn is_collection(dir: &Path) -> bool {
    ["docs.jsonl", "corpus.jsonl"].iter().any(|name| dir.join(name).is_file())
}

/// The name of a file without its folder.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether the name of a file is that of a format that the server reads.
pub(crate) fn is_known(path: &Path) -> bool {
    Format::from_file_name(&file_name(path)).is_some()
}

/// The files below a folder that are `wanted`, at any depth, sorted by name.
pub(crate) fn files_below(dir: &Path, wanted: fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    walk(dir, wanted, &mut files)?;
    Ok(files)
}

fn walk(dir: &Path, wanted: fn(&Path) -> bool, files: &mut Vec<PathBuf>) -> Result<()> {
    let context = || format!("list {}", dir.display());
    let mut entries =
        fs::read_dir(dir).with_context(context)?.collect::<Result<Vec<_>, _>>().with_context(context)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        // Links to folders are not followed, because they may form a cycle.
        if entry.file_type().with_context(context)?.is_dir() {
            walk(&path, wanted, files)?;
        } else if wanted(&path) {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_a_folder_are_sorted_by_name() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("b")).unwrap();
        for name in ["c.txt", "b/a.txt", "b/skip.pdf"] {
            fs::write(dir.path().join(name), "see").unwrap();
        }
        let is_text = |path: &Path| path.extension().is_some_and(|extension| extension == "txt");
        let found = files_below(dir.path(), is_text).unwrap();
        assert_eq!(found, [dir.path().join("b/a.txt"), dir.path().join("c.txt")]);
    }

    #[test]
    fn unreadable_folder_is_named_in_the_error() {
        let error = files_below(Path::new("/nowhere"), |_| true).unwrap_err().to_string();
        assert!(error.contains("/nowhere"), "{error}");
    }
}

//! The files to parse.

use std::path::{Path, PathBuf};

use anyhow::Result;
use lkr::files::Format;

use crate::collection::files_below;

/// The files at `paths`, in order: single files of any format, and the files of known formats in folders.
pub(super) fn sources(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    for path in paths {
        if path.is_dir() {
            sources.extend(files_below(path, is_known)?);
        } else {
            sources.push(path.clone());
        }
    }
    Ok(sources)
}

/// The name of a file without its folder.
pub(super) fn name_of(source: &Path) -> String {
    source.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_known(path: &Path) -> bool {
    Format::from_file_name(&name_of(path)).is_some()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn folders_are_filtered_by_format_and_named_files_are_not() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("b")).unwrap();
        for name in ["c.HTML", "b/a.docx", "b/skip.exe", "alone.exe"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let alone = dir.path().join("alone.exe");
        let found = sources(&[alone, dir.path().to_owned(), "absent.pdf".into()]).unwrap();
        let names: Vec<String> = found.iter().map(|path| name_of(path)).collect();
        assert_eq!(names, ["alone.exe", "a.docx", "c.HTML", "absent.pdf"]);
    }
}

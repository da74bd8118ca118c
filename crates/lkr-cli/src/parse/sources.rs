//! The files to parse.

use std::path::PathBuf;

use anyhow::Result;

use crate::collection::{files_below, is_known};

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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::collection::file_name;

    #[test]
    fn folders_are_filtered_by_format_and_named_files_are_not() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("b")).unwrap();
        for name in ["c.HTML", "b/a.docx", "b/skip.exe", "alone.exe"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let alone = dir.path().join("alone.exe");
        let found = sources(&[alone, dir.path().to_owned(), "absent.pdf".into()]).unwrap();
        let names: Vec<String> = found.iter().map(|path| file_name(path)).collect();
        assert_eq!(names, ["alone.exe", "a.docx", "c.HTML", "absent.pdf"]);
    }
}

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::collection::{Input, name_of};

/// Whether a folder is a collection rather than one of files.
pub(crate) fn is_collection(dir: &Path) -> bool {
    ["docs.jsonl", "corpus.jsonl"].iter().any(|name| dir.join(name).is_file())
}

/// The text and Markdown files at `path`: the file itself, or all below the folder, by name.
///
/// A file in a folder has the source `<folder>:<path in it>`, one of its own `file:<name>`.
pub(crate) fn texts_below(path: &Path) -> Result<Vec<Input>> {
    if path.is_dir() {
        let name = name_of(path)?;
        let files = files_below(path, is_text)?;
        if files.is_empty() {
            bail!("{} holds no collection and no .txt or .md file", path.display());
        }
        let source = |file: &Path| format!("{name}:{}", file.strip_prefix(path).unwrap_or(file).display());
        return files.iter().map(|file| input(file, source(file))).collect();
    }
    if path.exists() && !is_text(path) {
        bail!("{} is neither a folder nor a .txt or .md file", path.display());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(vec![input(path, format!("file:{name}"))?])
}

/// All files in a folder that are `wanted`, at any depth, by name.
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
        // A link could lead in a circle.
        if entry.file_type().with_context(context)?.is_dir() {
            walk(&path, wanted, files)?;
        } else if wanted(&path) {
            files.push(path);
        }
    }
    Ok(())
}

fn is_text(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    matches!(extension.as_deref(), Some("txt" | "md"))
}

/// A Markdown file is named by its first heading, any other by its name.
fn input(path: &Path, source: String) -> Result<Input> {
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let is_markdown = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"));
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Input { title: if is_markdown { String::new() } else { stem }, source, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_walked_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("notes");
        fs::create_dir_all(root.join("b")).unwrap();
        for (name, text) in [("c.TXT", "see"), ("b/a.md", "# A"), ("b/skip.pdf", "%PDF")] {
            fs::write(root.join(name), text).unwrap();
        }
        let inputs = texts_below(&root).unwrap();
        let seen: Vec<_> = inputs.iter().map(|i| (i.source.as_str(), i.title.as_str())).collect();
        assert_eq!(seen, [("notes:b/a.md", ""), ("notes:c.TXT", "c")]);
        assert_eq!(texts_below(&root.join("c.TXT")).unwrap()[0].source, "file:c.TXT");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.pdf"), "%PDF").unwrap();
        for path in [dir.path().join("none.txt"), dir.path().join("a.pdf")] {
            let error = texts_below(&path).unwrap_err().to_string();
            assert!(error.contains(path.to_str().unwrap()), "{error}");
        }
        assert!(texts_below(dir.path()).unwrap_err().to_string().contains("no collection"));
    }
}

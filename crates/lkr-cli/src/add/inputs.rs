//! What the arguments of `lkr add` name.

use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use lkr::files::Format;

use super::{
    item::{FileItem, Item},
    page,
};
use crate::{
    collection::{Input, collection, files_below, is_collection, name_of},
    exit::usage,
};

/// The argument for the standard input.
const STDIN: &str = "-";

/// The documents that the arguments name, in order.
pub(super) fn read(arguments: &[String], stdin_name: Option<&str>) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    for argument in arguments {
        items.extend(read_one(argument, stdin_name)?);
    }
    Ok(items)
}

fn read_one(argument: &str, stdin_name: Option<&str>) -> Result<Vec<Item>> {
    if argument == STDIN {
        return Ok(vec![from_stdin(stdin_name)?]);
    }
    if page::is_address(argument) {
        return Ok(vec![page::fetch(argument)?]);
    }
    let path = Path::new(argument);
    if path.is_dir() {
        return below(path);
    }
    if !path.exists() && argument.contains(['*', '?', '[']) {
        return matching(argument);
    }
    if !path.is_file() {
        bail!("{argument} is no file, no folder, no pattern and no http address");
    }
    Ok(vec![file_item(path, format!("file:{}", file_name(path)))])
}

/// The documents of a collection, or the files of known formats below a folder, hidden ones left out.
fn below(folder: &Path) -> Result<Vec<Item>> {
    if is_collection(folder) {
        return Ok(collection(folder)?.into_iter().map(Item::Text).collect());
    }
    let name = name_of(folder)?;
    let files = files_below(folder, is_known)?;
    let of_folder = files.iter().filter(|file| !is_hidden(file.strip_prefix(folder).unwrap_or(file)));
    let items: Vec<Item> = of_folder
        .map(|file| {
            let path = file.strip_prefix(folder).unwrap_or(file);
            file_item(file, format!("{name}:{}", with_slashes(path)))
        })
        .collect();
    if items.is_empty() {
        bail!("{} contains no file of a known format: {}", folder.display(), extensions());
    }
    Ok(items)
}

/// The files that match a pattern, which the shell did not expand.
fn matching(pattern: &str) -> Result<Vec<Item>> {
    let paths = glob::glob(pattern).map_err(|error| usage(format!("{pattern}: {error}")))?;
    let paths: Vec<PathBuf> = paths.collect::<Result<_, _>>().with_context(|| format!("read {pattern}"))?;
    let files = paths.iter().filter(|path| path.is_file() && is_known(path));
    let items: Vec<Item> =
        files.map(|path| file_item(path, format!("file:{}", with_slashes(path)))).collect();
    if items.is_empty() {
        bail!("{pattern} matches no file of a known format: {}", extensions());
    }
    Ok(items)
}

/// The standard input, as a text or as a file of the given name.
fn from_stdin(name: Option<&str>) -> Result<Item> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).context("read the standard input")?;
    if let Some(name) = name {
        let file =
            FileItem { file_name: name.to_owned(), source: format!("file:{name}"), ..FileItem::default() };
        return Ok(Item::Bytes(file, bytes));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        usage("the standard input is no UTF-8 text; for a file, give its name with --stdin-name")
    })?;
    Ok(Item::Text(Input { title: String::new(), source: String::new(), text }))
}

fn file_item(path: &Path, source: String) -> Item {
    Item::File(FileItem { path: path.to_owned(), file_name: file_name(path), title: String::new(), source })
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A relative path, written alike on every system.
fn with_slashes(path: &Path) -> String {
    let parts = path.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts.collect::<Vec<_>>().join("/")
}

fn is_known(path: &Path) -> bool {
    Format::from_file_name(&file_name(path)).is_some()
}

fn is_hidden(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.'))
}

fn extensions() -> String {
    Format::extensions().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn sources(argument: &Path) -> Vec<String> {
        let items = read_one(&argument.display().to_string(), None).unwrap();
        items.iter().map(|item| item.source().to_owned()).collect()
    }

    #[test]
    fn folders_and_patterns_name_their_files() {
        let dir = tempfile::tempdir().unwrap();
        let notes = dir.path().join("notes");
        fs::create_dir_all(notes.join("b/.git")).unwrap();
        for name in ["c.TXT", "b/a.md", "b/skip.exe", "b/.git/x.md", ".hidden.txt"] {
            fs::write(notes.join(name), "see").unwrap();
        }
        assert_eq!(sources(&notes), ["notes:b/a.md", "notes:c.TXT"]);
        assert_eq!(sources(&notes.join("c.TXT")), ["file:c.TXT"]);
        let matched = sources(&notes.join("**/*.md"));
        assert!(matched.iter().any(|source| source.ends_with("notes/b/a.md")), "{matched:?}");
    }

    #[test]
    fn what_cannot_be_added_is_named_in_the_error() {
        let dir = tempfile::tempdir().unwrap();
        for missing in [dir.path().join("none.txt"), dir.path().join("*.md"), dir.path().to_owned()] {
            let missing = missing.display().to_string();
            let error = read_one(&missing, None).unwrap_err().to_string();
            assert!(error.contains(&missing), "{error}");
        }
    }
}

//! What the arguments of `lkr add` name.

use std::{
    ffi::OsStr,
    io::{self, Read as _},
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use glob::{MatchOptions, Pattern};
use lkr::files::Format;

use super::{
    item::{FileItem, Item},
    page,
    report::{Ended, Outcome},
};
use crate::{
    collection::{Input, collection, file_name, files_below, is_collection, is_known},
    exit::{exit_of, not_found, reason, usage},
};

/// The argument for the standard input.
pub(super) const STDIN: &str = "-";

/// What the arguments of a command name.
#[derive(Debug)]
pub(super) struct Inputs {
    /// The documents, in order.
    pub(super) items: Vec<Item>,
    /// The arguments that could not be read.
    pub(super) unread: Vec<Ended>,
}

/// Reads what the arguments name. An argument that cannot be read does not stop the others.
///
/// # Errors
/// The first error, if no argument can be read.
pub(super) fn read(arguments: &[String], stdin_name: Option<&str>) -> Result<Inputs> {
    let (mut items, mut unread) = (Vec::new(), Vec::new());
    for argument in arguments {
        match read_one(argument, stdin_name) {
            Ok(read) => items.extend(read),
            Err(error) if arguments.len() == 1 => return Err(error),
            Err(error) => {
                let outcome = Outcome::Refused(reason(&error), exit_of(&error));
                unread.push(Ended { source: argument.clone(), outcome });
            }
        }
    }
    Ok(Inputs { items, unread })
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
        return Err(not_found(format!("{argument} is no file, no folder, no pattern and no http address")));
    }
    Ok(vec![file_item(path)])
}

/// The documents of a collection, or the files of known formats below a folder, hidden ones left out.
fn below(folder: &Path) -> Result<Vec<Item>> {
    if is_collection(folder) {
        return Ok(collection(folder)?.into_iter().map(Item::Text).collect());
    }
    let files = files_below(folder, is_known)?;
    // Opening a named pipe would wait for a writer, and a device may have no end.
    let is_wanted = |file: &&PathBuf| !is_hidden(file.strip_prefix(folder).unwrap_or(file)) && file.is_file();
    let of_folder = files.iter().filter(is_wanted);
    let items: Vec<Item> = of_folder.map(|file| file_item(file)).collect();
    if items.is_empty() {
        bail!("{} contains no file of a known format: {}", folder.display(), extensions());
    }
    Ok(items)
}

/// Hidden files match only if the pattern says so, as in a shell.
const AS_IN_A_SHELL: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// The files that match a pattern, which the shell did not expand.
fn matching(pattern: &str) -> Result<Vec<Item>> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let invalid = |error| usage(format!("{pattern}: {error}"));
    let compiled = Pattern::new(pattern).map_err(invalid)?;
    let mut paths = if pattern.contains("**") {
        let folder = fixed_part(pattern);
        if folder.is_dir() { files_below(folder, is_known)? } else { Vec::new() }
    } else {
        let paths = glob::glob(pattern).map_err(invalid)?;
        paths.collect::<Result<_, _>>().with_context(|| format!("read {pattern}"))?
    };
    paths.retain_mut(|path| {
        *path = path.strip_prefix("./").unwrap_or(path).to_owned();
        compiled.matches_path_with(path, AS_IN_A_SHELL)
    });
    let files = paths.iter().filter(|path| path.is_file() && is_known(path));
    let items: Vec<Item> = files.map(|path| file_item(path)).collect();
    if items.is_empty() {
        bail!("{pattern} matches no file of a known format: {}", extensions());
    }
    Ok(items)
}

/// The folder in which all matches of a pattern are: its parts without wildcards. Links in it are followed, links to folders below it
/// are not, because they may form a cycle.
fn fixed_part(pattern: &str) -> &Path {
    let wildcard = pattern.find(['*', '?', '[']).unwrap_or(pattern.len());
    let end = pattern.get(..wildcard).and_then(|fixed| fixed.rfind(std::path::is_separator));
    match end.and_then(|end| pattern.get(..=end)) {
        Some(folder) => Path::new(folder),
        None => Path::new("."),
    }
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

/// A file, whose source is its path as it was given: it is the same whether the file or its folder is named.
fn file_item(path: &Path) -> Item {
    let source = format!("file:{}", with_slashes(path));
    Item::File(FileItem { path: path.to_owned(), file_name: file_name(path), source, ..FileItem::default() })
}

/// A path without `.` in it, written alike on every system.
fn with_slashes(path: &Path) -> String {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::RootDir => parts.push(String::new()),
            part => parts.push(escaped(part.as_os_str())),
        }
    }
    parts.join("/")
}

/// A name in which each byte that is no part of a UTF-8 character is written as in an address, so that two such names stay two.
fn escaped(name: &OsStr) -> String {
    let mut text = String::new();
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("%{byte:02X}")));
    }
    text
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
    #[cfg(target_os = "linux")]
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    fn sources(argument: &Path) -> Vec<String> {
        let items = read_one(&argument.display().to_string(), None).unwrap();
        items.iter().map(|item| item.source().to_owned()).collect()
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_not_utf8_have_sources_of_their_own() {
        use std::os::unix::ffi::OsStrExt as _;

        let source = |name: &[u8]| file_item(Path::new(OsStr::from_bytes(name))).source().to_owned();
        assert_eq!(source(b"notes/caf\xe9.txt"), "file:notes/caf%E9.txt");
        assert_ne!(source(b"notes/caf\xe9.txt"), source(b"notes/caf\xe8.txt"));
        assert_eq!(source("notes/café.txt".as_bytes()), "file:notes/café.txt");
    }

    #[test]
    fn folders_and_patterns_name_their_files() {
        let dir = tempfile::tempdir().unwrap();
        let notes = dir.path().join("notes");
        fs::create_dir_all(notes.join("b/.git")).unwrap();
        for name in ["c.TXT", "b/a.md", "b/skip.exe", "b/.git/x.md", ".hidden.txt"] {
            fs::write(notes.join(name), "see").unwrap();
        }
        let root = notes.display();
        assert_eq!(sources(&notes), [format!("file:{root}/b/a.md"), format!("file:{root}/c.TXT")]);
        assert_eq!(sources(&notes.join("./c.TXT")), [format!("file:{root}/c.TXT")]);
    }

    #[test]
    fn pattern_names_no_hidden_files_and_follows_no_links_to_folders() {
        let dir = tempfile::tempdir().unwrap();
        let notes = dir.path().join("notes");
        fs::create_dir_all(notes.join("b/.git")).unwrap();
        for name in ["a.md", "b/a.md", "b/a.txt", "b/.git/x.md", ".hidden.md"] {
            fs::write(notes.join(name), "see").unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("..", notes.join("b/up")).unwrap();
        #[cfg(target_os = "linux")]
        fs::write(notes.join(std::ffi::OsStr::from_bytes(b"\xff.exe")), "see").unwrap();
        let root = notes.display();
        for (pattern, expected) in [
            ("**/*.md", ["a.md", "b/a.md"].as_slice()),
            ("b/**/*", &["b/a.md", "b/a.txt"]),
            ("*/a.*", &["b/a.md", "b/a.txt"]),
            ("**/.*/*.md", &["b/.git/x.md"]),
            ("*.md", &["a.md"]),
            (".*.md", &[".hidden.md"]),
        ] {
            let expected: Vec<String> = expected.iter().map(|name| format!("file:{root}/{name}")).collect();
            assert_eq!(sources(&notes.join(pattern)), expected, "{pattern}");
        }
        for (pattern, folder) in [("a/b*/c", "a/"), ("**/a", "."), ("/x/**", "/x/"), ("*", ".")] {
            assert_eq!(fixed_part(pattern), Path::new(folder), "{pattern}");
        }
    }

    #[test]
    fn argument_that_cannot_be_read_does_not_stop_the_others() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.txt"), "see").unwrap();
        let arguments = ["a.txt", "none.txt"].map(|name| dir.path().join(name).display().to_string());
        let inputs = read(&arguments, None).unwrap();
        assert_eq!((inputs.items.len(), inputs.unread.len()), (1, 1));
        assert!(read(&arguments[1..], None).is_err());
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

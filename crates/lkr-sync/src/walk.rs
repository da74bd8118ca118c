//! The files of a folder that are synchronised.

use std::{
    fmt::Display,
    fs::{self, Metadata},
    io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use ignore::{DirEntry, WalkBuilder};

use crate::{
    Error, ErrorKind, Issue, IssueKind, Result, error::READ, folder::OWN_FOLDER, path, state::Stamp,
};

/// The ignore file of this crate. Its lines take precedence over those of `.gitignore`.
const IGNORE_FILE: &str = ".lkrignore";

/// Which files are wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) extensions: &'a [String],
    pub(crate) max_bytes: u64,
    /// The most characters of a path.
    pub(crate) max_path_chars: usize,
}

/// What a folder contains.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// The files, sorted by path.
    pub(crate) files: Vec<(String, Stamp)>,
    /// Files that exist and cannot be sent.
    pub(crate) unsendable: Vec<String>,
    /// Folders that could not be listed, or not by the rules of their ignore files.
    pub(crate) unreadable: Vec<String>,
    pub(crate) issues: Vec<Issue>,
}

/// Lists the wanted files of a folder.
pub(crate) fn walk(root: &Path, wanted: Wanted<'_>) -> Result<Walked> {
    let mut walked = Walked::default();
    for entry in walker(root) {
        match entry {
            Ok(entry) => walked.add(root, &entry, wanted),
            Err(error) => walked.add_error(root, &error)?,
        }
    }
    let Walked { files, unreadable, .. } = &mut walked;
    files.retain(|(path, _)| !unreadable.iter().any(|folder| path::is_below(path, folder)));
    files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    Ok(walked)
}

fn walker(root: &Path) -> ignore::Walk {
    let own = |entry: &DirEntry| entry.file_name() == OWN_FOLDER || entry.file_name() == ".git";
    WalkBuilder::new(root)
        .hidden(true)
        .follow_links(false)
        // The rules of a folder are in the folder, so that they are the same on every machine.
        .parents(false)
        .git_global(false)
        .ignore(false)
        .git_ignore(true)
        .git_exclude(true)
        .require_git(false)
        .add_custom_ignore_filename(IGNORE_FILE)
        .filter_entry(move |entry| entry.depth() == 0 || !own(entry))
        .build()
}

impl Walked {
    fn add(&mut self, root: &Path, entry: &DirEntry, wanted: Wanted<'_>) {
        let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
        if let Some(error) = entry.error() {
            // Lines that cannot be parsed are left out, as git does.
            let path = relative.to_string_lossy();
            self.issues.push(Issue::new(path, IssueKind::IgnoreFile, error.to_string()));
        }
        if let Some(error) = ignore_file_error(entry) {
            self.add_unreadable(relative, &error);
        }
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if is_file && has_extension(relative, wanted.extensions) {
            self.add_file(relative, entry, wanted);
        }
    }

    fn add_file(&mut self, relative: &Path, entry: &DirEntry, wanted: Wanted<'_>) {
        let Some(path) = path::text(relative) else {
            let reason = "the name is not UTF-8";
            self.issues.push(Issue::new(relative.to_string_lossy(), IssueKind::NotUtf8, reason));
            return;
        };
        let chars = path.chars().count();
        match entry.metadata() {
            Err(error) => self.skip(path, IssueKind::Unreadable, error.to_string()),
            Ok(_) if chars > wanted.max_path_chars => {
                let reason = format!("the path has {chars} characters, at most {}", wanted.max_path_chars);
                self.skip(path, IssueKind::PathTooLong, reason);
            }
            Ok(metadata) if metadata.len() > wanted.max_bytes => {
                let reason = format!("{} bytes, at most {}", metadata.len(), wanted.max_bytes);
                self.skip(path, IssueKind::TooLarge, reason);
            }
            Ok(metadata) => self.files.push((path, stamp(&metadata))),
        }
    }

    /// Notes a file that exists and cannot be sent.
    pub(crate) fn skip(&mut self, path: String, kind: IssueKind, reason: String) {
        self.issues.push(Issue::new(&path, kind, reason));
        self.unsendable.push(path);
    }

    fn add_error(&mut self, root: &Path, error: &ignore::Error) -> Result<()> {
        let path = path_of(error).unwrap_or_else(|| root.to_path_buf());
        let relative = path.strip_prefix(root).unwrap_or(Path::new(""));
        if relative.as_os_str().is_empty() {
            return Err(Error::new(ErrorKind::Folder, READ, error.to_string()));
        }
        self.add_unreadable(relative, error);
        Ok(())
    }

    fn add_unreadable(&mut self, relative: &Path, error: &impl Display) {
        self.issues.push(Issue::new(relative.to_string_lossy(), IssueKind::Unreadable, error.to_string()));
        // No document can come from below a name that is not UTF-8.
        self.unreadable.extend(path::text(relative));
    }
}

pub(crate) fn stamp(metadata: &Metadata) -> Stamp {
    let modified = metadata.modified().map_or(0, |time| match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos),
    });
    Stamp { size: metadata.len(), modified }
}

fn has_extension(path: &Path, extensions: &[String]) -> bool {
    let extension = path.extension().unwrap_or_default();
    extensions.iter().any(|wanted| extension.eq_ignore_ascii_case(wanted))
}

fn path_of(error: &ignore::Error) -> Option<PathBuf> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path.clone()),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        ignore::Error::Loop { child, .. } => Some(child.clone()),
        _ => None,
    }
}

/// Why an ignore file of a folder cannot be read, which the walker does not tell. It may name what must not be sent.
fn ignore_file_error(entry: &DirEntry) -> Option<io::Error> {
    if !entry.file_type().is_some_and(|kind| kind.is_dir()) {
        return None;
    }
    [".gitignore", IGNORE_FILE].into_iter().find_map(|name| {
        let error = match fs::read(entry.path().join(name)) {
            // Some editors write UTF-16, of which the walker matches nothing.
            Ok(content) if content.contains(&0) || str::from_utf8(&content).is_err() => {
                io::Error::new(io::ErrorKind::InvalidData, "the file is not UTF-8")
            }
            Ok(_) => return None,
            Err(error) => error,
        };
        let message = format!("{name}: {error}");
        let is_absent = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory);
        (!is_absent).then(|| io::Error::new(error.kind(), message))
    })
}

//! The files of texts in the blob folder: finding them, and removing those that a killed process left incomplete.

use std::path::{Path, PathBuf};

use lkr_catalog::Texts;

/// Removes partial texts that a killed process left.
pub(crate) fn remove_partial_texts(dir: &Path) {
    for text in partial_texts(dir) {
        if let Err(error) = std::fs::remove_file(&text) {
            tracing::warn!(path = %text.display(), %error, "partially written text could not be removed");
        }
    }
}

/// Finds the partial texts that a killed process left. A blob is written as `<name>#<number>` and then renamed. No
/// write is in progress, because this process holds the store's lock. The folder belongs to the user and may contain
/// other files, so only paths that match the layout and the names of texts are returned.
pub(crate) fn partial_texts(dir: &Path) -> Vec<PathBuf> {
    let kinds = Texts::FOLDERS.map(|kind| dir.join(kind));
    let folders = kinds.iter().flat_map(|kind| entries(kind));
    let folders = folders.filter(|folder| is_hex(&name_of(folder), 2));
    folders.flat_map(|folder| entries(&folder)).filter(|text| is_partial_text(&name_of(text))).collect()
}

/// The entries of a folder; none if it cannot be read.
fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// `<document>-<revision>#<number>`
fn is_partial_text(name: &str) -> bool {
    name.split_once('#').is_some_and(|(text, number)| is_text(text) && number.parse::<u64>().is_ok())
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a folder contains a text, which is named `<document>-<revision>`.
pub(crate) fn has_texts(blobs_dir: &Path) -> bool {
    let folders = entries(&blobs_dir.join("texts")).filter(|folder| is_hex(&name_of(folder), 2));
    folders.flat_map(|folder| entries(&folder)).any(|text| is_text(&name_of(&text)))
}

fn is_text(name: &str) -> bool {
    name.split_once('-')
        .is_some_and(|(document, revision)| is_hex(document, 32) && revision.parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_texts_are_recognised_by_their_names() {
        let document = "0123456789abcdef0123456789abcdef";
        for (suffix, is_partial) in
            [("-1#1", true), ("-20#12", true), ("-1", false), ("#1", false), ("-1#", false), ("-x#1", false)]
        {
            assert_eq!(is_partial_text(&format!("{document}{suffix}")), is_partial, "{suffix}");
        }
        assert!(!is_partial_text("issue-1#12"));
    }

    #[test]
    fn removal_leaves_all_other_files() {
        let dir = tempfile::tempdir().unwrap();
        let document = "0123456789abcdef0123456789abcdef";
        let partial = format!("texts/ef/{document}-2#1");
        let others = [
            format!("texts/ef/{document}-1"),
            format!("texts/notes/{document}-2#1"),
            "texts/ef/issue#12".to_owned(),
            "music/Symphony#5".to_owned(),
            format!("{document}-2#1"),
        ];
        for file in others.iter().chain([&partial]) {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "text").unwrap();
        }
        remove_partial_texts(dir.path());
        assert!(!dir.path().join(partial).exists());
        for other in others {
            assert!(dir.path().join(&other).exists(), "{other}");
        }
    }
}

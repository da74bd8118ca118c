//! Paths in a folder, as text with `/` between their parts.

use std::path::{Component, Path, PathBuf};

/// The text form of a path below a folder; `None` if a part is not UTF-8.
pub(crate) fn text(relative: &Path) -> Option<String> {
    let parts = relative.components().map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    Some(parts.collect::<Option<Vec<_>>>()?.join("/"))
}

/// The path of a file below `folder`.
pub(crate) fn below(folder: &Path, text: &str) -> PathBuf {
    let mut path = folder.to_path_buf();
    path.extend(text.split('/'));
    path
}

/// The last part of a path.
pub(crate) fn file_name(text: &str) -> &str {
    text.rsplit_once('/').map_or(text, |(_, name)| name)
}

/// The file name without its extension.
pub(crate) fn stem(text: &str) -> &str {
    let name = file_name(text);
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}

/// The extension, which says how the file is read: in lower case, and one for those with the same meaning.
pub(crate) fn format(text: &str) -> String {
    let extension = file_name(text).rsplit_once('.').map_or("", |(_, extension)| extension).to_lowercase();
    if extension == "htm" { "html".to_owned() } else { extension }
}

/// Whether a path is `folder` or below it. The folder `""` contains all paths.
pub(crate) fn is_below(text: &str, folder: &str) -> bool {
    folder.is_empty()
        || text.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_by_slashes() {
        let path = Path::new("a").join("b c").join("d.txt");
        assert_eq!(text(&path).as_deref(), Some("a/b c/d.txt"));
        assert_eq!(below(Path::new("root"), "a/b c/d.txt"), Path::new("root").join(path));
    }

    #[test]
    fn name_and_stem_are_those_of_the_last_part() {
        for (path, name, stem_of) in
            [("a/b.tar.gz", "b.tar.gz", "b.tar"), ("x.y/z", "z", "z"), (".env", ".env", ".env")]
        {
            assert_eq!((file_name(path), stem(path)), (name, stem_of));
        }
    }

    #[test]
    fn format_is_the_same_for_extensions_with_the_same_meaning() {
        for (path, expected) in [("a/b.TXT", "txt"), ("b.htm", "html"), ("b.HTML", "html"), ("x.y/z", "")] {
            assert_eq!(format(path), expected, "{path}");
        }
    }

    #[test]
    fn folder_contains_paths_below_it_alone() {
        assert!(is_below("a/b", "a") && is_below("a", "a") && is_below("a", ""));
        assert!(!is_below("ab", "a") && !is_below("b/a", "a"));
    }
}

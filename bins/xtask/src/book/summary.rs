//! The list of the book's pages, `docs/SUMMARY.md`. Its paths are relative to `docs`, like those of every page there.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

/// The folder of the pages.
pub(super) const PAGES: &str = "docs";
/// The name of the list of pages.
pub(super) const SUMMARY: &str = "SUMMARY.md";

pub(super) fn read(repository: &Path) -> Result<String> {
    let path = repository.join(PAGES).join(SUMMARY);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// The list with paths from the root of the repository.
pub(super) fn from_root(summary: &str) -> String {
    let mut parts = summary.split("](");
    let mut list = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (target, rest) = part.split_once(')').unwrap_or((part, ""));
        let path = resolve(Path::new(PAGES), target);
        list.push_str(&format!("]({}){rest}", path.display()));
    }
    list
}

/// The files of the book, from the root of the repository: the listed pages, and what they link to.
///
/// # Errors
/// If a page links to a page that is not listed: the book would lack it.
pub(super) fn files(repository: &Path, summary: &str) -> Result<BTreeSet<PathBuf>> {
    let pages: BTreeSet<PathBuf> = targets(summary).map(|target| resolve(Path::new(PAGES), target)).collect();
    let (mut files, mut unlisted) = (pages.clone(), Vec::new());
    for page in &pages {
        let path = repository.join(page);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let folder = page.parent().unwrap_or(Path::new(""));
        for linked in targets(&text).map(|target| resolve(folder, target)) {
            if !repository.join(&linked).is_file() {
                continue;
            }
            if is_page(&linked) && !pages.contains(&linked) {
                unlisted.push(format!("{} links to {}", page.display(), linked.display()));
            }
            files.insert(linked);
        }
    }
    ensure!(unlisted.is_empty(), "{PAGES}/{SUMMARY} does not list these pages:\n{}", unlisted.join("\n"));
    Ok(files)
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// The files that a Markdown text links to, as it writes them.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    links.filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
}

/// The path of a link in a file of `folder`, from the root of the repository.
fn resolve(folder: &Path, target: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for component in folder.join(target).components() {
        match component {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{entries, root};

    fn pages_below(folder: &Path) -> Vec<PathBuf> {
        let (folders, files): (Vec<_>, Vec<_>) =
            entries(folder).unwrap().into_iter().partition(|path| path.is_dir());
        let below = folders.iter().flat_map(|folder| pages_below(folder));
        files.into_iter().filter(|path| is_page(path)).chain(below).collect()
    }

    #[test]
    fn summary_lists_every_page_of_docs_once() {
        let root = root().unwrap();
        let summary = read(&root).unwrap();
        let listed: Vec<PathBuf> =
            targets(&summary).map(|target| resolve(Path::new(PAGES), target)).collect();
        let distinct: BTreeSet<&PathBuf> = listed.iter().collect();
        assert_eq!(distinct.len(), listed.len(), "docs/SUMMARY.md lists a page twice");
        for page in pages_below(&root.join(PAGES)) {
            let page = page.strip_prefix(&root).unwrap().to_owned();
            assert!(
                page.ends_with(SUMMARY) || listed.contains(&page),
                "docs/SUMMARY.md does not list {}",
                page.display()
            );
        }
    }

    #[test]
    fn every_page_that_the_book_links_to_is_listed() {
        let root = root().unwrap();
        files(&root, &read(&root).unwrap()).unwrap();
    }

    #[test]
    fn paths_of_the_summary_are_rewritten_from_the_root() {
        let summary =
            "# Summary\n\n- [Search](search.md)\n  - [Dify](integrations/dify.md)\n[Log](../CHANGELOG.md)\n";
        assert_eq!(
            from_root(summary),
            "# Summary\n\n- [Search](docs/search.md)\n  - [Dify](docs/integrations/dify.md)\n[Log](CHANGELOG.md)\n"
        );
    }

    #[test]
    fn targets_are_the_files_that_a_page_links_to() {
        let text = "[a](b.md#c) [d](https://e/f.md) [g](#h) [i](../j/k.rs) [l](mailto:m@n)";
        assert_eq!(targets(text).collect::<Vec<_>>(), ["b.md", "../j/k.rs"]);
        assert_eq!(resolve(Path::new("docs/integrations"), "../../README.md"), Path::new("README.md"));
    }
}

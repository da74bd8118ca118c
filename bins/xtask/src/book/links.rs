//! Checks the links of built HTML pages: files and anchors inside of the book. Other sites are not asked.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use percent_encoding::percent_decode_str;

use crate::entries;

/// What a page contains that links need.
#[derive(Debug, Default, PartialEq)]
struct Page {
    anchors: BTreeSet<String>,
    links: Vec<String>,
}

/// The links in the pages below `book` that lead to no file or to no anchor, each with its page.
pub(super) fn broken(book: &Path) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for path in html_files(book)? {
        let html = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        pages.insert(path, page(&html));
    }
    let mut broken = Vec::new();
    for (path, page) in &pages {
        for link in &page.links {
            if !leads_somewhere(&pages, path, link) {
                let name = path.strip_prefix(book).unwrap_or(path);
                broken.push(format!("{}: {link}", name.display()));
            }
        }
    }
    Ok(broken)
}

fn html_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            found.extend(html_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "html") {
            found.push(path);
        }
    }
    Ok(found)
}

fn leads_somewhere(pages: &BTreeMap<PathBuf, Page>, from: &Path, link: &str) -> bool {
    if is_external(link) {
        return true;
    }
    let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = target.split('?').next().unwrap_or_default();
    let target = percent_decode_str(target).decode_utf8_lossy();
    let Some(path) = resolve(from, &target) else { return false };
    if anchor.is_empty() {
        return path.is_file();
    }
    let anchor = percent_decode_str(anchor).decode_utf8_lossy();
    pages.get(&path).is_some_and(|page| page.anchors.contains(&*anchor))
}

/// Whether a link has a scheme, or names a host.
fn is_external(link: &str) -> bool {
    let scheme = link.split_once(':').map(|(scheme, _)| scheme);
    link.starts_with("//")
        || scheme.is_some_and(|scheme| scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)))
}

/// The file that a link in the page `from` names; `None` if the path leaves the file system's root.
fn resolve(from: &Path, target: &str) -> Option<PathBuf> {
    if target.is_empty() {
        return Some(from.to_owned());
    }
    let mut path = from.parent()?.to_owned();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if !path.pop() {
                    return None;
                }
            }
            part => path.push(part),
        }
    }
    Some(if path.is_dir() { path.join("index.html") } else { path })
}

/// The anchors and links of an HTML page.
fn page(html: &str) -> Page {
    let mut page = Page::default();
    let mut rest = html;
    while let Some((_, after)) = rest.split_once('<') {
        if let Some(comment) = after.strip_prefix("!--") {
            rest = after_first(comment, "-->");
            continue;
        }
        let (tag, after) = after.split_at(tag_end(after));
        let (name, text) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        for (attribute, value) in attributes(text) {
            match attribute {
                "id" => drop(page.anchors.insert(unescape(value).into_owned())),
                "href" | "src" => page.links.push(unescape(value).into_owned()),
                _ => {}
            }
        }
        // What these elements contain is no HTML.
        rest = match name {
            "script" => after_first(after, "</script"),
            "style" => after_first(after, "</style"),
            _ => after,
        };
    }
    page
}

/// What follows the first `end`.
fn after_first<'a>(text: &'a str, end: &str) -> &'a str {
    text.split_once(end).map_or("", |(_, rest)| rest)
}

/// Where the tag ends with which the text begins: at the first `>` outside of quotation marks.
fn tag_end(text: &str) -> usize {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '>') => return at,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    text.len()
}

/// The attributes in a tag, with their values as they are written.
fn attributes(mut text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    loop {
        text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        if text.is_empty() {
            return found;
        }
        let end = text.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let Some(value) = rest.trim_start().strip_prefix('=') else {
            found.push((name, ""));
            text = rest;
            continue;
        };
        let value = value.trim_start();
        let quoted = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.split_once(quote));
        let (value, rest) = quoted.or_else(|| value.split_once(char::is_whitespace)).unwrap_or((value, ""));
        found.push((name, value));
        text = rest;
    }
}

fn unescape(value: &str) -> Cow<'_, str> {
    if !value.contains('&') {
        return Cow::Borrowed(value);
    }
    let entities =
        [("&quot;", "\""), ("&#39;", "'"), ("&#x27;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    Cow::Owned(entities.iter().fold(value.to_owned(), |value, (entity, c)| value.replace(entity, c)))
}

#[cfg(test)]
mod tests {
    use std::{env, process};

    use super::*;

    #[test]
    fn page_has_the_anchors_and_links_of_its_elements() {
        let html = r#"<!-- <a href="no"> --><h2 id="one &amp; two"><a class=x href='a.html?b=1&amp;c#d'>t > u</a></h2>
            <script src="s.js">"<a href='no'>"</script><img alt="a > b" src=i.png /><code>&lt;a href="no"&gt;</code>"#;
        let page = page(html);
        assert_eq!(page.anchors, BTreeSet::from(["one & two".to_owned()]));
        assert_eq!(page.links, ["a.html?b=1&c#d", "s.js", "i.png"]);
    }

    #[test]
    fn broken_links_are_found_and_valid_ones_are_not() {
        let book = env::temp_dir().join(format!("lkr-xtask-links-{}", process::id()));
        fs::create_dir_all(book.join("docs")).unwrap();
        fs::write(book.join("index.html"), r#"<a href="docs/a%20b.html#x">1</a><a href="docs/#no">2</a>"#)
            .unwrap();
        let page = r##"<h1 id="x"></h1><a href="../index.html">3</a><a href="#x">4</a><a href="#y">5</a>
            <a href="c.html">6</a><a href="https://c.org/no">7</a><a href="../index.html#x">8</a>"##;
        fs::write(book.join("docs/a b.html"), page).unwrap();
        let broken = broken(&book).unwrap();
        fs::remove_dir_all(&book).unwrap();
        let expected = [
            "docs/a b.html: #y",
            "docs/a b.html: c.html",
            "docs/a b.html: ../index.html#x",
            "index.html: docs/#no",
        ];
        assert_eq!(broken, expected);
    }
}

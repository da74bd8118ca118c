use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;

use crate::{
    front_matter::{is_fenced, value},
    indexed::is_indexed_whole,
    outline::Outline,
    piece::Body,
    plain::{plain, shorten},
    unit::Unit,
};

/// The longest derived title of a document, in Unicode code points.
const MAX_TITLE: usize = 120;

/// The longest title of a node without a heading, in Unicode code points.
const MAX_NODE_TITLE: usize = 80;

/// The given title, otherwise the first heading, otherwise the first line after the front matter.
pub(crate) fn document_title(given: &str, text: &str, outline: &Outline<'_>) -> String {
    if !given.trim().is_empty() {
        return given.trim().to_owned();
    }
    let heading = outline.headings.first().map(|heading| heading.title.to_owned());
    let derived = heading.unwrap_or_else(|| first_line(text, outline));
    let cut: String = derived.chars().take(MAX_TITLE).collect();
    cut.trim().to_owned()
}

/// Whether the document's title is `heading`, so that whatever is indexed with the title is found by all its words.
/// Case and white space make no difference.
pub(crate) fn is_title(given: &str, heading: &str) -> bool {
    if given.trim().is_empty() {
        return heading.chars().count() <= MAX_TITLE;
    }
    is_indexed_whole(given) && normal(given).eq(normal(heading))
}

/// The letters of a title in lower case, with one space between words.
fn normal(title: &str) -> impl Iterator<Item = char> + '_ {
    let words = title.split_whitespace().enumerate();
    words
        .flat_map(|(at, word)| (at > 0).then_some(' ').into_iter().chain(word.chars()))
        .nfc()
        .flat_map(char::to_lowercase)
}

/// The first line with words; of a document with front matter alone, the title in it.
fn first_line(text: &str, outline: &Outline<'_>) -> String {
    let first = outline.units.iter().find(|unit| unit.body != Body::FrontMatter);
    if let Some(unit) = first {
        let lines = || text.get(unit.range.start..).unwrap_or_default().lines();
        let words = lines().map(without_links).find(|line| line.chars().any(char::is_alphanumeric));
        return words.unwrap_or_else(|| lines().next().unwrap_or_default().to_owned());
    }
    let line = || text.lines().map(str::trim).find(|line| !line.is_empty() && !is_fenced(line));
    value(text, "title").or_else(line).unwrap_or_else(|| text.trim()).to_owned()
}

/// A line with the text of its Markdown links and without images.
fn without_links(line: &str) -> String {
    if line.contains("](") { plain(line) } else { line.to_owned() }
}

/// The first words of a node without a heading, from its first unit that has any.
pub(crate) fn first_words(text: &str, outline: &Outline<'_>, units: &Range<usize>) -> String {
    let units = outline.units.get(units.clone()).unwrap_or_default();
    let raw = |unit: &Unit| text.get(unit.range.clone()).unwrap_or_default();
    let words = units.iter().take(8).map(|unit| match unit.body {
        Body::FrontMatter => value(raw(unit), "title").unwrap_or_default().to_owned(),
        _ => plain(raw(unit)),
    });
    let first = words.into_iter().find(|words| words.chars().any(char::is_alphanumeric));
    shorten(
        &first.unwrap_or_else(|| units.first().map(raw).unwrap_or_default().trim().to_owned()),
        MAX_NODE_TITLE,
    )
}

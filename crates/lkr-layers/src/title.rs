use crate::{outline::Outline, piece::Body, plain::shorten};

/// The longest derived title of a document, in Unicode code points.
const MAX_TITLE: usize = 120;

/// The longest title of a node without a heading, in Unicode code points.
const MAX_NODE_TITLE: usize = 80;

/// The title given, else the first heading, else the first line that is not front matter.
pub(crate) fn document_title(given: &str, text: &str, outline: &Outline<'_>) -> String {
    if !given.trim().is_empty() {
        return given.trim().to_owned();
    }
    let heading = outline.headings.first().map(|heading| heading.title);
    let derived = heading.unwrap_or_else(|| first_line(text, outline));
    let cut: String = derived.chars().take(MAX_TITLE).collect();
    cut.trim().to_owned()
}

fn first_line<'a>(text: &'a str, outline: &Outline<'_>) -> &'a str {
    let units = &outline.units;
    let is_fence = |line: &str| line.starts_with("---") || line.starts_with("+++");
    let matter = units
        .first()
        .is_some_and(|unit| unit.body == Body::Code && text.get(unit.range.clone()).is_some_and(is_fence));
    let after = units
        .iter()
        .skip_while(|unit| matter && unit.body == Body::Code)
        .find_map(|unit| text.get(unit.range.start..));
    let lines = after.unwrap_or(text).split(['\n', '\r']).map(str::trim);
    lines.filter(|line| !line.is_empty()).find(|line| after.is_some() || !is_fence(line)).unwrap_or_default()
}

/// The first words of a node that has no heading.
pub(crate) fn first_words(text: &str, outline: &Outline<'_>, first_unit: usize) -> String {
    let unit =
        outline.units.get(first_unit).and_then(|unit| text.get(unit.range.clone())).unwrap_or_default();
    // Front matter begins with its fence.
    let plain = crate::plain::plain(unit.trim_matches(['-', '+', '\r', '\n']));
    let words = if plain.is_empty() { unit.trim() } else { &plain };
    shorten(words, MAX_NODE_TITLE)
}

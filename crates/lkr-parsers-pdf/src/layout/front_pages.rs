//! Lines at the front of a document that look like headings: those of a table of contents, and those of a cover.

use std::{collections::HashSet, ops::Range};

use super::{Heading, LayoutPage, heading_words, sizes};
use crate::page::Line;

/// A table of contents has at least this many entries on a page.
const MIN_ENTRIES: usize = 4;

/// A document with a cover has at least this many pages.
const COVER_PAGES: usize = 4;

/// A first page with this many headings in styles of its own is a cover.
const COVER_STYLES: usize = 3;

/// The title on a cover has at least this many words.
const TITLE_WORDS: usize = 3;

/// Removes the headings in tables of contents.
pub(super) fn drop_contents(page_layouts: &[LayoutPage], found: &mut [Vec<Heading>]) {
    for (page_layout, headings) in page_layouts.iter().zip(found) {
        if let Some(contents) = contents(page_layout, page_layouts.len()) {
            headings.retain(|heading| !contents.contains(&heading.lines.start));
        }
    }
}

/// The lines from the first to the last entry of a table of contents, if most lines of the page are entries.
fn contents(page_layout: &LayoutPage, pages: usize) -> Option<Range<usize>> {
    let numbers: Vec<(usize, usize)> = page_layout
        .lines
        .iter()
        .enumerate()
        .filter_map(|(at, line)| Some((at, page_number(line)?)))
        .collect();
    let in_order = numbers.iter().zip(numbers.iter().skip(1)).filter(|((_, a), (_, b))| a <= b).count();
    let (first, last) = (numbers.first()?.0, numbers.last()?.0);
    let is_list = numbers.len() >= MIN_ENTRIES
        && numbers.len() * 5 >= (last - first + 1) * 2
        && in_order * 5 >= (numbers.len() - 1) * 4
        && numbers.iter().all(|(_, number)| *number <= pages.saturating_mul(2) + 50);
    is_list.then_some(first..last + 1)
}

/// The page number at the end of a line that begins with words, after a gap or dots.
fn page_number(line: &Line) -> Option<usize> {
    let title = line.text.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = line.text.get(title.len()..).filter(|number| matches!(number.len(), 1..=4))?;
    let words = title.trim_end_matches(['.', ' ', '\t', '\u{2026}', '_']);
    let has_gap = title.ends_with('\t') || title.len() >= words.len() + 3 || title.ends_with(' ');
    let letters = words.chars().filter(|c| c.is_alphabetic()).count();
    (has_gap && letters >= 3).then(|| number.parse().ok()).flatten()
}

/// Removes the headings of a cover: headings on the first page in styles that no heading of another page has, if they are
/// many. Only its title remains, the largest of them.
pub(super) fn drop_cover(page_layouts: &[LayoutPage], found: &mut [Vec<Heading>]) {
    if page_layouts.len() < COVER_PAGES {
        return;
    }
    let (Some((cover, others)), Some((layout, layouts))) =
        (found.split_first_mut(), page_layouts.split_first())
    else {
        return;
    };
    let pairs = layouts.iter().zip(others.iter());
    let elsewhere: HashSet<(u32, bool)> =
        pairs.flat_map(|(layout, headings)| headings.iter().map(|heading| style(layout, heading))).collect();
    let is_own = |heading: &Heading| {
        heading_words::depth(&heading.title) == 0 && !elsewhere.contains(&style(layout, heading))
    };
    let own: Vec<&Heading> = cover.iter().filter(|heading| is_own(heading)).collect();
    if own.len() < COVER_STYLES {
        return;
    }
    let largest = own.iter().map(|heading| style(layout, heading).0).max();
    let is_title = |heading: &Heading| {
        largest == Some(style(layout, heading).0) && heading.title.split_whitespace().count() >= TITLE_WORDS
    };
    let title = cover.iter().position(|heading| is_own(heading) && is_title(heading));
    let keep: Vec<bool> =
        cover.iter().enumerate().map(|(at, heading)| !is_own(heading) || Some(at) == title).collect();
    let mut keep = keep.into_iter();
    cover.retain(|_| keep.next().unwrap_or(true));
}

/// The size and weight of a heading.
fn style(page_layout: &LayoutPage, heading: &Heading) -> (u32, bool) {
    let is_bold = page_layout.lines.get(heading.lines.start).is_some_and(|line| line.is_bold);
    (sizes::tenths(sizes::size(page_layout, heading)), is_bold)
}

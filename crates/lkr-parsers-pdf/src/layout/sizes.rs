//! Finds the headings of a document without an outline: lines that are larger than the text, or bold and short.

use std::collections::{BTreeMap, HashMap};

use super::{Heading, LayoutPage, blocks, heading_words, words};
use crate::page::Line;

/// A line is a heading from this many times the size of the text on. See docs/studies.md#pdf-layout.
const LARGER: f32 = 1.12;

/// The deepest level.
const MAX_LEVELS: usize = 6;

/// Most characters of a heading.
const MAX_CHARS: usize = 120;

/// Most characters of a heading that is only bold.
const MAX_BOLD_CHARS: usize = 80;

/// Most lines of a heading.
const MAX_LINES: usize = 3;

/// Headings are at most one part in this many of the text. See docs/studies.md#pdf-layout.
const MOST: usize = 3;

/// A line that occurs this often in a document is not a heading. See docs/studies.md#pdf-layout.
const OFTEN: usize = 4;

/// Finds the headings of all pages.
pub(super) fn find(page_layouts: &mut [LayoutPage]) {
    let Some(body) = body_size(page_layouts) else { return };
    let mut found: Vec<Vec<Heading>> =
        page_layouts.iter().map(|page_layout| headings(page_layout, body)).collect();
    drop_repeated(page_layouts, &mut found);
    if is_too_much(page_layouts, &found) {
        for (page_layout, headings) in page_layouts.iter().zip(&mut found) {
            headings.retain(|heading| size(page_layout, heading) >= body * LARGER);
        }
    }
    if is_too_much(page_layouts, &found) {
        return;
    }
    set_levels(page_layouts, &mut found);
    for (page_layout, headings) in page_layouts.iter_mut().zip(found) {
        page_layout.headings = headings;
    }
}

/// Whether too much of the text would be headings, so that sizes and weights must have another meaning.
fn is_too_much(page_layouts: &[LayoutPage], found: &[Vec<Heading>]) -> bool {
    let (mut lines, mut text) = (0, 0);
    for line in page_layouts.iter().flat_map(|page_layout| &page_layout.lines) {
        (lines, text) = (lines + 1, text + line.text.len());
    }
    let titles: usize = found.iter().flatten().map(|heading| heading.title.len()).sum();
    let title_lines: usize = found.iter().flatten().map(|heading| heading.lines.len()).sum();
    titles * MOST > text || title_lines * 2 > lines
}

/// The font size of most letters.
fn body_size(page_layouts: &[LayoutPage]) -> Option<f32> {
    let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
    for page_layout in page_layouts {
        for (line, _) in
            page_layout.lines.iter().zip(&page_layout.furniture).filter(|(_, furniture)| !**furniture)
        {
            *sizes.entry(tenths(line.size)).or_default() += line.text.len();
        }
    }
    let (size, _) = sizes.into_iter().filter(|(size, _)| *size > 0).max_by_key(|(_, count)| *count)?;
    Some(size as f32 / 10.0)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a size that is too large is cut"
)]
fn tenths(size: f32) -> u32 {
    (size * 10.0).round() as u32
}

/// The headings of a page, without their final levels.
fn headings(page_layout: &LayoutPage, body: f32) -> Vec<Heading> {
    let mut headings = Vec::new();
    let mut at = 0;
    while at < page_layout.lines.len() {
        let end = group(page_layout, at);
        let lines = page_layout.lines.get(at..end).unwrap_or_default();
        let title = lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join(" ");
        if may_be(page_layout, at, lines, &title) && stands_out(page_layout, at..end, &title, body) {
            headings.push(Heading { level: 1, title, lines: at..end, end: None, replacement: None });
        }
        at = end;
    }
    headings
}

/// The end of the lines that follow the first one closely in the same style.
fn group(page_layout: &LayoutPage, at: usize) -> usize {
    let Some(first) = page_layout.lines.get(at) else { return at + 1 };
    let mut end = at + 1;
    while let (Some(before), Some(line)) = (page_layout.lines.get(end - 1), page_layout.lines.get(end)) {
        let alike = tenths(line.size) == tenths(first.size) && line.is_bold == first.is_bold;
        let furniture = page_layout.furniture.get(end) != page_layout.furniture.get(at);
        if !alike || !is_close(before, line) || furniture || heading_words::depth(&line.text) > 0 {
            break;
        }
        end += 1;
    }
    end
}

fn is_close(before: &Line, line: &Line) -> bool {
    let (Some(above), Some(place)) = (before.place, line.place) else { return false };
    let step = above.bottom - place.bottom;
    step > -0.3 * line.size && step < 1.7 * line.size
}

/// Whether the words and positions of lines allow a heading.
fn may_be(page_layout: &LayoutPage, at: usize, lines: &[Line], title: &str) -> bool {
    let chars = title.chars().count();
    let letters = title.chars().filter(|c| c.is_alphabetic()).count();
    page_layout.furniture.get(at) == Some(&false)
        && lines.len() <= MAX_LINES
        && chars <= MAX_CHARS
        && letters >= 2
        && letters * 2 >= chars
        && !lines.iter().any(Line::has_cells)
        && !heading_words::ends_as_text(title)
        && !heading_words::is_entry(title)
        && !heading_words::is_caption(title)
        && (!blocks::is_item(title) || title.starts_with(char::is_alphanumeric))
        && !is_byline(page_layout, at + lines.len(), title)
        && !shares_row(page_layout, at)
}

/// Whether it names authors or institutions: by its words, or because an address follows.
fn is_byline(page_layout: &LayoutPage, end: usize, title: &str) -> bool {
    let last = page_layout.lines.get(end.saturating_sub(1));
    let address = page_layout.lines.get(end).is_some_and(|next| {
        next.text.contains('@') && last.is_some_and(|last| !last.is_bold && is_close(last, next))
    });
    address || heading_words::is_byline(title)
}

/// Whether the lines are larger than the text, or a single bold line.
fn stands_out(page_layout: &LayoutPage, range: std::ops::Range<usize>, title: &str, body: f32) -> bool {
    let Some(first) = page_layout.lines.get(range.start) else { return false };
    if first.size >= body * LARGER {
        return true;
    }
    let numbered = heading_words::depth(title) > 0;
    let alone = numbered
        || !page_layout.lines.get(range.end).is_some_and(|next| next.is_bold && is_close(first, next));
    first.is_bold
        && first.size >= body * 0.97
        && (range.len() == 1 || numbered && range.len() == 2)
        && title.chars().count() <= MAX_BOLD_CHARS
        && alone
        && !title.starts_with(char::is_lowercase)
        && !(blocks::is_item(title) && title.starts_with(char::is_alphabetic))
}

/// Whether other lines are beside this one.
fn shares_row(page_layout: &LayoutPage, at: usize) -> bool {
    let Some(place) = page_layout.lines.get(at).and_then(|line| line.place) else { return false };
    let near = page_layout.lines.iter().enumerate().skip(at.saturating_sub(2)).take(5);
    let mut others = near.filter(|(other, _)| *other != at).filter_map(|(_, line)| line.place);
    others.any(|other| (other.bottom - place.bottom).abs() < 0.3 * place.height())
}

/// Removes headings that occur too often in the document, and the smaller one of two equal numbered ones, which is an entry
/// of a table of contents.
fn drop_repeated(page_layouts: &[LayoutPage], found: &mut [Vec<Heading>]) {
    let mut occurrences: HashMap<String, (usize, u32)> = HashMap::new();
    for (page_layout, headings) in page_layouts.iter().zip(found.iter()) {
        for heading in headings {
            let (count, largest) = occurrences.entry(words::key(&heading.title)).or_default();
            (*count, *largest) = (*count + 1, (*largest).max(tenths(size(page_layout, heading))));
        }
    }
    for (page_layout, headings) in page_layouts.iter().zip(found) {
        headings.retain(|heading| {
            let Some((count, largest)) = occurrences.get(&words::key(&heading.title)) else { return true };
            let smaller = tenths(size(page_layout, heading)).saturating_add(3) < *largest;
            *count < OFTEN && !(smaller && heading_words::depth(&heading.title) > 0)
        });
    }
}

fn size(page_layout: &LayoutPage, heading: &Heading) -> f32 {
    page_layout.lines.get(heading.lines.start).map_or(0.0, |line| line.size)
}

/// Larger headings get higher levels, but `2.1` is always below `2`.
fn set_levels(page_layouts: &[LayoutPage], found: &mut [Vec<Heading>]) {
    let ranks = ranks(page_layouts, found);
    let rank = |page_layout: &LayoutPage, heading: &Heading| {
        let size = tenths(size(page_layout, heading));
        ranks.iter().position(|rank| rank.abs_diff(size) < 3 || *rank < size).unwrap_or(ranks.len())
    };
    let pairs = || {
        page_layouts
            .iter()
            .zip(found.iter())
            .flat_map(|(page_layout, found)| found.iter().map(move |heading| (page_layout, heading)))
    };
    let chapters = pairs().filter(|(_, heading)| heading_words::depth(&heading.title) == 1);
    let chapter = chapters.map(|(page_layout, heading)| rank(page_layout, heading)).min();
    for (page_layout, headings) in page_layouts.iter().zip(found) {
        for heading in headings {
            let depth = heading_words::depth(&heading.title);
            let least = chapter.filter(|_| depth > 1).map_or(0, |chapter| chapter + depth - 1);
            let level = rank(page_layout, heading).max(least).min(MAX_LEVELS - 1) + 1;
            heading.level = u8::try_from(level).unwrap_or(u8::MAX);
        }
    }
}

/// The sizes of headings, the largest first. Nearly equal sizes count as one.
fn ranks(page_layouts: &[LayoutPage], found: &[Vec<Heading>]) -> Vec<u32> {
    let pairs = page_layouts.iter().zip(found);
    let mut sizes: Vec<u32> = pairs
        .flat_map(|(page_layout, found)| found.iter().map(|heading| tenths(size(page_layout, heading))))
        .collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.dedup_by(|a, b| b.abs_diff(*a) < 3);
    sizes
}

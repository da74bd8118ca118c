//! Finds the headings of a document without an outline: lines that are larger than the text, or bold and short.

use std::collections::{BTreeMap, HashMap};

use super::{
    Heading, LayoutPage,
    evidence::{self, BodyStyle, LARGER},
    front_pages, heading_words, numbering, words,
};
use crate::page::{self, Line};

/// The deepest level.
const MAX_LEVELS: usize = 6;

/// Headings are at most one part in this many of the text. See docs/studies.md#pdf-layout.
const MOST: usize = 3;

/// A line that occurs this often in a document is not a heading. See docs/studies.md#pdf-layout.
const OFTEN: usize = 4;

/// Font sizes, in tenths of a point, that differ by less are one size.
const ONE_SIZE: u32 = 3;

/// Finds the headings of all pages.
pub(super) fn find(page_layouts: &mut [LayoutPage]) {
    let Some(body) = body_style(page_layouts) else { return };
    let numbered = numbering::find(page_layouts);
    let pages = page_layouts.iter().enumerate();
    let mut found: Vec<Vec<Heading>> = pages
        .map(|(page, page_layout)| headings(page_layout, body, &|line| numbered.contains(&(page, line))))
        .collect();
    front_pages::drop_contents(page_layouts, &mut found);
    front_pages::drop_cover(page_layouts, &mut found);
    drop_repeated(page_layouts, &mut found);
    if is_too_much(page_layouts, &found) {
        for (page_layout, headings) in page_layouts.iter().zip(&mut found) {
            headings.retain(|heading| size(page_layout, heading) >= body.size * LARGER);
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

/// The font size and weight of most letters.
fn body_style(page_layouts: &[LayoutPage]) -> Option<BodyStyle> {
    let mut sizes: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    for page_layout in page_layouts {
        for (line, _) in
            page_layout.lines.iter().zip(&page_layout.furniture).filter(|(_, furniture)| !**furniture)
        {
            let (letters, bold) = sizes.entry(tenths(line.size)).or_default();
            *letters += line.text.len();
            *bold += if line.is_bold { line.text.len() } else { 0 };
        }
    }
    sizes.remove(&0);
    let near = |size: u32| size.saturating_sub(ONE_SIZE - 1)..size + ONE_SIZE;
    let weight = |size: u32| sizes.range(near(size)).map(|(_, (letters, _))| letters).sum::<usize>();
    let (size, _) = sizes.iter().max_by_key(|(size, (letters, _))| (weight(**size), *letters))?;
    let bold: usize = sizes.range(near(*size)).map(|(_, (_, bold))| bold).sum();
    Some(BodyStyle { size: *size as f32 / 10.0, is_bold: bold * 2 > weight(*size) })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a size that is too large is cut"
)]
pub(super) fn tenths(size: f32) -> u32 {
    (size * 10.0).round() as u32
}

/// The headings of a page, without their final levels.
fn headings(page_layout: &LayoutPage, body: BodyStyle, is_numbered: &dyn Fn(usize) -> bool) -> Vec<Heading> {
    let mut headings = Vec::new();
    let mut at = 0;
    while at < page_layout.lines.len() {
        let group_end = group(page_layout, at);
        let stack_end = evidence::stack_end(page_layout, at..group_end, body);
        let lines = at..stack_end.unwrap_or(group_end);
        if lines.len() > evidence::MAX_LINES {
            at = group_end;
            continue;
        }
        let title = title(page_layout.lines.get(lines.clone()).unwrap_or_default());
        if evidence::may_be(page_layout, lines.clone(), &title)
            && (is_numbered(at)
                || stack_end.is_some()
                || evidence::stands_out(page_layout, lines.clone(), &title, body))
        {
            headings.push(Heading { level: 1, title, lines, end: None, replacement: None });
        }
        at = group_end;
    }
    headings
}

/// The text of lines as one line without cells.
fn title(lines: &[Line]) -> String {
    page::clean(&lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join(" "))
}

/// The end of the lines that follow the first one closely in the same style.
fn group(page_layout: &LayoutPage, at: usize) -> usize {
    let Some(first) = page_layout.lines.get(at) else { return at + 1 };
    let mut end = at + 1;
    while let (Some(before), Some(line)) = (page_layout.lines.get(end - 1), page_layout.lines.get(end)) {
        let alike = tenths(line.size) == tenths(first.size) && line.is_bold == first.is_bold;
        let furniture = page_layout.furniture.get(end) != page_layout.furniture.get(at);
        if !alike || !evidence::is_close(before, line) || furniture || heading_words::depth(&line.text) > 0 {
            break;
        }
        end += 1;
    }
    end
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
            let smaller = tenths(size(page_layout, heading)).saturating_add(ONE_SIZE) < *largest;
            *count < OFTEN && !(smaller && heading_words::depth(&heading.title) > 0)
        });
    }
}

pub(super) fn size(page_layout: &LayoutPage, heading: &Heading) -> f32 {
    page_layout.lines.get(heading.lines.start).map_or(0.0, |line| line.size)
}

/// Larger headings get higher levels, but `2.1` is always below `2`.
fn set_levels(page_layouts: &[LayoutPage], found: &mut [Vec<Heading>]) {
    let ranks = ranks(page_layouts, found);
    let rank = |page_layout: &LayoutPage, heading: &Heading| {
        let size = tenths(size(page_layout, heading));
        ranks.iter().position(|rank| rank.abs_diff(size) < ONE_SIZE || *rank < size).unwrap_or(ranks.len())
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
    sizes.dedup_by(|a, b| b.abs_diff(*a) < ONE_SIZE);
    sizes
}

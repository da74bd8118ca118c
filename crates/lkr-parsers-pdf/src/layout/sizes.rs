//! Headings of a document without an outline: lines that are larger than the text, or bold and short.

use std::collections::{BTreeMap, HashMap};

use super::{Heading, Sheet, blocks, looks, words};
use crate::page::Line;

/// A line this many times as large as the text is a heading.
const LARGER: f32 = 1.12;

/// Levels deeper than this are one.
const MAX_LEVELS: usize = 6;

/// The longest heading in characters.
const MAX_CHARS: usize = 120;

/// The longest heading that is told by its weight alone.
const MAX_BOLD_CHARS: usize = 80;

/// The most lines of one heading.
const MAX_LINES: usize = 3;

/// Headings are no more than one part in this many of the text.
const MOST: usize = 3;

/// Lines that stand so often in a document are no headings.
const OFTEN: usize = 4;

/// Marks the lines that look like headings.
pub(super) fn find(sheets: &mut [Sheet]) {
    let Some(body) = body_size(sheets) else { return };
    let mut found: Vec<Vec<Heading>> = sheets.iter().map(|sheet| headings(sheet, body)).collect();
    drop_repeated(sheets, &mut found);
    if is_too_much(sheets, &found) {
        for (sheet, headings) in sheets.iter().zip(&mut found) {
            headings.retain(|heading| size(sheet, heading) >= body * LARGER);
        }
    }
    if is_too_much(sheets, &found) {
        return;
    }
    set_levels(sheets, &mut found);
    for (sheet, headings) in sheets.iter_mut().zip(found) {
        sheet.headings = headings;
    }
}

/// Whether so much would be headings that sizes and weights mean something else here.
fn is_too_much(sheets: &[Sheet], found: &[Vec<Heading>]) -> bool {
    let (mut lines, mut text) = (0, 0);
    for line in sheets.iter().flat_map(|sheet| &sheet.lines) {
        (lines, text) = (lines + 1, text + line.text.len());
    }
    let titles: usize = found.iter().flatten().map(|heading| heading.title.len()).sum();
    let title_lines: usize = found.iter().flatten().map(|heading| heading.lines.len()).sum();
    titles * MOST > text || title_lines * 2 > lines
}

/// The size that most letters have.
fn body_size(sheets: &[Sheet]) -> Option<f32> {
    let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
    for sheet in sheets {
        for (line, _) in sheet.lines.iter().zip(&sheet.furniture).filter(|(_, furniture)| !**furniture) {
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

/// The headings of a page, their levels still open.
fn headings(sheet: &Sheet, body: f32) -> Vec<Heading> {
    let mut headings = Vec::new();
    let mut at = 0;
    while at < sheet.lines.len() {
        let end = group(sheet, at);
        let lines = sheet.lines.get(at..end).unwrap_or_default();
        let title = lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join(" ");
        if may_be(sheet, at, lines, &title) && stands_out(sheet, at..end, &title, body) {
            headings.push(Heading { level: 1, title, lines: at..end, end: None, instead: None });
        }
        at = end;
    }
    headings
}

/// Where the lines end that look like the first and follow it closely.
fn group(sheet: &Sheet, at: usize) -> usize {
    let Some(first) = sheet.lines.get(at) else { return at + 1 };
    let mut end = at + 1;
    while let (Some(before), Some(line)) = (sheet.lines.get(end - 1), sheet.lines.get(end)) {
        let alike = tenths(line.size) == tenths(first.size) && line.bold == first.bold;
        let furniture = sheet.furniture.get(end) != sheet.furniture.get(at);
        if !alike || !is_close(before, line) || furniture || looks::depth(&line.text) > 0 {
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

/// Whether the words and the place of lines allow a heading.
fn may_be(sheet: &Sheet, at: usize, lines: &[Line], title: &str) -> bool {
    let chars = title.chars().count();
    let letters = title.chars().filter(|c| c.is_alphabetic()).count();
    sheet.furniture.get(at) == Some(&false)
        && lines.len() <= MAX_LINES
        && chars <= MAX_CHARS
        && letters >= 2
        && letters * 2 >= chars
        && !lines.iter().any(Line::has_cells)
        && !looks::ends_as_text(title)
        && !looks::is_entry(title)
        && !looks::is_caption(title)
        && (!blocks::is_item(title) || title.starts_with(char::is_alphanumeric))
        && !is_byline(sheet, at + lines.len(), title)
        && !shares_row(sheet, at)
}

/// Whether it names authors or where they work: by its words, or because an address follows.
fn is_byline(sheet: &Sheet, end: usize, title: &str) -> bool {
    let last = sheet.lines.get(end.saturating_sub(1));
    let address = sheet.lines.get(end).is_some_and(|next| {
        next.text.contains('@') && last.is_some_and(|last| !last.bold && is_close(last, next))
    });
    address || looks::is_byline(title)
}

/// Whether the lines are larger than the text, or a lone line that is bold.
fn stands_out(sheet: &Sheet, range: std::ops::Range<usize>, title: &str, body: f32) -> bool {
    let Some(first) = sheet.lines.get(range.start) else { return false };
    if first.size >= body * LARGER {
        return true;
    }
    let numbered = looks::depth(title) > 0;
    let alone =
        numbered || !sheet.lines.get(range.end).is_some_and(|next| next.bold && is_close(first, next));
    first.bold
        && first.size >= body * 0.97
        && (range.len() == 1 || numbered && range.len() == 2)
        && title.chars().count() <= MAX_BOLD_CHARS
        && alone
        && !title.starts_with(char::is_lowercase)
        && !(blocks::is_item(title) && title.starts_with(char::is_alphabetic))
}

/// Whether other lines stand beside this one.
fn shares_row(sheet: &Sheet, at: usize) -> bool {
    let Some(place) = sheet.lines.get(at).and_then(|line| line.place) else { return false };
    let near = sheet.lines.iter().enumerate().skip(at.saturating_sub(2)).take(5);
    let mut others = near.filter(|(other, _)| *other != at).filter_map(|(_, line)| line.place);
    others.any(|other| (other.bottom - place.bottom).abs() < 0.3 * place.height())
}

/// Drops what stands in the document too often, and the smaller of two that are numbered and the same: it is the entry
/// of a table of contents.
fn drop_repeated(sheets: &[Sheet], found: &mut [Vec<Heading>]) {
    let mut known: HashMap<String, (usize, u32)> = HashMap::new();
    for (sheet, headings) in sheets.iter().zip(found.iter()) {
        for heading in headings {
            let (count, largest) = known.entry(words::key(&heading.title)).or_default();
            (*count, *largest) = (*count + 1, (*largest).max(tenths(size(sheet, heading))));
        }
    }
    for (sheet, headings) in sheets.iter().zip(found) {
        headings.retain(|heading| {
            let Some((count, largest)) = known.get(&words::key(&heading.title)) else { return true };
            let smaller = tenths(size(sheet, heading)).saturating_add(3) < *largest;
            *count < OFTEN && !(smaller && looks::depth(&heading.title) > 0)
        });
    }
}

fn size(sheet: &Sheet, heading: &Heading) -> f32 {
    sheet.lines.get(heading.lines.start).map_or(0.0, |line| line.size)
}

/// Larger headings stand higher, and `2.1` stands under `2` whatever their sizes.
fn set_levels(sheets: &[Sheet], found: &mut [Vec<Heading>]) {
    let ranks = ranks(sheets, found);
    let rank = |sheet: &Sheet, heading: &Heading| {
        let size = tenths(size(sheet, heading));
        ranks.iter().position(|rank| rank.abs_diff(size) < 3 || *rank < size).unwrap_or(ranks.len())
    };
    let pairs = || {
        sheets
            .iter()
            .zip(found.iter())
            .flat_map(|(sheet, found)| found.iter().map(move |heading| (sheet, heading)))
    };
    let chapters = pairs().filter(|(_, heading)| looks::depth(&heading.title) == 1);
    let chapter = chapters.map(|(sheet, heading)| rank(sheet, heading)).min();
    for (sheet, headings) in sheets.iter().zip(found) {
        for heading in headings {
            let depth = looks::depth(&heading.title);
            let least = chapter.filter(|_| depth > 1).map_or(0, |chapter| chapter + depth - 1);
            let level = rank(sheet, heading).max(least).min(MAX_LEVELS - 1) + 1;
            heading.level = u8::try_from(level).unwrap_or(u8::MAX);
        }
    }
}

/// The sizes of headings, the largest first; sizes that are nearly the same are one.
fn ranks(sheets: &[Sheet], found: &[Vec<Heading>]) -> Vec<u32> {
    let pairs = sheets.iter().zip(found);
    let mut sizes: Vec<u32> =
        pairs.flat_map(|(sheet, found)| found.iter().map(|heading| tenths(size(sheet, heading)))).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.dedup_by(|a, b| b.abs_diff(*a) < 3);
    sizes
}

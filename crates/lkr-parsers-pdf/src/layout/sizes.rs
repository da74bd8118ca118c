//! Headings of a document without an outline: lines that are larger than the text, or bold and short.

use std::collections::BTreeMap;

use super::{Heading, Sheet, blocks};
use crate::page::Line;

/// A line this many times as large as the text is a heading.
const LARGER: f32 = 1.12;

/// Sizes beyond this many are one level.
const MAX_LEVELS: usize = 6;

/// The longest heading in characters.
const MAX_CHARS: usize = 160;

/// The longest heading that is told by its weight alone.
const MAX_BOLD_CHARS: usize = 80;

/// The most lines of one heading.
const MAX_LINES: usize = 3;

/// Headings are no more than one part in this many of the text.
const MOST: usize = 3;

/// Marks the lines that look like headings.
pub(super) fn find(sheets: &mut [Sheet]) {
    let Some(body) = body_size(sheets) else { return };
    let mut found: Vec<Vec<Heading>> = sheets.iter().map(|sheet| headings(sheet, body)).collect();
    if is_too_much(sheets, &found) {
        for (sheet, headings) in sheets.iter().zip(&mut found) {
            headings.retain(|heading| size(sheet, heading) >= body * LARGER);
        }
    }
    if is_too_much(sheets, &found) {
        return;
    }
    let levels = levels(sheets, &found);
    for (sheet, mut headings) in sheets.iter_mut().zip(found) {
        for heading in &mut headings {
            heading.level = levels.get(&tenths(size(sheet, heading))).copied().unwrap_or(1);
        }
        sheet.headings = headings;
    }
}

/// Whether so much would be headings that sizes and weights mean something else here.
fn is_too_much(sheets: &[Sheet], found: &[Vec<Heading>]) -> bool {
    let text: usize = sheets.iter().flat_map(|sheet| &sheet.lines).map(|line| line.text.len()).sum();
    let titles: usize = found.iter().flatten().map(|heading| heading.title.len()).sum();
    titles * MOST > text
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
        if is_heading(sheet, at, end, lines, body) {
            let title = lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join(" ");
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
        if !alike || !is_close(before, line) || sheet.furniture.get(end) != sheet.furniture.get(at) {
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

fn is_heading(sheet: &Sheet, at: usize, end: usize, lines: &[Line], body: f32) -> bool {
    let Some(first) = lines.first() else { return false };
    let chars: usize = lines.iter().map(|line| line.text.chars().count()).sum();
    let letters = lines.iter().flat_map(|line| line.text.chars()).filter(|c| c.is_alphabetic()).count();
    let furniture = sheet.furniture.get(at) == Some(&true);
    let text_like =
        lines.iter().any(Line::has_cells) || lines.last().is_some_and(|line| ends_as_text(&line.text));
    if furniture
        || text_like
        || letters < 2
        || letters * 2 < chars
        || chars > MAX_CHARS
        || lines.len() > MAX_LINES
    {
        return false;
    }
    if first.size >= body * LARGER {
        return true;
    }
    let alone = !sheet.lines.get(end).is_some_and(|next| next.bold && is_close(first, next));
    first.bold
        && first.size >= body * 0.97
        && lines.len() == 1
        && chars <= MAX_BOLD_CHARS
        && alone
        && !shares_row(sheet, at)
        && !first.text.starts_with(char::is_lowercase)
        && !(blocks::is_item(&first.text) && first.text.starts_with(|c: char| !c.is_ascii_digit()))
}

/// Whether other lines stand beside this one.
fn shares_row(sheet: &Sheet, at: usize) -> bool {
    let Some(place) = sheet.lines.get(at).and_then(|line| line.place) else { return false };
    let near = sheet.lines.iter().enumerate().skip(at.saturating_sub(2)).take(5);
    let mut others = near.filter(|(other, _)| *other != at).filter_map(|(_, line)| line.place);
    others.any(|other| (other.bottom - place.bottom).abs() < 0.3 * place.height())
}

fn ends_as_text(text: &str) -> bool {
    text.ends_with(['.', ',', ';', '。', '-'])
}

fn size(sheet: &Sheet, heading: &Heading) -> f32 {
    sheet.lines.get(heading.lines.start).map_or(0.0, |line| line.size)
}

/// The level of every size, the largest first.
fn levels(sheets: &[Sheet], found: &[Vec<Heading>]) -> BTreeMap<u32, u8> {
    let headings =
        sheets.iter().zip(found).flat_map(|(sheet, found)| found.iter().map(|heading| size(sheet, heading)));
    let mut sizes: Vec<u32> = headings.map(tenths).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.dedup_by(|a, b| b.abs_diff(*a) < 3);
    let level = |place: usize| u8::try_from(place.min(MAX_LEVELS - 1) + 1).unwrap_or(u8::MAX);
    sizes.iter().enumerate().map(|(place, size)| (*size, level(place))).collect()
}

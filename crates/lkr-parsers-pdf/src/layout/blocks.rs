//! Builds the blocks of a page: headings, paragraphs, lists and tables.

use lkr_domain::BlockKind;
use lkr_parsers::{Composer, Result};

use super::{Heading, LayoutPage, tables};
use crate::page::Line;

/// The bullets of list items; the last one is that of symbol fonts.
const BULLETS: [char; 14] = ['•', '◦', '▪', '●', '○', '■', '-', '–', '—', '*', '·', '‣', '►', '\u{f0b7}'];

/// Adds the blocks of a page.
pub(super) fn push(composer: &mut Composer, page_layout: &LayoutPage, number: u32) -> Result<()> {
    let page = Some(number);
    let mut at = 0;
    let mut rest = None;
    for heading in &page_layout.headings {
        body(composer, page_layout, at..heading.lines.start, rest.as_ref(), page)?;
        at = heading.lines.end.max(at);
        rest = push_heading(composer, page_layout, heading, page)?;
    }
    body(composer, page_layout, at..page_layout.lines.len(), rest.as_ref(), page)?;
    for (line, _) in page_layout.lines.iter().zip(&page_layout.furniture).filter(|(_, furniture)| **furniture)
    {
        composer.push_furniture(BlockKind::Paragraph, &join_cells(&line.text, " "), page)?;
    }
    Ok(())
}

/// Adds a heading; returns the text after it on its last line.
fn push_heading(
    composer: &mut Composer,
    page_layout: &LayoutPage,
    heading: &Heading,
    page: Option<u32>,
) -> Result<Option<Line>> {
    let lines = page_layout.lines.get(heading.lines.clone()).unwrap_or_default();
    let mut text = lines.iter().map(|line| join_cells(&line.text, " ")).collect::<Vec<_>>().join("\n");
    let mut rest = None;
    if let (Some(last), Some(end)) = (lines.last(), heading.end) {
        let tail = last.text.get(end..).unwrap_or_default();
        text.truncate(text.len().saturating_sub(tail.len()));
        rest = Some(Line { text: tail.trim().to_owned(), is_separate: true, ..last.clone() });
    }
    if let Some(replacement) = &heading.replacement {
        text.clone_from(replacement);
    }
    let kind = BlockKind::Heading { level: heading.level, title: heading.title.clone() };
    composer.push(kind, &text, page)?;
    Ok(rest.filter(|line| !line.text.is_empty()))
}

/// Adds `first` and the lines of `range` that are not furniture.
fn body(
    composer: &mut Composer,
    page_layout: &LayoutPage,
    range: std::ops::Range<usize>,
    first: Option<&Line>,
    page: Option<u32>,
) -> Result<()> {
    let lines = page_layout.lines.get(range.clone()).unwrap_or_default();
    let marks = page_layout.furniture.get(range).unwrap_or_default();
    let lines = lines.iter().zip(marks).filter(|(_, furniture)| !**furniture).map(|(line, _)| line);
    let lines: Vec<&Line> = first.into_iter().chain(lines).collect();
    for (kind, text) in blocks(&lines) {
        composer.push(kind, &text, page)?;
    }
    Ok(())
}

/// The lines as blocks.
fn blocks(lines: &[&Line]) -> Vec<(BlockKind, String)> {
    let mut blocks = Vec::new();
    let line_spacing = line_spacing(lines);
    let mut at = 0;
    for table in tables::find(lines) {
        blocks.extend(paragraphs(lines.get(at..table.header.start).unwrap_or_default(), line_spacing));
        let rows = |range: std::ops::Range<usize>| {
            let rows = lines.get(range).unwrap_or_default().iter();
            rows.map(|line| tables::cells(&line.text).join(" | ")).collect::<Vec<_>>().join("\n")
        };
        let header = rows(table.header);
        blocks.extend((!header.is_empty()).then_some((BlockKind::TableHeader, header)));
        at = table.rows.end;
        blocks.push((BlockKind::Table, rows(table.rows)));
    }
    blocks.extend(paragraphs(lines.get(at..).unwrap_or_default(), line_spacing));
    blocks
}

/// Lines outside of tables as paragraphs and lists.
fn paragraphs(lines: &[&Line], line_spacing: Option<f32>) -> Vec<(BlockKind, String)> {
    let mut blocks: Vec<(BlockKind, String)> = Vec::new();
    let mut before: Option<&Line> = None;
    let mut widest = f32::MIN;
    for line in lines {
        let parted = before.is_none_or(|before| starts_block(before, line, line_spacing, widest));
        let kind = match blocks.last() {
            _ if is_item(&line.text) => BlockKind::List,
            Some((BlockKind::List, _)) if !parted => BlockKind::List,
            _ => BlockKind::Paragraph,
        };
        let text = join_cells(&line.text, " ");
        match blocks.last_mut().filter(|(last, _)| *last == kind && (!parted || kind == BlockKind::List)) {
            Some((_, block)) => {
                block.push('\n');
                block.push_str(&text);
            }
            None => {
                widest = f32::MIN;
                blocks.push((kind, text));
            }
        }
        widest = widest.max(line.place.map_or(f32::MIN, |place| place.right));
        before = Some(line);
    }
    blocks
}

/// The usual line spacing.
pub(super) fn line_spacing(lines: &[&Line]) -> Option<f32> {
    let pairs = lines.iter().zip(lines.iter().skip(1));
    let mut steps: Vec<f32> = pairs
        .filter_map(|(before, line)| {
            let step = before.place?.bottom - line.place?.bottom;
            (step > 0.5 * line.size && step < 4.0 * line.size.max(1.0)).then_some(step)
        })
        .collect();
    steps.sort_by(f32::total_cmp);
    steps.get(steps.len() / 3).copied()
}

/// Whether `line` starts a new block.
fn starts_block(before: &Line, line: &Line, line_spacing: Option<f32>, widest: f32) -> bool {
    if line.is_separate || (before.size > 0.0 && (line.size / before.size - 1.0).abs() > 0.17) {
        return true;
    }
    let (Some(above), Some(place)) = (before.place, line.place) else { return false };
    let size = line.size.max(1.0);
    let step = above.bottom - place.bottom;
    if step < -0.3 * size {
        return !continues_sentence(&before.text, &line.text);
    }
    if step > 1.35 * line_spacing.unwrap_or(1.3 * size) && step > 1.1 * size {
        return true;
    }
    let indent = place.left - above.left;
    let short = above.right < widest - 3.0 * size;
    indent > 0.8 * size && indent < 6.0 * size && (short || ends_sentence(&before.text))
}

/// Whether a sentence continues in the next column or page.
fn continues_sentence(before: &str, line: &str) -> bool {
    !ends_sentence(before) && line.chars().next().is_some_and(char::is_lowercase)
}

/// Whether a sentence may end here.
fn ends_sentence(text: &str) -> bool {
    text.ends_with(['.', '!', '?', ':', ';', '"', '”', '»', ')', '。', '！', '？', '…'])
}

/// Whether a line starts a list item.
pub(super) fn is_item(text: &str) -> bool {
    let Some((mark, rest)) = text.split_once([' ', '\t']) else { return false };
    let bullet = mark.chars().count() == 1 && mark.starts_with(BULLETS);
    bullet && rest.contains(char::is_alphanumeric) || is_number(mark)
}

/// Whether a word is a number of a list item: `3.`, `b)` or `(iv)`.
fn is_number(mark: &str) -> bool {
    let inner = mark.strip_prefix('(').unwrap_or(mark);
    let Some(inner) = inner.strip_suffix(')').or_else(|| inner.strip_suffix('.')) else { return false };
    let digits = !inner.is_empty() && inner.len() <= 3 && inner.chars().all(|c| c.is_ascii_digit());
    let letter = mark.ends_with(')') && inner.len() == 1 && inner.chars().all(|c| c.is_ascii_alphabetic());
    let roman = mark.starts_with('(') && !inner.is_empty() && inner.chars().all(|c| "ivx".contains(c));
    digits || letter || roman
}

/// The cells of a line, joined by `between`.
fn join_cells(text: &str, between: &str) -> String {
    text.replace('\t', between)
}

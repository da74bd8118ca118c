//! The evidence that lines are a heading: their words, their style beside the text's, and what is around them.

use std::ops::Range;

use super::{LayoutPage, blocks, heading_words};
use crate::page::Line;

/// A line is a heading from this many times the size of the text on. See docs/studies.md#pdf-layout.
pub(super) const LARGER: f32 = 1.12;

/// Most characters of a heading.
const MAX_CHARS: usize = 120;

/// Most characters of a heading that is only bold.
const MAX_BOLD_CHARS: usize = 80;

/// Most lines of a heading.
const MAX_LINES: usize = 3;

/// The style of most of the text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BodyStyle {
    pub(super) size: f32,
    pub(super) is_bold: bool,
}

/// Whether a line follows another one at the distance of lines of one paragraph.
pub(super) fn is_close(before: &Line, line: &Line) -> bool {
    let (Some(above), Some(place)) = (before.place, line.place) else { return false };
    let step = above.bottom - place.bottom;
    step > -0.3 * line.size && step < 1.7 * line.size
}

/// Whether the words and positions of lines allow a heading.
pub(super) fn may_be(page_layout: &LayoutPage, at: usize, lines: &[Line], title: &str) -> bool {
    let chars = title.chars().count();
    let letters = title.chars().filter(|c| c.is_alphabetic()).count();
    page_layout.furniture.get(at) == Some(&false)
        && lines.len() <= MAX_LINES
        && chars <= MAX_CHARS
        && letters >= 2
        && letters * 2 >= chars
        && !lines.iter().any(Line::has_cells)
        && heading_words::has_two_letters(title)
        && !heading_words::ends_as_text(title)
        && !heading_words::is_statement(title)
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
pub(super) fn stands_out(
    page_layout: &LayoutPage,
    range: Range<usize>,
    title: &str,
    body: BodyStyle,
) -> bool {
    let Some(first) = page_layout.lines.get(range.start) else { return false };
    if first.size >= body.size * LARGER {
        return first.is_bold && !body.is_bold || heading_words::has_long_word(title);
    }
    let numbered = heading_words::depth(title) > 0;
    let next = page_layout.lines.get(range.end);
    let close_to = |line: &Line| is_close(first, line);
    let alone = numbered || !next.is_some_and(|next| next.is_bold && close_to(next));
    first.is_bold
        && !first.is_mixed
        && !body.is_bold
        && first.size >= body.size * 0.97
        && (range.len() == 1 || numbered && range.len() == 2)
        && title.chars().count() <= MAX_BOLD_CHARS
        && alone
        && !title.starts_with(char::is_lowercase)
        && !(blocks::is_item(title) && title.starts_with(char::is_alphabetic))
        && !runs_on(page_layout, range.end)
        && !is_in_table(page_layout, &range)
}

/// Whether a sentence that begins in bold letters continues in the line at `end`.
fn runs_on(page_layout: &LayoutPage, end: usize) -> bool {
    let last = end.checked_sub(1).and_then(|last| page_layout.lines.get(last));
    let (Some(last), Some(next)) = (last, page_layout.lines.get(end)) else { return false };
    !next.has_cells() && is_close(last, next) && next.text.starts_with(char::is_lowercase)
}

/// Whether a row of cells is directly above or below the lines.
fn is_in_table(page_layout: &LayoutPage, range: &Range<usize>) -> bool {
    let line = |at: Option<usize>| at.and_then(|at| page_layout.lines.get(at));
    let is_row = |above: Option<&Line>, below: Option<&Line>, row: Option<&Line>| {
        row.is_some_and(Line::has_cells)
            && above.zip(below).is_some_and(|(above, below)| is_close(above, below))
    };
    let (before, first) = (line(range.start.checked_sub(1)), line(Some(range.start)));
    let (last, after) = (line(range.end.checked_sub(1)), line(Some(range.end)));
    is_row(before, first, before) || is_row(last, after, after)
}

/// Whether other lines are beside this one.
fn shares_row(page_layout: &LayoutPage, at: usize) -> bool {
    let Some(place) = page_layout.lines.get(at).and_then(|line| line.place) else { return false };
    let near = page_layout.lines.iter().enumerate().skip(at.saturating_sub(2)).take(5);
    let mut others = near.filter(|(other, _)| *other != at).filter_map(|(_, line)| line.place);
    others.any(|other| (other.bottom - place.bottom).abs() < 0.3 * place.height())
}

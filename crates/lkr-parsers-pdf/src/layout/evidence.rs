//! The evidence that lines are a heading: their words, their style beside the text's, and what is around them.

use std::ops::Range;

use super::{LayoutPage, blocks, heading_words};
use crate::page::{Line, Rect};

/// A line is a heading from this many times the size of the text on. See docs/studies.md#pdf-layout.
pub(super) const LARGER: f32 = 1.12;

/// Most characters of a heading.
const MAX_CHARS: usize = 120;

/// Most characters of a heading that is only bold.
const MAX_BOLD_CHARS: usize = 80;

/// Most lines of a heading.
pub(super) const MAX_LINES: usize = 3;

/// Most characters of a line of a [stack](stack_end).
const MAX_STACK_CHARS: usize = 70;

/// The rows of a table begin at most this many lines below its title.
const MAX_TABLE_LINES: usize = 4;

/// The middle of a centred line differs from that of the page's text by at most this part of its width.
const MAX_OFF_AXIS: f32 = 0.06;

/// Most characters of a label before a heading, such as `Item 1A.`
const MAX_LABEL_CHARS: usize = 10;

/// What conformed copies have in place of a signature.
const SIGNATURE: &str = "/s/";

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
pub(super) fn may_be(page_layout: &LayoutPage, range: Range<usize>, title: &str) -> bool {
    let (at, lines) = (range.start, page_layout.lines.get(range).unwrap_or_default());
    let chars = title.chars().count();
    let letters = title.chars().filter(|c| c.is_alphabetic()).count();
    page_layout.furniture.get(at) == Some(&false)
        && chars <= MAX_CHARS
        && letters >= 2
        && letters * 2 >= chars
        && !has_cells(lines)
        && heading_words::has_two_letters(title)
        && !heading_words::ends_as_text(title)
        && !heading_words::is_statement(title)
        && !heading_words::is_entry(title)
        && !heading_words::is_caption(title)
        && (!blocks::is_item(title) || title.starts_with(char::is_alphanumeric))
        && !is_byline(page_layout, at + lines.len(), title)
        && !is_signatory(page_layout, at, title)
        && !shares_row(page_layout, at, 2)
}

/// Whether wide gaps divide the lines into cells, apart from the gap behind a label such as `Item 1A.`
fn has_cells(lines: &[Line]) -> bool {
    let behind_label = |line: &Line| {
        line.text.split_once('\t').is_some_and(|(label, rest)| {
            label.chars().count() <= MAX_LABEL_CHARS
                && label.ends_with(['.', ':'])
                && label.contains(|c: char| c.is_ascii_digit())
                && !rest.contains('\t')
        })
    };
    let (first, others) = (lines.first(), lines.get(1..).unwrap_or_default());
    first.is_some_and(|first| first.has_cells() && !behind_label(first)) || others.iter().any(Line::has_cells)
}

/// Whether it begins with a name that a signature above has, too.
fn is_signatory(page_layout: &LayoutPage, at: usize, title: &str) -> bool {
    let above = page_layout.lines.get(at.saturating_sub(2)..at).unwrap_or_default();
    let name = title.split(' ').next().unwrap_or_default().to_lowercase();
    above.iter().any(|line| {
        line.text.split_once(SIGNATURE).is_some_and(|(_, names)| names.to_lowercase().contains(&name))
    })
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
    let next = next_of_text(page_layout, range.end);
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

/// The first line from `at` on that is no furniture.
fn next_of_text(page_layout: &LayoutPage, at: usize) -> Option<&Line> {
    let mut lines = page_layout.lines.iter().zip(&page_layout.furniture).skip(at);
    lines.find(|(_, furniture)| !**furniture).map(|(line, _)| line)
}

/// The end of a stack of bold lines: the title of a table on more than one line, such as the name of a company above that of
/// its statement, up to a line in brackets.
pub(super) fn stack_end(page_layout: &LayoutPage, range: Range<usize>, body: BodyStyle) -> Option<usize> {
    let lines = page_layout.lines.get(range.clone())?;
    let count = lines.iter().take_while(|line| !line.text.starts_with(['(', '['])).count();
    let stack = lines.get(..count)?;
    let is_part = |line: &Line| {
        line.is_bold
            && !line.is_mixed
            && line.size >= body.size * 0.97
            && line.text.chars().count() <= MAX_STACK_CHARS
            && !line.text.starts_with(char::is_lowercase)
            && !line.text.ends_with([',', ':', ';'])
            && !heading_words::is_labelled(&line.text)
            && (!line.text.ends_with('.') || heading_words::ends_with_abbreviation(&line.text))
    };
    let end = range.start + count;
    let is_titled = range.len() > 1
        && !body.is_bold
        && (1..=MAX_LINES).contains(&count)
        && stack.iter().all(is_part)
        && (is_centred(page_layout, stack)
            || are_at_left(page_layout, stack) && (count < lines.len() || is_above_table(page_layout, end)))
        && !is_below_row(page_layout, range.start)
        && range.take(count).all(|at| !shares_row(page_layout, at, page_layout.lines.len()));
    is_titled.then_some(end)
}

/// Whether lines are centred on the text of the page and narrower than it.
fn is_centred(page_layout: &LayoutPage, lines: &[Line]) -> bool {
    let Some(text) = spread(&page_layout.lines) else { return false };
    let axis = |place: Rect| f32::midpoint(place.left, place.right);
    let tolerance = MAX_OFF_AXIS * (text.right - text.left);
    lines.iter().all(|line| {
        line.place.is_some_and(|place| {
            (axis(place) - axis(text)).abs() < tolerance && place.left - text.left > 2.0 * line.size
        })
    })
}

/// Whether lines begin at the left edge of the page's text.
fn are_at_left(page_layout: &LayoutPage, lines: &[Line]) -> bool {
    let Some(text) = spread(&page_layout.lines) else { return false };
    lines.iter().all(|line| line.place.is_some_and(|place| place.left - text.left < 2.0 * line.size))
}

/// The rectangle around lines.
fn spread(lines: &[Line]) -> Option<Rect> {
    lines.iter().filter_map(|line| line.place).reduce(Rect::union)
}

/// Whether rows of cells begin shortly below a line.
fn is_above_table(page_layout: &LayoutPage, end: usize) -> bool {
    let below = page_layout.lines.iter().skip(end).take(MAX_TABLE_LINES);
    below.filter(|line| line.has_cells()).count() > 1
}

/// Whether a sentence that begins in bold letters continues in the line at `end`.
fn runs_on(page_layout: &LayoutPage, end: usize) -> bool {
    let last = end.checked_sub(1).and_then(|last| page_layout.lines.get(last));
    let (Some(last), Some(next)) = (last, page_layout.lines.get(end)) else { return false };
    !next.has_cells() && is_close(last, next) && next.text.starts_with(char::is_lowercase)
}

/// Whether a row of cells is directly above or below the lines.
fn is_in_table(page_layout: &LayoutPage, range: &Range<usize>) -> bool {
    let last = range.end.checked_sub(1).and_then(|last| page_layout.lines.get(last));
    let after = page_layout.lines.get(range.end);
    let is_above = last.zip(after).is_some_and(|(last, after)| after.has_cells() && is_close(last, after));
    is_above || is_below_row(page_layout, range.start)
}

/// Whether a row of cells is directly above a line.
fn is_below_row(page_layout: &LayoutPage, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| page_layout.lines.get(before));
    before
        .zip(page_layout.lines.get(at))
        .is_some_and(|(before, line)| before.has_cells() && is_close(before, line))
}

/// Whether other lines, of at most so many before and after it, are beside this one.
fn shares_row(page_layout: &LayoutPage, at: usize, near: usize) -> bool {
    let Some(place) = page_layout.lines.get(at).and_then(|line| line.place) else { return false };
    let near = page_layout.lines.iter().enumerate().skip(at.saturating_sub(near)).take(2 * near + 1);
    let mut others = near.filter(|(other, _)| *other != at).filter_map(|(_, line)| line.place);
    others.any(|other| (other.bottom - place.bottom).abs() < 0.3 * place.height())
}

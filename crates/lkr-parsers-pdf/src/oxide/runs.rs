use std::borrow::Cow;

use pdf_oxide::layout::TextSpan;

use crate::{
    columns,
    lopdf::{LEAST_SIZE, PALE},
    page::{Line, Rect},
    runs::{self, Run},
};

/// How many times as high as wide a font is, by the mean width of its letters.
const HEIGHT_OF_LETTER: f32 = 2.0;

/// Baselines closer than this part of the font size are one row.
const SAME_ROW: f32 = 0.5;

/// The lines of a page, followed by those of its annotations. On a page that was not checked for hidden text, text in a
/// tiny font is left out. `vertical` returns whether text on vertical lines runs upward, if that is known.
pub(super) fn lines(
    spans: &[TextSpan],
    is_checked: bool,
    vertical: impl FnOnce() -> Option<bool>,
) -> Vec<Line> {
    let shown = spans.iter().filter(|span| is_checked || !is_tiny(span));
    let (notes, text): (Vec<&TextSpan>, Vec<&TextSpan>) = shown.partition(|span| is_note(span));
    let (turned, text): (Vec<&TextSpan>, Vec<&TextSpan>) =
        text.into_iter().partition(|span| is_turned_upright(span));
    let columns = by_columns(text.iter().copied().filter(|span| span.wmode == 1).collect());
    let has_columns = are_columns(&columns);
    let text = text.into_iter().filter(|span| span.wmode == 0 || !has_columns);
    let (sideways, text): (Vec<&TextSpan>, Vec<&TextSpan>) = text.partition(|span| is_on_vertical_line(span));
    let mut runs: Vec<Run<'_>> = text.into_iter().chain(by_rows(turned)).map(run).collect();
    runs.extend(columns.into_iter().filter(|_| has_columns).map(column_run));
    runs.extend(sideways_runs(sideways, vertical));
    let mut lines = runs::lines(columns::join_split_lines(runs).into_iter());
    let notes = runs::lines(notes.into_iter().map(run));
    lines.extend(notes.into_iter().map(|line| Line { size: 0.0, is_bold: false, ..line }));
    lines
}

/// Whether text that the content turns is upright, because the page is displayed rotated. The engine reports where the page
/// shows it, but orders it by where the content sets it.
pub(super) fn is_turned_upright(span: &TextSpan) -> bool {
    let applied = span.page_rotation_applied as f32;
    applied != 0.0 && span.rotation_degrees != 0.0 && is_level(span.rotation_degrees - applied)
}

/// The visible part of a page in the coordinates of most spans. `frame` is that of a page that is not rotated.
pub(super) fn shown_frame(spans: &[TextSpan], frame: Rect) -> Rect {
    let is_on_its_side = |span: &&TextSpan| is_turned_upright(span) && span.page_rotation_applied % 180 != 0;
    if spans.iter().filter(is_on_its_side).count() * 2 <= spans.len() {
        return frame;
    }
    let width = frame.right - frame.left;
    Rect { right: frame.left + frame.height(), top: frame.bottom + width, ..frame }
}

/// Whether an angle in degrees is that of a horizontal line from left to right.
fn is_level(angle: f32) -> bool {
    angle.rem_euclid(360.0).min((-angle).rem_euclid(360.0)) < 1.0
}

/// Spans row by row from the top, and from left to right in a row.
fn by_rows(mut spans: Vec<&TextSpan>) -> Vec<&TextSpan> {
    spans.sort_by(|a, b| b.page_bbox().y.total_cmp(&a.page_bbox().y));
    let is_same_row = |a: &&TextSpan, b: &&TextSpan| {
        (a.page_bbox().y - b.page_bbox().y).abs() < SAME_ROW * a.font_size.min(b.font_size)
    };
    spans.chunk_by_mut(is_same_row).for_each(|row| {
        row.sort_by(|a, b| a.page_bbox().x.total_cmp(&b.page_bbox().x));
    });
    spans
}

/// Spans of vertical writing column by column from the right, and downward in a column. The engine pads them with blanks that
/// are elsewhere.
fn by_columns(mut spans: Vec<&TextSpan>) -> Vec<&TextSpan> {
    spans.retain(|span| !span.text.trim().is_empty());
    spans.sort_by(|a, b| b.bbox.x.total_cmp(&a.bbox.x));
    let is_same_column =
        |a: &&TextSpan, b: &&TextSpan| (a.bbox.x - b.bbox.x).abs() < SAME_ROW * a.font_size.min(b.font_size);
    spans.chunk_by_mut(is_same_column).for_each(|column| {
        column.sort_by(|a, b| b.bbox.y.total_cmp(&a.bbox.y));
    });
    spans
}

/// Whether most spans of vertical writing follow each other in columns. Some programs set horizontal text so, letter by letter.
fn are_columns(columns: &[&TextSpan]) -> bool {
    let follows = |pair: &&[&TextSpan]| {
        let [above, below] = pair else { return false };
        let gap = column_place(above).bottom - column_place(below).top;
        gap.abs() < SAME_ROW * above.font_size && (above.bbox.x - below.bbox.x).abs() < above.font_size
    };
    columns.windows(2).filter(follows).count() * 2 > columns.len().saturating_sub(1) || columns.len() == 1
}

/// The place of a span of vertical writing: its width is the way down from its upper edge, as a negative number.
fn column_place(span: &TextSpan) -> Rect {
    let area = span.bbox;
    Rect { left: area.x, bottom: area.y + area.width, right: area.x + size(span), top: area.y }
}

fn column_run(span: &TextSpan) -> Run<'_> {
    Run { place: column_place(span), ..styled(span, size(span)) }
}

/// Whether a span is on a vertical line, of letters that lie on their side.
fn is_on_vertical_line(span: &TextSpan) -> bool {
    is_level(span.rotation_degrees.abs() - 90.0)
}

/// The runs of spans on vertical lines. The engine takes up for down if the page is mirrored and the text again; then it reads
/// the lines, and the pieces of each line, in the opposite order.
fn sideways_runs<'a>(spans: Vec<&'a TextSpan>, vertical: impl FnOnce() -> Option<bool>) -> Vec<Run<'a>> {
    let upward = spans.iter().filter(|span| span.rotation_degrees > 0.0).count();
    // Both directions on one page are rare, and are left to the engine.
    let is_one = !spans.is_empty() && (upward == 0 || upward == spans.len());
    let is_opposite = is_one && vertical().is_some_and(|is_upward| is_upward != (upward > 0));
    if !is_opposite {
        return spans.into_iter().map(run).collect();
    }
    let turned = |span: &'a TextSpan| {
        let (run, area) = (run(span), span.page_bbox());
        let (x, y) = (span.bbox.x, span.bbox.y);
        // Half a turn about the origin.
        let place = Rect {
            left: 2.0 * x - area.x - area.width,
            bottom: 2.0 * y - area.y - area.height,
            right: 2.0 * x - area.x,
            top: 2.0 * y - area.y,
        };
        Run { place, ..run }
    };
    spans.into_iter().rev().map(turned).collect()
}

/// Whether most letters have a tiny font size, as in fonts of Type 3 whose letters have another unit. The engine measures gaps
/// between words by that size.
pub(super) fn are_mostly_tiny(spans: &[TextSpan]) -> bool {
    let letters =
        |spans: &mut dyn Iterator<Item = &TextSpan>| -> usize { spans.map(|span| span.text.len()).sum() };
    letters(&mut spans.iter().filter(|span| is_tiny(span))) * 2 > letters(&mut spans.iter())
}

/// Whether a span is text of an annotation. Its font is unknown, and its size is a guess.
fn is_note(span: &TextSpan) -> bool {
    span.font_name.is_empty()
}

/// How many spans have a tiny font.
pub(super) fn tiny(spans: &[TextSpan]) -> usize {
    spans.iter().filter(|span| is_tiny(span) && !span.text.trim().is_empty()).count()
}

/// Whether the font size is below a point. Such text is meant for machines, unless its font is of Type 3, whose letters have
/// any size at any font size.
fn is_tiny(span: &TextSpan) -> bool {
    span.font_size > 0.0 && span.font_size < LEAST_SIZE
}

/// The font size. Tiny text that is visible has a font of Type 3, and its size is estimated from its width.
fn size(span: &TextSpan) -> f32 {
    if !is_tiny(span) {
        return span.font_size;
    }
    let letters = span.text.chars().count().max(1);
    (span.bbox.width.max(span.bbox.height) / letters as f32 * HEIGHT_OF_LETTER).max(span.font_size)
}

/// Whether the font is bold. The engine also guesses it from the thickness of stems, which is wrong for Computer Modern,
/// whose names tell the weight.
fn is_bold(span: &TextSpan) -> bool {
    let name = span.font_name.rsplit('+').next().unwrap_or_default();
    let is_computer_modern =
        (name.starts_with("CM") || name.starts_with("SF")) && name.ends_with(|c: char| c.is_ascii_digit());
    runs::is_bold_name(name) || (span.font_weight.is_bold() && !is_computer_modern)
}

fn run(span: &TextSpan) -> Run<'_> {
    let (area, size) = (span.page_bbox(), size(span));
    // The box of a Type 3 font is as low as its font size.
    let height = if is_tiny(span) { area.height.max(size) } else { area.height };
    let place = Rect { left: area.x, bottom: area.y, right: area.x + area.width, top: area.y + height };
    Run { place, ..styled(span, size) }
}

/// The text and style of a span.
fn styled(span: &TextSpan, size: f32) -> Run<'_> {
    Run {
        text: Cow::Borrowed(&span.text),
        place: Rect { left: 0.0, bottom: 0.0, right: 0.0, top: 0.0 },
        size,
        is_bold: is_bold(span),
        // The position of vertical text is too inexact to find its background.
        is_pale: span.color.r.min(span.color.g).min(span.color.b) > PALE && span.wmode == 0,
        is_undrawn: false,
        is_horizontal: span.wmode == 0 && (is_level(span.rotation_degrees) || is_turned_upright(span)),
    }
}

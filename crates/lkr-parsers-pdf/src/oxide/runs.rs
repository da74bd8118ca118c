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

/// The lines of a page, followed by those of its annotations. On a page that was not checked for hidden text, text in a
/// tiny font is left out.
pub(super) fn lines(spans: &[TextSpan], is_checked: bool) -> Vec<Line> {
    let shown = spans.iter().filter(|span| is_checked || !is_tiny(span));
    let (notes, text): (Vec<&TextSpan>, Vec<&TextSpan>) = shown.partition(|span| is_note(span));
    let mut lines = runs::lines(columns::join_split_lines(text.into_iter().map(run).collect()).into_iter());
    let notes = runs::lines(notes.into_iter().map(run));
    lines.extend(notes.into_iter().map(|line| Line { size: 0.0, is_bold: false, ..line }));
    lines
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
    let (across, along, size) = (span.bbox.width, span.bbox.height, size(span));
    // The box of a Type 3 font is as low as its font size.
    let along = if is_tiny(span) { along.max(size) } else { along };
    Run {
        text: Cow::Borrowed(&span.text),
        place: Rect {
            left: span.bbox.x,
            bottom: span.bbox.y,
            right: span.bbox.x + across,
            top: span.bbox.y + along,
        },
        size,
        is_bold: is_bold(span),
        // The position of vertical text is too inexact to find its background.
        is_pale: span.color.r.min(span.color.g).min(span.color.b) > PALE && span.wmode == 0,
        is_undrawn: false,
        is_horizontal: span.rotation_degrees.abs() < 1.0 && span.wmode == 0,
    }
}

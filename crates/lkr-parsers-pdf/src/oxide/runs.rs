use std::borrow::Cow;

use pdf_oxide::layout::TextSpan;

use crate::{
    columns,
    lopdf::PALE,
    page::{Line, Rect},
    runs::{self, Run},
};

/// The lines of a page, followed by those of its annotations.
pub(super) fn lines(spans: &[TextSpan]) -> Vec<Line> {
    let shown = spans.iter().filter(|span| is_shown(span));
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

/// How many spans are too small to read.
pub(super) fn tiny(spans: &[TextSpan]) -> usize {
    spans.iter().filter(|span| !is_shown(span) && !span.text.trim().is_empty()).count()
}

/// Whether the font size is readable. Smaller text is meant for machines.
fn is_shown(span: &TextSpan) -> bool {
    span.font_size.is_nan() || span.font_size <= 0.0 || span.font_size >= 1.0
}

fn run(span: &TextSpan) -> Run<'_> {
    let (across, along) = (span.bbox.width, span.bbox.height);
    Run {
        text: Cow::Borrowed(&span.text),
        place: Rect {
            left: span.bbox.x,
            bottom: span.bbox.y,
            right: span.bbox.x + across,
            top: span.bbox.y + along,
        },
        size: span.font_size,
        is_bold: span.font_weight.is_bold() || span.font_name.contains("Bold"),
        // The position of vertical text is too inexact to find its background.
        is_pale: span.color.r.min(span.color.g).min(span.color.b) > PALE && span.wmode == 0,
        is_undrawn: false,
        is_horizontal: span.rotation_degrees.abs() < 1.0 && span.wmode == 0,
    }
}

use std::borrow::Cow;

use pdf_oxide::layout::TextSpan;

use crate::{
    page::{Line, Rect},
    runs::{self, Run},
};

/// Colours of which all parts are above this hardly show on white.
const PALE: f32 = 0.93;

/// The lines that the spans of a page make.
pub(super) fn lines(spans: &[TextSpan]) -> Vec<Line> {
    runs::lines(spans.iter().filter(|span| is_shown(span)).map(run))
}

/// How many spans nobody can read.
pub(super) fn tiny(spans: &[TextSpan]) -> usize {
    spans.iter().filter(|span| !is_shown(span) && !span.text.trim().is_empty()).count()
}

/// Whether letters of this size can be read: text that is smaller is there for machines alone.
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
        bold: span.font_weight.is_bold() || span.font_name.contains("Bold"),
        pale: span.color.r.min(span.color.g).min(span.color.b) > PALE,
        undrawn: false,
        upright: span.rotation_degrees.abs() < 1.0 && span.wmode == 0,
    }
}

use pdfium_render::prelude::{PdfColor, PdfPageText, PdfPageTextChar, PdfPageTextRenderMode};

use super::rect;
use crate::{
    lopdf::LEAST_SIZE,
    page::{Line, Rect},
    runs::{CELL_GAP, Letters, clean_cells, is_bold_name},
};

/// What PDFium returns for a hyphen at the end of a line.
const HYPHENS: [u32; 2] = [0x02, 0xfffe];

/// Colours with all components above this are nearly invisible on white.
const PALE: u8 = 237;

/// A lower alpha is nearly invisible.
const CLEAR: u8 = 16;

/// The lines of a page, as PDFium breaks them, without text outside of the page.
pub(super) fn lines(text: &PdfPageText<'_>, frame: Option<Rect>, is_checked: bool) -> Vec<Line> {
    let mut reader = LineReader {
        frame,
        is_checked,
        lines: vec![],
        open: LineBuilder::default(),
        is_break: false,
        decoder: CharDecoder::default(),
    };
    for char in text.chars().iter() {
        reader.char(&char);
    }
    reader.lines.extend(reader.open.close());
    reader.lines
}

struct LineReader {
    frame: Option<Rect>,
    /// Whether the page was checked for hidden text.
    is_checked: bool,
    lines: Vec<Line>,
    open: LineBuilder,
    /// Whether PDFium has broken the line here.
    is_break: bool,
    decoder: CharDecoder,
}

/// Decodes the code units that PDFium returns one by one.
#[derive(Default)]
pub(super) struct CharDecoder {
    /// A high surrogate that waits for its low surrogate.
    high_surrogate: Option<u16>,
}

impl CharDecoder {
    /// The character of a code unit, or of a surrogate pair. A hyphen at the end of a line is one.
    pub(super) fn decode(&mut self, code: u32) -> Option<char> {
        if HYPHENS.contains(&code) {
            return Some('-');
        }
        let unit = u16::try_from(code).ok();
        if let Some(unit) = unit.filter(|unit| (0xd800..0xdc00).contains(unit)) {
            self.high_surrogate = Some(unit);
            return None;
        }
        match (self.high_surrogate.take(), unit) {
            (Some(high_surrogate), Some(low)) => char::decode_utf16([high_surrogate, low]).next()?.ok(),
            _ => Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }
}

impl LineReader {
    fn char(&mut self, char: &PdfPageTextChar<'_>) {
        match char.unicode_value() {
            0x0a | 0x0d => self.is_break = true,
            code if HYPHENS.contains(&code) => {
                self.open.text.push('-');
                self.is_break = true;
            }
            code => {
                if let Some(c) = self.decoder.decode(code) {
                    self.add(char, c);
                }
            }
        }
    }

    fn add(&mut self, char: &PdfPageTextChar<'_>, c: char) {
        if c.is_whitespace() {
            return self.open.space();
        }
        let place = char.loose_bounds().ok().map(|bounds| rect(&bounds));
        if place.zip(self.frame).is_some_and(|(place, frame)| !place.is_in(frame)) {
            return;
        }
        let is_break = std::mem::take(&mut self.is_break) && !self.open.continues_rotated_line(char, place);
        if is_break {
            self.lines.extend(std::mem::take(&mut self.open).close());
        }
        let mut style = *self.open.word.get_or_insert_with(|| style(char, self.is_checked));
        if style.size > 0.0 && style.size < LEAST_SIZE {
            if !self.is_checked {
                return;
            }
            // Visible letters of a tiny font are of Type 3 and have any size.
            style.size = place.map_or(style.size, |place| (place.top - place.bottom).max(style.size));
        }
        if !self.open.is_alike(style) {
            let separator = if self.open.text.ends_with(' ') { " " } else { "" };
            self.lines.extend(std::mem::take(&mut self.open).close());
            (self.open.word, self.open.separator) = (Some(style), Some(separator));
        }
        self.open.push(char, c, place, style);
    }
}

/// A line that the next text may continue.
#[derive(Default)]
struct LineBuilder {
    text: String,
    place: Option<Rect>,
    last: Option<Rect>,
    letters: Letters,
    /// The style of the current word.
    word: Option<Style>,
    /// The style of the first word.
    first: Option<Style>,
    is_rotated: bool,
    separator: Option<&'static str>,
}

/// The style of a word.
#[derive(Clone, Copy, Default)]
struct Style {
    size: f32,
    is_bold: bool,
    is_pale: bool,
    is_undrawn: bool,
}

impl LineBuilder {
    fn space(&mut self) {
        self.word = None;
        self.text.push(' ');
    }

    /// Whether text in this style has the same visibility as the line.
    fn is_alike(&self, style: Style) -> bool {
        self.first.is_none_or(|first| first.is_pale == style.is_pale && first.is_undrawn == style.is_undrawn)
    }

    fn push(&mut self, char: &PdfPageTextChar<'_>, c: char, place: Option<Rect>, style: Style) {
        if self.first.is_none() {
            self.first = Some(style);
            self.is_rotated = is_rotated(char);
        }
        if let (Some(last), Some(place)) = (self.last, place)
            && place.left - last.right > CELL_GAP * style.size
        {
            self.text.push('\t');
        }
        self.text.push(c);
        self.letters.add(style.size, style.is_bold, 1);
        if let Some(place) = place {
            self.place = Some(self.place.map_or(place, |line| line.union(place)));
            self.last = Some(place);
        }
    }

    /// Whether the line continues in spite of a break: PDFium breaks rotated lines after every letter.
    fn continues_rotated_line(&self, char: &PdfPageTextChar<'_>, place: Option<Rect>) -> bool {
        let (Some(last), Some(place)) = (self.last, place) else { return false };
        let is_separate = (place.bottom - last.top).max(last.bottom - place.top);
        let size = last.right - last.left;
        self.is_rotated
            && is_rotated(char)
            && (place.left - last.left).abs() < 0.5 * size
            && is_separate < 0.15 * size
    }

    /// The line; `None` if it is blank.
    fn close(self) -> Option<Line> {
        let text = clean_cells(&self.text);
        let (size, is_bold) = self.letters.predominant_style();
        let Style { is_pale, is_undrawn, .. } = self.first.unwrap_or_default();
        (!text.is_empty()).then_some(Line {
            text,
            place: self.place,
            size,
            is_bold,
            is_mixed: self.letters.is_mixed(),
            is_separate: false,
            is_pale,
            is_undrawn,
            separator: self.separator,
        })
    }
}

/// The style of a character. Transparent text that the search for hidden text kept is the OCR text of a scanner; on other
/// pages it counts as pale.
fn style(char: &PdfPageTextChar<'_>, is_checked: bool) -> Style {
    let color = char.fill_color().ok();
    let is_clear = color.is_some_and(|color| color.alpha() < CLEAR);
    let mode = char.render_mode().ok();
    let is_invisible = mode == Some(PdfPageTextRenderMode::Invisible);
    // Strokes have an alpha of their own.
    let is_scanned = is_clear && is_checked && mode == Some(PdfPageTextRenderMode::FilledUnstroked);
    Style {
        size: char.scaled_font_size().value.abs(),
        is_bold: is_bold_name(&char.font_name()),
        is_pale: color.is_some_and(|color| is_pale(&color)) || (is_clear && !is_scanned),
        is_undrawn: is_invisible || is_scanned,
    }
}

fn is_pale(color: &PdfColor) -> bool {
    color.red().min(color.green()).min(color.blue()) > PALE
}

/// Whether the letter is rotated.
pub(super) fn is_rotated(char: &PdfPageTextChar<'_>) -> bool {
    char.angle_degrees().is_ok_and(|angle| (angle % 180.0 - 90.0).abs() < 5.0)
}

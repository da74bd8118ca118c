use pdfium_render::prelude::{PdfColor, PdfPageText, PdfPageTextChar, PdfPageTextRenderMode};

use super::rect;
use crate::{
    page::{Line, Rect},
    runs::{CELL_GAP, Letters, clean_cells},
};

/// What PDFium answers for a hyphen at the end of a line.
const HYPHENS: [u32; 2] = [0x02, 0xfffe];

/// Colours of which all parts are above this hardly show on white.
const PALE: u8 = 237;

/// What covers less than this is hardly there.
const CLEAR: u8 = 16;

/// The lines of a page, as PDFium breaks them; text outside the page's frame left out.
pub(super) fn lines(text: &PdfPageText<'_>, frame: Option<Rect>) -> Vec<Line> {
    let mut reading = Reading { frame, lines: vec![], open: Open::default(), broken: false, high: None };
    for char in text.chars().iter() {
        reading.char(&char);
    }
    reading.lines.extend(reading.open.close());
    reading.lines
}

struct Reading {
    frame: Option<Rect>,
    lines: Vec<Line>,
    open: Open,
    /// Whether PDFium breaks the line here.
    broken: bool,
    /// The first half of a character that UTF-16 writes as two.
    high: Option<u16>,
}

impl Reading {
    fn char(&mut self, char: &PdfPageTextChar<'_>) {
        match char.unicode_value() {
            0x0a | 0x0d => self.broken = true,
            code if HYPHENS.contains(&code) => {
                self.open.text.push('-');
                self.broken = true;
            }
            code => {
                if let Some(c) = self.decode(code) {
                    self.add(char, c);
                }
            }
        }
    }

    /// The character of a code, or of two codes that belong together.
    fn decode(&mut self, code: u32) -> Option<char> {
        let unit = u16::try_from(code).ok();
        if let Some(unit) = unit.filter(|unit| (0xd800..0xdc00).contains(unit)) {
            self.high = Some(unit);
            return None;
        }
        match (self.high.take(), unit) {
            (Some(high), Some(low)) => char::decode_utf16([high, low]).next()?.ok(),
            _ => Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
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
        let broken = std::mem::take(&mut self.broken) && !self.open.goes_on(char, place);
        if broken {
            self.lines.extend(std::mem::take(&mut self.open).close());
        }
        let style = *self.open.word.get_or_insert_with(|| style(char));
        if style.size > 0.0 && style.size < 1.0 {
            return;
        }
        if !self.open.is_alike(style) {
            let glue = if self.open.text.ends_with(' ') { " " } else { "" };
            self.lines.extend(std::mem::take(&mut self.open).close());
            (self.open.word, self.open.glue) = (Some(style), Some(glue));
        }
        self.open.push(char, c, place, style);
    }
}

/// A line that may go on.
#[derive(Default)]
struct Open {
    text: String,
    place: Option<Rect>,
    last: Option<Rect>,
    letters: Letters,
    /// The style of the word that is being read.
    word: Option<Style>,
    /// The style of the first word.
    first: Option<Style>,
    turned: bool,
    glue: Option<&'static str>,
}

/// How a word is set.
#[derive(Clone, Copy, Default)]
struct Style {
    size: f32,
    bold: bool,
    pale: bool,
    undrawn: bool,
}

impl Open {
    fn space(&mut self) {
        self.word = None;
        self.text.push(' ');
    }

    /// Whether text in this style shows as what is on the line does.
    fn is_alike(&self, style: Style) -> bool {
        self.first.is_none_or(|first| first.pale == style.pale && first.undrawn == style.undrawn)
    }

    fn push(&mut self, char: &PdfPageTextChar<'_>, c: char, place: Option<Rect>, style: Style) {
        if self.first.is_none() {
            self.first = Some(style);
            self.turned = is_turned(char);
        }
        if let (Some(last), Some(place)) = (self.last, place)
            && place.left - last.right > CELL_GAP * style.size
        {
            self.text.push('\t');
        }
        self.text.push(c);
        self.letters.add(style.size, style.bold, 1);
        if let Some(place) = place {
            self.place = Some(self.place.map_or(place, |line| line.union(place)));
            self.last = Some(place);
        }
    }

    /// Whether the line goes on in spite of a break: PDFium breaks turned lines behind every letter.
    fn goes_on(&self, char: &PdfPageTextChar<'_>, place: Option<Rect>) -> bool {
        let (Some(last), Some(place)) = (self.last, place) else { return false };
        let apart = (place.bottom - last.top).max(last.bottom - place.top);
        let size = last.right - last.left;
        self.turned && is_turned(char) && (place.left - last.left).abs() < 0.5 * size && apart < 0.15 * size
    }

    /// The line; nothing where it is blank.
    fn close(self) -> Option<Line> {
        let text = clean_cells(&self.text);
        let (size, bold) = self.letters.most();
        let Style { pale, undrawn, .. } = self.first.unwrap_or_default();
        (!text.is_empty()).then_some(Line {
            text,
            place: self.place,
            size,
            bold,
            apart: false,
            pale,
            undrawn,
            glue: self.glue,
        })
    }
}

fn style(char: &PdfPageTextChar<'_>) -> Style {
    Style {
        size: char.scaled_font_size().value.abs(),
        bold: char.font_name().contains("Bold"),
        pale: char.fill_color().is_ok_and(|color| is_pale(&color)),
        undrawn: char.render_mode().is_ok_and(|mode| mode == PdfPageTextRenderMode::Invisible),
    }
}

fn is_pale(color: &PdfColor) -> bool {
    color.red().min(color.green()).min(color.blue()) > PALE || color.alpha() < CLEAR
}

/// Whether the letter stands on its side.
fn is_turned(char: &PdfPageTextChar<'_>) -> bool {
    char.angle_degrees().is_ok_and(|angle| (angle % 180.0 - 90.0).abs() < 5.0)
}

use std::collections::{BTreeMap, HashMap};

use lopdf::{Dictionary, Document, Encoding, Object};

use super::{MAX_STREAM, state};
use crate::runs::is_bold_name;

/// The default width of a character, in thousandths of the font size.
const USUAL: f32 = 500.0;

/// The unit of widths, in font sizes.
const UNIT: f32 = 0.001;

/// Most widths of a font that are read.
const MAX_WIDTHS: usize = 200_000;

/// A font with the text and widths of its codes.
pub(super) struct Font<'a> {
    encoding: Option<Encoding<'a>>,
    widths: HashMap<i64, f32>,
    /// Ranges of codes with one width, by their first code: the last code and the width.
    ranges: BTreeMap<i64, (i64, f32)>,
    /// How many more widths may be read.
    widths_left: usize,
    usual: f32,
    /// Whether codes have two bytes.
    wide: bool,
    pub(super) is_bold: bool,
    /// Whether its text is vertical.
    pub(super) downward: bool,
    /// Whether the file draws its letters itself (Type 3).
    pub(super) drawn: bool,
    /// The unit of widths, in font sizes.
    pub(super) unit: f32,
    /// The height of its letters, in font sizes: 1 but for Type 3, whose letters have any height at any size.
    pub(super) height: f32,
}

impl<'a> Font<'a> {
    pub(super) fn new(document: &'a Document, font: &'a Dictionary) -> Self {
        let encoding = font.get_font_encoding_with_limit(document, MAX_STREAM).ok();
        let name = font.get_deref(b"BaseFont", document).and_then(Object::as_name).unwrap_or_default();
        let is_bold = is_bold_name(&String::from_utf8_lossy(name));
        let kind = font.get_deref(b"Subtype", document).and_then(Object::as_name).unwrap_or_default();
        let (wide, drawn) = (kind == b"Type0", kind == b"Type3");
        let map = font.get_deref(b"Encoding", document).and_then(Object::as_name).unwrap_or_default();
        let downward = wide && map.ends_with(b"-V");
        let (widths, ranges, widths_left) = (HashMap::new(), BTreeMap::new(), MAX_WIDTHS);
        let mut metrics = Self {
            encoding,
            widths,
            ranges,
            widths_left,
            usual: USUAL,
            wide,
            is_bold,
            downward,
            drawn,
            unit: UNIT,
            height: 1.0,
        };
        if wide {
            metrics.read_wide(document, font)
        } else {
            metrics.read_simple(document, font)
        };
        if drawn {
            metrics.read_drawn(document, font);
        }
        metrics
    }

    /// Reads the unit of a Type 3 font, and the height of its letters from the box around all of them.
    fn read_drawn(&mut self, document: &Document, font: &Dictionary) -> Option<()> {
        self.usual = 0.0;
        let array = |key| font.get_deref(key, document).ok()?.as_array().ok();
        let [a, b, c, d, ..] = state::numbers::<6>(array(b"FontMatrix")?)?;
        let (across, along) = (a.hypot(b), c.hypot(d));
        (self.unit, self.height) = (across, along / UNIT);
        let [_, bottom, _, top] = state::numbers::<4>(array(b"FontBBox")?)?;
        if top > bottom {
            self.height = along * (top - bottom);
        }
        Some(())
    }

    fn read_simple(&mut self, document: &Document, font: &Dictionary) -> Option<()> {
        let first = font.get_deref(b"FirstChar", document).ok()?.as_i64().ok()?;
        let widths = font.get_deref(b"Widths", document).ok()?.as_array().ok()?;
        self.set(document, first, widths);
        Some(())
    }

    fn read_wide(&mut self, document: &Document, font: &Dictionary) -> Option<()> {
        let fonts = font.get_deref(b"DescendantFonts", document).ok()?.as_array().ok()?;
        let font = document.dereference(fonts.first()?).ok()?.1.as_dict().ok()?;
        self.usual = font.get_deref(b"DW", document).and_then(Object::as_float).unwrap_or(1000.0);
        let items = font.get_deref(b"W", document).ok()?.as_array().ok()?;
        let mut items = items.iter().filter_map(|item| Some(document.dereference(item).ok()?.1));
        while let Some(first) = items.next() {
            let first = first.as_i64().ok()?;
            match items.next()? {
                Object::Array(widths) => self.set(document, first, widths),
                last => {
                    let width = items.next()?.as_float().ok()?;
                    self.widths_left = self.widths_left.checked_sub(1)?;
                    self.ranges.insert(first, (last.as_i64().ok()?, width));
                }
            }
        }
        Some(())
    }

    fn set(&mut self, document: &Document, first: i64, widths: &[Object]) {
        for (code, width) in (first..i64::MAX).zip(widths.iter().take(self.widths_left)) {
            self.widths_left -= 1;
            if let Ok(width) = document.dereference(width).and_then(|(_, width)| width.as_float()) {
                self.widths.insert(code, width);
            }
        }
    }

    /// The text of a string.
    pub(super) fn text(&self, bytes: &[u8]) -> String {
        let text = self.encoding.as_ref().and_then(|encoding| Document::decode_text(encoding, bytes).ok());
        text.unwrap_or_default()
    }

    /// The widths of the codes of a string in font sizes, and whether each one is a space.
    pub(super) fn codes(&self, bytes: &[u8]) -> impl Iterator<Item = (f32, bool)> {
        let size = if self.wide { 2 } else { 1 };
        bytes.chunks(size).map(move |code| {
            let number = code.iter().fold(0, |number, byte| number * 256 + i64::from(*byte));
            (self.width(number).unwrap_or(self.usual) * self.unit, code == b" ")
        })
    }

    fn width(&self, code: i64) -> Option<f32> {
        let in_range = || self.ranges.range(..=code).next_back().filter(|(_, (last, _))| code <= *last);
        self.widths.get(&code).copied().or_else(|| in_range().map(|(_, (_, width))| *width))
    }
}

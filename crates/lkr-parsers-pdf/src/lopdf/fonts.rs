//! Fonts: the text and the widths of their codes.

use std::collections::{BTreeMap, HashMap};

use lopdf::{Dictionary, Document, Object};

use super::{encodings::FontEncoding, state, streams, to_unicode::ToUnicode};
use crate::runs::is_bold_name;

/// The default width of a character, in thousandths of the font size.
const USUAL: f32 = 500.0;

/// The unit of widths, in font sizes.
const UNIT: f32 = 0.001;

/// Most widths of a font that are read.
const MAX_WIDTHS: usize = 200_000;

/// How many times as high as wide the letters of a font are, by their mean width.
const HEIGHT_OF_LETTER: f32 = 2.0;

/// The bytes of the codes of most composite fonts.
const WIDE_CODE: usize = 2;

/// A font with the text and widths of its codes.
pub(super) struct Font {
    /// The text of codes that the file declares; it comes before the encoding, and is part of a simple one.
    to_unicode: ToUnicode,
    /// The lengths of the codes of a composite font, if the file declares its encoding.
    code_spaces: ToUnicode,
    encoding: FontEncoding,
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

/// Whether the file declares the lengths of a composite font's codes, instead of naming a predefined encoding.
pub(super) fn has_own_codes(document: &Document, font: &Dictionary) -> bool {
    font.get_deref(b"Encoding", document).and_then(Object::as_stream).is_ok()
}

impl Font {
    pub(super) fn new(document: &Document, font: &Dictionary) -> Self {
        let name = font.get_deref(b"BaseFont", document).and_then(Object::as_name).unwrap_or_default();
        let is_bold = is_bold_name(&String::from_utf8_lossy(name));
        let kind = font.get_deref(b"Subtype", document).and_then(Object::as_name).unwrap_or_default();
        let (wide, drawn) = (kind == b"Type0", kind == b"Type3");
        let map = font.get_deref(b"Encoding", document).and_then(Object::as_name).unwrap_or_default();
        let downward = wide && map.ends_with(b"-V");
        let (widths, ranges, widths_left) = (HashMap::new(), BTreeMap::new(), MAX_WIDTHS);
        let to_unicode = declared(document, font, b"ToUnicode");
        let encoding = if wide {
            FontEncoding::composite(document, font)
        } else {
            FontEncoding::simple(document, font, &to_unicode)
        };
        let mut metrics = Self {
            to_unicode,
            code_spaces: if wide { declared(document, font, b"Encoding") } else { ToUnicode::default() },
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
        let edges = array(b"FontBBox").and_then(|edges| state::numbers::<4>(edges));
        self.height = match edges {
            Some([_, bottom, _, top]) if top > bottom => along * (top - bottom),
            // Some files have no box around the letters, or one without an area.
            _ => along * self.mean_width()? * HEIGHT_OF_LETTER,
        };
        Some(())
    }

    /// The mean width of the letters that have one.
    fn mean_width(&self) -> Option<f32> {
        let widths = || self.widths.values().filter(|width| **width > 0.0);
        let count = widths().count();
        (count > 0).then(|| widths().sum::<f32>() / count as f32)
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
        let mut text = String::with_capacity(bytes.len());
        for code in self.split(bytes) {
            if !self.push_text(code, &mut text) && self.wide {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }

    /// Appends the text of a code; returns whether it is known.
    fn push_text(&self, code: &[u8], text: &mut String) -> bool {
        let number = code.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        match &self.encoding {
            FontEncoding::Simple(codes) => {
                let known = codes.get(usize::from(u8::try_from(number).unwrap_or_default()));
                let known = known.and_then(|code| code.text.as_deref());
                text.extend(known);
                return known.is_some();
            }
            _ if self.to_unicode.push_text(number, text) => return true,
            FontEncoding::Collection(Some(characters)) => {
                let character = u16::try_from(number).ok().and_then(characters).and_then(char::from_u32);
                text.extend(character);
                return character.is_some();
            }
            FontEncoding::Charset(charset) => {
                let known = charset.decode_without_bom_handling_and_without_replacement(code);
                text.extend(known.as_deref());
                return known.is_some();
            }
            // Without a collection, the codes number glyphs; some programs number them by their characters.
            FontEncoding::Collection(None) if (0x20..0x7f).contains(&number) => {
                text.extend(char::from_u32(number));
                return true;
            }
            FontEncoding::Collection(None) | FontEncoding::Unknown => {}
        }
        false
    }

    /// The codes of a string.
    fn split<'b>(&self, bytes: &'b [u8]) -> impl Iterator<Item = &'b [u8]> {
        let mut rest = bytes;
        std::iter::from_fn(move || {
            let length = self.code_length(rest).min(rest.len());
            let (code, after) = rest.split_at_checked(length)?;
            rest = after;
            (!code.is_empty()).then_some(code)
        })
    }

    /// The length of the first code.
    fn code_length(&self, bytes: &[u8]) -> usize {
        match &self.encoding {
            FontEncoding::Simple(_) => 1,
            FontEncoding::Collection(_) => WIDE_CODE,
            FontEncoding::Charset(charset) if *charset == encoding_rs::UTF_16BE => WIDE_CODE,
            // The half-width katakana of Shift JIS are codes of one byte.
            FontEncoding::Charset(charset) => match bytes.first() {
                Some(0..=0x80) => 1,
                Some(0xa0..=0xdf) if *charset == encoding_rs::SHIFT_JIS => 1,
                _ => WIDE_CODE,
            },
            FontEncoding::Unknown => {
                let length =
                    self.code_spaces.code_length(bytes).or_else(|| self.to_unicode.code_length(bytes));
                length.unwrap_or(WIDE_CODE)
            }
        }
    }

    /// The widths of the codes of a string in font sizes, and whether each one is a space.
    pub(super) fn codes(&self, bytes: &[u8]) -> impl Iterator<Item = (f32, bool)> {
        self.split(bytes).map(move |code| {
            let number = code.iter().fold(0, |number, byte| number * 256 + i64::from(*byte));
            (self.width(number).unwrap_or(self.usual) * self.unit, code == b" ")
        })
    }

    fn width(&self, code: i64) -> Option<f32> {
        let in_range = || self.ranges.range(..=code).next_back().filter(|(_, (last, _))| code <= *last);
        self.widths.get(&code).copied().or_else(|| in_range().map(|(_, (_, width))| *width))
    }
}

/// The map under this key of a font; empty if there is none.
fn declared(document: &Document, font: &Dictionary, key: &[u8]) -> ToUnicode {
    let stream = font.get_deref(key, document).and_then(Object::as_stream).ok();
    let content = stream.and_then(|stream| streams::unpacked(stream).ok());
    content.map(|content| ToUnicode::read(&content)).unwrap_or_default()
}

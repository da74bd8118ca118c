//! The values of form fields. They are no part of a page's content, and viewers draw them, from an appearance or by the
//! field's own rules.

use lopdf::{Dictionary, Document, Object, ObjectId};

use super::{LopdfDocument, PALE, state};
use crate::{
    outline::decode,
    page::{Line, Rect, clean},
};

/// Most annotations of a page that are read.
const MAX_ANNOTATIONS: usize = 10_000;

/// Most fields above a field that pass on entries to it.
const MAX_DEPTH: usize = 8;

/// The flags of an annotation that is not shown: hidden, and not viewed.
const NOT_SHOWN: i64 = 2 | 32;

/// The flag of a text field for a password.
const PASSWORD: i64 = 1 << 13;

impl LopdfDocument {
    /// The values of the text and choice fields that a page shows, a line each.
    pub(crate) fn field_values(&self, index: usize) -> Vec<Line> {
        let Some(page) = self.pages.get(index) else { return Vec::new() };
        let frame = self.frame(*page);
        let annotations = || -> Option<&Vec<Object>> {
            let page = self.document.get_dictionary(*page).ok()?;
            page.get_deref(b"Annots", &self.document).ok()?.as_array().ok()
        };
        let annotations = annotations().into_iter().flatten().take(MAX_ANNOTATIONS);
        annotations
            .filter_map(|annotation| self.field(annotation))
            .flat_map(|field| field.lines(frame))
            .collect()
    }

    fn field<'a>(&'a self, annotation: &'a Object) -> Option<Field<'a>> {
        let dictionary = self.document.dereference(annotation).ok()?.1.as_dict().ok()?;
        let subtype = dictionary.get_deref(b"Subtype", &self.document).ok()?.as_name().ok()?;
        (subtype == b"Widget").then_some(Field { document: &self.document, dictionary })
    }
}

/// A field as it is shown on a page.
struct Field<'a> {
    document: &'a Document,
    dictionary: &'a Dictionary,
}

impl<'a> Field<'a> {
    /// The lines of the value; none if the page does not show it.
    fn lines(&self, frame: Option<Rect>) -> Vec<Line> {
        let Some(place) = self.place().filter(|place| frame.is_none_or(|frame| place.is_in(frame))) else {
            return Vec::new();
        };
        if !self.shows_text() {
            return Vec::new();
        }
        let value = self.value().unwrap_or_default();
        let lines = value.split(['\r', '\n']).map(clean).filter(|line| !line.is_empty());
        lines.map(|text| Line { text, place: Some(place), is_separate: true, ..Line::default() }).collect()
    }

    /// Where the page shows the field; `None` if it does not.
    fn place(&self) -> Option<Rect> {
        let flags = self.own(b"F").and_then(|flags| flags.as_i64().ok()).unwrap_or(0);
        if flags & NOT_SHOWN != 0 {
            return None;
        }
        let [x1, y1, x2, y2] = state::numbers::<4>(self.own(b"Rect")?.as_array().ok()?)?;
        let place = Rect { left: x1.min(x2), bottom: y1.min(y2), right: x1.max(x2), top: y1.max(y2) };
        let is_readable = place.is_finite() && place.height() >= 1.0 && place.right - place.left >= 1.0;
        is_readable.then_some(place)
    }

    /// Whether it is a field of text that is neither a password nor pale on no background.
    fn shows_text(&self) -> bool {
        let kind = self.inherited(b"FT").and_then(|kind| kind.as_name().ok()).unwrap_or_default();
        let flags = self.inherited(b"Ff").and_then(|flags| flags.as_i64().ok()).unwrap_or(0);
        let is_text = kind == b"Ch" || (kind == b"Tx" && flags & PASSWORD == 0);
        is_text && !(self.is_pale() && self.background().is_none())
    }

    /// Whether the default appearance sets a pale colour, or a size below a point.
    fn is_pale(&self) -> bool {
        let Some(appearance) = self.inherited(b"DA").and_then(|appearance| appearance.as_str().ok()) else {
            return false;
        };
        let appearance = String::from_utf8_lossy(appearance);
        let mut numbers: Vec<f32> = Vec::new();
        let mut is_pale = false;
        for token in appearance.split_ascii_whitespace() {
            match token {
                "g" | "rg" => is_pale = !numbers.is_empty() && numbers.iter().all(|part| *part > PALE),
                "k" => is_pale = !numbers.is_empty() && numbers.iter().all(|part| *part < 1.0 - PALE),
                // The size 0 adapts to the field.
                "Tf" if numbers.last().is_some_and(|size| *size > 0.0 && *size < super::LEAST_SIZE) => {
                    return true;
                }
                _ => {}
            }
            match token.parse() {
                Ok(number) => numbers.push(number),
                Err(_) => numbers.clear(),
            }
        }
        is_pale
    }

    fn background(&self) -> Option<&'a Vec<Object>> {
        let look = self.own(b"MK")?.as_dict().ok()?;
        look.get_deref(b"BG", self.document).ok()?.as_array().ok().filter(|colour| !colour.is_empty())
    }

    fn value(&self) -> Option<String> {
        let value = self.inherited(b"V")?;
        let texts = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        let texts = texts.iter().filter_map(|text| self.document.dereference(text).ok()?.1.as_str().ok());
        let lines: Vec<String> = texts.map(|text| self.label(text)).collect();
        Some(lines.join("\n"))
    }

    /// The text that is shown for a value: a choice may have another label.
    fn label(&self, value: &[u8]) -> String {
        let label = || -> Option<String> {
            let options = self.inherited(b"Opt")?.as_array().ok()?;
            options.iter().find_map(|option| {
                let [export, label] = self.document.dereference(option).ok()?.1.as_array().ok()?.as_slice()
                else {
                    return None;
                };
                (export.as_str().ok()? == value).then(|| label.as_str().ok().map(decode))?
            })
        };
        label().unwrap_or_else(|| decode(value))
    }

    fn own(&self, key: &[u8]) -> Option<&'a Object> {
        self.dictionary.get_deref(key, self.document).ok()
    }

    /// An entry of the field, or of the fields above it.
    fn inherited(&self, key: &[u8]) -> Option<&'a Object> {
        let mut field = self.dictionary;
        for _ in 0..MAX_DEPTH {
            if let Ok(object) = field.get_deref(key, self.document) {
                return Some(object);
            }
            let above: ObjectId = field.get(b"Parent").ok()?.as_reference().ok()?;
            field = self.document.get_dictionary(above).ok()?;
        }
        None
    }
}

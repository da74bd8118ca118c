//! Writes the text of fonts in a form that other engines read. They miss maps whose arrays continue on another line and maps
//! that are packed with a wrong checksum, take control characters for the text of letters, and do not know the encodings of TeX.

use std::io::{self, Read as _};

use flate2::read::ZlibDecoder;
use lopdf::{Dictionary, Document, Object, ObjectId, Stream};

use super::{LopdfDocument, MAX_STREAM, encodings::FontEncoding, streams, to_unicode::ToUnicode};

/// Most fonts that are looked at.
const MAX_FONTS: usize = 4096;

/// Most entries of a section of a map.
const MAX_SECTION: usize = 100;

impl LopdfDocument {
    /// The changed objects of fonts whose text other engines would read wrongly. New objects have numbers after `last`.
    pub(super) fn repaired_fonts(&self, last: &mut u32) -> Vec<(ObjectId, Object)> {
        let document = &self.document;
        let fonts = document.objects.iter().filter_map(|(id, font)| {
            let font = font.as_dict().ok()?;
            font.has_type(b"Font").then_some((*id, font))
        });
        let mut objects = Vec::new();
        for (id, font) in fonts.take(MAX_FONTS) {
            let Some(map) = repaired(document, font) else { continue };
            let map = Stream::new(Dictionary::new(), map.into_bytes()).into();
            if let Ok(known) = font.get(b"ToUnicode").and_then(Object::as_reference) {
                objects.push((known, map));
            } else if let Some(next) = last.checked_add(1) {
                *last = next;
                let mut font = font.clone();
                font.set("ToUnicode", Object::Reference((next, 0)));
                objects.push(((next, 0), map));
                objects.push((id, font.into()));
            }
        }
        objects
    }
}

/// The repaired map of a font; `None` if it needs none.
fn repaired(document: &Document, font: &Dictionary) -> Option<String> {
    let kind = font.get_deref(b"Subtype", document).and_then(Object::as_name).unwrap_or_default();
    let stream = font.get_deref(b"ToUnicode", document).and_then(Object::as_stream).ok();
    let content = stream.and_then(|stream| streams::unpacked(stream).ok()).unwrap_or_default();
    let map = ToUnicode::read(&content);
    let is_missed = has_broken_array(&content) || stream.is_some_and(has_wrong_checksum);
    if kind == b"Type0" {
        return (is_missed && map.has_wide_codes()).then(|| written(&map.entries(), 2));
    }
    let FontEncoding::Simple(codes) = FontEncoding::simple(document, font, &map) else { return None };
    let is_repaired = |code: u32, is_tex: bool| is_tex || map.is_junk(code);
    let needs_repair = is_missed
        || (0..)
            .zip(codes.iter())
            .any(|(code, known)| known.text.is_some() && is_repaired(code, known.is_tex));
    if !needs_repair {
        return None;
    }
    let entry = |(code, known): (u32, &super::encodings::Code)| {
        let mut text = String::new();
        let is_known = map.push_text(code, &mut text);
        if map.is_unknown(code) {
            return Some((code, char::REPLACEMENT_CHARACTER.to_string()));
        }
        if is_known {
            return Some((code, text));
        }
        Some((code, known.text.clone()?)).filter(|_| is_repaired(code, known.is_tex))
    };
    Some(written(&(0..).zip(codes.iter()).filter_map(entry).collect::<Vec<_>>(), 1))
}

/// Whether an array is not closed on its line.
fn has_broken_array(map: &[u8]) -> bool {
    let lines = map.split(|byte| matches!(byte, b'\r' | b'\n'));
    let count = |line: &[u8], bracket| line.iter().filter(|byte| **byte == bracket).count();
    lines.into_iter().any(|line| count(line, b'[') != count(line, b']'))
}

/// Whether a packed stream does not unpack to its end without an error. Its content may be complete all the same.
fn has_wrong_checksum(stream: &Stream) -> bool {
    let is_zlib = stream.filters().is_ok_and(|filters| matches!(*filters, [b"FlateDecode" | b"Fl"]));
    let unpack =
        || io::copy(&mut ZlibDecoder::new(&*stream.content).take(MAX_STREAM as u64), &mut io::sink());
    is_zlib && unpack().is_err()
}

/// A map with these entries for codes of `length` bytes.
fn written(entries: &[(u32, String)], length: usize) -> String {
    let digits = 2 * length;
    let mut map = format!(
        "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CMapType 2 def\n\
         1 begincodespacerange\n<{:0digits$X}> <{}>\nendcodespacerange\n",
        0,
        "F".repeat(digits)
    );
    for section in entries.chunks(MAX_SECTION) {
        map.push_str(&format!("{} beginbfchar\n", section.len()));
        for (code, text) in section {
            let units: String = text.encode_utf16().map(|unit| format!("{unit:04X}")).collect();
            map.push_str(&format!("<{code:0digits$X}> <{units}>\n"));
        }
        map.push_str("endbfchar\n");
    }
    map.push_str("endcmap\nend\nend\n");
    map
}

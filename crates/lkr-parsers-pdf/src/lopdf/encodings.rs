//! The text of codes, from a font's encoding. Maps in the file come first: see `to_unicode`.

use std::sync::LazyLock;

use encoding_rs::Encoding as Charset;
use lopdf::{Dictionary, Document, Object};
use pdf_oxide::fonts::{character_mapper::CharacterMapper, cid_mappings};

use super::{tex::TexEncoding, to_unicode::ToUnicode};

/// The list of glyph names.
static GLYPH_NAMES: LazyLock<CharacterMapper> = LazyLock::new(CharacterMapper::new);

/// The encodings of simple fonts, in which base tables are looked up.
const BASES: [&[u8]; 5] =
    [b"StandardEncoding", b"WinAnsiEncoding", b"MacRomanEncoding", b"MacExpertEncoding", b"PDFDocEncoding"];

/// Parts of the names of predefined encodings of composite fonts, with the character set of their codes.
const CHARSETS: [(&str, &Charset); 9] = [
    ("GBK", encoding_rs::GB18030),
    ("GB-EUC", encoding_rs::GB18030),
    ("RKSJ", encoding_rs::SHIFT_JIS),
    ("B5", encoding_rs::BIG5),
    ("HKscs", encoding_rs::BIG5),
    ("UHC", encoding_rs::EUC_KR),
    ("KSC-EUC", encoding_rs::EUC_KR),
    ("KSCpc-EUC", encoding_rs::EUC_KR),
    ("EUC-", encoding_rs::EUC_JP),
];

/// How the codes of a font are encoded.
#[derive(Debug)]
pub(super) enum FontEncoding {
    /// One byte is a code.
    Simple(Box<[Code; 256]>),
    /// Two bytes are a code of a collection of glyphs; its characters are known for some collections.
    Collection(Option<fn(u16) -> Option<u32>>),
    /// The codes are those of a character set.
    Charset(&'static Charset),
    /// Only the file says what the codes mean.
    Unknown,
}

/// The text of a code of one byte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) text: Option<String>,
    /// Whether the text is that of an encoding of TeX.
    pub(super) is_tex: bool,
}

impl FontEncoding {
    /// The encoding of a font with codes of one byte, with the text that the file declares.
    pub(super) fn simple(document: &Document, font: &Dictionary, to_unicode: &ToUnicode) -> Self {
        let encoding = font.get_deref(b"Encoding", document).ok();
        let base = match encoding {
            Some(Object::Name(name)) => Some(name.as_slice()),
            Some(Object::Dictionary(encoding)) => {
                encoding.get_deref(b"BaseEncoding", document).and_then(Object::as_name).ok()
            }
            _ => None,
        };
        let mut codes = base_codes(base.unwrap_or_default());
        let differences = encoding.and_then(|encoding| encoding.as_dict().ok());
        let differences = differences
            .and_then(|encoding| encoding.get_deref(b"Differences", document).ok()?.as_array().ok());
        let (mut at, mut numbered) = (0_usize, Vec::new());
        for item in differences.into_iter().flatten() {
            match document.dereference(item).map(|(_, item)| item) {
                Ok(Object::Name(name)) => {
                    if let Some(code) = codes.get_mut(at) {
                        code.rename(name, at);
                    }
                    numbered.extend(
                        u8::try_from(at).ok().filter(|code| *name == format!("a{code}").into_bytes()),
                    );
                    at = at.saturating_add(1);
                }
                Ok(number) => {
                    at = number.as_i64().ok().and_then(|at| usize::try_from(at).ok()).unwrap_or(at);
                }
                Err(_) => {}
            }
        }
        if let Some(tex) = TexEncoding::of(&numbered) {
            for number in numbered {
                if let Some(code) = codes.get_mut(usize::from(number)) {
                    *code = Code { text: tex.text(number), is_tex: true };
                }
            }
        }
        for (number, code) in (0..).zip(codes.iter_mut()) {
            if to_unicode.is_unknown(number) {
                *code = Code::default();
                continue;
            }
            let mut text = String::new();
            if to_unicode.push_text(number, &mut text) {
                *code = Code { text: Some(text), ..Code::default() };
            }
        }
        Self::Simple(codes)
    }

    /// The encoding of a composite font.
    pub(super) fn composite(document: &Document, font: &Dictionary) -> Self {
        let name = font.get_deref(b"Encoding", document).and_then(Object::as_name).unwrap_or_default();
        let name = String::from_utf8_lossy(name);
        if name.starts_with("Uni") {
            let is_wide = name.contains("UCS2") || name.contains("UTF16");
            return if is_wide { Self::Charset(encoding_rs::UTF_16BE) } else { Self::Unknown };
        }
        if name.starts_with("Identity") {
            return Self::Collection(collection(document, font));
        }
        let charset = CHARSETS.iter().find(|(part, _)| name.contains(part));
        charset.map_or(Self::Unknown, |(_, charset)| Self::Charset(charset))
    }
}

/// The characters of the glyphs of a composite font's collection.
fn collection(document: &Document, font: &Dictionary) -> Option<fn(u16) -> Option<u32>> {
    let fonts = font.get_deref(b"DescendantFonts", document).ok()?.as_array().ok()?;
    let font = document.dereference(fonts.first()?).ok()?.1.as_dict().ok()?;
    let system = font.get_deref(b"CIDSystemInfo", document).ok()?.as_dict().ok()?;
    match system.get_deref(b"Ordering", document).ok()?.as_str().ok()? {
        b"GB1" => Some(cid_mappings::lookup_adobe_gb1),
        b"Japan1" => Some(cid_mappings::lookup_adobe_japan1),
        b"CNS1" => Some(cid_mappings::lookup_adobe_cns1),
        b"Korea1" => Some(cid_mappings::lookup_adobe_korea1),
        _ => None,
    }
}

impl Code {
    /// Gives the code `at` the glyph of this name.
    fn rename(&mut self, name: &[u8], at: usize) {
        let name = String::from_utf8_lossy(name);
        if name == ".notdef" {
            // A space needs no glyph.
            if at != usize::from(b' ') {
                *self = Self::default();
            }
        } else if let Some(text) = named(&name) {
            *self = Self { text: Some(text), ..Self::default() };
        } else {
            // Names such as `C41`, `G65` and `a65` number the glyphs, mostly as their codes.
            let code = u8::try_from(at).ok().map(windows);
            let text = self.text.take().or(code).filter(|text| !text.chars().all(char::is_control));
            *self = Self { text, is_tex: false };
        }
    }
}

/// The text of a glyph name: a name of the list, or a number of a character; a suffix names a variant.
fn named(name: &str) -> Option<String> {
    if let Some(text) = GLYPH_NAMES.map_glyph_name(name) {
        return Some(text);
    }
    let (base, suffix) = name.split_once('.').map_or((name, None), |(base, suffix)| (base, Some(suffix)));
    if suffix.is_some() && !base.is_empty() {
        return named(base);
    }
    if let Some((first, rest)) = name.split_once('_') {
        return Some(named(first)? + &named(rest)?);
    }
    let digits = name.strip_prefix("uni").filter(|digits| digits.len() == 4);
    let digits =
        digits.or_else(|| name.strip_prefix('u').filter(|digits| (4..=6).contains(&digits.len())))?;
    let is_number = digits.chars().all(|c| matches!(c, '0'..='9' | 'A'..='F'));
    let number = is_number.then(|| u32::from_str_radix(digits, 16).ok()).flatten()?;
    char::from_u32(number).filter(|c| !c.is_control()).map(|c| c.to_string())
}

fn windows(code: u8) -> String {
    encoding_rs::WINDOWS_1252.decode_without_bom_handling(&[code]).0.into_owned()
}

/// The codes of an encoding without differences; those of the standard encoding for another name.
fn base_codes(name: &[u8]) -> Box<[Code; 256]> {
    let name = BASES.iter().find(|base| **base == name).copied().unwrap_or(b"StandardEncoding");
    let document = Document::new();
    let mut font = Dictionary::new();
    font.set("Type", "Font");
    font.set("Encoding", Object::Name(name.to_vec()));
    let encoding = font.get_font_encoding_with_limit(&document, 0).ok();
    let text = |code: usize| {
        let code = u8::try_from(code).ok()?;
        Document::decode_text(encoding.as_ref()?, &[code]).ok().filter(|text| !text.is_empty())
    };
    Box::new(std::array::from_fn(|code| Code { text: text(code), ..Code::default() }))
}

#[cfg(test)]
mod tests {
    use lopdf::dictionary;

    use super::*;

    fn texts(encoding: Object) -> Vec<Code> {
        let font = dictionary! { "Type" => "Font", "Encoding" => encoding };
        match FontEncoding::simple(&Document::new(), &font, &ToUnicode::default()) {
            FontEncoding::Simple(codes) => codes.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    fn code(text: &str) -> Code {
        Code { text: Some(text.to_owned()), ..Code::default() }
    }

    #[test]
    fn unknown_glyph_names_leave_the_others() {
        let names =
            ["eacute", "G66", "f_i", "uni20AC", "a.alt", ".notdef"].map(|name| Object::Name(name.into()));
        let mut differences = vec![Object::Integer(65)];
        differences.extend(names);
        let codes = texts(dictionary! { "Differences" => differences }.into());
        assert_eq!(codes[65], code("é"));
        assert_eq!(codes[66], code("B"), "the code itself");
        assert_eq!(codes[67..=69], [code("fi"), code("€"), code("a")]);
        assert_eq!((codes[70].clone(), codes[71].clone()), (Code::default(), code("G")));
    }

    #[test]
    fn base_encodings_differ() {
        assert_eq!(texts(Object::Name(b"WinAnsiEncoding".to_vec()))[0xe1], code("á"));
        assert_eq!(texts(Object::Name(b"MacRomanEncoding".to_vec()))[0x8e], code("é"));
        assert_eq!(texts(Object::Null)[0xe1], code("Æ"));
    }

    #[test]
    fn predefined_encodings_of_composite_fonts_are_known() {
        let encoding = |name: &str| {
            let font = dictionary! { "Type" => "Font", "Encoding" => Object::Name(name.into()) };
            match FontEncoding::composite(&Document::new(), &font) {
                FontEncoding::Charset(charset) => charset.name(),
                FontEncoding::Collection(_) => "collection",
                _ => "unknown",
            }
        };
        let names = [
            "GBK-EUC-H",
            "90ms-RKSJ-V",
            "ETen-B5-H",
            "KSCms-UHC-H",
            "EUC-H",
            "UniJIS-UCS2-H",
            "Identity-V",
            "Mine",
        ];
        let expected =
            ["gb18030", "Shift_JIS", "Big5", "EUC-KR", "EUC-JP", "UTF-16BE", "collection", "unknown"];
        assert_eq!(names.map(encoding), expected);
    }
}

//! The encodings of the bitmap fonts that TeX programs write into files. Their glyphs have numbers for names, such as `a28`,
//! and nothing else says which letters they are.

/// The codes below 0x20 of the encoding OT1.
const OT1_LOW: [&str; 32] = [
    "Γ", "Δ", "Θ", "Λ", "Ξ", "Π", "Σ", "Υ", "Φ", "Ψ", "Ω", "ff", "fi", "fl", "ffi", "ffl", "ı", "ȷ", "`",
    "´", "ˇ", "˘", "¯", "˚", "¸", "ß", "æ", "œ", "ø", "Æ", "Œ", "Ø",
];

/// The codes below 0x20 of the encoding T1.
const T1_LOW: [&str; 32] = [
    "`", "´", "ˆ", "˜", "¨", "˝", "˚", "ˇ", "˘", "¯", "˙", "¸", "˛", "‚", "‹", "›", "“", "”", "„", "«", "»",
    "–", "—", "", "₀", "ı", "ȷ", "ff", "fi", "fl", "ffi", "ffl",
];

/// The codes 0x80 to 0xbf of the encoding T1. Those after it are mostly as in Latin-1.
const T1_HIGH: [char; 64] = [
    'Ă', 'Ą', 'Ć', 'Č', 'Ď', 'Ě', 'Ę', 'Ğ', 'Ĺ', 'Ľ', 'Ł', 'Ń', 'Ň', 'Ŋ', 'Ő', 'Ŕ', 'Ř', 'Ś', 'Š', 'Ş', 'Ť',
    'Ţ', 'Ű', 'Ů', 'Ÿ', 'Ź', 'Ž', 'Ż', 'Ĳ', 'İ', 'đ', '§', 'ă', 'ą', 'ć', 'č', 'ď', 'ě', 'ę', 'ğ', 'ĺ', 'ľ',
    'ł', 'ń', 'ň', 'ŋ', 'ő', 'ŕ', 'ř', 'ś', 'š', 'ş', 'ť', 'ţ', 'ű', 'ů', 'ÿ', 'ź', 'ž', 'ż', 'ĳ', '¡', '¿',
    '£',
];

/// The letters that are frequent in text. A font with most of them sets text rather than formulas.
const FREQUENT: &[u8] = b"etaoinsrhl";

/// A font with at least this many of the frequent letters sets text.
const MIN_FREQUENT: usize = 8;

/// An encoding of text fonts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TexEncoding {
    Ot1,
    T1,
}

impl TexEncoding {
    /// The encoding of a font with these codes; `None` if it is no text font.
    pub(super) fn of(codes: &[u8]) -> Option<Self> {
        let has = |range: std::ops::RangeInclusive<u8>| codes.iter().any(|code| range.contains(code));
        let frequent = FREQUENT.iter().filter(|letter| codes.contains(letter)).count();
        let is_t1 = has(0x80..=0xff) || (has(0x1b..=0x1f) && !has(0x0b..=0x0f));
        (frequent >= MIN_FREQUENT).then_some(if is_t1 { Self::T1 } else { Self::Ot1 })
    }

    /// The text of a code.
    pub(super) fn text(self, code: u8) -> Option<String> {
        let low = |table: &[&str; 32]| table.get(usize::from(code)).map(|text| (*text).to_owned());
        let text = match (self, code) {
            (Self::Ot1, ..0x20) => low(&OT1_LOW)?,
            (Self::T1, ..0x20) => low(&T1_LOW)?,
            (_, b'\'') => "’".to_owned(),
            (_, b'`') => "‘".to_owned(),
            (Self::Ot1, b'"') => "”".to_owned(),
            (Self::Ot1, b'\\') => "“".to_owned(),
            (Self::Ot1, b'<') => "¡".to_owned(),
            (Self::Ot1, b'>') => "¿".to_owned(),
            (Self::Ot1, b'{') => "–".to_owned(),
            (Self::Ot1, b'|') => "—".to_owned(),
            (_, 0x20..=0x7e) => char::from(code).to_string(),
            (_, 0x7f) => "-".to_owned(),
            (Self::Ot1, _) => return None,
            (Self::T1, 0xd7) => "Œ".to_owned(),
            (Self::T1, 0xdf) => "ẞ".to_owned(),
            (Self::T1, 0xf7) => "œ".to_owned(),
            (Self::T1, 0xff) => "ß".to_owned(),
            (Self::T1, 0xc0..) => char::from(code).to_string(),
            (Self::T1, _) => T1_HIGH.get(usize::from(code - 0x80))?.to_string(),
        };
        Some(text).filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_tell_the_encoding_of_a_text_font() {
        let with = |more: &[u8]| TexEncoding::of(&[b"etaoinsrhl", more].concat());
        assert_eq!(
            (with(b"\x0c"), with(b"\x1c"), with(b"\xe1")),
            (Some(TexEncoding::Ot1), Some(TexEncoding::T1), Some(TexEncoding::T1))
        );
        assert_eq!((with(b""), TexEncoding::of(b"xyz\x0c")), (Some(TexEncoding::Ot1), None));
    }

    #[test]
    fn ligatures_and_quotes_are_text() {
        let text = |encoding: TexEncoding, codes: &[u8]| -> String {
            codes.iter().filter_map(|code| encoding.text(*code)).collect()
        };
        assert_eq!(text(TexEncoding::T1, b"\x10signi\x1cer\x11 \xe1\xf7\x80"), "“signifier” áœĂ");
        assert_eq!(text(TexEncoding::Ot1, b"\\su\x0ece\" {"), "“suffice” –");
    }
}

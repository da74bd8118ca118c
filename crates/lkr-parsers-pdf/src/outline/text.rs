/// The characters 0x80 to 0xa0 of PDFDocEncoding. All others are as in Latin-1.
const UPPER: [char; 33] = [
    '•', '†', '‡', '…', '—', '–', 'ƒ', '⁄', '‹', '›', '−', '‰', '„', '“', '”', '‘', '’', '‚', '™', 'ﬁ', 'ﬂ',
    'Ł', 'Œ', 'Š', 'Ÿ', 'Ž', 'ı', 'ł', 'œ', 'š', 'ž', ' ', '€',
];

/// Decodes a text string: UTF-16 or UTF-8 with a byte order mark, or else PDFDocEncoding.
pub(crate) fn decode(bytes: &[u8]) -> String {
    match bytes {
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        bytes => bytes.iter().map(|byte| single(*byte)).collect(),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.as_chunks().0.iter().map(|pair| unit(*pair));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn single(byte: u8) -> char {
    let upper = byte.checked_sub(0x80).and_then(|at| UPPER.get(usize::from(at)));
    upper.copied().unwrap_or_else(|| char::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_strings_decode_in_all_encodings() {
        assert_eq!(decode(b"\xfe\xff\0A\x20\xac"), "A€");
        assert_eq!(decode(b"\xff\xfeA\0\xac\x20"), "A€");
        assert_eq!(decode(b"\xfe\xff\xd8\0\0A\x20"), "\u{fffd}A");
        assert_eq!(decode(b"\xef\xbb\xbf\xc3\xa9"), "é");
        assert_eq!(decode(b"caf\xe9 \x84 \x93\xa0"), "café — ﬁ€");
    }
}

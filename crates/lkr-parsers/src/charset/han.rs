//! Detection of Chinese and Japanese UTF-16 without a byte order mark. Unlike Latin text, it has few zero bytes.

/// Shorter texts are not detected.
const MIN_UNITS: usize = 8;

/// Whether UTF-16 units are Chinese or Japanese text: all are valid, and nearly all are characters of these scripts.
///
/// Pairs of single-byte letters are characters of these scripts too: `ab` is 扡. So a tenth of the characters must be
/// common signs, whose bytes are rarely adjacent in ASCII or another East Asian encoding.
pub(super) fn is_text(units: impl Iterator<Item = u16>) -> bool {
    let units: Vec<u16> = units.collect();
    let (mut common, mut expected, mut all) = (0_usize, 0_usize, 0_usize);
    for c in char::decode_utf16(units) {
        let Ok(c) = c else {
            return false;
        };
        all += 1;
        common += usize::from(is_common(c));
        expected += usize::from(is_expected(c));
    }
    all >= MIN_UNITS
        && expected.saturating_mul(50) >= all.saturating_mul(49)
        && common.saturating_mul(10) >= all
}

/// Signs that every Chinese or Japanese text has, and whose bytes are rarely adjacent in other encodings.
const fn is_common(c: char) -> bool {
    matches!(c, '\u{3001}' | '\u{3002}' | '\u{ff0c}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fc}' | '的' | '是' | '不' | '了' | '在' | '一')
}

fn is_expected(c: char) -> bool {
    let is_wide = matches!(
        c,
        '\u{3000}'..='\u{303f}'
            | '\u{3041}'..='\u{30ff}'
            | '\u{4e00}'..='\u{9fa5}'
            | '\u{ff01}'..='\u{ff9f}'
            | '\u{2010}'..='\u{203b}'
    );
    is_wide || (' '..='~').contains(&c) || matches!(c, '\n' | '\r' | '\t')
}

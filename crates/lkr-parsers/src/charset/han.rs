//! UTF-16 without a byte order mark and without the zeros of Latin letters: Chinese and Japanese.

/// Fewer characters tell too little.
const MIN_UNITS: usize = 8;

/// Whether units of two bytes are text in Chinese or Japanese: nearly all are characters of those scripts, so many that
/// they cannot be letters of another encoding, and none is impossible.
///
/// Letters of one byte, read in pairs, are characters of these scripts too: `ab` is 扡. So the bytes must not be what
/// ASCII or an encoding of East Asia has, and the characters have to be common ones.
pub(super) fn is_text(units: impl Iterator<Item = u16>) -> bool {
    let units: Vec<u16> = units.collect();
    let (mut common, mut known, mut all) = (0_usize, 0_usize, 0_usize);
    for c in char::decode_utf16(units) {
        let Ok(c) = c else {
            return false;
        };
        all += 1;
        common += usize::from(is_common(c));
        known += usize::from(is_known(c));
    }
    all >= MIN_UNITS && known.saturating_mul(50) >= all.saturating_mul(49) && common.saturating_mul(10) >= all
}

/// Signs that no Chinese or Japanese text does without, whose bytes other encodings hardly put next to each other.
const fn is_common(c: char) -> bool {
    matches!(c, '\u{3001}' | '\u{3002}' | '\u{ff0c}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fc}' | '的' | '是' | '不' | '了' | '在' | '一')
}

fn is_known(c: char) -> bool {
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

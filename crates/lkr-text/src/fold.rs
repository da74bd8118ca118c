//! Folding of case, compatibility forms and accents.

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use crate::chars::is_invisible;

/// `word` in NFKC and lower case, with its accents.
pub(crate) fn lower(word: &str) -> Cow<'_, str> {
    if word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
        return Cow::Borrowed(word);
    }
    if word.is_ascii() {
        return Cow::Owned(word.to_ascii_lowercase());
    }
    let lowered: String = word.nfkc().flat_map(char::to_lowercase).filter(|&c| !is_ignorable(c)).collect();
    // Lower-casing can produce a decomposed letter, as for the Turkish dotted capital.
    Cow::Owned(lowered.nfc().collect())
}

/// `word` without the accents of Latin and Greek letters and the vowel points of Arabic and Hebrew, and with `ё` as
/// `е`.
///
/// Marks of other scripts are kept, because they distinguish letters (`й`, `が`, Indic vowels).
pub(crate) fn strip_accents(word: Cow<'_, str>) -> Cow<'_, str> {
    if word.is_ascii() {
        return word;
    }
    let mut stripped = String::with_capacity(word.len());
    word.chars().for_each(|c| push_stripped(&mut stripped, c));
    Cow::Owned(stripped)
}

fn push_stripped(to: &mut String, c: char) {
    match c {
        'ß' => to.push_str("ss"),
        'æ' => to.push_str("ae"),
        'œ' => to.push_str("oe"),
        'ø' => to.push('o'),
        'ł' => to.push('l'),
        'đ' => to.push('d'),
        'ı' => to.push('i'),
        'ё' => to.push('е'),
        '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}' => {}
        // Latin and Greek letters that may carry accents.
        '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{3ff}' | '\u{1e00}'..='\u{1fff}' => {
            to.extend(std::iter::once(c).nfd().filter(|&part| !is_combining_mark(part)));
        }
        _ => to.push(c),
    }
}

/// Invisible formatting characters, and the spaces that NFKC puts before lone marks.
fn is_ignorable(c: char) -> bool {
    c.is_whitespace()
        || is_invisible(c)
        || matches!(c, '\u{200b}'..='\u{200d}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, lowered: &str, stripped: &str) {
        assert_eq!(lower(word), lowered);
        assert_eq!(strip_accents(lower(word)), stripped);
    }

    #[test]
    fn lower_and_strip_accents_fold_by_script() {
        check("moon", "moon", "moon");
        check("GitLab2", "gitlab2", "gitlab2");
        check("Über", "über", "uber");
        check("U\u{308}ber", "über", "uber");
        check("Straße", "straße", "strasse");
        check("ＡＢＣ１", "abc1", "abc1");
        check("İstanbul", "i\u{307}stanbul", "istanbul");
        check("Ёлка", "ёлка", "елка");
        check("Ярославский", "ярославский", "ярославский");
        check("Ἀθῆναι", "ἀθῆναι", "αθηναι");
        check("ｶﾞ", "ガ", "ガ");
        check("が", "が", "が");
    }
}

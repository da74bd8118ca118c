//! Classes of characters for word segmentation.

use unicode_normalization::char::is_combining_mark;

/// The class of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CharClass {
    /// A letter or digit of a script that separates words by spaces, or a mark on one.
    Word,
    /// A character of a script without spaces between words.
    Unspaced,
    /// A pictograph, which is a word of its own.
    Pictograph,
    /// Anything between words.
    Other,
}

/// The class of `c`. Marks are [`CharClass::Word`]; segmentation attaches them to the character before.
pub(crate) fn class(c: char) -> CharClass {
    if c.is_ascii() {
        return if c.is_ascii_alphanumeric() { CharClass::Word } else { CharClass::Other };
    }
    if is_unspaced(c) {
        CharClass::Unspaced
    } else if is_pictograph(c) {
        CharClass::Pictograph
    } else if c.is_alphanumeric() || is_mark(c) {
        CharClass::Word
    } else {
        CharClass::Other
    }
}

/// Whether `c` belongs to the character before it: a combining mark, a joiner, a variation selector or an invisible
/// character within a word.
pub(crate) fn is_mark(c: char) -> bool {
    !c.is_ascii() && (is_combining(c) || is_invisible(c))
}

/// Whether `c` changes the character before it: a combining mark, a joiner or a variation selector.
pub(crate) fn is_combining(c: char) -> bool {
    !c.is_ascii()
        && (is_combining_mark(c)
            || matches!(c, '\u{200c}' | '\u{200d}' | '\u{ff9e}' | '\u{ff9f}' | '\u{1f3fb}'..='\u{1f3ff}'))
}

/// Characters that do not end a word and have no form: the soft hyphen, the word joiner, and the marks of the direction of
/// writing. A word with one of them is the word without it.
pub(crate) const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
}

/// Chinese, Japanese and Korean letters.
pub(crate) fn is_cjk(c: char) -> bool {
    is_han(c) || is_kana(c) || is_hangul(c) || matches!(c, '\u{3100}'..='\u{312f}')
}

/// Chinese characters, including the iteration mark, the ideographic zero, and the radicals, which some fonts of PDF files
/// have in the place of the characters.
pub(crate) fn is_han(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{2fd5}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{323af}' | '々' | '〆' | '〇')
}

/// Hiragana and katakana, including half-width forms and the length mark.
pub(crate) fn is_kana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{3096}' | '\u{309d}'..='\u{309f}' | '\u{30a1}'..='\u{30fa}'
        | '\u{30fc}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9d}')
}

/// Korean syllables and letters.
pub(crate) fn is_hangul(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{11ff}' | '\u{3131}'..='\u{318e}' | '\u{a960}'..='\u{a97c}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{d7b0}'..='\u{d7fb}' | '\u{ffa0}'..='\u{ffdc}')
}

/// Scripts that do not separate words by spaces, and Korean, which attaches particles to words.
fn is_unspaced(c: char) -> bool {
    // Thai, Lao, Burmese, Khmer; their marks are combining and follow their letters.
    let south_east = matches!(c, '\u{e01}'..='\u{e3a}' | '\u{e40}'..='\u{e4e}' | '\u{e81}'..='\u{ece}'
        | '\u{1000}'..='\u{103f}' | '\u{1780}'..='\u{17d3}');
    is_cjk(c) || (south_east && !is_combining_mark(c))
}

fn is_pictograph(c: char) -> bool {
    matches!(c, '\u{2600}'..='\u{27bf}' | '\u{2b50}' | '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f300}'..='\u{1f3fa}'
        | '\u{1f400}'..='\u{1faff}')
}

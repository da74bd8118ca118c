//! The form of letters in which two readers of one page agree.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// The letters that a character is compared by: without white space, accents, case and ligatures, and with one kind of
/// hyphen, quote and apostrophe.
pub(super) fn normal(c: char) -> impl Iterator<Item = char> {
    std::iter::once(c).nfkd().filter(|c| is_compared(*c)).flat_map(char::to_lowercase).map(plain)
}

fn is_compared(c: char) -> bool {
    let is_invisible = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}');
    !(c.is_whitespace() || c.is_control() || is_invisible || is_combining_mark(c))
}

/// The one of several similar signs that stands for all of them.
const fn plain(c: char) -> char {
    match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fffe}' => '-',
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '`' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' => '"',
        '\u{2022}' | '\u{2219}' | '\u{25cf}' => '\u{b7}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ligatures_accents_and_signs_have_one_form() {
        let form = |text: &str| text.chars().flat_map(normal).collect::<String>();
        assert_eq!(form("Eﬃcient Ångström"), "efficientangstrom");
        assert_eq!(form("“it’s” – co\u{ad}op"), "\"it's\"-coop");
        assert_eq!(form(" \n\u{a0}\u{2}"), "");
    }
}

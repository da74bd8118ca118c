//! Whether the text of a page is text, or what an engine made of an encoding that it does not know.

use crate::page::Page;

/// Text is doubtful if more than one in this many of its characters is odd. See docs/studies.md#pdf-encodings.
const DOUBTFUL: usize = 4;

/// Text of another engine is better if it has at most one in this many of the odd characters, by their share.
const BETTER: usize = 2;

/// Letters of alphabets are rarely in longer words than this, unless the spaces between words are lost.
const MAX_WORD: usize = 30;

/// How much of a text is legible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Legibility {
    /// Letters and digits that may be right.
    letters: usize,
    /// Characters that stand for unknown ones, and letters next to letters of a script with which they share no word.
    unreadable: usize,
    /// Symbols that are rare in text, and frequent where bytes of another encoding are taken for Latin letters.
    symbols: usize,
    /// Letters of words that are so long that spaces between them are probably lost.
    glued: usize,
    /// All characters but white space.
    all: usize,
}

impl Legibility {
    /// The legibility of a page.
    pub(crate) fn of(page: &Page) -> Self {
        let mut legibility = Self::default();
        for line in &page.lines {
            legibility.add(&line.text);
        }
        legibility
    }

    fn add(&mut self, text: &str) {
        if text.is_ascii() {
            self.add_ascii(text.as_bytes());
        } else {
            self.add_chars(text);
        }
        let letters = |word: &str| word.chars().filter(|c| is_of_alphabet(*c)).count();
        // A word has at most as many letters as bytes.
        let long = text.split_whitespace().filter(|word| word.len() > MAX_WORD).map(letters);
        self.glued += long.filter(|letters| *letters > MAX_WORD).sum::<usize>();
    }

    /// Adds what [`add_chars`](Self::add_chars) adds of a text of one script without unknown characters.
    fn add_ascii(&mut self, text: &[u8]) {
        let count = |is: fn(&u8) -> bool| text.iter().filter(|byte| is(byte)).count();
        self.all += count(|byte| !char::from(*byte).is_whitespace());
        self.symbols += count(|byte| is_rare(char::from(*byte)));
        self.letters += count(u8::is_ascii_alphanumeric);
    }

    fn add_chars(&mut self, text: &str) {
        let mut last = None;
        for c in text.chars().filter(|c| !c.is_whitespace() || *c == ' ') {
            let script = script(c);
            self.all += usize::from(c != ' ');
            if is_unknown(c) || (script.is_some() && last.is_some() && script != last) {
                self.unreadable += 1;
            } else if is_rare(c) {
                self.symbols += 1;
            } else {
                self.letters += usize::from(c.is_alphanumeric());
            }
            last = script;
        }
    }

    /// How many characters are probably wrong.
    const fn odd(&self) -> usize {
        self.unreadable + self.symbols + self.glued
    }

    /// Whether the text has letters or digits.
    pub(crate) const fn has_words(&self) -> bool {
        self.letters > 0
    }

    /// Whether another engine should read the page too.
    pub(crate) const fn is_doubtful(&self) -> bool {
        self.odd() * DOUBTFUL > self.all
    }

    /// Whether the text is certainly not what the page shows.
    pub(crate) const fn is_unreadable(&self) -> bool {
        self.unreadable * DOUBTFUL > self.all
    }

    /// Whether this text has nearly as many letters as that of the first engine, and no more odd characters.
    pub(crate) const fn is_as_good_as(&self, first: &Self) -> bool {
        self.odd() <= first.odd() && self.letters * 10 >= first.letters * 9
    }

    /// Whether this text is to be preferred to that of the first engine.
    pub(crate) const fn is_better_than(&self, first: &Self) -> bool {
        let is_clearer = self.odd() * BETTER * first.all <= first.odd() * self.all;
        self.has_words() && !self.is_doubtful() && is_clearer && self.letters * BETTER >= first.letters
    }
}

/// Whether a character stands for an unknown one.
const fn is_unknown(c: char) -> bool {
    matches!(c, '\u{80}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | char::REPLACEMENT_CHARACTER | '\u{f0000}'..)
}

/// Whether a symbol is rare in text.
const fn is_rare(c: char) -> bool {
    matches!(c, '|' | '~' | '^' | '`' | '{' | '}' | '\u{a1}'..='\u{bf}' | '×' | '÷' | '\u{2c2}'..='\u{2df}')
}

/// Whether a letter is of an alphabet with spaces between its words.
fn is_of_alphabet(c: char) -> bool {
    c.is_alphabetic() && matches!(u32::from(c), ..0x600)
}

/// The script of a letter, as the start of its block; 0 for the scripts that share words, or lines without spaces.
fn script(c: char) -> Option<u32> {
    if !c.is_alphabetic() {
        return None;
    }
    Some(match u32::from(c) {
        0x590..=0x5ff | 0xfb1d..=0xfb4f => 0x590,
        0x600..=0x8ff | 0xfb50..=0xfdff | 0xfe70..=0xfeff => 0x600,
        code @ (0x530..=0x58f | 0x900..=0x10ff | 0x1200..=0x1cff) => code & !0x7f,
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ascii_text_is_counted_like_any_other(text in "[ -~\t\u{b}\u{1c}]{0,40}") {
            let (mut ascii, mut chars) = (Legibility::default(), Legibility::default());
            ascii.add_ascii(text.as_bytes());
            chars.add_chars(&text);
            prop_assert_eq!(ascii, chars);
        }
    }

    fn legibility(text: &str) -> Legibility {
        Legibility::of(&Page::from_text(text))
    }

    #[test]
    fn text_of_many_languages_is_not_doubtful() {
        let texts = [
            "Plain text, with a formula: x^2 + y^2 = {z | z > 0}, and 20 °C.",
            "«Œuvres complètes», § 3 : l'été à 25 °C…",
            "開発 kit の PDF ファイル、第2章",
            "Привет, мир! Ελληνικά αβγ",
            "שלום עולם PDF 2.0",
            "نص عربي مع PDF",
            "ข้อความภาษาไทย และ English",
            "हिन्दी में पाठ",
        ];
        for text in texts {
            assert!(!legibility(text).is_doubtful(), "{text}: {:?}", legibility(text));
        }
    }

    #[test]
    fn bytes_of_other_encodings_are_doubtful() {
        let texts = [
            "Ŀ ¡¡ ¡¡ Â¼ ¹Ø ÓÚ ºì ¾ü ×÷ ս µÄ",
            "Îx~|ĄêĄ }Ąê z̧z Ą | x~| ½ Ąz | Ą Ą x } Ą} Ąy| |",
            "\u{fffd}\u{fffd}ab \u{e123}\u{e124}",
            "ଋҨǥƹ̽ୡȥဎഁୡ͢¢ʸͱ੅੧Νਮ¢৞¢ȥ",
            "Loremipsumdolorsitamet,consetetursadipscingelitr, seddiamnonumyeirmodtemporinviduntutlabore",
        ];
        for text in texts {
            assert!(legibility(text).is_doubtful(), "{text}: {:?}", legibility(text));
        }
        assert!(legibility(texts[2]).is_unreadable() && legibility(texts[3]).is_unreadable());
    }

    #[test]
    fn text_is_better_with_fewer_odd_characters_and_not_much_fewer_letters() {
        let garbage = legibility("Â¼¹ØÓÚºì");
        assert!(legibility("目录关于").is_better_than(&garbage));
        assert!(!legibility("目").is_better_than(&garbage), "too little text");
        assert!(!garbage.is_better_than(&garbage));
        assert!(legibility("Words").is_better_than(&Legibility::default()));
        assert!(!Legibility::default().is_better_than(&Legibility::default()));
    }
}

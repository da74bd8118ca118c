//! Stop words by language: the lists of NLTK, or of Stopwords ISO for languages without one in NLTK.

use std::{collections::HashMap, sync::LazyLock};

use crate::{Language, fold::lower};

/// Alphabetic languages with a stop word list. The position is the bit in a [`LanguageMask`].
const LANGUAGES: [&str; 30] = [
    "en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "hu", "ro", "tr", "ru", "el", "ar",
    "ta", "pl", "cs", "sk", "sl", "hr", "bg", "uk", "lv", "lt", "et", "ca", "he",
];

/// A set of languages, one bit each.
pub(crate) type LanguageMask = u32;

/// All stop words, each with the languages in whose lists it is.
static WORDS: LazyLock<HashMap<&'static str, LanguageMask>> = LazyLock::new(|| {
    let mut words = HashMap::with_capacity(8192);
    for (bit, code) in LANGUAGES.iter().enumerate() {
        for word in stop_words::lookup(code).unwrap_or_default() {
            *words.entry(*word).or_default() |= 1 << bit;
        }
    }
    words
});

/// Whether `word`, in any case, is a stop word of `language`.
#[must_use]
pub fn is_stop_word(word: &str, language: Language) -> bool {
    stop_word_languages(&lower(word)) & language_bit(language) != 0
}

/// The languages in which a lower-case `word` is a stop word.
pub(crate) fn stop_word_languages(word: &str) -> LanguageMask {
    WORDS.get(word).copied().unwrap_or_default()
}

/// The bit of `language`; 0 if it has no list.
pub(crate) fn language_bit(language: Language) -> LanguageMask {
    LANGUAGES.iter().position(|code| *code == language.code()).map_or(0, |at| 1 << at)
}

/// The languages of [`LanguageMask`] with their bits.
pub(crate) fn languages() -> impl Iterator<Item = (Language, LanguageMask)> {
    LANGUAGES.iter().enumerate().filter_map(|(at, code)| Some((Language::from_code(code)?, 1 << at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_language_has_stop_words() {
        assert_eq!(languages().count(), LANGUAGES.len());
        for code in LANGUAGES {
            assert!(stop_words::lookup(code).is_some_and(|words| words.len() > 20), "{code}");
        }
    }

    #[test]
    fn is_stop_word_depends_on_the_language() {
        let check = |word, code, expected| {
            assert_eq!(is_stop_word(word, Language::from_code(code).unwrap()), expected, "{word} {code}");
        };
        check("The", "en", true);
        check("moon", "en", false);
        check("für", "de", true);
        check("Über", "de", true);
        check("the", "de", false);
        check("или", "ru", true);
        check("které", "cs", true);
        check("的", "zh", false);
    }
}

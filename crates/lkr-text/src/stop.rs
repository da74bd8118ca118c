//! Words that carry no subject, by language: the lists of NLTK, and of Stopwords ISO where NLTK has none.

use std::{collections::HashMap, sync::LazyLock};

use crate::{Language, fold::lower};

/// Languages of alphabets whose stop words are known, each with its bit in a [`Mask`].
const LANGUAGES: [&str; 30] = [
    "en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "hu", "ro", "tr", "ru", "el", "ar",
    "ta", "pl", "cs", "sk", "sl", "hr", "bg", "uk", "lv", "lt", "et", "ca", "he",
];

/// A set of languages, one bit each.
pub(crate) type Mask = u32;

/// Every known stop word with the languages that it is one in.
static WORDS: LazyLock<HashMap<&'static str, Mask>> = LazyLock::new(|| {
    let mut words = HashMap::with_capacity(8192);
    for (bit, code) in LANGUAGES.iter().enumerate() {
        for word in stop_words::lookup(code).unwrap_or_default() {
            *words.entry(*word).or_default() |= 1 << bit;
        }
    }
    words
});

/// Whether `word` is a stop word of `language`, however it is written.
#[must_use]
pub fn is_stop_word(word: &str, language: Language) -> bool {
    languages_of(&lower(word)) & bit(language) != 0
}

/// The languages in which `word`, in lower case, is a stop word.
pub(crate) fn languages_of(word: &str) -> Mask {
    WORDS.get(word).copied().unwrap_or_default()
}

/// The bit of `language`; none where its stop words are not known.
pub(crate) fn bit(language: Language) -> Mask {
    LANGUAGES.iter().position(|code| *code == language.code()).map_or(0, |at| 1 << at)
}

/// The languages of [`Mask`] with their bits.
pub(crate) fn known() -> impl Iterator<Item = (Language, Mask)> {
    LANGUAGES.iter().enumerate().filter_map(|(at, code)| Some((Language::from_code(code)?, 1 << at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_a_list() {
        assert_eq!(known().count(), LANGUAGES.len());
        for code in LANGUAGES {
            assert!(stop_words::lookup(code).is_some_and(|words| words.len() > 20), "{code}");
        }
    }

    #[test]
    fn stop_words_by_language() {
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

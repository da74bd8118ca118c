//! Snowball stemming by language and script.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};

use crate::{Language, fold::strip_accents};

/// The longest word in bytes that is stemmed. Longer strings are not words of a language.
const MAX_STEMMED_BYTES: usize = 60;

/// The languages of Latin script that have a Snowball stemmer, English first.
pub(crate) const LATIN_STEMMERS: [(&str, Algorithm); 14] = [
    ("en", Algorithm::English),
    ("de", Algorithm::German),
    ("fr", Algorithm::French),
    ("es", Algorithm::Spanish),
    ("it", Algorithm::Italian),
    ("pt", Algorithm::Portuguese),
    ("nl", Algorithm::Dutch),
    ("sv", Algorithm::Swedish),
    ("da", Algorithm::Danish),
    ("no", Algorithm::Norwegian),
    ("fi", Algorithm::Finnish),
    ("hu", Algorithm::Hungarian),
    ("ro", Algorithm::Romanian),
    ("tr", Algorithm::Turkish),
];

/// The term of a lower-case `word`: its stem in `language`, without accents.
///
/// A word in another script than the language's is stemmed by the default of its script: English for Latin, Russian for
/// Cyrillic, Greek, Arabic, Tamil.
pub(crate) fn term(word: &str, language: Option<Language>) -> String {
    match algorithm(word, language) {
        Some(algorithm) => term_by(word, algorithm),
        None => strip_accents(Cow::Borrowed(word)).into_owned(),
    }
}

/// The term of `word` by a given stemmer.
pub(crate) fn term_by(word: &str, algorithm: Algorithm) -> String {
    if word.len() > MAX_STEMMED_BYTES || word.bytes().any(|byte| byte.is_ascii_digit()) {
        return strip_accents(Cow::Borrowed(word)).into_owned();
    }
    strip_accents(Stemmer::create(algorithm).stem(word)).into_owned()
}

fn algorithm(word: &str, language: Option<Language>) -> Option<Algorithm> {
    let code = language.map_or("", Language::code);
    match word.chars().find(|c| c.is_alphabetic())? {
        'a'..='z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => latin(code),
        '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Some(Algorithm::Greek),
        '\u{400}'..='\u{52f}' => (!is_other_cyrillic(code)).then_some(Algorithm::Russian),
        '\u{600}'..='\u{6ff}' => (!matches!(code, "fa" | "ur")).then_some(Algorithm::Arabic),
        '\u{b80}'..='\u{bff}' => Some(Algorithm::Tamil),
        _ => None,
    }
}

/// Whether words from a to z are stemmed as English ones in texts of a language. The stemmer of English keeps the first letter of
/// such a word, and the second one if the stem has two, apart from a y that becomes an i (`dying`).
pub(crate) fn is_english(language: Option<Language>) -> bool {
    matches!(latin(language.map_or("", Language::code)), Some(Algorithm::English))
}

/// The stemmer of a language of Latin script; English if the language is unknown or has another script.
fn latin(code: &str) -> Option<Algorithm> {
    if let Some((_, algorithm)) = LATIN_STEMMERS.iter().find(|(listed, _)| *listed == code) {
        return Some(*algorithm);
    }
    let without_stemmer = matches!(
        code,
        "af" | "ak"
            | "az"
            | "ca"
            | "cs"
            | "cy"
            | "eo"
            | "et"
            | "hr"
            | "id"
            | "jv"
            | "la"
            | "lt"
            | "lv"
            | "pl"
            | "sk"
            | "sl"
            | "sn"
            | "tk"
            | "tl"
            | "uz"
            | "vi"
            | "zu"
    );
    (!without_stemmer).then_some(Algorithm::English)
}

fn is_other_cyrillic(code: &str) -> bool {
    matches!(code, "be" | "bg" | "mk" | "sr" | "uk")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn term_is_the_stem_by_language_and_script() {
        let check = |word, code, expected| assert_eq!(term(word, Language::from_code(code)), expected);
        check("volcanoes", "en", "volcano");
        check("volcanoes", "", "volcano");
        check("häuser", "de", "haus");
        check("élèves", "fr", "elev");
        check("elephants", "zh", "eleph");
        check("книгами", "ru", "книг");
        check("книгами", "en", "книг");
        check("książkami", "pl", "ksiazkami");
        check("il6", "en", "il6");
    }
}

use std::ops::Range;

use crate::{
    Language,
    analyze::{Side, TermForm, bare, for_each_form, truncate},
    detect, stem,
    stop::{self, LanguageMask},
};

/// The weight of a word's form in documents of another language than the query's. See docs/studies.md#query-languages.
const OTHER_LANGUAGE_WEIGHT: f32 = 0.5;

/// The weight of a stem in a language that the query may be in, if its language is unknown. See
/// docs/studies.md#query-languages.
const GUESSED_LANGUAGE_WEIGHT: f32 = 0.25;

/// A query term and the range of the query it was made from.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryTerm {
    /// The term; never empty.
    pub term: String,
    /// Its range in bytes of the query, on character boundaries.
    pub range: Range<usize>,
    /// Its weight, in (0, 1]: 1 for the form that documents in the query's language contain, less for forms that only
    /// documents in other languages contain.
    pub weight: f32,
}

/// The terms of a query. A word has several terms, because the language of a query is often uncertain, and each term
/// once.
///
/// Stop words of English and of the query's language are left out, unless the query consists of them.
#[must_use]
pub fn query_terms(text: &str) -> Vec<QueryTerm> {
    let language = detect(text);
    let terms = collect(text, language, stops(language));
    if terms.is_empty() { collect(text, language, 0) } else { terms }
}

/// Whether a query has words, and all of them are stop words, which documents in their language are not indexed by.
#[must_use]
pub fn consists_of_stop_words(text: &str) -> bool {
    let language = detect(text);
    collect(text, language, stops(language)).is_empty() && !collect(text, language, 0).is_empty()
}

/// The languages whose stop words are left out of a query.
fn stops(language: Option<Language>) -> LanguageMask {
    stop::language_bit(Language::ENGLISH) | language.map_or(0, stop::language_bit)
}

fn collect(text: &str, language: Option<Language>, stops: LanguageMask) -> Vec<QueryTerm> {
    let mut terms = Vec::new();
    for_each_form(text, Side::Query, |form, range| match form {
        TermForm::Word(word) if stop::stop_word_languages(&word) & stops != 0 => {}
        TermForm::Word(word) => {
            let from = terms.len();
            push_forms(&mut terms, from, &word, language, &range);
        }
        TermForm::Verbatim(term) => terms.push(QueryTerm { term, range, weight: 1.0 }),
    });
    terms
}

/// Appends the forms of `word`, likeliest first, without duplicates.
fn push_forms(
    terms: &mut Vec<QueryTerm>,
    from: usize,
    word: &str,
    language: Option<Language>,
    range: &Range<usize>,
) {
    let mut push = |term: String, weight: f32| {
        let term = truncate(term);
        let is_duplicate = terms.iter().skip(from).any(|other| other.term == term);
        if !is_duplicate && !term.is_empty() {
            terms.push(QueryTerm { term, range: range.clone(), weight });
        }
    };
    push(stem::term(word, language), 1.0);
    push(stem::term(word, None), OTHER_LANGUAGE_WEIGHT);
    push(bare(word), OTHER_LANGUAGE_WEIGHT);
    let latin = word.chars().any(|c| matches!(c, 'a'..='z' | '\u{df}'..='\u{24f}'));
    if language.is_none() && latin {
        stem::LATIN_STEMMERS
            .iter()
            .for_each(|(_, algorithm)| push(stem::term_by(word, *algorithm), GUESSED_LANGUAGE_WEIGHT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Analyzer;

    fn terms(query: &str) -> Vec<String> {
        query_terms(query).into_iter().map(|term| term.term).collect()
    }

    #[test]
    fn query_terms_drops_stop_words_unless_there_are_no_others() {
        assert_eq!(terms("what is the orbit of the moon")[..], ["orbit", "moon"]);
        assert!(!terms("the who").is_empty());
        assert!(terms(" ?! ").is_empty());
        for (query, expected) in
            [("the who", true), ("\"to be, or not to be\"", true), ("the orbit", false), ("?!", false)]
        {
            assert_eq!(consists_of_stop_words(query), expected, "{query}");
        }
    }

    #[test]
    fn query_terms_match_documents_although_the_language_is_unknown() {
        let check = |query: &str, language: &str, text: &str| {
            let terms = terms(query);
            let tokens = Analyzer::new(Language::from_code(language)).analyze(text);
            assert!(tokens.iter().any(|token| terms.contains(&token.term)), "{query}: {terms:?} {tokens:?}");
        };
        check("Schwestern", "de", "die sieben Schwestern");
        check("volcans", "fr", "un volcan actif");
        check("Uber", "de", "die Überfahrt, Übers Meer, Über");
        check("eleves", "fr", "les élèves");
        check("книга", "ru", "много книг");
        check("東京", "ja", "東京タワー");
        check("猫", "ja", "吾輩は猫である");
        check("1.2.3", "", "since v1.2.3 of foo_bar");
        check("FOO_BAR", "", "since v1.2.3 of foo_bar");
        check("bar", "", "since v1.2.3 of foo_bar");
        check("2", "", "part V.2");
        check("implementations", "en", "an implemen-\n  tation of it");
        check("long", "en", "the long-\r\nterm goal");
        check("main.rs-like", "en", "a main.rs-\nlike file");
        check("Donaudampfschiff", "de", "das Donau\u{ad}dampf\u{ad}schiff");
        check("Donaudampfschiff", "de", "das Donau\u{ad}\ndampf\u{ad}schiff");
        check("日本", "ja", "\u{2f47}本");
    }

    #[test]
    fn query_terms_weigh_the_form_of_the_own_language_most() {
        for term in query_terms("How do volcanoes and their eruptions change the climate of the earth?") {
            assert_eq!(
                term.weight == 1.0,
                !["volcanoes", "eruptions", "change", "climate"].contains(&&*term.term)
            );
        }
    }
}

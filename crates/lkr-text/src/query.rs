use std::ops::Range;

use crate::{
    Language,
    analyze::{Form, Side, bare, clip, forms},
    detect, stem,
    stop::{self, Mask},
};

/// The weight of a form under which a word stands in texts of another language than the query's.
const OTHER_FORM: f32 = 0.5;

/// The weight of a stem under a language that the query is not known to be in.
const GUESSED_FORM: f32 = 0.25;

/// A term to be looked up, and the words of the query that it stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryTerm {
    /// The term: never empty.
    pub term: String,
    /// The words it stands for, in bytes of the query, on character boundaries.
    pub range: Range<usize>,
    /// How much it counts, in (0, 1]: 1 for the form under which texts of the query's own language hold it, less
    /// for forms that only texts of other languages hold.
    pub weight: f32,
}

/// The terms of a query, whose language is often uncertain; several a word, each once a word.
///
/// Stop words of English and of the query's language are left out, unless nothing else is asked.
#[must_use]
pub fn query_terms(text: &str) -> Vec<QueryTerm> {
    let language = detect(text);
    let stops = stop::bit(Language::ENGLISH) | language.map_or(0, stop::bit);
    let terms = collect(text, language, stops);
    if terms.is_empty() { collect(text, language, 0) } else { terms }
}

fn collect(text: &str, language: Option<Language>, stops: Mask) -> Vec<QueryTerm> {
    let mut terms = Vec::new();
    forms(text, Side::Query, |form, range| match form {
        Form::Word(word) if stop::languages_of(&word) & stops != 0 => {}
        Form::Word(word) => {
            let from = terms.len();
            push_forms(&mut terms, from, &word, language, &range);
        }
        Form::Fixed(term) => terms.push(QueryTerm { term, range, weight: 1.0 }),
    });
    terms
}

/// Appends the forms of `word`, the likeliest first, each form once.
fn push_forms(
    terms: &mut Vec<QueryTerm>,
    from: usize,
    word: &str,
    language: Option<Language>,
    at: &Range<usize>,
) {
    let mut push = |term: String, weight: f32| {
        let term = clip(term);
        let known = terms.iter().skip(from).any(|other| other.term == term);
        if !known && !term.is_empty() {
            terms.push(QueryTerm { term, range: at.clone(), weight });
        }
    };
    push(stem::term(word, language), 1.0);
    push(stem::term(word, None), OTHER_FORM);
    push(bare(word), OTHER_FORM);
    let latin = word.chars().any(|c| matches!(c, 'a'..='z' | '\u{df}'..='\u{24f}'));
    if language.is_none() && latin {
        stem::LATIN.iter().for_each(|(_, algorithm)| push(stem::term_by(word, *algorithm), GUESSED_FORM));
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
    fn stop_words_go_unless_nothing_is_left() {
        assert_eq!(terms("what is the orbit of the moon")[..], ["orbit", "moon"]);
        assert!(!terms("the who").is_empty());
        assert!(terms(" ?! ").is_empty());
    }

    #[test]
    fn finds_words_of_a_language_that_cannot_be_told() {
        let check = |query: &str, language: &str, text: &str| {
            let asked = terms(query);
            let found = Analyzer::new(Language::from_code(language)).analyze(text);
            assert!(found.iter().any(|token| asked.contains(&token.term)), "{query}: {asked:?} {found:?}");
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
    }

    #[test]
    fn the_own_form_weighs_most() {
        for term in query_terms("How do volcanoes and their eruptions change the climate of the earth?") {
            assert_eq!(
                term.weight == 1.0,
                !["volcanoes", "eruptions", "change", "climate"].contains(&&*term.term)
            );
        }
    }
}

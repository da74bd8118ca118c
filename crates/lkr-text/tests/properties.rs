//! Properties of all functions over arbitrary texts.

use std::ops::Range;

use lkr_text::{
    Analyzer, DocumentTerms, Language, Literals, detect, estimate_tokens, highlights, query_terms, sentences,
    token_costs, words,
};
use proptest::prelude::*;

/// Texts of arbitrary characters, and of characters that the functions treat specially.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,200}",
        "[a-zA-Z0-9 .!?…_:@,'’\n-]{0,200}",
        "[一-龥ぁ-んァ-ヶ。！？；…「」a1 \n]{0,120}",
        "([A-Za-zäöüßéèñçøåıİж-яα-ω]{1,30}[ .,\n]{1,2}){0,30}",
        "[ก-๙ក-៹က-႟\u{300}-\u{30f}🏔👍🏽\u{200d}a ]{0,80}",
        "[\u{600}-\u{6ff}\u{590}-\u{5ff} ]{0,120}",
    ]
}

fn assert_sorted(ranges: impl IntoIterator<Item = Range<usize>>, text: &str) {
    let mut end = 0;
    for range in ranges {
        assert!(end <= range.start && range.start < range.end, "{range:?} begins before {end} or is empty");
        assert!(text.get(range.clone()).is_some(), "{range:?} cuts a character");
        end = range.end;
    }
}

proptest! {
    #[test]
    fn sentences_cover_all_but_white_space(text in text()) {
        let found = sentences(&text);
        assert_sorted(found.iter().cloned(), &text);
        let mut rest = text.clone();
        for range in found.iter().rev() {
            let sentence = text.get(range.clone()).unwrap();
            prop_assert_eq!(sentence.trim(), sentence);
            prop_assert!(sentence.chars().count() <= lkr_text::MAX_SENTENCE_CHARS);
            rest.replace_range(range.clone(), "");
        }
        prop_assert!(rest.trim().is_empty(), "{:?} is in no sentence", rest);
    }

    #[test]
    fn words_and_token_costs_are_sorted_and_bounded(text in text()) {
        assert_sorted(words(&text), &text);
        assert_sorted(token_costs(&text).map(|(range, _)| range), &text);
        let covered: usize = token_costs(&text).map(|(range, _)| range.len()).sum();
        prop_assert_eq!(covered, text.chars().filter(|c| !c.is_whitespace()).map(char::len_utf8).sum::<usize>());
        prop_assert!(estimate_tokens(&text) <= 2 * text.chars().count() + 1);
    }

    #[test]
    fn tokens_have_valid_ranges_and_bounded_terms(text in text(), code in prop_oneof!["en|de|fr|ru|tr|el|ar|zh|ja|pl|fi|ro|hu|no|sv|da|nl|it|es|pt|ta"]) {
        for language in [None, Language::from_code(&code), detect(&text)] {
            for token in Analyzer::new(language).analyze(&text) {
                prop_assert!(!token.term.is_empty() && token.term.len() <= 96 && !token.term.contains(char::is_whitespace));
                prop_assert!(text.get(token.range.clone()).is_some_and(|word| !word.is_empty()), "{:?}", token);
            }
        }
    }

    #[test]
    fn document_terms_equal_those_of_the_analyzer(texts in prop::collection::vec(text(), 1..4), code in prop_oneof!["en|de|fr|ru|tr|el|ar|zh|ja|pl"]) {
        for language in [None, Language::from_code(&code)] {
            let mut terms = DocumentTerms::new(language);
            let expected = |text: &str| Analyzer::new(language).analyze(text).into_iter().map(|token| token.term).collect::<Vec<_>>();
            for text in texts.iter().chain(&texts) {
                let (mut before, mut learned, mut after) = (Vec::new(), Vec::new(), Vec::new());
                terms.for_each(text, |term| before.push(term.to_owned()));
                terms.learn(text, |term| learned.push(term.to_owned()));
                terms.for_each(text, |term| after.push(term.to_owned()));
                prop_assert_eq!(&before, &expected(text));
                prop_assert_eq!(&learned, &before);
                prop_assert_eq!(&after, &before);
            }
        }
    }

    #[test]
    fn query_terms_of_a_text_cover_its_index_terms(text in text()) {
        let language = detect(&text);
        let document = Analyzer::new(language).analyze(&text);
        let query = query_terms(&text);
        for term in &query {
            prop_assert!(text.get(term.range.clone()).is_some() && term.weight > 0.0 && term.weight <= 1.0);
        }
        // The query has every term of the document, except English stop words in other languages, and single Chinese
        // characters, which their bigrams represent.
        for token in &document {
            let word = text.get(token.range.clone()).unwrap();
            prop_assert!(
                query.iter().any(|term| term.term == token.term) || lkr_text::is_stop_word(word, Language::ENGLISH)
                    || word.starts_with(is_chinese),
                "{:?}", token
            );
        }
    }

    #[test]
    fn highlights_are_sorted_and_separate(query in text(), text in text()) {
        let length = text.chars().count() as u32;
        let mut end = None;
        for (from, to) in highlights(&query_terms(&query), &Literals::of(&query), &text, detect(&text)) {
            prop_assert!(end.is_none_or(|end| end < from) && from < to && to <= length);
            end = Some(to);
        }
    }
}

proptest! {
    #[test]
    fn quoted_phrase_of_a_text_matches_it(before in text(), phrase in "[a-z]{1,8}( [a-z0-9]{1,8}){0,4}", after in text()) {
        let text = format!("{before}\n{phrase}\n{after}");
        let literals = Literals::of(&format!("what about \"{phrase}\""));
        prop_assert!(literals.matches_in(&[&text]).quoted);
        let ranges = literals.ranges(&text);
        prop_assert!(ranges.iter().any(|range| text.get(range.clone()) == Some(phrase.as_str())), "{:?}", ranges);
        prop_assert!(ranges.iter().all(|range| text.get(range.clone()).is_some()));
    }

    #[test]
    fn literals_of_a_text_match_it(text in text()) {
        let literals = Literals::of(&text);
        let matches = literals.matches_in(&[&text]);
        let words = words(&text).len();
        prop_assert!(matches.whole_query || matches.quoted || words < 2, "{:?}", literals);
    }
}

fn is_chinese(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{2fd5}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{323af}' | '々' | '〆' | '〇')
}

#[test]
fn hostile_texts_terminate() {
    let clusters = [
        ".", "a.", ". ", "?!", "_", "a_", "a:", "::", "1,", "é", "\u{301}", "東", "。", "a\n", "- ", "🏔",
        "A", "aA", "'", "…", "a. b ", "\u{200d}", "(", "1.", "x@",
    ];
    for unit in clusters {
        let text = unit.repeat(200_000 / unit.len());
        assert_sorted(sentences(&text), &text);
        assert_sorted(words(&text), &text);
        assert!(estimate_tokens(&text) > 0, "{unit:?}");
        Analyzer::new(detect(&text)).for_each(&text, |term, _| assert!(!term.is_empty()));
    }
}

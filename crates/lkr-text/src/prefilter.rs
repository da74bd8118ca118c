//! Checks on the bytes of a text that take less time than dividing it into words. They may say that a text contains what it does
//! not, and never the reverse.

use memchr::memchr2_iter;

use crate::chars::{CharClass, class};

/// Whether `text` may contain a phrase, which has no words but these, in lower case and without accents.
pub(crate) fn may_contain_phrase(text: &str, phrase: &[String]) -> bool {
    let words = phrase.iter().enumerate().filter(|(_, word)| word.is_ascii());
    let Some((at, longest)) = words.max_by_key(|(_, word)| word.len()) else { return true };
    let next = phrase.get(at + 1).map(String::as_str);
    let before = at.checked_sub(1).and_then(|at| phrase.get(at)).map(String::as_str);
    let bytes = text.as_bytes();
    let is_between_its_neighbours = |place: usize| {
        let head = bytes.get(..place).unwrap_or_default();
        let tail = bytes.get(place + longest.len()..).unwrap_or_default();
        next.map_or_else(|| !begins_with_letter(tail), |next| may_begin_with(tail, next))
            && before.map_or_else(|| !ends_with_letter(head), |before| may_end_with(head, before))
    };
    places(bytes, longest.as_bytes()).any(is_between_its_neighbours) || !has_plain_words(text)
}

/// Whether `text` may contain a term with another character than letters, in lower case and without accents.
pub(crate) fn may_contain_term(text: &str, term: &str) -> bool {
    let is_plain = term.is_ascii() && !term.bytes().all(|byte| byte.is_ascii_alphabetic());
    !is_plain || places(text.as_bytes(), term.as_bytes()).next().is_some() || !has_plain_words(text)
}

/// Where a text has a word in ASCII letters of any case, possibly as a part of another one.
fn places<'t>(text: &'t [u8], word: &'t [u8]) -> impl Iterator<Item = usize> + 't {
    let first = word.first().copied().unwrap_or_default();
    let starts = memchr2_iter(first.to_ascii_lowercase(), first.to_ascii_uppercase(), text);
    starts.filter(|&at| text.get(at..at + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word)))
}

fn begins_with_letter(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_alphanumeric)
}

fn ends_with_letter(text: &[u8]) -> bool {
    text.last().is_some_and(u8::is_ascii_alphanumeric)
}

/// Whether this word may be the next one of a text.
fn may_begin_with(text: &[u8], word: &str) -> bool {
    let word = word.as_bytes();
    let mut rest = text;
    loop {
        if rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word)) {
            return true;
        }
        match rest.split_first() {
            Some((byte, tail)) if is_between_words(*byte) => rest = tail,
            Some((byte, _)) => return !byte.is_ascii(),
            None => return false,
        }
    }
}

/// Whether this word may be the last one of a text.
fn may_end_with(text: &[u8], word: &str) -> bool {
    let word = word.as_bytes();
    let mut rest = text;
    loop {
        let tail = rest.len().checked_sub(word.len()).and_then(|at| rest.get(at..));
        if tail.is_some_and(|tail| tail.eq_ignore_ascii_case(word)) {
            return true;
        }
        match rest.split_last() {
            Some((byte, head)) if is_between_words(*byte) => rest = head,
            Some((byte, _)) => return !byte.is_ascii(),
            None => return false,
        }
    }
}

/// Whether a byte may be between two words.
const fn is_between_words(byte: u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_alphanumeric()
}

/// Whether words of `text` that are in ASCII letters are in it as they are: none is hyphenated at the end of a line, and none has
/// accents or other forms, which are ignored.
fn has_plain_words(text: &str) -> bool {
    let is_hyphenated = || {
        let ends = memchr2_iter(b'\n', b'\r', text.as_bytes());
        let mut heads = ends.filter_map(|at| text.get(..at)?.strip_suffix('-'));
        heads.any(|head| head.ends_with(char::is_lowercase))
    };
    (text.is_ascii() || !text.chars().any(may_become_ascii)) && !is_hyphenated()
}

/// Whether a word with this character may be equal to one in ASCII letters, because accents and forms are ignored.
fn may_become_ascii(c: char) -> bool {
    let joins = || matches!(c, '\u{ad}' | '\u{2010}' | '\u{2011}');
    !c.is_ascii() && (matches!(class(c), CharClass::Word | CharClass::Unspaced) || joins())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        analyze::{Side, TermForm, for_each_form},
        literal::{all_phrase_ranges, phrase},
    };

    fn check_phrase(query: &str, text: &str, expected: bool) {
        assert_eq!(may_contain_phrase(text, &phrase(query)), expected, "{query:?} in {text:?}");
    }

    #[test]
    fn phrase_is_looked_for_between_its_neighbours() {
        check_phrase("the salty ocean", "The salty, OCEAN", true);
        check_phrase("the salty ocean", "the salty oceans of", false);
        check_phrase("the salty ocean", "the salt ocean", false);
        check_phrase("the salty ocean", "a salty ocean", true);
        check_phrase("salty ocean floor", "a floor and the salty ocean", false);
        check_phrase("the salty ocean", "the salt-\ny ocean", true);
        check_phrase("über Ozean", "Ozean", false);
        check_phrase("über Ozean", "über Ozean", true);
    }

    proptest! {
        #[test]
        fn whatever_a_text_contains_it_may_contain(
            text in "([abA]{1,3}|-\n|[-'._:@1 \n\r\u{ad}é’ａ海]){0,9}",
            query in "([abA]{1,2}|[-'.1 \u{ad}é海]){1,5}",
        ) {
            let phrase = phrase(&query);
            if !phrase.is_empty() && !all_phrase_ranges(&text, &phrase).is_empty() {
                prop_assert!(may_contain_phrase(&text, &phrase), "{:?} in {:?}", phrase, text);
            }
            for_each_form(&text, Side::Document, |form, _| {
                let (TermForm::Word(term) | TermForm::Verbatim(term)) = form;
                assert!(may_contain_term(&text, &term), "{term:?} in {text:?}");
            });
        }
    }
}

use proptest::prelude::*;

use super::{letters::Letters, stretches::align};

/// The letters of `text` that were found, with `_` for the others.
fn found(text: &str, page: &str) -> String {
    let page = letters(page);
    let places = align(&letters(text), &page).into_iter();
    places.map(|index| index.map_or('_', |index| page.letters[index])).collect()
}

fn letters(text: &str) -> Letters {
    let mut letters = Letters::default();
    for word in text.split_whitespace() {
        word.char_indices().for_each(|(at, letter)| letters.push(letter, at == 0));
    }
    letters
}

#[test]
fn text_in_another_order_is_found() {
    let (left, right) = ("the first column has a text of its own", "and another text is in the second one");
    let page = format!("{right} {left}");
    assert_eq!(found(&format!("{left} {right}"), &page), format!("{left}{right}").replace(' ', ""));
}

#[test]
fn words_of_another_order_are_found_whole() {
    let (text, page) =
        ("northwest northeast middle southwest southeast", "southeast southwest middle northeast northwest");
    let places = align(&letters(text), &letters(page));
    let last = places[places.len() - 9..].iter().copied().collect::<Option<Vec<_>>>();
    assert_eq!(last, Some((0..9).collect()));
}

#[test]
fn differences_leave_their_neighbours_in_place() {
    let page = "an inter- national agree- ment of 1998 and more";
    assert_eq!(found("an international agreement of 1999 and", page), "aninternationalagreementof199_and");
}

#[test]
fn repeated_words_have_places_of_their_own() {
    let text = letters("total 10 total 10 total 10");
    assert_eq!(align(&text, &text), (0..text.letters.len()).map(Some).collect::<Vec<_>>());
}

#[test]
fn short_words_in_another_order_are_found_if_both_sides_have_them_equally_often() {
    assert_eq!(found("a 10 b 7 a", "7 x a b q 10 a y"), "a10b7a");
    assert_eq!(found("q 5 5", "5 z q"), "q__");
}

#[test]
fn repetitive_texts_take_bounded_time() {
    let (text, page) = (letters(&"a".repeat(150_000)), letters(&"a".repeat(200_000)));
    let started = std::time::Instant::now();
    assert!(align(&text, &page).iter().all(Option::is_some));
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

proptest! {
    #[test]
    fn places_are_distinct_and_have_the_letter(text in "[ab ]{0,80}", page in "[abc ]{0,80}") {
        let (text, page) = (letters(&text), letters(&page));
        let places = align(&text, &page);
        prop_assert_eq!(places.len(), text.letters.len());
        let mut seen = std::collections::HashSet::new();
        for (letter, place) in text.letters.iter().zip(places) {
            if let Some(place) = place {
                prop_assert_eq!(page.letters[place], *letter);
                prop_assert!(seen.insert(place));
            }
        }
    }
}

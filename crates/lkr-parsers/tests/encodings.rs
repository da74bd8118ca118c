//! Texts in many encodings are decoded without a declaration, or with a warning.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod encode;
mod samples;

use encode::encode;
use lkr_parsers::decode;
use proptest::prelude::*;
use samples::{SAMPLES, Sample};

/// In shorter texts, a guess may be wrong without a sign of it.
const MIN_WORDS: usize = 12;

/// What is wrong with the text decoded from a sample, if anything: it differs, and no warning says so.
fn garbage(name: &str, text: &str) -> Option<String> {
    let bytes = encode(name, text).unwrap();
    let decoded = decode(&bytes, None);
    let is_wrong = decoded.text != text && decoded.warnings().next().is_none();
    is_wrong.then(|| format!("{name} as {}: {:.60}", decoded.encoding, decoded.text))
}

#[test]
fn every_sample_is_decoded_without_warning() {
    let mut failures = Vec::new();
    for (language, text, encodings) in SAMPLES {
        for name in *encodings {
            let Some(bytes) = encode(name, text) else { panic!("{language} cannot be written in {name}") };
            let decoded = decode(&bytes, None);
            let warnings: Vec<String> = decoded.warnings().collect();
            if decoded.text != *text || !warnings.is_empty() {
                failures.push(format!(
                    "{language} in {name}: {warnings:?} {} {:.60}",
                    decoded.encoding, decoded.text
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn utf8_sample_is_unchanged_without_warning() {
    for (language, text, _) in SAMPLES {
        let decoded = decode(text.as_bytes(), None);
        assert_eq!(
            (&*decoded.text, decoded.encoding, decoded.warnings().count()),
            (*text, "UTF-8", 0),
            "{language}"
        );
    }
}

#[test]
fn short_sample_is_decoded_or_has_a_warning() {
    let mut failures = Vec::new();
    for (language, text, encodings) in SAMPLES {
        let words: Vec<&str> = text.split_inclusive([' ', '、', ',']).collect();
        for length in MIN_WORDS..words.len() {
            let part = words.get(..length).unwrap().concat();
            failures.extend(
                encodings
                    .iter()
                    .filter_map(|name| garbage(name, &part))
                    .map(|why| format!("{language} in {why}")),
            );
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The samples without Latin letters. Most words of the others are ASCII, so that some words are no evidence.
fn other_scripts() -> Vec<Sample> {
    let is_other = |(_, text, _): &&Sample| !text.contains(|c: char| c.is_ascii_alphabetic());
    SAMPLES.iter().filter(is_other).copied().collect()
}

/// A text of some words of a sample, with its encodings.
fn mixed_words() -> impl Strategy<Value = (String, &'static [&'static str])> {
    prop::sample::select(other_scripts()).prop_flat_map(|(_, text, encodings)| {
        let words: Vec<&str> = text.split(' ').collect();
        let lengths = words.len().min(MIN_WORDS)..=words.len();
        let order = (Just(words).prop_shuffle(), lengths);
        order.prop_map(move |(words, length)| (words.get(..length).unwrap().join(" "), encodings))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn words_in_any_order_are_decoded_or_have_a_warning((text, encodings) in mixed_words()) {
        for name in encodings {
            prop_assert_eq!(garbage(name, &text), None);
        }
    }
}

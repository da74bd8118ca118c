//! Fingerprints of texts, by which equal and near texts are found.

use std::hash::Hasher;

use lkr_domain::{Fingerprint, hex};
use lkr_text::words;
use sha2::{Digest, Sha256};
use siphasher::sip::SipHasher13;
use unicode_normalization::UnicodeNormalization;

/// The fingerprint of a text. Fingerprints are stored, so the function never changes. Takes time linear in the text and memory
/// for its distinct words.
#[must_use]
pub fn fingerprint(text: &str) -> Fingerprint {
    let normal = normal(text);
    Fingerprint { sha256: hex(&Sha256::digest(&normal)), simhash: simhash(&normal) }
}

/// The text in NFC, with single spaces between words.
fn normal(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !normal.is_empty() {
            normal.push(' ');
        }
        // ASCII is its own normal form.
        if word.is_ascii() {
            normal.push_str(word);
        } else {
            normal.extend(word.nfc());
        }
    }
    normal
}

/// The SimHash of Charikar ("Similarity estimation techniques from rounding algorithms", 2002) over the distinct words of a
/// text and the distinct pairs of adjacent words, ignoring case. Counting each once keeps common words from dominating. See
/// docs/studies.md#near-duplicates.
fn simhash(normal: &str) -> u64 {
    let lower = normal.to_lowercase();
    let separated = lower.replace(separates_words, " ");
    let mut features = std::collections::HashSet::new();
    let mut before = None;
    for range in words(&separated) {
        let word = hash(separated.get(range).unwrap_or_default().as_bytes());
        features.insert(word);
        if let Some(before) = before.replace(word) {
            features.insert(hash(&[before.to_le_bytes(), word.to_le_bytes()].concat()));
        }
    }
    if features.is_empty() {
        // Without words only equal texts are near.
        return hash(lower.as_bytes());
    }
    let mut sums = [0_i64; 64];
    for feature in features {
        for (bit, sum) in sums.iter_mut().enumerate() {
            *sum += if feature >> bit & 1 == 1 { 1 } else { -1 };
        }
    }
    sums.iter().enumerate().fold(0, |bits, (bit, sum)| bits | u64::from(*sum > 0) << bit)
}

/// Characters that are parts of words, and were not when the first fingerprints were stored.
const fn separates_words(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
        || matches!(c, '\u{2e80}'..='\u{2fd5}')
}

/// A hash that never changes, because fingerprints are stored.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "The moons of Jupiter are many. Io is the innermost of the four large ones, and the most \
        volcanic body of the solar system: its heat comes from the tides that Jupiter raises in it. Europa is \
        covered with ice, under which an ocean of salt water lies. Ganymede is the largest moon of all, larger than \
        Mercury, and has a magnetic field of its own. Callisto is old and full of craters.";

    fn distance(one: &str, other: &str) -> u32 {
        (fingerprint(one).simhash ^ fingerprint(other).simhash).count_ones()
    }

    /// The stored SimHash of the text below.
    const STORED: &str = "9615268f519a8d47";

    /// As when the first fingerprints were stored.
    #[test]
    fn invisible_characters_separate_words() {
        for (text, separated) in [
            ("das Donau\u{ad}dampf\u{ad}schiff fährt", "das Donau dampf schiff fährt"),
            ("a\u{2060}b c\u{200f} d", "a b c  d"),
            ("日\u{2f47}本 語", "日 本 語"),
        ] {
            assert_eq!(simhash(text), simhash(separated), "{text:?}");
        }
    }

    #[test]
    fn fingerprint_equals_the_stored_one() {
        let Fingerprint { sha256, simhash } = fingerprint("Io  is\nnear\u{a0}Jupiter. ");
        assert_eq!(sha256, hex(&Sha256::digest("Io is near Jupiter.")));
        assert_eq!(simhash, fingerprint("io IS near jupiter").simhash);
        assert_eq!(format!("{simhash:016x}"), STORED);
    }

    #[test]
    fn composed_and_decomposed_letters_have_equal_fingerprints() {
        assert_eq!(fingerprint("caf\u{e9}"), fingerprint("cafe\u{301}"));
        assert_ne!(fingerprint("cafe"), fingerprint("caf\u{e9}"));
    }

    #[test]
    fn edited_text_is_near_and_unrelated_text_is_not() {
        let edited = TEXT.replace("innermost", "closest").replace("craters", "holes");
        assert!(distance(TEXT, &edited) <= 12, "{}", distance(TEXT, &edited));
        let other = "Rust is a language for programs that must be fast and right. Its compiler knows who owns \
            what, and when it ends; data races do not compile. Cargo builds, tests and documents crates, and \
            fetches those that others wrote. Errors are values, and panics are bugs.";
        assert!(distance(TEXT, other) >= 16, "{}", distance(TEXT, other));
    }

    proptest! {
        #[test]
        fn white_space_does_not_change_the_fingerprint(words in prop::collection::vec("[a-zA-Z\u{e0}-\u{ff}]{1,8}", 1..40), seed in any::<u64>()) {
            let gaps = [" ", "\n", "\t ", "\u{2003}", "\r\n\r\n"];
            let plain = words.join(" ");
            let mut laid_out = String::new();
            for (at, word) in words.iter().enumerate() {
                laid_out.push_str(word);
                laid_out.push_str(gaps[(seed.rotate_left(at as u32) % 5) as usize]);
            }
            prop_assert_eq!(fingerprint(&plain), fingerprint(&laid_out));
        }

        #[test]
        fn fingerprint_equals_that_of_the_normalized_text(text in any::<String>()) {
            let once = fingerprint(&text);
            prop_assert_eq!(once.sha256.len(), 64);
            prop_assert_eq!(&once, &fingerprint(&normal(&text)));
        }
    }
}

//! Normalizes text for comparison.

use unicode_normalization::UnicodeNormalization;

/// The letters and digits of a text, without case, ligatures and accents.
pub(super) fn key(text: &str) -> String {
    text.nfkd().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The key without a leading number such as `1.2` or `IV.`; the whole key if nothing is left.
pub(super) fn unnumbered(text: &str) -> String {
    let text = text.trim_start();
    let mut rest = text.trim_start_matches(|c: char| c.is_ascii_digit() || ".)-§".contains(c));
    if rest.len() == text.len()
        && let Some((first, tail)) = text.split_once(['.', ' '])
        && first.len() <= 5
        && first.chars().all(|c| "IVXLC".contains(c))
    {
        rest = tail;
    }
    let short = key(rest);
    if short.is_empty() { key(text) } else { short }
}

/// The offset in the text at which the first `count` characters of its key end.
pub(super) fn end_of_key(text: &str, count: usize) -> usize {
    let mut left = count;
    for (at, c) in text.char_indices() {
        let more =
            std::iter::once(c).nfkd().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).count();
        if left == 0 && more > 0 {
            return at;
        }
        left = left.saturating_sub(more);
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_ignore_case_accents_and_numbers() {
        assert_eq!(key("2.1  De\u{fb01}nitions — É"), "21definitionse");
        assert_eq!(unnumbered("2.1 Definitions"), "definitions");
        assert_eq!(unnumbered("IV. Results"), "results");
        assert_eq!(unnumbered("2019"), "2019");
        assert_eq!(unnumbered("Civil law"), "civillaw");
    }

    #[test]
    fn end_of_key_splits_at_the_character() {
        let text = "De\u{fb01}ne: more";
        assert_eq!(text.split_at(end_of_key(text, 6)), ("De\u{fb01}ne: ", "more"));
        assert_eq!(end_of_key(text, 100), text.len());
    }
}

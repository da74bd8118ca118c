//! Estimates of the number of word pieces of a BERT-like tokenizer, without its vocabulary.

use std::ops::Range;

use crate::chars::{CharClass, class, is_mark};

/// An estimate of the number of word pieces of `text`, without special tokens.
///
/// Tuned on the uncased vocabulary of all-MiniLM-L6-v2; the crate documentation states its accuracy.
#[must_use]
pub fn estimate_tokens(text: &str) -> usize {
    token_costs(text).map(|(_, cost)| cost as usize).sum::<usize>().div_ceil(100)
}

/// The longest beginning of `text` with at most `tokens` word pieces by the estimate.
#[must_use]
pub fn first_tokens(text: &str, tokens: usize) -> &str {
    let mut spent = 0;
    let fits = token_costs(text).take_while(|(_, cost)| {
        spent += *cost as usize;
        spent <= tokens.saturating_mul(100)
    });
    let end = fits.last().map_or(0, |(range, _)| range.end);
    text.get(..end).unwrap_or_default()
}

/// The parts of `text` that a tokenizer looks up separately, in order, each with its range in bytes and its cost in
/// hundredths of a word piece. The costs of two texts that are joined by white space add up.
pub fn token_costs(text: &str) -> impl Iterator<Item = (Range<usize>, u32)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let tail = text.get(at..)?;
        let start = at + tail.find(|c: char| !c.is_whitespace())?;
        let first = text.get(start..)?.chars().next()?;
        let length = part_length(text.get(start..)?, first);
        at = start + length;
        Some((start..at, cost(text.get(start..at)?, first)))
    })
}

/// The length of the part at the start of `tail`: a run of letters and digits, or one other character.
fn part_length(tail: &str, first: char) -> usize {
    if class(first) != CharClass::Word {
        return first.len_utf8();
    }
    tail.find(|c| class(c) != CharClass::Word).unwrap_or(tail.len())
}

fn cost(part: &str, first: char) -> u32 {
    let chars = part.chars().count() as u32;
    if class(first) != CharClass::Word {
        return if is_mark(first) { 0 } else { 100 };
    }
    if part.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return lower_case_word(chars);
    }
    if part.bytes().all(|byte| byte.is_ascii_digit()) {
        return digits(chars);
    }
    if part.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return capitalised_word(part, chars);
    }
    if part.is_ascii() {
        return 100 + chars * 42;
    }
    if first.is_ascii() || matches!(first, '\u{c0}'..='\u{24f}') {
        return 100 + chars.saturating_sub(3) * 32;
    }
    // The vocabulary contains little more than the letters of other alphabets.
    100 + chars.saturating_sub(1) * 75
}

fn lower_case_word(chars: u32) -> u32 {
    match chars {
        0..=5 => 102,
        6..=7 => 112,
        8 => 117,
        9..=11 => 134 + (chars - 9) * 10,
        12..=13 => 175 + (chars - 12) * 13,
        14..=20 => 244 + (chars - 14) * 68,
        _ => 650 + (chars - 20) * 35,
    }
}

fn capitalised_word(part: &str, chars: u32) -> u32 {
    if chars > 1 && part.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return uppercase_word(chars);
    }
    match chars {
        0..=1 => 100,
        2..=3 => 108,
        4..=8 => 124,
        9..=12 => 158 + (chars - 9) * 8,
        _ => lower_case_word(chars).max(230),
    }
}

/// Acronyms, and words of seven letters or more in capitals.
fn uppercase_word(chars: u32) -> u32 {
    match chars {
        0..=4 => 60 + chars * 33,
        5..=6 => 158,
        _ => lower_case_word(chars),
    }
}

fn digits(chars: u32) -> u32 {
    match chars {
        0..=2 => 100,
        3..=4 => 127,
        _ => chars * 54,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_costs_cover_all_but_white_space() {
        let text = " Über 12 Vulkane, 東京!\u{301} ";
        let parts: Vec<_> = token_costs(text).map(|(range, _)| text.get(range).unwrap()).collect();
        assert_eq!(parts, ["Über", "12", "Vulkane", ",", "東", "京", "!", "\u{301}"]);
    }

    #[test]
    fn first_tokens_stays_within_the_limit() {
        let text = "the ice of 東京 is thick";
        for tokens in 0..12 {
            let first = first_tokens(text, tokens);
            assert!(text.starts_with(first) && estimate_tokens(first) <= tokens, "{tokens}: {first}");
        }
        assert!(first_tokens(text, 3).starts_with("the ice"));
        assert_eq!((first_tokens(text, 100), first_tokens("", 3)), (text, ""));
    }

    #[test]
    fn estimate_tokens_is_near_the_vocabulary() {
        let check = |text: &str, range: Range<usize>| {
            let estimate = estimate_tokens(text);
            assert!(range.contains(&estimate), "{estimate}: {text}");
        };
        check("", 0..1);
        check(" \n", 0..1);
        check("the moon", 2..4);
        check("東京タワーは高い。", 9..10);
        // 21 pieces in the vocabulary of all-MiniLM-L6-v2.
        check(
            "Jupiter has ninety-five moons with confirmed orbits; the four largest were seen by Galileo.",
            18..24,
        );
        check(&"a".repeat(10_000), 1000..5000);
    }
}

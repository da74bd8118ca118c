//! Truncates texts by an estimate of their tokens, because the provider's tokenizer is unknown.

/// Token counts are computed in sixths of a token.
const UNITS_PER_TOKEN: usize = 6;

/// The longest beginning of `text` that has at most `max_tokens` estimated tokens.
pub(crate) fn truncate(text: &str, max_tokens: usize) -> &str {
    let limit = max_tokens.saturating_mul(UNITS_PER_TOKEN);
    let mut used = 0_usize;
    let end = text.char_indices().find(|(_, c)| {
        used = used.saturating_add(units(*c));
        used > limit
    });
    end.and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// An estimate of the tokens of `text`, which is too high rather than too low.
pub(crate) fn estimate_tokens(text: &str) -> usize {
    text.chars().map(units).sum::<usize>().div_ceil(UNITS_PER_TOKEN)
}

/// The size of a character in sixths of a token: about the most that common word-piece and byte-level vocabularies need
/// for running text. A token is three English letters, two Cyrillic ones or one of Devanagari. A Chinese character is one
/// and a half tokens, an emoji three.
const fn units(c: char) -> usize {
    match c {
        'a'..='z' | 'A'..='Z' | ' ' => 2,
        '\0'..='\u{7ff}' => 3,
        '\u{800}'..='\u{2e7f}' => 6,
        '\u{2e80}'..='\u{ffff}' => 9,
        _ => 18,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_truncated_by_estimated_tokens() {
        assert_eq!(truncate("abcdefghi", 2), "abcdef");
        assert_eq!(truncate("木星卫队轨道", 3), "木星");
        assert_eq!(truncate("🦉🦉", 3), "🦉");
        assert_eq!(truncate("short", 100), "short");
        assert_eq!(truncate("x", 0), "");
        assert_eq!(["", "abcd", "木星"].map(estimate_tokens), [0, 2, 3]);
    }

    proptest! {
        #[test]
        fn truncated_text_is_the_longest_prefix_within_the_limit(text: String, limit in 0_usize..50) {
            let kept = truncate(&text, limit);
            prop_assert!(text.starts_with(kept) && estimate_tokens(kept) <= limit);
            let next = text.strip_prefix(kept).and_then(|rest| rest.chars().next());
            let with_next = |next| estimate_tokens(&[kept, &String::from(next)].concat());
            prop_assert!(next.is_none_or(|next| with_next(next) > limit));
        }
    }
}

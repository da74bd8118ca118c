//! Bounds of what a tool returns. An agent's window is small, and each answer stays in it.

use lkr_text::prompt_tokens;
use serde::Serialize;

use crate::{Error, ErrorKind, Result};

/// The most tokens of a tool's text. Chosen so that several answers fit into the smallest windows in use, not measured.
pub(crate) const MAX_TOKENS: usize = 8_000;

/// The most code points of a title, a source or a heading.
const MAX_LINE_CHARS: usize = 300;

/// A line of at most [`MAX_LINE_CHARS`] code points.
pub(crate) fn line(text: &str) -> String {
    match text.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The longest start of `text` with at most `max_tokens` tokens. It ends behind a line, else behind a word, if that costs at
/// most half of it.
pub(crate) fn cut(text: &str, max_tokens: usize) -> &str {
    cut_by(text, max_tokens, prompt_tokens)
}

/// The longest start of `text` with at most `max_tokens` tokens as JSON, which ends as that of [`cut`].
pub(crate) fn cut_json(text: &str, max_tokens: usize) -> &str {
    cut_by(text, max_tokens, json_tokens)
}

/// The tokens of a text as JSON, in which some characters take several.
pub(crate) fn json_tokens(text: &str) -> usize {
    json(&text).map_or(usize::MAX, |json| prompt_tokens(&json))
}

fn cut_by(text: &str, max_tokens: usize, tokens: impl Fn(&str) -> usize) -> &str {
    if tokens(text) <= max_tokens {
        return text;
    }
    // A token has a byte at least, so the end is found among these.
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let fits = |end: &usize| tokens(text.get(..*end).unwrap_or_default()) <= max_tokens;
    let longest = ends.partition_point(fits).saturating_sub(1);
    let cut = text.get(..ends.get(longest).copied().unwrap_or_default()).unwrap_or_default();
    let behind = |separator: fn(char) -> bool| {
        let end = cut.rfind(separator)?;
        let start = cut.get(end..)?.chars().next()?;
        cut.get(..end + start.len_utf8()).filter(|shorter| shorter.len() * 2 >= cut.len())
    };
    behind(|character| character == '\n').or_else(|| behind(char::is_whitespace)).unwrap_or(cut)
}

/// The first of `items` that fit into `max_tokens` tokens as JSON.
pub(crate) fn fitting<T: Serialize>(items: Vec<T>, max_tokens: usize) -> Result<Vec<T>> {
    let (mut kept, mut tokens) = (Vec::with_capacity(items.len()), 0);
    for item in items {
        tokens += prompt_tokens(&json(&item)?) + 1;
        if tokens > max_tokens {
            break;
        }
        kept.push(item);
    }
    Ok(kept)
}

/// A value as JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::new(ErrorKind::Internal, "encode", error))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn cut_text_is_a_start_that_fits(text: String, max_tokens in 1_usize..50) {
            let cut = cut(&text, max_tokens);
            prop_assert!(text.starts_with(cut));
            prop_assert!(prompt_tokens(cut) <= max_tokens);
        }

        #[test]
        fn text_cut_as_json_is_a_start_that_fits(text in "[a-z \\n\"\\\\\\x01é東]{0,99}", max_tokens in 4_usize..50) {
            let cut = cut_json(&text, max_tokens);
            prop_assert!(text.starts_with(cut));
            prop_assert!(json_tokens(cut) <= max_tokens);
        }
    }

    #[test]
    fn cut_ends_behind_a_line() {
        let text = "Io has volcanoes. They never rest.\n".repeat(50);
        let cut = cut(&text, 100);
        assert!(cut.ends_with('\n') && cut.len() > 300, "{cut}");
        assert_eq!(super::cut("short", 100), "short");
    }

    #[test]
    fn items_beyond_the_budget_are_left_out() {
        let items = vec!["a word or two"; 100];
        let kept = fitting(items, 50).unwrap().len();
        assert!((5..=12).contains(&kept), "{kept}");
    }

    #[test]
    fn long_line_is_cut() {
        assert_eq!(line("é"), "é");
        assert_eq!(line(&"é".repeat(301)), format!("{}…", "é".repeat(300)));
    }
}

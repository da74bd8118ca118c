//! Division of a text into the pieces that the tokenizer of o200k_base encodes one by one.

/// The pieces of a text, in order and without gaps: words with the character before them, up to three digits, symbols with
/// a space before and the line breaks after them, white space.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let (piece, after) = rest.split_at_checked(length(rest, first).max(first.len_utf8()))?;
        rest = after;
        Some(piece)
    })
}

/// The length in bytes of the piece at the start of `rest`.
fn length(rest: &str, first: char) -> usize {
    if first.is_numeric() {
        return prefix(rest, 3, char::is_numeric);
    }
    if is_letter(first) {
        return word(rest);
    }
    let after = rest.get(first.len_utf8()..).unwrap_or_default();
    if !is_line_break(first) && after.starts_with(is_letter) {
        return first.len_utf8() + word(after);
    }
    if !first.is_whitespace() {
        return symbols(rest);
    }
    if first == ' ' && after.starts_with(is_symbol) {
        return first.len_utf8() + symbols(after);
    }
    white_space(rest)
}

const fn is_line_break(c: char) -> bool {
    matches!(c, '\r' | '\n')
}

fn is_letter(c: char) -> bool {
    c.is_alphabetic() || crate::chars::is_combining(c)
}

fn is_symbol(c: char) -> bool {
    !c.is_whitespace() && !c.is_alphabetic() && !c.is_numeric()
}

/// The length of the first `count` characters that `accepted` accepts.
fn prefix(rest: &str, count: usize, accepted: impl Fn(char) -> bool) -> usize {
    rest.chars().take(count).take_while(|&c| accepted(c)).map(char::len_utf8).sum()
}

/// Capital letters and then small ones, with an English contraction after them. Letters without case are both.
fn word(rest: &str) -> usize {
    let capitals = prefix(rest, usize::MAX, |c| is_letter(c) && !c.is_lowercase());
    let tail = rest.get(capitals..).unwrap_or_default();
    let end = capitals + prefix(tail, usize::MAX, |c| is_letter(c) && !c.is_uppercase());
    end + contraction(rest.get(end..).unwrap_or_default())
}

fn contraction(rest: &str) -> usize {
    let is_at_start =
        |ending: &&&str| rest.get(..ending.len()).is_some_and(|it| it.eq_ignore_ascii_case(ending));
    ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"].iter().find(is_at_start).map_or(0, |ending| ending.len())
}

/// Symbols, with the line breaks and slashes after them.
fn symbols(rest: &str) -> usize {
    let end = prefix(rest, usize::MAX, is_symbol);
    end + prefix(rest.get(end..).unwrap_or_default(), usize::MAX, |c| is_line_break(c) || c == '/')
}

/// White space up to its last line break; else all of it at the end of the text, or all but the last character, which
/// belongs to what follows.
fn white_space(rest: &str) -> usize {
    let end = prefix(rest, usize::MAX, char::is_whitespace);
    let run = rest.get(..end).unwrap_or_default();
    if let Some(last) = run.rfind(is_line_break) {
        return last + 1;
    }
    let last = run.chars().next_back().filter(|_| end < rest.len()).map_or(0, char::len_utf8);
    if last < end { end - last } else { end }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pieces_are_those_of_the_tokenizer() {
        let tokenizer = bpe_openai::o200k_base();
        for text in [
            "GitLab's OKRs: parseHTMLPage(12345) isn't\n\n  - done\t\tat  all.",
            "東京タワー、3.14 и café (x_y) [a](b/c.md)\r\n\r\n``` sh\n    x = 1 ",
            "a  b   \n c\u{301}d ½ ²³ 1٣4\u{3000}国 \u{1f600}\u{fe0f}!\n//\nend",
        ] {
            let expected: Vec<&str> = tokenizer.split(text).collect();
            assert_eq!(pieces(text).collect::<Vec<_>>(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn pieces_join_to_the_text(text in "(\\PC|\\s){0,80}") {
            prop_assert_eq!(pieces(&text).collect::<String>(), text);
        }
    }
}

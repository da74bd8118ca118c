//! Removes markup for display.

/// The most bytes between a mark and its closing mark.
const REACH: usize = 400;

/// `text` on one line, without Markdown and HTML markup, images, and the marks of lists, quotes and table rows.
pub(crate) fn plain(text: &str) -> String {
    let text = strip_leading_marks(text);
    let mut words = String::with_capacity(text.len());
    let mut open_links = 0_usize;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let letters = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        if let Some((letters, after)) = rest.split_at_checked(letters).filter(|_| letters > 0) {
            words.push_str(letters);
            rest = after;
            continue;
        }
        let skipped = mark_length(rest, c, &words, &mut open_links);
        let skip = match skipped {
            Some(length) => length,
            None => {
                push(&mut words, c, rest);
                c.len_utf8()
            }
        };
        rest = rest.get(skip..).unwrap_or_default();
    }
    words.truncate(words.trim_end().len());
    words
}

/// Cuts `text` to at most `max` code points, at white space in the second half if there is some, with an ellipsis if
/// something was cut.
pub(crate) fn shorten(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let head: String = text.chars().take(max.saturating_sub(1)).collect();
    let at = head.rfind(char::is_whitespace).filter(|at| *at > head.len() / 2).unwrap_or(head.len());
    let words = head
        .get(..at)
        .unwrap_or_default()
        .trim_end_matches(|c: char| c.is_whitespace() || ",;:–—-".contains(c));
    format!("{words}…")
}

/// Appends a character. White space becomes one space, or nothing between East Asian characters.
fn push(words: &mut String, c: char, rest: &str) {
    if !c.is_whitespace() {
        words.push(c);
        return;
    }
    let before = words.chars().next_back();
    let next = rest.chars().nth(1);
    let wide =
        |c: Option<char>| c.is_some_and(|c| matches!(c, '\u{3000}'..='\u{9fff}' | '\u{ff00}'..='\u{ffef}'));
    let needed =
        before.is_some_and(|c| c != ' ') && !(wide(before) && wide(next) && matches!(c, '\n' | '\r'));
    if needed {
        words.push(' ');
    }
}

/// The length of the markup at the start of `rest`, whose first character is `c`.
fn mark_length(rest: &str, c: char, words: &str, open_links: &mut usize) -> Option<usize> {
    let inside = |close: &str| find_near(rest, close).map(|at| at + close.len());
    let follows_word = || words.chars().next_back().is_some_and(char::is_alphanumeric);
    let before_word = || rest.chars().nth(1).is_some_and(char::is_alphanumeric);
    match c {
        '!' if rest.starts_with("![") => inside(")").filter(|_| find_near(rest, "](").is_some()),
        '[' if link_follows(rest) => {
            *open_links += 1;
            Some(1)
        }
        ']' if *open_links > 0 => {
            *open_links -= 1;
            let target = rest.starts_with("](").then(|| inside(")")).flatten();
            Some(target.unwrap_or(1))
        }
        '`' | '~' if rest.starts_with("~~") || c == '`' => {
            Some(rest.len() - rest.trim_start_matches(c).len())
        }
        '*' if !(words.ends_with(' ') && rest.chars().nth(1).is_none_or(char::is_whitespace)) => Some(1),
        '_' if !(follows_word() && before_word()) => Some(1),
        '\\' if rest.chars().nth(1).is_some_and(|c| c.is_ascii_punctuation()) => Some(1),
        '<' if rest.starts_with("<!--") => inside("-->"),
        '<' if rest.chars().nth(1).is_some_and(|c| c.is_ascii_alphabetic() || c == '/') => inside(">"),
        '{' if rest.starts_with("{{") => inside("}}"),
        '{' if rest.starts_with("{:") || rest.starts_with("{#") => inside("}"),
        '|' => Some(1),
        _ => None,
    }
}

/// Whether `[` opens a link that is closed nearby.
fn link_follows(rest: &str) -> bool {
    find_near(rest, "](").is_some()
}

fn find_near(text: &str, pattern: &str) -> Option<usize> {
    let near = text.floor_char_boundary(REACH.min(text.len()));
    text.get(..near)?.find(pattern)
}

fn strip_leading_marks(text: &str) -> &str {
    let mut text = text.trim();
    loop {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let number =
            text.get(digits..).filter(|rest| (1..=3).contains(&digits) && rest.starts_with([')', '.']));
        let stripped =
            match number.and_then(|rest| rest.get(1..)).filter(|rest| rest.starts_with([' ', '\t'])) {
                Some(rest) => rest.trim_start(),
                None => strip_mark(text),
            };
        if stripped.len() == text.len() {
            return text;
        }
        text = stripped;
    }
}

fn strip_mark(text: &str) -> &str {
    let bullet =
        ["- ", "* ", "+ ", "• ", "[ ] ", "[x] ", ">"].iter().find_map(|mark| text.strip_prefix(mark));
    let heading = || {
        text.strip_prefix('#').map(|rest| rest.trim_start_matches('#')).filter(|rest| rest.starts_with(' '))
    };
    bullet.or_else(heading).unwrap_or(text).trim_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(plain(text), expected);
    }

    #[test]
    fn plain_removes_markup() {
        check(
            "See **the** [guide](https://example.com/a_b) and `code_here`.",
            "See the guide and code_here.",
        );
        check("- [x] *done*  with\n  it", "done with it");
        check("> **Tip** 3 * 4 = 12", "Tip 3 * 4 = 12");
        check("1. First ![picture](a.png) <br/> step {{< hugo >}}", "First step");
        check("## Heading", "Heading");
        check("snake_case and __bold__ [1] a[i]", "snake_case and bold [1] a[i]");
        check("| a | b |", "a b");
        check("吾輩は\n猫である", "吾輩は猫である");
        check("1990 was", "1990 was");
        check("", "");
        check("***", "");
    }

    #[test]
    fn plain_is_linear_for_unclosed_marks() {
        for unit in ["[", "](", "![", "<a", "{{", "*_", "<!--"] {
            assert!(plain(&unit.repeat(100_000)).len() <= 400_000);
        }
    }

    #[test]
    fn shorten_cuts_between_words() {
        assert_eq!(shorten("one two three", 20), "one two three");
        assert_eq!(shorten("one two three", 10), "one two…");
        assert_eq!(shorten("東京タワーは高い", 5), "東京タワ…");
    }
}

//! Segmentation of text into words, compounds, and runs of scripts without spaces.

use std::{borrow::Cow, ops::Range};

use crate::chars::{CharClass, class, is_mark};

/// The hyphens that a word has at the end of a line, and the one that is only shown there.
const HYPHENS: [char; 3] = ['-', '\u{2010}', '\u{ad}'];

/// The kind of a [`Segment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentKind {
    /// Letters and digits, and joiners between the parts of a compound.
    Word,
    /// A run of a script without spaces.
    Unspaced,
    /// One pictograph.
    Pictograph,
}

/// A word, a run or a pictograph with its byte range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) kind: SegmentKind,
    pub(crate) range: Range<usize>,
}

/// The byte ranges of the words of `text`, in order, without overlap.
///
/// A compound such as `foo_bar.baz`, `v1.2.3` or `well-known` is one word. So is a word that is hyphenated at the end of a
/// line, a run of characters of a script without spaces, and each pictograph.
#[must_use]
pub fn words(text: &str) -> Vec<Range<usize>> {
    segments(text).map(|segment| segment.range).collect()
}

/// The segments of `text` in order.
pub(crate) fn segments(text: &str) -> impl Iterator<Item = Segment> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (start, kind) = next_start(text, at)?;
        let end = match kind {
            SegmentKind::Word => word_end(text, start),
            SegmentKind::Unspaced => run_end(text, start, |c| class(c) == CharClass::Unspaced || is_mark(c)),
            SegmentKind::Pictograph => cluster_end(text, start),
        };
        at = end;
        Some(Segment { kind, range: start..end })
    })
}

/// The characters of a run, each with the marks that follow it.
pub(crate) fn clusters<'a>(text: &'a str, run: &Range<usize>) -> impl Iterator<Item = Range<usize>> + 'a {
    let Range { mut start, end } = *run;
    std::iter::from_fn(move || {
        let unit = start..cluster_end(text, start).min(end);
        start = unit.end;
        (!unit.is_empty()).then_some(unit)
    })
}

/// Whether a word is continued in another line.
pub(crate) fn is_hyphenated(word: &str) -> bool {
    word.contains(is_line_end)
}

/// A word in one line. `hyphen` replaces each hyphen at the end of a line.
pub(crate) fn in_one_line<'a>(word: &'a str, hyphen: &str) -> Cow<'a, str> {
    if !is_hyphenated(word) {
        return Cow::Borrowed(word);
    }
    let lines =
        word.split(is_line_end).map(|line| line.trim_matches([' ', '\t'])).filter(|line| !line.is_empty());
    let parts: Vec<&str> = lines.map(|line| line.strip_suffix(HYPHENS).unwrap_or(line)).collect();
    Cow::Owned(parts.join(hyphen))
}

/// The slice of `text` at `range`; empty if the range is out of bounds.
pub(crate) fn slice<'a>(text: &'a str, range: &Range<usize>) -> &'a str {
    text.get(range.clone()).unwrap_or_default()
}

pub(crate) fn rest(text: &str, from: usize) -> &str {
    text.get(from..).unwrap_or_default()
}

fn next_start(text: &str, from: usize) -> Option<(usize, SegmentKind)> {
    rest(text, from).char_indices().find_map(|(offset, c)| {
        let kind = match class(c) {
            CharClass::Word if is_mark(c) => return None,
            CharClass::Word => SegmentKind::Word,
            CharClass::Unspaced => SegmentKind::Unspaced,
            CharClass::Pictograph => SegmentKind::Pictograph,
            CharClass::Other => return None,
        };
        Some((from + offset, kind))
    })
}

fn run_end(text: &str, start: usize, belongs: impl Fn(char) -> bool) -> usize {
    rest(text, start).find(|c| !belongs(c)).map_or(text.len(), |length| start + length)
}

fn cluster_end(text: &str, start: usize) -> usize {
    let first = rest(text, start).chars().next().map_or(0, char::len_utf8);
    run_end(text, start + first, is_mark)
}

/// The end of a word or compound: parts of letters and digits with single joiners between them.
fn word_end(text: &str, start: usize) -> usize {
    let mut end = run_end(text, start, |c| class(c) == CharClass::Word);
    while let Some(joiner) = joiner_length(text, end).or_else(|| hyphenation_length(text, end)) {
        end = run_end(text, end + joiner, |c| class(c) == CharClass::Word);
    }
    end + language_suffix(text, end)
}

/// The length in bytes of a joiner at `at` between two parts of a compound.
fn joiner_length(text: &str, at: usize) -> Option<usize> {
    let tail = rest(text, at);
    let joiner = tail.chars().next()?;
    let length = match joiner {
        '_' => tail.len() - tail.trim_start_matches('_').len(),
        ':' if tail.starts_with("::") => 2,
        '.' | '-' | '@' | ':' | ',' | '\u{2010}' | '\u{2011}' => joiner.len_utf8(),
        _ => return None,
    };
    let next = rest(tail, length).chars().next().filter(|&c| class(c) == CharClass::Word && !is_mark(c))?;
    let between_digits = || {
        let before = text.get(..at).and_then(|head| head.chars().next_back());
        next.is_ascii_digit() && before.is_some_and(|c| c.is_ascii_digit())
    };
    (!matches!(joiner, ':' | ',') || length == 2 || between_digits()).then_some(length)
}

/// The length in bytes of the hyphen, the line end and the indentation at `at` between two parts of a word that is
/// hyphenated at the end of a line. A soft hyphen is part of the text before `at`.
fn hyphenation_length(text: &str, at: usize) -> Option<usize> {
    let (head, tail) = text.split_at_checked(at)?;
    let after = match tail.strip_prefix(HYPHENS) {
        Some(after) => after,
        None if head.ends_with('\u{ad}') => tail,
        None => return None,
    };
    let line = after
        .strip_prefix("\r\n")
        .or_else(|| after.strip_prefix(is_line_end))?
        .trim_start_matches([' ', '\t']);
    let continues =
        head.trim_end_matches('\u{ad}').ends_with(char::is_lowercase) && line.starts_with(char::is_lowercase);
    continues.then_some(tail.len() - line.len())
}

const fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r')
}

/// The length of a suffix `++` or `#`, as in the names C++, C# and F#.
fn language_suffix(text: &str, end: usize) -> usize {
    let tail = rest(text, end);
    let suffix = ["++", "#"].into_iter().find(|suffix| tail.starts_with(suffix));
    let closed =
        |suffix: &str| rest(tail, suffix.len()).chars().next().is_none_or(|c| class(c) == CharClass::Other);
    suffix.filter(|suffix| closed(suffix)).map_or(0, str::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<_> = words(text).into_iter().map(|range| text.get(range).unwrap()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn words_splits_at_spaces_and_punctuation() {
        check("", &[]);
        check(" \n", &[]);
        check("The Moon's orbit.", &["The", "Moon", "s", "orbit"]);
        check("Äpfel, naïve – fin", &["Äpfel", "naïve", "fin"]);
        check("e\u{301}te\u{301} \u{301}", &["e\u{301}te\u{301}"]);
    }

    #[test]
    fn words_keeps_compounds_whole() {
        check("see foo_bar.baz, v1.2.3.", &["see", "foo_bar.baz", "v1.2.3"]);
        check("ERR-1001: std::fs at 10:30", &["ERR-1001", "std::fs", "at", "10:30"]);
        check("1,000.5 a,b a: b", &["1,000.5", "a", "b", "a", "b"]);
        check("C++ and C# or a+b #tag", &["C++", "and", "C#", "or", "a", "b", "tag"]);
        check("me@example.com ___ __init__", &["me@example.com", "init"]);
        check("src/main.rs", &["src", "main.rs"]);
    }

    #[test]
    fn words_keeps_invisible_characters_within_words() {
        check("Donau\u{ad}dampf\u{ad}schiff \u{ad}a\u{ad}", &["Donau\u{ad}dampf\u{ad}schiff", "a\u{ad}"]);
        check("a\u{2060}b \u{200f}שלום\u{200f}, c\u{200b}d", &["a\u{2060}b", "שלום\u{200f}", "c", "d"]);
    }

    #[test]
    fn words_keeps_hyphenated_words_whole() {
        check("an implemen-\ntation of it", &["an", "implemen-\ntation", "of", "it"]);
        check("state-of-\r\n  the-art, Wör\u{2010}\rter", &["state-of-\r\n  the-art", "Wör\u{2010}\rter"]);
        check("implemen\u{ad}\ntation", &["implemen\u{ad}\ntation"]);
        check(
            "EU-\nwide a-\nB 5-\nfold x--\ny a -\nb",
            &["EU", "wide", "a", "B", "5", "fold", "x", "y", "a", "b"],
        );
        check("end-\n\nnext- b-\n- c", &["end", "next", "b", "c"]);
        for (word, joined, hyphenated) in [
            ("implemen-\ntation", "implementation", "implemen-tation"),
            ("state-of-\r\n  the-art", "state-ofthe-art", "state-of-the-art"),
            ("implemen\u{ad}\ntation", "implementation", "implemen-tation"),
            ("well-known", "well-known", "well-known"),
        ] {
            assert_eq!((&*in_one_line(word, ""), &*in_one_line(word, "-")), (joined, hyphenated));
        }
    }

    #[test]
    fn words_keeps_runs_of_unspaced_scripts_whole() {
        check("東京タワーは333メートル。", &["東京タワーは", "333", "メートル"]);
        check("GitLabの使い方", &["GitLab", "の使い方"]);
        check("한국어 문서", &["한국어", "문서"]);
        check("a🏔️b👍🏽", &["a", "🏔️", "b", "👍🏽"]);
    }
}

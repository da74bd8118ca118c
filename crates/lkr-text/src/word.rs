//! Segmentation of text into words, compounds, and runs of scripts without spaces.

use std::ops::Range;

use crate::chars::{CharClass, class, is_mark};

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
/// A compound such as `foo_bar.baz`, `v1.2.3` or `well-known` is one word. So is a run of characters of a script
/// without spaces, and each pictograph.
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
    while let Some(joiner) = joiner_length(text, end) {
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
    fn words_keeps_runs_of_unspaced_scripts_whole() {
        check("東京タワーは333メートル。", &["東京タワーは", "333", "メートル"]);
        check("GitLabの使い方", &["GitLab", "の使い方"]);
        check("한국어 문서", &["한국어", "문서"]);
        check("a🏔️b👍🏽", &["a", "🏔️", "b", "👍🏽"]);
    }
}

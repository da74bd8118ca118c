use std::ops::Range;

use crate::{
    chars::is_cjk,
    word::{cut, rest},
};

/// A sentence that is longer is cut here, in Unicode code points, at white space where there is some.
pub const MAX_SENTENCE_CHARS: usize = 1_000;

/// The byte ranges of the sentences of `text`, in order, without overlap and without white space at their ends.
///
/// Everything but white space lies in one of them. Blank lines, list items, table rows, quotes and heading lines
/// part sentences, as do the marks that end them; Chinese and Japanese need no space after theirs.
#[must_use]
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for block in line_groups(text) {
        split_group(text, &block, &mut found);
    }
    found
}

/// Lines that may share a sentence.
fn line_groups(text: &str) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let (mut at, mut closed) = (0, true);
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let trimmed = line.trim();
        if trimmed.is_empty() {
            closed = true;
            continue;
        }
        match groups.last_mut() {
            Some(group) if !closed && !begins_anew(trimmed) => group.end = range.end,
            _ => groups.push(range),
        }
        closed = ends_itself(trimmed);
    }
    groups
}

/// Whether a line cannot go on with the sentence of the line before.
fn begins_anew(line: &str) -> bool {
    let bullet = |line: &str| ["- ", "* ", "+ ", "• ", "– "].iter().any(|mark| line.starts_with(mark));
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let numbered =
        matches!(digits, 1..=4) && [". ", ") "].iter().any(|mark| rest(line, digits).starts_with(mark));
    bullet(line) || numbered || ends_itself(line)
}

/// Whether a line is a unit of its own: a heading, a table row, a quote, a fence.
fn ends_itself(line: &str) -> bool {
    ["#", "|", ">", "```", "~~~"].iter().any(|mark| line.starts_with(mark))
}

fn split_group(text: &str, group: &Range<usize>, found: &mut Vec<Range<usize>>) {
    let (mut start, mut word, mut base) = (group.start, group.start, group.start);
    let mut chars = cut(text, group).char_indices();
    while let Some((offset, c)) = chars.next() {
        let at = base + offset;
        if c.is_whitespace() || is_opener(c) {
            word = at + c.len_utf8();
        } else if is_terminator(c) {
            let tail = cut(text, &(at..group.end));
            let mut seen = at + tail.find(|c| !is_terminator(c)).unwrap_or(tail.len());
            if let Some(end) = sentence_end(text, group, word, at..seen) {
                push_bounded(text, start..end, found);
                (start, word, seen) = (end, end, end);
            }
            chars = cut(text, &(seen..group.end)).char_indices();
            base = seen;
        }
    }
    push_bounded(text, start..group.end, found);
}

fn is_terminator(c: char) -> bool {
    matches!(c, '.' | '!' | '?') || is_wide_terminator(c) || is_spaced_terminator(c)
}

/// Marks that end a sentence whatever follows.
fn is_wide_terminator(c: char) -> bool {
    matches!(c, '。' | '！' | '？' | '；' | '｡')
}

/// Marks that end a sentence before white space.
fn is_spaced_terminator(c: char) -> bool {
    matches!(c, '…' | '‥' | '؟' | '۔' | '।' | '॥' | '።' | '။')
}

fn is_opener(c: char) -> bool {
    matches!(
        c,
        '(' | '['
            | '{'
            | '"'
            | '\''
            | '“'
            | '‘'
            | '„'
            | '«'
            | '「'
            | '『'
            | '（'
            | '【'
            | '《'
            | '*'
            | '_'
    )
}

fn is_closer(c: char) -> bool {
    matches!(
        c,
        ')' | ']'
            | '}'
            | '"'
            | '\''
            | '”'
            | '’'
            | '“'
            | '»'
            | '›'
            | '」'
            | '』'
            | '）'
            | '】'
            | '》'
            | '〉'
            | '＂'
            | '*'
            | '_'
            | '`'
    )
}

/// Where the sentence ends that `marks` may end, closing quotes included; none where it goes on. The word before
/// the marks begins at `word`.
fn sentence_end(text: &str, group: &Range<usize>, word: usize, marks: Range<usize>) -> Option<usize> {
    let run = cut(text, &marks);
    let tail = cut(text, &(marks.end..group.end));
    let closers = tail.find(|c| !is_closer(c)).unwrap_or(tail.len());
    let end = marks.end + closers;
    let after = rest(tail, closers);
    let Some(next) = after.chars().next() else {
        return Some(end);
    };
    if run.chars().any(is_wide_terminator) {
        return Some(end);
    }
    let before = text.get(..marks.start).and_then(|head| head.chars().next_back());
    if is_cjk(next) && run != "." && before.is_some_and(is_cjk) {
        return Some(end);
    }
    let follower = after.trim_start();
    if !next.is_whitespace() || follower.chars().next().is_some_and(char::is_lowercase) {
        return None;
    }
    let abbreviated = run == "." && closers == 0 && is_abbreviated(cut(text, &(word..marks.start)), follower);
    (!abbreviated).then_some(end)
}

/// Whether the point after `word` belongs to the word, and `follower` goes on with the sentence.
fn is_abbreviated(word: &str, follower: &str) -> bool {
    let mut chars = word.chars();
    if let (Some(only), None) = (chars.next(), chars.next()) {
        // An initial, or a number in a list or date.
        return only.is_alphabetic() || (only.is_ascii_digit() && is_ordinal(follower));
    }
    if word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit()) {
        return is_ordinal(follower);
    }
    if word.contains('.') && word.split('.').all(|part| part.chars().count() == 1) {
        return true;
    }
    if word.len() > 8 {
        return false;
    }
    let lowered = word.to_lowercase();
    let before_number =
        ["no", "nr", "art", "sec", "fig", "figs", "vol", "pp", "p", "eq", "ch", "abb", "tab", "bd"];
    let numbered = follower.chars().next().is_some_and(|c| c.is_ascii_digit());
    ABBREVIATIONS.contains(&lowered.as_str()) || (numbered && before_number.contains(&lowered.as_str()))
}

/// German and Nordic dates and ordinals: a point after a number, then a month or a noun of time.
fn is_ordinal(follower: &str) -> bool {
    let word = follower.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_lowercase();
    ORDINAL_FOLLOWERS.contains(&word.as_str())
}

const ABBREVIATIONS: [&str; 58] = [
    "mr", "mrs", "ms", "mx", "dr", "prof", "sr", "jr", "st", "mt", "ft", "vs", "cf", "al", "approx", "ca",
    "dept", "est", "gen", "col", "lt", "sgt", "capt", "rev", "hon", "gov", "sen", "rep", "pres", "messrs",
    "mme", "mlle", "bzw", "evtl", "ggf", "inkl", "exkl", "sog", "vgl", "bspw", "hrsg", "geb", "gest", "str",
    "hl", "univ", "sra", "srta", "ud", "uds", "ej", "pág", "núm", "sig", "dott", "ing", "avv", "dhr",
];

const ORDINAL_FOLLOWERS: [&str; 34] = [
    "januar",
    "februar",
    "märz",
    "april",
    "mai",
    "juni",
    "juli",
    "august",
    "september",
    "oktober",
    "november",
    "dezember",
    "jänner",
    "jahrhundert",
    "jahrhunderts",
    "jahrtausend",
    "mal",
    "klasse",
    "stock",
    "platz",
    "juin",
    "januari",
    "februari",
    "mars",
    "maj",
    "augusti",
    "desember",
    "marts",
    "december",
    "århundrede",
    "århundre",
    "århundradet",
    "lebensjahr",
    "weltkrieg",
];

/// Adds `range` without the white space at its ends, cut where it is longer than a sentence may be.
fn push_bounded(text: &str, range: Range<usize>, found: &mut Vec<Range<usize>>) {
    let mut range = trim(text, range);
    while let Some(limit) = nth_char(cut(text, &range), MAX_SENTENCE_CHARS) {
        let head = cut(text, &(range.start..range.start + limit));
        let at = head.rfind(char::is_whitespace).filter(|&at| at > limit / 2).unwrap_or(limit);
        found.push(trim(text, range.start..range.start + at));
        range = trim(text, range.start + at..range.end);
    }
    if !range.is_empty() {
        found.push(range);
    }
}

/// The byte offset of the `n`-th character, where there are more than `n`.
fn nth_char(text: &str, n: usize) -> Option<usize> {
    if text.len() <= n { None } else { text.char_indices().nth(n).map(|(at, _)| at) }
}

fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let slice = cut(text, &range);
    let start = range.start + slice.len() - slice.trim_start().len();
    start..start + slice.trim().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<_> = sentences(text).into_iter().map(|range| text.get(range).unwrap()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn ends_of_sentences() {
        check("", &[]);
        check(" \n ", &[]);
        check("One. Two! Three? four", &["One.", "Two!", "Three? four"]);
        check("He said “Stop!” Then left.", &["He said “Stop!”", "Then left."]);
        check("Wait... What?! Yes.", &["Wait...", "What?!", "Yes."]);
        check("A line\nthat goes on. Next\r\nline.", &["A line\nthat goes on.", "Next\r\nline."]);
    }

    #[test]
    fn points_that_end_nothing() {
        check("Dr. Smith paid 3.50 to J. K. Lee. Good.", &["Dr. Smith paid 3.50 to J. K. Lee.", "Good."]);
        check("See Fig. 3 and No. 7. Well.", &["See Fig. 3 and No. 7.", "Well."]);
        check("Am 3. Oktober 1990 z. B. Berlin. Und?", &["Am 3. Oktober 1990 z. B. Berlin.", "Und?"]);
        check("In 1610. Jupiter", &["In 1610.", "Jupiter"]);
        check(
            "e.g. This, i.e. That. See example.com. Ok",
            &["e.g. This, i.e. That.", "See example.com.", "Ok"],
        );
    }

    #[test]
    fn chinese_and_japanese() {
        check("他说：“你好！”然后走了。再见", &["他说：“你好！”", "然后走了。", "再见"]);
        check(
            "「行く。」と言った。本当？はい…そう",
            &["「行く。」", "と言った。", "本当？", "はい…", "そう"],
        );
    }

    #[test]
    fn lines_that_part() {
        check("Intro:\n- one\n- two\n  more\n\nEnd", &["Intro:", "- one", "- two\n  more", "End"]);
        check("# Title\nText\n| a | b |\n| c | d |", &["# Title", "Text", "| a | b |", "| c | d |"]);
        check("1. one\n2. two", &["1. one", "2. two"]);
    }

    #[test]
    fn absurd_lengths_are_cut() {
        let found = sentences(&"ab ".repeat(2000)).len();
        assert_eq!(found, 6_usize.max(found).min(8));
        assert_eq!(sentences(&"é".repeat(2500)).len(), 3);
    }
}

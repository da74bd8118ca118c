use std::ops::Range;

use crate::{
    chars::{CharClass, class, is_cjk, is_mark},
    word::{rest, segments, slice},
};

/// The longest sentence in Unicode code points. Longer ones are split, at white space if possible, else between words.
pub const MAX_SENTENCE_CHARS: usize = 1_000;

/// The byte ranges of the sentences of `text`, in order, without overlap and without white space at their ends.
///
/// They cover everything but white space. Sentences end at terminal punctuation, blank lines, list items, table rows,
/// quotes and headings. Chinese and Japanese punctuation needs no space after it.
#[must_use]
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    for block in line_groups(text) {
        split_group(text, &block, &mut ranges);
    }
    ranges
}

/// Groups of lines that may share a sentence.
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
            Some(group) if !closed && !starts_new_sentence(trimmed) => group.end = range.end,
            _ => groups.push(range),
        }
        closed = is_own_block(trimmed);
    }
    groups
}

/// Whether a line cannot continue the sentence of the line before.
fn starts_new_sentence(line: &str) -> bool {
    let bullet = |line: &str| ["- ", "* ", "+ ", "• ", "– "].iter().any(|mark| line.starts_with(mark));
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let numbered =
        matches!(digits, 1..=4) && [". ", ") "].iter().any(|mark| rest(line, digits).starts_with(mark));
    bullet(line) || numbered || is_own_block(line)
}

/// Whether a line is a block of its own: a heading, a table row, a quote, a code fence.
fn is_own_block(line: &str) -> bool {
    ["#", "|", ">", "```", "~~~"].iter().any(|mark| line.starts_with(mark))
}

fn split_group(text: &str, group: &Range<usize>, ranges: &mut Vec<Range<usize>>) {
    let (mut start, mut word, mut base) = (group.start, group.start, group.start);
    let mut chars = slice(text, group).char_indices();
    while let Some((offset, c)) = chars.next() {
        let at = base + offset;
        if c.is_whitespace() || is_opener(c) {
            word = at + c.len_utf8();
        } else if is_terminator(c) {
            let tail = slice(text, &(at..group.end));
            let mut scanned = at + tail.find(|c| !is_terminator(c)).unwrap_or(tail.len());
            if let Some(end) = sentence_end(text, group, word, at..scanned) {
                push_bounded(text, start..end, ranges);
                (start, word, scanned) = (end, end, end);
            }
            chars = slice(text, &(scanned..group.end)).char_indices();
            base = scanned;
        }
    }
    push_bounded(text, start..group.end, ranges);
}

fn is_terminator(c: char) -> bool {
    matches!(c, '.' | '!' | '?') || is_wide_terminator(c) || is_spaced_terminator(c)
}

/// Marks that always end a sentence.
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

/// The end of the sentence that `marks` may terminate, including closing quotes; `None` if it continues. The word
/// before the marks begins at `word`.
fn sentence_end(text: &str, group: &Range<usize>, word: usize, marks: Range<usize>) -> Option<usize> {
    let run = slice(text, &marks);
    let tail = slice(text, &(marks.end..group.end));
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
    let abbreviated =
        run == "." && closers == 0 && is_abbreviated(slice(text, &(word..marks.start)), follower);
    (!abbreviated).then_some(end)
}

/// Whether the full stop after `word` belongs to the word, so that `follower` continues the sentence.
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

/// Whether a number with a full stop is a German or Nordic ordinal or date: a month or a noun of time follows.
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

/// Adds `range` without surrounding white space, split if it is longer than the longest sentence.
fn push_bounded(text: &str, range: Range<usize>, ranges: &mut Vec<Range<usize>>) {
    let mut range = trim(text, range);
    while let Some(limit) = nth_char(slice(text, &range), MAX_SENTENCE_CHARS) {
        let head = slice(text, &(range.start..range.start + limit));
        let at = last_cut(head, slice(text, &(range.start + limit..range.end)));
        ranges.push(trim(text, range.start..range.start + at));
        range = trim(text, range.start + at..range.end);
    }
    if !range.is_empty() {
        ranges.push(range);
    }
}

/// Where to cut `head`, which `tail` follows, in its second half: at white space, else before the last word, else between
/// the parts of a word, else between characters.
fn last_cut(head: &str, tail: &str) -> usize {
    let half = head.len() / 2;
    let white_space = head.rfind(char::is_whitespace).filter(|&at| at > half);
    let before_word = || segments(head).last().map(|word| word.range.start).filter(|&at| at > half);
    let mut after = tail.chars().next();
    let (mut between_parts, mut between_characters) = (None, None);
    for (at, c) in head.char_indices().rev().take_while(|(at, _)| *at > half) {
        let end = at + c.len_utf8();
        if after.is_some_and(|after| !is_mark(after)) {
            let parts = [Some(c), after].map(|c| c.is_some_and(|c| class(c) == CharClass::Word));
            between_characters = between_characters.or(Some(end));
            between_parts = between_parts.or((parts != [true; 2]).then_some(end));
        }
        after = Some(c);
    }
    white_space.or_else(before_word).or(between_parts).or(between_characters).unwrap_or(head.len())
}

/// The byte offset of the `n`-th character; `None` if there are not more than `n`.
fn nth_char(text: &str, n: usize) -> Option<usize> {
    if text.len() <= n { None } else { text.char_indices().nth(n).map(|(at, _)| at) }
}

fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let slice = slice(text, &range);
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
    fn sentences_end_at_terminal_punctuation() {
        check("", &[]);
        check(" \n ", &[]);
        check("One. Two! Three? four", &["One.", "Two!", "Three? four"]);
        check("He said “Stop!” Then left.", &["He said “Stop!”", "Then left."]);
        check("Wait... What?! Yes.", &["Wait...", "What?!", "Yes."]);
        check("A line\nthat goes on. Next\r\nline.", &["A line\nthat goes on.", "Next\r\nline."]);
    }

    #[test]
    fn sentences_continue_after_abbreviations_numbers_and_ordinals() {
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
    fn sentences_end_at_wide_punctuation_without_spaces() {
        check("他说：“你好！”然后走了。再见", &["他说：“你好！”", "然后走了。", "再见"]);
        check(
            "「行く。」と言った。本当？はい…そう",
            &["「行く。」", "と言った。", "本当？", "はい…", "そう"],
        );
    }

    #[test]
    fn sentences_end_at_list_items_headings_and_table_rows() {
        check("Intro:\n- one\n- two\n  more\n\nEnd", &["Intro:", "- one", "- two\n  more", "End"]);
        check("# Title\nText\n| a | b |\n| c | d |", &["# Title", "Text", "| a | b |", "| c | d |"]);
        check("1. one\n2. two", &["1. one", "2. two"]);
    }

    #[test]
    fn sentences_longer_than_the_maximum_are_split() {
        let count = sentences(&"ab ".repeat(2000)).len();
        assert!((6..=8).contains(&count), "{count}");
        assert_eq!(sentences(&"é".repeat(2500)).len(), 3);
    }

    #[test]
    fn long_sentences_are_split_between_words_and_their_parts() {
        let first =
            |text: &str| sentences(text).first().map(|range| text.get(range.clone()).unwrap().to_owned());
        let words = "ab/".repeat(332) + "cd/efgh_2.13/ij";
        assert_eq!(first(&words), Some("ab/".repeat(332) + "cd/"));
        let parts = "ab_".repeat(333) + "cd_ef";
        assert_eq!(first(&parts), Some("ab_".repeat(333)));
        let marks = "e".repeat(999) + "e\u{301}e";
        assert_eq!(first(&marks), Some("e".repeat(999)));
    }
}

//! Compounds (identifiers, numbers, versions, camel case) as whole terms and as parts.

use std::ops::Range;

use crate::{
    chars::{CharClass, class},
    word::{in_one_line, is_hyphenated, rest, slice},
};

/// A piece of a word for analysis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A compound as a whole: a term that is neither stemmed nor a stop word.
    Whole(String, Range<usize>),
    /// A word that is hyphenated at the end of a line, without its hyphen: a plain word.
    Joined(String, Range<usize>),
    /// A plain word.
    Part(Range<usize>),
}

/// Calls `visit` with each piece of the word of `text` at `range`.
pub(crate) fn for_each_piece(text: &str, range: &Range<usize>, visit: &mut impl FnMut(Piece)) {
    let word = slice(text, range);
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return visit(Piece::Part(range.clone()));
    }
    let parts = parts(text, range);
    match parts.as_slice() {
        [] => {}
        [part] if *part == *range => camel_case(text, part, visit),
        [part] => {
            visit(Piece::Whole(word.to_owned(), range.clone()));
            visit(Piece::Part(part.clone()));
        }
        parts => compound(text, range, parts, visit),
    }
}

/// The parts of a word that consist of letters and digits, without the joiners between them.
fn parts(text: &str, range: &Range<usize>) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut at = range.start;
    for piece in slice(text, range).split(|c| class(c) != CharClass::Word) {
        let end = at + piece.len();
        if !piece.is_empty() {
            parts.push(at..end);
        }
        at = end + rest(text, end).chars().next().map_or(0, char::len_utf8);
    }
    parts
}

fn compound(text: &str, range: &Range<usize>, parts: &[Range<usize>], visit: &mut impl FnMut(Piece)) {
    let word = slice(text, range);
    let single_letters = |part: &Range<usize>| {
        let mut chars = slice(text, part).chars();
        chars.next().is_some_and(char::is_alphabetic) && chars.next().is_none()
    };
    if word.contains('.') && parts.iter().all(single_letters) {
        // U.S. and e.g. are indexed without their full stops.
        return visit(Piece::Whole(parts.iter().map(|part| slice(text, part)).collect(), range.clone()));
    }
    if word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b':')) {
        return number(word, range, visit);
    }
    let identifier = word.contains(|c: char| c.is_ascii_digit() || matches!(c, '_' | '.' | ':' | '@'));
    if identifier {
        visit(Piece::Whole(in_one_line(word, "-").replace(['\u{2010}', '\u{2011}'], "-"), range.clone()));
    }
    if let Some(version) = word.strip_prefix(['v', 'V']).filter(|rest| is_version(rest)) {
        return number(version, &(range.end - version.len()..range.end), visit);
    }
    if is_hyphenated(word) {
        joined(text, parts, visit);
    }
    parts.iter().for_each(|part| camel_case(text, part, visit));
}

/// The words that are hyphenated at the end of a line: each is two parts of a compound.
fn joined(text: &str, parts: &[Range<usize>], visit: &mut impl FnMut(Piece)) {
    for (first, second) in parts.iter().zip(parts.iter().skip(1)) {
        if is_hyphenated(slice(text, &(first.end..second.start))) {
            let range = first.start..second.end;
            visit(Piece::Joined(in_one_line(slice(text, &range), "").into_owned(), range));
        }
    }
}

/// Groups of digits: `3.14`, `1,000`, `10:30`, `1.2.3`. They are whole terms. A version is also indexed by its first
/// two groups, a number with thousands separators also without them.
fn number(word: &str, range: &Range<usize>, visit: &mut impl FnMut(Piece)) {
    let groups: Vec<&str> = word.split(['.', ',', ':']).collect();
    visit(Piece::Whole(word.to_owned(), range.clone()));
    let thousands = groups.iter().skip(1).all(|group| group.len() == 3);
    if thousands && groups.first().is_some_and(|group| matches!(group.len(), 1..=3)) {
        visit(Piece::Whole(groups.concat(), range.clone()));
    } else if let ([major, minor, _, ..], true) = (groups.as_slice(), is_version(word)) {
        visit(Piece::Whole(format!("{major}.{minor}"), range.clone()));
    }
}

/// Whether a word is digits separated by full stops, digits first.
pub(crate) fn is_version(word: &str) -> bool {
    word.contains('.')
        && word.starts_with(|c: char| c.is_ascii_digit())
        && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// A word of mixed case: the word itself, and its camel-case parts if each has at least two letters.
fn camel_case(text: &str, range: &Range<usize>, visit: &mut impl FnMut(Piece)) {
    visit(Piece::Part(range.clone()));
    let parts = camel_case_parts(text, range);
    if parts.len() > 1 && parts.iter().all(|part| part.len() > 1) {
        parts.into_iter().for_each(|part| visit(Piece::Part(part)));
    }
}

/// Splits `HTTPServerName` into `HTTP`, `Server`, `Name`; ASCII only.
fn camel_case_parts(text: &str, range: &Range<usize>) -> Vec<Range<usize>> {
    let word = slice(text, range);
    let is_plain = !word.bytes().all(|byte| byte.is_ascii_alphanumeric())
        || !word.bytes().skip(1).any(|byte| byte.is_ascii_uppercase())
        || !word.bytes().any(|byte| byte.is_ascii_lowercase());
    if is_plain {
        return Vec::new();
    }
    let bytes = word.as_bytes();
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, window) in bytes.windows(3).enumerate().map(|(at, window)| (at + 1, window)) {
        let &[before, here, after] = window else { continue };
        let rises = !before.is_ascii_uppercase() && here.is_ascii_uppercase();
        let acronym_ends =
            before.is_ascii_uppercase() && here.is_ascii_uppercase() && after.is_ascii_lowercase();
        if rises || acronym_ends {
            parts.push(range.start + start..range.start + at);
            start = at;
        }
    }
    parts.push(range.start + start..range.end);
    parts
}

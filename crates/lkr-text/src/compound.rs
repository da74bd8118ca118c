//! Identifiers, numbers, versions, mixed case: found whole and in parts.

use std::ops::Range;

use crate::{
    chars::{Class, class},
    word::{cut, rest},
};

/// What a word gives to the analyser: whole compounds as they are, parts to be stemmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A compound as a whole: a term that is neither stemmed nor a stop word.
    Whole(String, Range<usize>),
    /// A plain word.
    Part(Range<usize>),
}

/// The pieces of the word of `text` at `range`, handed to `take`.
pub(crate) fn pieces(text: &str, range: &Range<usize>, take: &mut impl FnMut(Piece)) {
    let word = cut(text, range);
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return take(Piece::Part(range.clone()));
    }
    let parts = parts(text, range);
    match parts.as_slice() {
        [] => {}
        [part] if *part == *range => camel(text, part, take),
        [part] => {
            take(Piece::Whole(word.to_owned(), range.clone()));
            take(Piece::Part(part.clone()));
        }
        parts => compound(text, range, parts, take),
    }
}

/// Parts of letters and digits, without the joiners between them.
fn parts(text: &str, range: &Range<usize>) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut at = range.start;
    for piece in cut(text, range).split(|c| class(c) != Class::Word) {
        let end = at + piece.len();
        if !piece.is_empty() {
            parts.push(at..end);
        }
        at = end + rest(text, end).chars().next().map_or(0, char::len_utf8);
    }
    parts
}

fn compound(text: &str, range: &Range<usize>, parts: &[Range<usize>], take: &mut impl FnMut(Piece)) {
    let word = cut(text, range);
    let single_letters = |part: &Range<usize>| {
        let mut chars = cut(text, part).chars();
        chars.next().is_some_and(char::is_alphabetic) && chars.next().is_none()
    };
    if word.contains('.') && parts.iter().all(single_letters) {
        // U.S. and e.g. are searched for without their points.
        return take(Piece::Whole(parts.iter().map(|part| cut(text, part)).collect(), range.clone()));
    }
    if word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b':')) {
        return number(word, range, take);
    }
    let identifier = word.contains(|c: char| c.is_ascii_digit() || matches!(c, '_' | '.' | ':' | '@'));
    if identifier {
        take(Piece::Whole(word.replace(['\u{2010}', '\u{2011}'], "-"), range.clone()));
    }
    if let Some(version) = word.strip_prefix(['v', 'V']).filter(|rest| is_version(rest)) {
        return number(version, &(range.end - version.len()..range.end), take);
    }
    parts.iter().for_each(|part| camel(text, part, take));
}

/// Digits in groups: `3.14`, `1,000`, `10:30`, `1.2.3`. They stay whole; a version is also found by its first two
/// groups, a number with thousands separators also without them.
fn number(word: &str, range: &Range<usize>, take: &mut impl FnMut(Piece)) {
    let groups: Vec<&str> = word.split(['.', ',', ':']).collect();
    take(Piece::Whole(word.to_owned(), range.clone()));
    let thousands = groups.iter().skip(1).all(|group| group.len() == 3);
    if thousands && groups.first().is_some_and(|group| matches!(group.len(), 1..=3)) {
        take(Piece::Whole(groups.concat(), range.clone()));
    } else if let ([major, minor, _, ..], true) = (groups.as_slice(), is_version(word)) {
        take(Piece::Whole(format!("{major}.{minor}"), range.clone()));
    }
}

/// Whether a word is digits parted by points.
pub(crate) fn is_version(word: &str) -> bool {
    word.contains('.') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// A word of mixed case: the word itself, and its humps where each has two letters or more.
fn camel(text: &str, range: &Range<usize>, take: &mut impl FnMut(Piece)) {
    take(Piece::Part(range.clone()));
    let humps = humps(text, range);
    if humps.len() > 1 && humps.iter().all(|hump| hump.len() > 1) {
        humps.into_iter().for_each(|hump| take(Piece::Part(hump)));
    }
}

/// `HTTPServerName` as `HTTP`, `Server`, `Name`; ASCII letters alone.
fn humps(text: &str, range: &Range<usize>) -> Vec<Range<usize>> {
    let word = cut(text, range);
    let plain = !word.bytes().all(|byte| byte.is_ascii_alphanumeric())
        || !word.bytes().skip(1).any(|byte| byte.is_ascii_uppercase())
        || !word.bytes().any(|byte| byte.is_ascii_lowercase());
    if plain {
        return Vec::new();
    }
    let bytes = word.as_bytes();
    let mut humps = Vec::new();
    let mut start = 0;
    for (at, window) in bytes.windows(3).enumerate().map(|(at, window)| (at + 1, window)) {
        let &[before, here, after] = window else { continue };
        let rises = !before.is_ascii_uppercase() && here.is_ascii_uppercase();
        let acronym_ends =
            before.is_ascii_uppercase() && here.is_ascii_uppercase() && after.is_ascii_lowercase();
        if rises || acronym_ends {
            humps.push(range.start + start..range.start + at);
            start = at;
        }
    }
    humps.push(range.start + start..range.end);
    humps
}

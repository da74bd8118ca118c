//! Citation markers such as `[1]`: writing them, and reading those of a language model.

use crate::{Citation, SearchResult};

/// Marks that end a sentence.
const SENTENCE_ENDS: &str = ".!?。！？";
/// Marks that end a clause.
const CLAUSE_ENDS: &str = ".,;:!?。！？";

/// The most characters of a group of markers. A bracket whose other one is farther away begins no group.
const MAX_GROUP_CHARS: usize = 64;

/// Whether a character ends a clause or a sentence.
pub(super) fn ends_clause(c: char) -> bool {
    CLAUSE_ENDS.contains(c)
}

/// The marker of a result. A result that has none yet is added to `citations`.
pub(super) fn cite(citations: &mut Vec<Citation>, result: &SearchResult) -> String {
    if let Some(citation) = citations.iter().find(|citation| citation.chunk_id == result.chunk_id) {
        return citation.marker.clone();
    }
    let marker = format!("[{}]", citations.len() + 1);
    citations.push(Citation { marker: marker.clone(), chunk_id: result.chunk_id, doc_id: result.doc_id });
    marker
}

/// The group of markers at the start of `text`, such as `[1]`, `[1, 2]` or `【3】`: its numbers and the rest of the text.
pub(super) fn marker_group(text: &str) -> Option<(Vec<usize>, &str)> {
    let (rest, close) = match text.strip_prefix('[') {
        Some(rest) => (rest, ']'),
        None => (text.strip_prefix('【')?, '】'),
    };
    let (end, _) = rest.char_indices().take(MAX_GROUP_CHARS).find(|(_, c)| *c == close)?;
    let (inner, after) = (rest.get(..end)?, rest.get(end + close.len_utf8()..)?);
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // A number that does not fit is the number of no result.
        is_number.then(|| text.parse().unwrap_or(usize::MAX))
    };
    let numbers: Option<Vec<usize>> = inner.split(',').map(|text| number(text.trim())).collect();
    numbers.map(|numbers| (numbers, after))
}

/// Whether a text may become a group of markers or consists of such groups: only more text can decide.
pub(super) fn may_be_markers(text: &str) -> bool {
    text.starts_with(['[', '【']) && text.chars().all(|c| c.is_ascii_digit() || "[]【】, .".contains(c))
}

/// Splits a sentence into its text without markers and the numbers of the markers, without duplicates.
pub(super) fn split(sentence: &str) -> (String, Vec<usize>) {
    let (mut text, mut numbers, mut rest) = (String::with_capacity(sentence.len()), Vec::new(), sentence);
    while let Some(c) = rest.chars().next() {
        if let Some((group, after)) = marker_group(rest) {
            for number in group {
                if !numbers.contains(&number) {
                    numbers.push(number);
                }
            }
            rest = after;
            // White space before a marker at the end of a clause is part of the marker.
            if after.starts_with(ends_clause) {
                text.truncate(text.trim_end().len());
            }
            continue;
        }
        text.push(c);
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    (text.trim().to_owned(), numbers)
}

/// Moves markers that follow the end of a sentence into the sentence: `so it is. [1]` becomes `so it is [1].`
pub(super) fn move_inside_sentences(text: &str) -> String {
    let mut moved = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        if SENTENCE_ENDS.contains(c) {
            let (groups, beyond) = leading_groups(after);
            if !groups.is_empty() {
                moved.push_str(groups);
                moved.push(c);
                rest = beyond;
                continue;
            }
        }
        moved.push(c);
        rest = after;
    }
    moved
}

/// The groups of markers at the start of a text, with the white space before and between them, and the rest.
fn leading_groups(text: &str) -> (&str, &str) {
    let mut rest = text;
    loop {
        let next = rest.trim_start_matches([' ', '\u{a0}', '\u{202f}']);
        match marker_group(next) {
            Some((_, after)) => rest = after,
            None => break,
        }
    }
    text.split_at_checked(text.len() - rest.len()).unwrap_or(("", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_ends_near_its_beginning() {
        assert_eq!(marker_group("[1, 2] on"), Some((vec![1, 2], " on")));
        assert_eq!(marker_group("【3】"), Some((vec![3], "")));
        let twelve = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]";
        assert_eq!(marker_group(twelve), Some(((1..=12).collect(), "")));
        assert_eq!(marker_group(&format!("[{}1]", " ".repeat(MAX_GROUP_CHARS - 2))), Some((vec![1], "")));
        assert_eq!(marker_group(&format!("[{}1]", " ".repeat(MAX_GROUP_CHARS - 1))), None);
        assert_eq!((marker_group("[1"), marker_group("[1】"), marker_group("[]")), (None, None, None));
    }
}

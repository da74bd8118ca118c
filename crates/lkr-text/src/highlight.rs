use std::collections::HashSet;

use crate::{Analyzer, Language, Literals, QueryTerm};

/// The ranges of a text in `language` that match terms and phrases of a query: sorted ranges of Unicode code points
/// that do not touch.
///
/// The text is analysed like an indexed document, so the highlights are the words that the search matched.
#[must_use]
pub fn highlights(
    query: &[QueryTerm],
    literals: &Literals,
    text: &str,
    language: Option<Language>,
) -> Vec<(u32, u32)> {
    let terms: HashSet<&str> = query.iter().map(|term| term.term.as_str()).collect();
    let mut ranges = literals.ranges(text);
    Analyzer::new(language).for_each(text, |term, range| {
        if terms.contains(term.as_str()) {
            ranges.push(range);
        }
    });
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<std::ops::Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    in_code_points(text, &merged)
}

/// Converts sorted byte ranges that do not overlap to ranges of code points.
fn in_code_points(text: &str, ranges: &[std::ops::Range<usize>]) -> Vec<(u32, u32)> {
    let (mut byte, mut count) = (0, 0);
    let mut advance = |to: usize| {
        count += text.get(byte..to).unwrap_or_default().chars().count() as u32;
        byte = to;
        count
    };
    ranges.iter().map(|range| (advance(range.start), advance(range.end))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query_terms;

    #[track_caller]
    fn check(query: &str, text: &str, language: &str, expected: &[&str]) {
        let chars: Vec<char> = text.chars().collect();
        let found: Vec<String> =
            highlights(&query_terms(query), &Literals::of(query), text, Language::from_code(language))
                .into_iter()
                .map(|(start, end)| chars[start as usize..end as usize].iter().collect())
                .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn highlights_cover_matched_words_and_phrases() {
        check("oceans of ice", "Über 🏔 an ocean, under ICE.", "en", &["ocean", "ICE"]);
        check("東京タワー", "私は東京タワーに行く", "ja", &["東京タワー"]);
        check("gitlab", "GitLab and git-lab", "en", &["GitLab"]);
        check("nothing", "of the kind", "en", &[]);
        check("", "of the kind", "en", &[]);
        check("\"of the kind\"", "One of the kind, of a kind", "en", &["of the kind", "kind"]);
        check("bank of america", "the Bank of America", "en", &["Bank of America"]);
        check("err-1001", "ERR-1001, err 1001", "en", &["ERR-1001", "err", "1001"]);
    }
}

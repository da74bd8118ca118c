use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use crate::{
    Analyzer, Language, Literals, QueryTerm, stem,
    word::{SegmentKind, segments, slice},
};

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
    Highlighter::new(query, literals).highlights(text, language)
}

/// The [`highlights`] of several texts for one query. It remembers which words of the texts match.
#[derive(Debug)]
pub struct Highlighter<'q> {
    literals: &'q Literals,
    terms: HashSet<&'q str>,
    /// The first letters from a to z of the terms, one bit each.
    initials: u32,
    /// For each language, the words that occurred, each with the ranges of it that match.
    words: HashMap<Option<Language>, HashMap<Box<str>, Vec<Range<usize>>>>,
}

impl<'q> Highlighter<'q> {
    /// For the terms and literals of a query.
    #[must_use]
    pub fn new(query: &'q [QueryTerm], literals: &'q Literals) -> Self {
        let terms: HashSet<&str> = query.iter().map(|term| term.term.as_str()).collect();
        let initials = terms.iter().filter_map(|term| initial(term)).fold(0, |bits, bit| bits | bit);
        Self { literals, terms, initials, words: HashMap::new() }
    }

    /// The highlights of a text in `language`.
    pub fn highlights(&mut self, text: &str, language: Option<Language>) -> Vec<(u32, u32)> {
        let mut ranges = self.literals.ranges(text);
        self.for_each_match(text, language, |range| ranges.push(range));
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        in_code_points(text, &merged)
    }

    /// Calls `visit` with each range of a text from which a term of the query was made.
    fn for_each_match(
        &mut self,
        text: &str,
        language: Option<Language>,
        mut visit: impl FnMut(Range<usize>),
    ) {
        let Self { terms, initials, words, .. } = self;
        let (words, analyzer) = (words.entry(language).or_default(), Analyzer::new(language));
        let in_english = stem::is_english(language);
        for segment in segments(text) {
            let (word, start) = (slice(text, &segment.range), segment.range.start);
            // Its only term begins with its first letter.
            let is_plain = in_english && is_plain(word);
            if is_plain && initial(word).is_none_or(|initial| *initials & initial == 0) {
                continue;
            }
            let mut matching = Vec::new();
            if segment.kind != SegmentKind::Word {
                analyzer.for_each_in(text, &segment, |term, range| {
                    matching.extend(terms.contains(term.as_str()).then_some(range));
                });
                matching.into_iter().for_each(&mut visit);
                continue;
            }
            let known = match words.get(word) {
                Some(known) => known,
                None => {
                    analyzer.for_each_in(text, &segment, |term, range| {
                        let range = range.start - start..range.end - start;
                        matching.extend(terms.contains(term.as_str()).then_some(range));
                    });
                    words.entry(word.into()).or_insert(matching)
                }
            };
            known.iter().for_each(|range| visit(start + range.start..start + range.end));
        }
    }
}

/// The bit of the first letter of a word, in any case; `None` if it is not from a to z.
fn initial(word: &str) -> Option<u32> {
    let first = word.bytes().next().filter(u8::is_ascii_alphabetic)?;
    Some(1 << (first.to_ascii_lowercase() - b'a'))
}

/// Whether a word has only letters from a to z, of which only the first may be a capital, so that it has no parts.
fn is_plain(word: &str) -> bool {
    let bytes = word.as_bytes().split_first();
    bytes.is_some_and(|(first, rest)| first.is_ascii_alphabetic() && rest.iter().all(u8::is_ascii_lowercase))
}

/// Converts sorted byte ranges that do not overlap to ranges of code points.
fn in_code_points(text: &str, ranges: &[Range<usize>]) -> Vec<(u32, u32)> {
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

    /// The highlights without what is known of plain and of repeated words.
    fn of_all_terms(query: &[QueryTerm], text: &str, language: Option<Language>) -> Vec<(u32, u32)> {
        let mut tokens = Analyzer::new(language).analyze(text);
        tokens.retain(|token| query.iter().any(|term| term.term == token.term));
        let mut chars: Vec<_> =
            tokens.into_iter().map(|token| in_code_points(text, &[token.range])[0]).collect();
        chars.sort_unstable();
        chars.dedup_by(|next, last| {
            let touch = next.0 <= last.1;
            last.1 = if touch { last.1.max(next.1) } else { last.1 };
            touch
        });
        chars
    }

    #[test]
    fn remembered_words_have_the_same_highlights() {
        let texts = [
            "GitLab's runners run; the Runner ran, gitlab-runner RUNNING in GitLab",
            "dying skies, Ties and ties: the sky, a die. Idly early, Übers Meer, über",
            "mehr Schwestern als die Schwester; gitLab, git_lab v1.2.3 e.g. U.S. 1,000",
            "東京タワー 🏔 東京, runner",
        ];
        let queries = [
            "GitLab runner",
            "die in the sky tie",
            "Schwestern Über",
            "東京 🏔 runners",
            "git 1.2 lab eg us 1000",
            "early idle ocean",
        ];
        for query in queries {
            let terms = query_terms(query);
            let literals = Literals::default();
            let mut highlighter = Highlighter::new(&terms, &literals);
            for text in texts.iter().chain(&texts) {
                for language in [None, Some(Language::ENGLISH), Language::from_code("de")] {
                    let expected = of_all_terms(&terms, text, language);
                    assert_eq!(highlighter.highlights(text, language), expected, "{query} / {text}");
                }
            }
        }
    }

    #[test]
    fn english_stems_begin_like_their_words() {
        // The exceptions of the stemmer, its shortest suffixes alone, and what the tests of other modules are about.
        let words = "skis skies dying lying tying idly gently ugly early only singly ies ied ing ed ings eed ly sses us ss \
            s ss y yy ying yes eyes oyed aed aing e ee ational fulness ement ion sion tion a i by bye volcanoes";
        for word in words.split_whitespace() {
            let stem = stem::term(word, Some(Language::ENGLISH));
            assert_eq!(stem.bytes().next(), word.bytes().next(), "{word}: {stem}");
        }
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

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
    beginnings: Beginnings,
    /// The words that occurred in texts of each language.
    words: HashMap<Option<Language>, MatchedWords>,
}

/// Words with the ranges of them that match.
type MatchedWords = HashMap<Box<str>, Vec<Range<usize>>>;

impl<'q> Highlighter<'q> {
    /// For the terms and literals of a query.
    #[must_use]
    pub fn new(query: &'q [QueryTerm], literals: &'q Literals) -> Self {
        let terms: HashSet<&str> = query.iter().map(|term| term.term.as_str()).collect();
        let beginnings = Beginnings::of(&terms);
        Self { literals, terms, beginnings, words: HashMap::new() }
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
        let Self { terms, beginnings, words, .. } = self;
        let (words, analyzer) = (words.entry(language).or_default(), Analyzer::new(language));
        let in_english = stem::is_english(language);
        for segment in segments(text) {
            let (word, start) = (slice(text, &segment.range), segment.range.start);
            if in_english && is_plain(word) && !beginnings.may_have_term(word) {
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

/// The first two letters of terms, as far as they are from a to z. Most words of a text need not be stemmed to see that none of the
/// terms is theirs.
#[derive(Debug, Default)]
struct Beginnings {
    /// By the first letter: the second letters, one bit each; all of them for a term of one letter.
    second: [u32; 26],
}

impl Beginnings {
    fn of(terms: &HashSet<&str>) -> Self {
        let mut beginnings = Self::default();
        for term in terms {
            let mut letters = term.bytes().map(letter);
            let first = letters.next().flatten().and_then(|first| beginnings.second.get_mut(first));
            let Some(seconds) = first else { continue };
            *seconds |= letters.next().map_or(u32::MAX, |second| second.map_or(0, |second| 1 << second));
        }
        beginnings
    }

    /// Whether the English stem of a [plain](is_plain) word may be one of the terms. It begins like the word, see
    /// [`stem::is_english`].
    fn may_have_term(&self, word: &str) -> bool {
        let mut letters = word.bytes().map(letter);
        let first = letters.next().flatten().and_then(|first| self.second.get(first));
        let second = letters.next().map_or(u32::MAX, |second| second.map_or(0, |second| 1 << second));
        first.is_some_and(|seconds| seconds & second != 0)
    }
}

/// The number of a letter from a to z, in any case. Of y it is that of i, which the stemmer puts in its place.
fn letter(byte: u8) -> Option<usize> {
    match byte.to_ascii_lowercase() {
        b'y' => letter(b'i'),
        lower => lower.is_ascii_lowercase().then(|| usize::from(lower - b'a')),
    }
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
    fn terms_of_a_text_are_among_those_that_its_words_may_have() {
        // All beginnings with all endings that the stemmer changes, and its exceptions.
        let endings = "s es ies ied ss sses us ed eed ing edly eedly ingly ly y e ee at ated ating ble bling ize izing \
            tional enci anci abli entli izer ization ational ation ator alism aliti alli fulness ousli ousness iveness iviti \
            biliti bli ogi fulli lessli li alize icate iciti ical ful ness ative ance ence er ic able ible ant ement ment ent \
            ism ate iti ous ive sion tion ion l ll t bb dd ying yed";
        let exceptions = "skis skies dying lying tying idly gently ugly early only singly sky news howe atlas cosmos bias \
            andes inning outing canning herring earring proceed exceed succeed generously communed arsenal";
        let letters = || ('a'..='z').map(String::from);
        let beginnings: Vec<_> = letters()
            .flat_map(|first| {
                [String::new()].into_iter().chain(letters()).map(move |second| first.clone() + &second)
            })
            .collect();
        let ended = beginnings.iter().flat_map(|beginning| {
            let ends = endings
                .split_whitespace()
                .flat_map(|end| ["", "t", "at"].map(|middle| format!("{middle}{end}")));
            ends.chain([String::new()]).map(move |end| format!("{beginning}{end}"))
        });
        let mut count = 0;
        for word in ended.chain(exceptions.split_whitespace().map(str::to_owned)) {
            let stem = stem::term(&word, Some(Language::ENGLISH));
            let beginnings = Beginnings::of(&HashSet::from([stem.as_str()]));
            assert!(is_plain(&word) && beginnings.may_have_term(&word), "{word}: {stem}");
            count += 1;
        }
        assert!(count > 100_000);
        let of = |term| Beginnings::of(&HashSet::from([term]));
        assert!(
            !of("moon").may_have_term("mars")
                && !of("moon").may_have_term("on")
                && of("moon").may_have_term("Mood")
        );
        assert!(
            of("m").may_have_term("mars")
                && !of("m2").may_have_term("mars")
                && !of("über").may_have_term("ub")
        );
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

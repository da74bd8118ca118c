//! Literals of a query: quoted phrases, identifiers, and the query as a whole.

use std::ops::Range;

use crate::{
    analyze::{Side, TermForm, bare, for_each_form},
    chars::{CharClass, class},
    compound::is_version,
    prefilter::{may_contain_phrase, may_contain_term},
    word::{Segment, SegmentKind, clusters, in_one_line, is_hyphenated, segments, slice},
};

/// The most words of a query in which names are identifiers. A longer query is a question, and a name in it
/// (`Claude.ai`, `JavaScript`) occurs in many texts on its subject, unlike a code or a version. See
/// docs/studies.md#literal-matches.
const MAX_LOOKUP_WORDS: usize = 8;
/// The most quoted phrases, and the most identifiers, of a query that are used.
const MAX_LITERALS: usize = 16;

/// Pairs of quotation marks. An apostrophe is not one.
const QUOTES: [(char, char); 7] =
    [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('「', '」'), ('『', '』'), ('＂', '＂')];

/// The literals of a query, which are matched in texts.
///
/// Words are compared as a whole and without stemming; case, accents and the characters between words are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Literals {
    quoted: Vec<Phrase>,
    identifiers: Vec<String>,
    whole_query: Option<Phrase>,
}

/// The [`Literals`] that some texts contain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LiteralMatches {
    /// The query has quoted phrases, and the texts contain all of them.
    pub quoted: bool,
    /// The query has identifiers, and the texts contain all of them.
    pub identifiers: bool,
    /// The texts contain the whole query.
    pub whole_query: bool,
}

/// Words in a row.
type Phrase = Vec<String>;

impl Literals {
    /// The literals of `query`.
    ///
    /// Identifiers are codes and versions such as `ERR-1001`, `v1.2.3`, `foo_bar`, `E0308`, and in a short query also
    /// names such as `main.rs`, `parseUrl` and `C++`. The query as a whole is a literal if it has several words, or one
    /// word of several parts.
    #[must_use]
    pub fn of(query: &str) -> Self {
        let quoted = quoted(query).map(phrase).filter(|phrase| !phrase.is_empty());
        let quoted: Vec<Phrase> = quoted.take(MAX_LITERALS).collect();
        let words: Vec<Segment> =
            segments(query).filter(|segment| segment.kind == SegmentKind::Word).collect();
        let names = words.len() <= MAX_LOOKUP_WORDS;
        let words = words.iter().map(|word| slice(query, &word.range));
        let identifiers = words.filter(|word| is_code(word) || (names && is_name(word)));
        let identifiers = identifiers.take(MAX_LITERALS).map(identifier).collect();
        let compound = |word: &str| word.contains(|c| class(c) == CharClass::Other);
        let whole_query = phrase(query);
        let several = whole_query.len() > 1 || whole_query.iter().any(|word| compound(word));
        // A query that is quoted as a whole is a quoted phrase already.
        let whole_query = (several && !quoted.contains(&whole_query)).then_some(whole_query);
        Self { quoted, identifiers, whole_query }
    }

    /// Whether the query has no literals.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.quoted.is_empty() && self.identifiers.is_empty() && self.whole_query.is_none()
    }

    /// Whether the query has phrases in quotation marks.
    #[must_use]
    pub fn has_quoted(&self) -> bool {
        !self.quoted.is_empty()
    }

    /// The literals that `texts` contain together. A phrase must be within one of them.
    #[must_use]
    pub fn matches_in(&self, texts: &[&str]) -> LiteralMatches {
        let contains = |phrase: &Phrase| texts.iter().any(|text| !phrase_ranges(text, phrase).is_empty());
        LiteralMatches {
            quoted: !self.quoted.is_empty() && self.quoted.iter().all(contains),
            identifiers: !self.identifiers.is_empty() && self.all_identifiers_in(texts),
            whole_query: self.whole_query.as_ref().is_some_and(contains),
        }
    }

    /// The ranges of phrases in `text`: byte ranges on character boundaries, unsorted.
    #[must_use]
    pub fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        self.quoted.iter().chain(&self.whole_query).flat_map(|phrase| phrase_ranges(text, phrase)).collect()
    }

    fn all_identifiers_in(&self, texts: &[&str]) -> bool {
        let mut missing: Vec<&str> = self.identifiers.iter().map(String::as_str).collect();
        for text in texts {
            if !missing.iter().any(|identifier| may_contain_term(text, identifier)) {
                continue;
            }
            for_each_form(text, Side::Document, |form, _| {
                let (TermForm::Word(word) | TermForm::Verbatim(word)) = form;
                missing.retain(|identifier| *identifier != word);
            });
        }
        missing.is_empty()
    }
}

/// Whether `sources` contain every code and every name of a program part in `text` as a whole.
pub(crate) fn contains_all_identifiers(text: &str, sources: &[&str]) -> bool {
    let words = segments(text).filter(|segment| segment.kind == SegmentKind::Word);
    let names = words.map(|word| slice(text, &word.range)).filter(|word| is_code(word) || is_name(word));
    let identifiers = names.map(identifier).collect();
    Literals { identifiers, ..Literals::default() }.all_identifiers_in(sources)
}

/// The byte ranges of the words of a text. Each character of a script without spaces is one.
fn word_units(text: &str) -> Vec<Range<usize>> {
    let mut word_units = Vec::new();
    for segment in segments(text) {
        match segment.kind {
            SegmentKind::Unspaced => word_units.extend(clusters(text, &segment.range)),
            SegmentKind::Word | SegmentKind::Pictograph => word_units.push(segment.range),
        }
    }
    word_units
}

pub(crate) fn phrase(text: &str) -> Phrase {
    word_units(text).iter().map(|range| bare(&in_one_line(slice(text, range), ""))).collect()
}

/// The byte ranges of `phrase` in `text`. A word that is hyphenated at the end of a line is also compared with its hyphen,
/// and as two words.
fn phrase_ranges(text: &str, phrase: &[String]) -> Vec<Range<usize>> {
    if !may_contain_phrase(text, phrase) {
        return Vec::new();
    }
    all_phrase_ranges(text, phrase)
}

/// The same, without a look at the bytes of the text first.
pub(crate) fn all_phrase_ranges(text: &str, phrase: &[String]) -> Vec<Range<usize>> {
    let units = word_units(text);
    let mut ranges = ranges_among(text, &units, phrase);
    if units.iter().any(|unit| is_hyphenated(slice(text, unit))) {
        let units: Vec<Range<usize>> = units.iter().flat_map(|unit| lines(text, unit)).collect();
        let new = ranges_among(text, &units, phrase).into_iter().filter(|range| !ranges.contains(range));
        let new: Vec<Range<usize>> = new.collect();
        ranges.extend(new);
    }
    ranges
}

/// The byte ranges of `phrase` among the words of `text` at `units`.
fn ranges_among(text: &str, units: &[Range<usize>], phrase: &[String]) -> Vec<Range<usize>> {
    let is_word = |(range, expected): (&Range<usize>, &String)| is_bare_form(expected, slice(text, range));
    let matches = |window: &&[Range<usize>]| window.iter().zip(phrase).all(is_word);
    let span = |window: &[Range<usize>]| Some(window.first()?.start..window.last()?.end);
    units.windows(phrase.len().max(1)).filter(matches).filter_map(span).collect()
}

/// The words of a unit in each of its lines.
fn lines(text: &str, unit: &Range<usize>) -> Vec<Range<usize>> {
    if !is_hyphenated(slice(text, unit)) {
        return vec![unit.clone()];
    }
    let mut at = unit.start;
    let lines = slice(text, unit).split_inclusive(['\n', '\r']).flat_map(|line| {
        let start = at;
        at += line.len();
        word_units(line).into_iter().map(move |word| start + word.start..start + word.end)
    });
    lines.collect()
}

/// Whether `bare(word)` is `expected`.
fn is_bare_form(expected: &str, word: &str) -> bool {
    if is_hyphenated(word) {
        return ["", "-"].iter().any(|hyphen| bare(&in_one_line(word, hyphen)) == expected);
    }
    if !word.is_ascii() {
        return bare(word) == expected;
    }
    let lower = word.bytes().map(|byte| byte.to_ascii_lowercase());
    word.len() == expected.len() && lower.eq(expected.bytes())
}

/// The texts between pairs of quotation marks.
fn quoted(query: &str) -> impl Iterator<Item = &str> {
    let mut rest = query;
    std::iter::from_fn(move || {
        loop {
            let (at, mark) = rest.char_indices().find(|(_, c)| QUOTES.iter().any(|(open, _)| open == c))?;
            let after = rest.get(at + mark.len_utf8()..)?;
            let is_closing = |c: char| QUOTES.contains(&(mark, c));
            let Some((inside, behind)) = after.split_once(is_closing) else {
                rest = after;
                continue;
            };
            rest = behind;
            return Some(inside);
        }
    })
}

/// The index term of an identifier.
fn identifier(word: &str) -> String {
    let mut first = None;
    for_each_form(word, Side::Query, |form, _| {
        let (TermForm::Word(term) | TermForm::Verbatim(term)) = form;
        first.get_or_insert(term);
    });
    let version = word.strip_prefix(['v', 'V']).filter(|rest| is_version(rest));
    version.map(bare).or(first).unwrap_or_default()
}

/// Whether a word is a code, a version, an address or a program path, which denotes one specific object.
fn is_code(word: &str) -> bool {
    let letters = word.contains(char::is_alphabetic);
    let digits = word.contains(|c: char| c.is_ascii_digit());
    let begins_with_a_letter = word.starts_with(char::is_alphabetic) || word.starts_with("0x");
    (letters && digits && begins_with_a_letter)
        || (is_version(word) && word.matches('.').count() > 1)
        || word.contains(['_', '@'])
        || word.contains("::")
}

/// Whether a word looks like the name of a file, a programming language or a program part.
fn is_name(word: &str) -> bool {
    let letters = word.contains(char::is_alphabetic);
    let dotted = word.split('.').filter(|part| part.chars().count() > 1).count() > 1;
    (letters && dotted) || word.ends_with("++") || word.ends_with('#') || is_camel(word)
}

/// Whether a word is in camel case: `parseUrl`, `KeyError`.
fn is_camel(word: &str) -> bool {
    let rises = |pair: &[u8]| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase());
    word.bytes().all(|byte| byte.is_ascii_alphabetic()) && word.as_bytes().windows(2).any(rises)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(query: &str, texts: &[&str]) -> (bool, bool, bool) {
        let matches = Literals::of(query).matches_in(texts);
        (matches.quoted, matches.identifiers, matches.whole_query)
    }

    #[track_caller]
    fn identifiers(query: &str, expected: &[&str]) {
        assert_eq!(Literals::of(query).identifiers, expected);
    }

    #[test]
    fn identifiers_are_codes_versions_and_names() {
        identifiers("what does ERR-1001 mean", &["err-1001"]);
        identifiers("upgrade to v1.2.3 or 1.2.4", &["1.2.3", "1.2.4"]);
        identifiers("open src/main.rs and config.yaml", &["main.rs", "config.yaml"]);
        identifiers("call foo_bar in std::fs", &["foo_bar", "std::fs"]);
        identifiers("parseUrl raises KeyError", &["parseurl", "keyerror"]);
        identifiers("E0308 sha256 CVE-2024-1234 0x7FFF", &["e0308", "sha256", "cve-2024-1234", "0x7fff"]);
        identifiers("C++ or C# for me@example.com", &["c++", "c#", "me@example.com"]);
        identifiers("in 2024 the 19th, 3.14 of 1,000 at 10:30, 5km", &[]);
        identifiers("The U.S. is a well-known state-of-the-art, e.g. NASA", &[]);
        identifiers("東京タワーは333メートル", &[]);
    }

    #[test]
    fn names_in_long_queries_are_not_identifiers() {
        let long = "on what date did the model and the feature become available in";
        identifiers(&format!("{long} Claude.ai"), &[]);
        identifiers(&format!("{long} v1.2.3"), &["1.2.3"]);
        identifiers("what is new in Claude.ai", &["claude.ai"]);
    }

    #[test]
    fn phrases_match_word_by_word() {
        assert_eq!(matches("\"salty ocean\" of Europa", &["A Salty, océan."]), (true, false, false));
        assert_eq!(matches("\"salty ocean\"", &["a salty", "ocean"]), (false, false, false));
        assert_eq!(matches("\"salty ocean\"", &["salty oceans, unsalty ocean"]), (false, false, false));
        assert_eq!(matches("“to be” and „nicht sein“", &["nicht  sein", "to be"]), (true, false, false));
        assert_eq!(matches("to be or not to be", &["To be, or not to be: that"]), (false, false, true));
        assert_eq!(matches("ocean", &["ocean"]), (false, false, false), "one word is not a phrase");
        assert_eq!(matches("state-of-the-art", &["a state-of-the-art device"]), (false, false, true));
        assert_eq!(matches("東京タワー", &["私は東京タワーに行く"]), (false, false, true));
        assert_eq!(matches("「東京タワー」の高さ", &["東京スカイタワー"]), (false, false, false));
        assert_eq!(matches("GitLabの使い方", &["これはGitLabの使い方です"]), (false, true, true));
    }

    #[test]
    fn phrases_match_words_in_any_form() {
        check_phrase("the salty ocean", "a SALTY Ocean, the Salty ocean", &["the Salty ocean"]);
        check_phrase("the salty ocean", "an ocean, saltyish; the salt y ocean", &[]);
        // The longest word has an accent, is in wide letters, and is in the text only without one.
        check_phrase("the salty oceans", "the salty océans", &["the salty océans"]);
        check_phrase("the salty oceans", "“the salty ｏｃｅａｎｓ”", &["the salty ｏｃｅａｎｓ"]);
        check_phrase("the salty océans", "the salty oceans", &["the salty oceans"]);
        check_phrase("der Straße nach", "Der STRASSE nach", &["Der STRASSE nach"]);
        check_phrase("well-known sea", "a well‐known sea", &[]);
        check_phrase("东 sea", "东 Sea, 东海", &["东 Sea"]);
    }

    #[test]
    fn phrases_match_words_that_are_hyphenated_at_the_end_of_a_line() {
        let text = "an implemen-\ntation of long-\nterm goals";
        for (query, found) in [
            ("\"implementation of\"", true),
            ("\"long term goals\"", true),
            ("\"long-term goals\"", true),
            ("\"the implementation\"", false),
        ] {
            assert_eq!(matches(query, &[text]).0, found, "{query}");
        }
        let ranges = Literals::of("\"an implementation\"").ranges(text);
        let found: Vec<_> = ranges.into_iter().map(|range| text.get(range).unwrap()).collect();
        assert_eq!(found, ["an implemen-\ntation"]);
        assert!(matches("\"Donaudampf fährt\"", &["die Donau\u{ad}dampf fährt"]).0);
    }

    #[test]
    fn pictographs_are_no_ascii_words() {
        let pictographs = ('\u{80}'..=char::MAX).filter(|&c| class(c) == CharClass::Pictograph);
        assert!(pictographs.map(|c| bare(&c.to_string())).all(|bare| !bare.is_empty() && !bare.is_ascii()));
    }

    /// Checks that the ranges of the query as a phrase in a text are these, and that comparing all words finds the same.
    #[track_caller]
    fn check_phrase(query: &str, text: &str, expected: &[&str]) {
        let found: Vec<_> =
            phrase_ranges(text, &phrase(query)).into_iter().map(|range| text.get(range).unwrap()).collect();
        assert_eq!(found, expected);
        assert_eq!(Literals::of(query).matches_in(&[text]).whole_query, !expected.is_empty());
        assert_eq!(
            phrase(text).windows(phrase(query).len()).filter(|words| *words == phrase(query)).count(),
            found.len()
        );
    }

    #[test]
    fn identifiers_match_whole_words_only() {
        assert_eq!(matches("err-1001", &["It says ERR-1001."]), (false, true, true));
        assert_eq!(matches("err-1001", &["It says ERR-1002, or ERR-10011."]), (false, false, false));
        assert_eq!(matches("release 1.2.3", &["notes of v1.2.3"]), (false, true, false));
        assert_eq!(matches("release v1.2.3", &["notes of 1.2.3"]), (false, true, false));
        assert_eq!(matches("release 1.2.3", &["notes of 1.2.4"]), (false, false, false));
        assert_eq!(matches("1.2.3 and main.rs", &["1.2.3", "in main.rs"]), (false, true, false));
        assert_eq!(
            matches("1.2.3 and main.rs", &["1.2.3"]),
            (false, false, false),
            "all identifiers are required"
        );
    }

    #[test]
    fn quoted_phrase_requires_a_closing_mark() {
        let phrases = |query: &str| quoted(query).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(phrases("a \"b c\" d \"e\""), ["b c", "e"]);
        assert_eq!(phrases("5\" of “snow"), Vec::<String>::new());
        assert_eq!(phrases("it's Bob's"), Vec::<String>::new());
        assert!(Literals::of("\"\" ' \"").is_empty());
        assert!(Literals::of("ocean").is_empty() && !Literals::of("the ocean").is_empty());
    }

    #[test]
    fn ranges_cover_all_occurrences_of_phrases() {
        let text = "Über 🏔 the salty OCEAN, a salty ocean";
        let ranges = Literals::of("\"salty ocean\"").ranges(text);
        let cut: Vec<_> = ranges.into_iter().map(|range| text.get(range).unwrap()).collect();
        assert_eq!(cut, ["salty OCEAN", "salty ocean"]);
        assert!(Literals::of("ocean").ranges(text).is_empty());
    }
}

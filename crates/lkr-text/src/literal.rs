//! What a query asks for as it stands: phrases in quotation marks, identifiers, and the query itself.

use std::ops::Range;

use crate::{
    analyze::{Form, Side, bare, forms},
    chars::{Class, class},
    compound::is_version,
    word::{Kind, Segment, cut, segments, units},
};

/// A query of more words is a question. A name in it that any text about the matter may hold (`Claude.ai`,
/// `JavaScript`) does not tell where the answer is, as a code or a version does.
const LOOK_UP_WORDS: usize = 8;
/// Beyond so many, quoted phrases and identifiers of a query are not looked for.
const MAX_OF_A_KIND: usize = 16;

/// Pairs of quotation marks. An apostrophe is none.
const QUOTES: [(char, char); 7] =
    [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('「', '」'), ('『', '』'), ('＂', '＂')];

/// What a query asks for as it stands, to be looked for in texts.
///
/// Words are compared whole, without regard to case, accents and what stands between them, and are not stemmed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Literals {
    quoted: Vec<Phrase>,
    identifiers: Vec<String>,
    whole: Option<Phrase>,
}

/// What of [`Literals`] some texts hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LiteralMatches {
    /// Every phrase in quotation marks, and there is one.
    pub quoted: bool,
    /// Every identifier, and there is one.
    pub identifiers: bool,
    /// The query from its first word to its last.
    pub whole: bool,
}

/// Words in a row.
type Phrase = Vec<String>;

impl Literals {
    /// What `query` asks for as it stands.
    ///
    /// Identifiers are words that nobody says: `ERR-1001`, `v1.2.3`, `foo_bar`, `E0308`; in a query of a few words also
    /// names such as `main.rs`, `parseUrl` and `C++`. A query is looked for as a whole where it has several words, or one
    /// of several parts.
    #[must_use]
    pub fn of(query: &str) -> Self {
        let quoted = quoted(query).map(phrase).filter(|phrase| !phrase.is_empty());
        let quoted: Vec<Phrase> = quoted.take(MAX_OF_A_KIND).collect();
        let words: Vec<Segment> = segments(query).filter(|segment| segment.kind == Kind::Word).collect();
        let names = words.len() <= LOOK_UP_WORDS;
        let words = words.iter().map(|word| cut(query, &word.range));
        let identifiers = words.filter(|word| is_code(word) || (names && is_name(word)));
        let identifiers = identifiers.take(MAX_OF_A_KIND).map(identifier).collect();
        let compound = |word: &str| word.contains(|c| class(c) == Class::Other);
        let whole = phrase(query);
        let several = whole.len() > 1 || whole.iter().any(|word| compound(word));
        // Where all of it is quoted, that says so already.
        let whole = (several && !quoted.contains(&whole)).then_some(whole);
        Self { quoted, identifiers, whole }
    }

    /// Whether there is nothing to look for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.quoted.is_empty() && self.identifiers.is_empty() && self.whole.is_none()
    }

    /// What of it `texts` hold together. A phrase has to stand within one of them.
    #[must_use]
    pub fn held_by(&self, texts: &[&str]) -> LiteralMatches {
        let rows: Vec<Vec<Unit>> = texts.iter().map(|text| row(text)).collect();
        let has = |phrase: &Phrase| rows.iter().any(|row| !found(row, phrase).is_empty());
        LiteralMatches {
            quoted: !self.quoted.is_empty() && self.quoted.iter().all(has),
            identifiers: !self.identifiers.is_empty() && self.has_identifiers(texts),
            whole: self.whole.as_ref().is_some_and(has),
        }
    }

    /// Where phrases stand in `text`: byte ranges on character boundaries, in no order.
    #[must_use]
    pub fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        let phrases: Vec<&Phrase> = self.quoted.iter().chain(&self.whole).collect();
        if phrases.is_empty() {
            return Vec::new();
        }
        let row = row(text);
        phrases.into_iter().flat_map(|phrase| found(&row, phrase)).collect()
    }

    fn has_identifiers(&self, texts: &[&str]) -> bool {
        let mut missing: Vec<&str> = self.identifiers.iter().map(String::as_str).collect();
        for text in texts {
            forms(text, Side::Document, |form, _| {
                let (Form::Word(word) | Form::Fixed(word)) = form;
                missing.retain(|identifier| *identifier != word);
            });
        }
        missing.is_empty()
    }
}

/// Whether every code and every name of a part of a program in `text` stands whole in some of `sources`.
pub(crate) fn names_stand_in(text: &str, sources: &[&str]) -> bool {
    let words = segments(text).filter(|segment| segment.kind == Kind::Word);
    let names = words.map(|word| cut(text, &word.range)).filter(|word| is_code(word) || is_name(word));
    let identifiers = names.map(identifier).collect();
    Literals { identifiers, ..Literals::default() }.has_identifiers(sources)
}

/// A word of a text, or a character of a script without spaces.
type Unit = (String, Range<usize>);

fn row(text: &str) -> Vec<Unit> {
    let mut row = Vec::new();
    let mut push = |range: Range<usize>| row.push((bare(cut(text, &range)), range));
    for segment in segments(text) {
        match segment.kind {
            Kind::Dense => units(text, &segment.range).for_each(&mut push),
            Kind::Word | Kind::Symbol => push(segment.range),
        }
    }
    row
}

fn phrase(text: &str) -> Phrase {
    row(text).into_iter().map(|(word, _)| word).collect()
}

/// Where `phrase` stands in a text.
fn found(row: &[Unit], phrase: &Phrase) -> Vec<Range<usize>> {
    let same = |window: &&[Unit]| window.iter().zip(phrase).all(|((word, _), asked)| word == asked);
    let from_first_to_last = |window: &[Unit]| Some(window.first()?.1.start..window.last()?.1.end);
    row.windows(phrase.len().max(1)).filter(same).filter_map(from_first_to_last).collect()
}

/// What stands between quotation marks.
fn quoted(query: &str) -> impl Iterator<Item = &str> {
    let mut rest = query;
    std::iter::from_fn(move || {
        loop {
            let (at, mark) = rest.char_indices().find(|(_, c)| QUOTES.iter().any(|(open, _)| open == c))?;
            let after = rest.get(at + mark.len_utf8()..)?;
            let closing = |c: char| QUOTES.contains(&(mark, c));
            let Some((inside, behind)) = after.split_once(closing) else {
                rest = after;
                continue;
            };
            rest = behind;
            return Some(inside);
        }
    })
}

/// An identifier as texts are indexed by it.
fn identifier(word: &str) -> String {
    let mut first = None;
    forms(word, Side::Query, |form, _| {
        let (Form::Word(term) | Form::Fixed(term)) = form;
        first.get_or_insert(term);
    });
    let version = word.strip_prefix(['v', 'V']).filter(|rest| is_version(rest));
    version.map(bare).or(first).unwrap_or_default()
}

/// Whether a word is a code, a version, an address or a path of a program: what stands for one thing.
fn is_code(word: &str) -> bool {
    let letters = word.contains(char::is_alphabetic);
    let digits = word.contains(|c: char| c.is_ascii_digit());
    let begins_with_a_letter = word.starts_with(char::is_alphabetic) || word.starts_with("0x");
    (letters && digits && begins_with_a_letter)
        || (is_version(word) && word.matches('.').count() > 1)
        || word.contains(['_', '@'])
        || word.contains("::")
}

/// Whether a word is the name of a file, a language or a part of a program, or looks like one.
fn is_name(word: &str) -> bool {
    let letters = word.contains(char::is_alphabetic);
    let dotted = word.split('.').filter(|part| part.chars().count() > 1).count() > 1;
    (letters && dotted) || word.ends_with("++") || word.ends_with('#') || is_camel(word)
}

/// Whether a word changes its case amid: `parseUrl`, `KeyError`.
fn is_camel(word: &str) -> bool {
    let rises = |pair: &[u8]| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase());
    word.bytes().all(|byte| byte.is_ascii_alphabetic()) && word.as_bytes().windows(2).any(rises)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(query: &str, texts: &[&str]) -> (bool, bool, bool) {
        let held = Literals::of(query).held_by(texts);
        (held.quoted, held.identifiers, held.whole)
    }

    #[track_caller]
    fn identifiers(query: &str, expected: &[&str]) {
        assert_eq!(Literals::of(query).identifiers, expected);
    }

    #[test]
    fn identifiers_are_words_that_nobody_says() {
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
    fn names_in_long_questions_are_none() {
        let long = "on what date did the model and the feature become available in";
        identifiers(&format!("{long} Claude.ai"), &[]);
        identifiers(&format!("{long} v1.2.3"), &["1.2.3"]);
        identifiers("what is new in Claude.ai", &["claude.ai"]);
    }

    #[test]
    fn phrases_are_compared_word_by_word() {
        assert_eq!(held("\"salty ocean\" of Europa", &["A Salty, océan."]), (true, false, false));
        assert_eq!(held("\"salty ocean\"", &["a salty", "ocean"]), (false, false, false));
        assert_eq!(held("\"salty ocean\"", &["salty oceans, unsalty ocean"]), (false, false, false));
        assert_eq!(held("“to be” and „nicht sein“", &["nicht  sein", "to be"]), (true, false, false));
        assert_eq!(held("to be or not to be", &["To be, or not to be: that"]), (false, false, true));
        assert_eq!(held("ocean", &["ocean"]), (false, false, false), "one word is no phrase");
        assert_eq!(held("state-of-the-art", &["a state-of-the-art device"]), (false, false, true));
        assert_eq!(held("東京タワー", &["私は東京タワーに行く"]), (false, false, true));
        assert_eq!(held("「東京タワー」の高さ", &["東京スカイタワー"]), (false, false, false));
        assert_eq!(held("GitLabの使い方", &["これはGitLabの使い方です"]), (false, true, true));
    }

    #[test]
    fn identifiers_are_found_in_longer_ones_only_where_they_are_whole() {
        assert_eq!(held("err-1001", &["It says ERR-1001."]), (false, true, true));
        assert_eq!(held("err-1001", &["It says ERR-1002, or ERR-10011."]), (false, false, false));
        assert_eq!(held("release 1.2.3", &["notes of v1.2.3"]), (false, true, false));
        assert_eq!(held("release v1.2.3", &["notes of 1.2.3"]), (false, true, false));
        assert_eq!(held("release 1.2.3", &["notes of 1.2.4"]), (false, false, false));
        assert_eq!(held("1.2.3 and main.rs", &["1.2.3", "in main.rs"]), (false, true, false));
        assert_eq!(held("1.2.3 and main.rs", &["1.2.3"]), (false, false, false), "all of them");
    }

    #[test]
    fn quotation_marks_need_a_partner() {
        let phrases = |query: &str| quoted(query).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(phrases("a \"b c\" d \"e\""), ["b c", "e"]);
        assert_eq!(phrases("5\" of “snow"), Vec::<String>::new());
        assert_eq!(phrases("it's Bob's"), Vec::<String>::new());
        assert!(Literals::of("\"\" ' \"").is_empty());
        assert!(Literals::of("ocean").is_empty() && !Literals::of("the ocean").is_empty());
    }

    #[test]
    fn ranges_cover_phrases() {
        let text = "Über 🏔 the salty OCEAN, a salty ocean";
        let ranges = Literals::of("\"salty ocean\"").ranges(text);
        let cut: Vec<_> = ranges.into_iter().map(|range| text.get(range).unwrap()).collect();
        assert_eq!(cut, ["salty OCEAN", "salty ocean"]);
        assert!(Literals::of("ocean").ranges(text).is_empty());
    }
}

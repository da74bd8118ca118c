//! The terms of a document whose parts are analysed one after another.

use std::collections::HashMap;

use crate::{
    Analyzer, Language,
    word::{Segment, SegmentKind, segments, slice},
};

/// The most words that are remembered: more than nearly every document has. It bounds the memory to some megabytes.
const MAX_WORDS: usize = 1 << 16;

/// The longest word in bytes that is remembered: longer ones rarely occur twice.
const MAX_WORD_BYTES: usize = 64;

/// Ends each of the remembered terms, none of which contains white space.
const END: char = '\n';

/// The index terms of texts in one language, as [`Analyzer`] makes them, with a memory of the words that occurred.
///
/// A document is analysed several times: its sentences, each of its layers, and the whole of it. Nearly all words of a
/// part were in another one, so that looking their terms up saves most of the stemming.
#[derive(Debug, Clone)]
pub struct DocumentTerms {
    language: Option<Language>,
    analyzer: Analyzer,
    /// The terms of each word, each with [`END`] behind it.
    words: HashMap<Box<str>, Box<str>>,
}

impl DocumentTerms {
    /// The terms of texts in `language`, without a word that is remembered.
    #[must_use]
    pub fn new(language: Option<Language>) -> Self {
        Self { language, analyzer: Analyzer::new(language), words: HashMap::new() }
    }

    /// The language of the texts.
    #[must_use]
    pub const fn language(&self) -> Option<Language> {
        self.language
    }

    /// Calls `visit` with each term of `text`, in order, and remembers its words.
    pub fn learn(&mut self, text: &str, mut visit: impl FnMut(&str)) {
        for segment in segments(text) {
            let word = slice(text, &segment.range);
            if let Some(terms) = self.words.get(word) {
                terms.split_terminator(END).for_each(&mut visit);
                continue;
            }
            let mut terms = String::new();
            self.analyzer.for_each_in(text, &segment, |term, _| {
                visit(&term);
                terms.push_str(&term);
                terms.push(END);
            });
            if is_remembered(&segment) && self.words.len() < MAX_WORDS {
                self.words.insert(word.into(), terms.into());
            }
        }
    }

    /// Calls `visit` with each term of `text`, in order.
    pub fn for_each(&self, text: &str, mut visit: impl FnMut(&str)) {
        for segment in segments(text) {
            match self.words.get(slice(text, &segment.range)) {
                Some(terms) => terms.split_terminator(END).for_each(&mut visit),
                None => self.analyzer.for_each_in(text, &segment, |term, _| visit(&term)),
            }
        }
    }
}

/// Whether the terms of a segment are remembered. Runs of characters without spaces are not: they have no stems, and rarely occur
/// twice as a whole.
fn is_remembered(segment: &Segment) -> bool {
    segment.kind == SegmentKind::Word && segment.range.len() <= MAX_WORD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms_of(terms: &DocumentTerms, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        terms.for_each(text, |term| found.push(term.to_owned()));
        found
    }

    #[test]
    fn learned_words_are_remembered_with_all_their_terms() {
        let mut terms = DocumentTerms::new(Some(Language::ENGLISH));
        let mut learned = Vec::new();
        terms.learn("The moons of foo_bar.baz", |term| learned.push(term.to_owned()));
        assert_eq!(learned, ["moon", "foo_bar.baz", "foo", "bar", "baz"]);
        assert_eq!(&*terms.words["The"], "");
        assert_eq!(&*terms.words["foo_bar.baz"], "foo_bar.baz\nfoo\nbar\nbaz\n");
        // Looked up, not analysed.
        terms.words.insert("moons".into(), "remembered\n".into());
        assert_eq!(terms_of(&terms, "the moons rise"), ["remembered", "rise"]);
        learned.clear();
        terms.learn("the moons rise", |term| learned.push(term.to_owned()));
        assert_eq!(learned, ["remembered", "rise"]);
    }

    #[test]
    fn memory_of_words_is_bounded() {
        let mut terms = DocumentTerms::new(None);
        let long = "x".repeat(MAX_WORD_BYTES + 1);
        terms.learn(&format!("{long} 東京タワー 🏔"), |_| {});
        assert!(terms.words.is_empty());
        let many: String = (0..MAX_WORDS + 10).map(|n| format!("w{n} ")).collect();
        let mut count = 0;
        terms.learn(&many, |_| count += 1);
        assert_eq!((terms.words.len(), count), (MAX_WORDS, MAX_WORDS + 10));
        assert_eq!(terms_of(&terms, &format!("w{}", MAX_WORDS + 5)), [format!("w{}", MAX_WORDS + 5)]);
    }
}

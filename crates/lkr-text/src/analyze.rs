use std::ops::Range;

use crate::{
    Language,
    chars::is_han,
    compound::{Piece, for_each_piece},
    fold::{lower, strip_accents},
    stem,
    stop::{self, LanguageMask},
    word::{Segment, SegmentKind, clusters, segments, slice},
};

/// The longest term in bytes. Longer terms are truncated in documents and in queries alike.
const MAX_TERM_BYTES: usize = 96;

/// A term of a text and the range of text it was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The term; never empty.
    pub term: String,
    /// Its range in bytes of the text, on character boundaries.
    pub range: Range<usize>,
}

/// Turns documents of one language into index terms, as described in the crate documentation.
#[derive(Debug, Clone, Copy)]
pub struct Analyzer {
    language: Option<Language>,
    stops: LanguageMask,
}

impl Analyzer {
    /// The analyzer of a language. Without a language, words in Latin letters are treated as English.
    #[must_use]
    pub fn new(language: Option<Language>) -> Self {
        let stops = stop::language_bit(language.unwrap_or(Language::ENGLISH));
        Self { language, stops }
    }

    /// The index terms of `text` in order, without stop words.
    ///
    /// A plain word has one term. The terms of a compound overlap: the whole comes before its parts.
    #[must_use]
    pub fn analyze(&self, text: &str) -> Vec<Token> {
        let mut tokens = Vec::new();
        self.for_each(text, |term, range| tokens.push(Token { term, range }));
        tokens
    }

    /// Calls `visit` with each term and its byte range, in the order of [`analyze`](Self::analyze).
    pub fn for_each(&self, text: &str, mut visit: impl FnMut(String, Range<usize>)) {
        for_each_form(text, Side::Document, |form, range| {
            if let Some(term) = self.term(form) {
                visit(term, range);
            }
        });
    }

    /// Calls `visit` with each term of a segment of `text` and its byte range in the text.
    pub(crate) fn for_each_in(
        &self,
        text: &str,
        segment: &Segment,
        mut visit: impl FnMut(String, Range<usize>),
    ) {
        for_each_form_in(text, segment, Side::Document, &mut |form, range| {
            if let Some(term) = self.term(form) {
                visit(term, range);
            }
        });
    }

    /// The term of a form; `None` for a stop word.
    fn term(&self, form: TermForm) -> Option<String> {
        let term = match form {
            TermForm::Word(word) if stop::stop_word_languages(&word) & self.stops != 0 => return None,
            TermForm::Word(word) => truncate(stem::term(&word, self.language)),
            TermForm::Verbatim(term) => term,
        };
        (!term.is_empty()).then_some(term)
    }
}

/// A word before language-specific processing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TermForm {
    /// A word in lower case, to be stemmed or dropped as a stop word.
    Word(String),
    /// A term that is neither stemmed nor dropped: a compound, a bigram, a pictograph.
    Verbatim(String),
}

/// Whether a text is a document or a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Single Chinese characters are terms beside their bigrams, so that a query of one character finds them.
    Document,
    Query,
}

/// Calls `visit` with each form of `text` and its byte range.
pub(crate) fn for_each_form(text: &str, side: Side, mut visit: impl FnMut(TermForm, Range<usize>)) {
    for segment in segments(text) {
        for_each_form_in(text, &segment, side, &mut visit);
    }
}

/// Calls `visit` with each form of a segment of `text` and its byte range.
fn for_each_form_in(
    text: &str,
    segment: &Segment,
    side: Side,
    visit: &mut impl FnMut(TermForm, Range<usize>),
) {
    let range = segment.range.clone();
    match segment.kind {
        SegmentKind::Word => for_each_piece(text, &range, &mut |piece| match piece {
            Piece::Whole(whole, range) => emit(TermForm::Verbatim(truncate(bare(&whole))), range, visit),
            Piece::Joined(word, range) => {
                emit(TermForm::Word(truncate(lower(&word).into_owned())), range, visit);
            }
            Piece::Part(range) => {
                emit(TermForm::Word(truncate(lower(slice(text, &range)).into_owned())), range, visit);
            }
        }),
        SegmentKind::Unspaced => bigrams(text, &range, side, visit),
        SegmentKind::Pictograph => emit(TermForm::Verbatim(bare(slice(text, &range))), range, visit),
    }
}

/// `word` in lower case without accents.
pub(crate) fn bare(word: &str) -> String {
    strip_accents(lower(word)).into_owned()
}

/// Truncates a term to the longest length.
pub(crate) fn truncate(mut term: String) -> String {
    if term.len() > MAX_TERM_BYTES {
        term.truncate(term.floor_char_boundary(MAX_TERM_BYTES));
    }
    term
}

fn emit(form: TermForm, range: Range<usize>, visit: &mut impl FnMut(TermForm, Range<usize>)) {
    let (TermForm::Word(term) | TermForm::Verbatim(term)) = &form;
    if !term.is_empty() {
        visit(form, range);
    }
}

/// Overlapping bigrams of a run of characters; a run of one character as it is. Marks stay with their character.
fn bigrams(text: &str, run: &Range<usize>, side: Side, visit: &mut impl FnMut(TermForm, Range<usize>)) {
    let mut emit_slice = |range: Range<usize>| {
        emit(TermForm::Verbatim(truncate(lower(slice(text, &range)).into_owned())), range, visit);
    };
    let mut last: Option<Range<usize>> = None;
    for unit in clusters(text, run) {
        let is_term = unit == *run || (side == Side::Document && slice(text, &unit).starts_with(is_han));
        if let Some(last) = last {
            emit_slice(last.start..unit.end);
        }
        if is_term {
            emit_slice(unit.clone());
        }
        last = Some(unit);
    }
}

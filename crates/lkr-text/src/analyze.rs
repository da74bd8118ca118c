use std::ops::Range;

use crate::{
    Language,
    chars::is_han,
    compound::{Piece, pieces},
    fold::{lower, strip_accents},
    stem,
    stop::{self, Mask},
    word::{Kind, cut, segments, units},
};

/// Terms are cut after this many bytes, on both sides of a search.
const MAX_TERM_BYTES: usize = 96;

/// A term of a text, and the words that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The term: never empty.
    pub term: String,
    /// Where it stands, in bytes of the text, on character boundaries.
    pub range: Range<usize>,
}

/// Turns texts of one language into terms. See the crate's documentation for what becomes of a word.
#[derive(Debug, Clone, Copy)]
pub struct Analyzer {
    language: Option<Language>,
    stops: Mask,
}

impl Analyzer {
    /// The analyser of a language; without one, of English as far as the text is in Latin letters.
    #[must_use]
    pub fn new(language: Option<Language>) -> Self {
        let stops = stop::bit(language.unwrap_or(Language::ENGLISH));
        Self { language, stops }
    }

    /// The terms of `text` in order, stop words left out: the side of the documents.
    ///
    /// A plain word has one term. Compounds overlap: the whole comes before its parts.
    #[must_use]
    pub fn analyze(&self, text: &str) -> Vec<Token> {
        let mut tokens = Vec::new();
        self.for_each(text, |term, range| tokens.push(Token { term, range }));
        tokens
    }

    /// Hands every term and its byte range to `take`, in the order of [`analyze`](Self::analyze).
    pub fn for_each(&self, text: &str, mut take: impl FnMut(String, Range<usize>)) {
        forms(text, Side::Document, |form, range| {
            let term = match form {
                Form::Word(word) if stop::languages_of(&word) & self.stops != 0 => return,
                Form::Word(word) => clip(stem::term(&word, self.language)),
                Form::Fixed(term) => term,
            };
            if !term.is_empty() {
                take(term, range);
            }
        });
    }
}

/// A word before its language matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// A word in lower case, to be stemmed or dropped.
    Word(String),
    /// A term as it is: a compound, a pair of characters, a pictograph.
    Fixed(String),
}

/// Which side of a search a text is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Chinese characters are terms of their own beside their pairs, so that a query of one character finds them.
    Document,
    Query,
}

/// Hands every form of `text` and its byte range to `take`.
pub(crate) fn forms(text: &str, side: Side, mut take: impl FnMut(Form, Range<usize>)) {
    for segment in segments(text) {
        match segment.kind {
            Kind::Word => pieces(text, &segment.range, &mut |piece| match piece {
                Piece::Whole(whole, range) => give(Form::Fixed(clip(bare(&whole))), range, &mut take),
                Piece::Part(range) => {
                    give(Form::Word(clip(lower(cut(text, &range)).into_owned())), range, &mut take);
                }
            }),
            Kind::Dense => pairs(text, &segment.range, side, &mut take),
            Kind::Symbol => give(Form::Fixed(bare(cut(text, &segment.range))), segment.range, &mut take),
        }
    }
}

/// `word` in lower case without accents.
pub(crate) fn bare(word: &str) -> String {
    strip_accents(lower(word)).into_owned()
}

/// Cuts a term that no one would type, the same way on both sides.
pub(crate) fn clip(mut term: String) -> String {
    if term.len() > MAX_TERM_BYTES {
        term.truncate(term.floor_char_boundary(MAX_TERM_BYTES));
    }
    term
}

fn give(form: Form, range: Range<usize>, take: &mut impl FnMut(Form, Range<usize>)) {
    let (Form::Word(term) | Form::Fixed(term)) = &form;
    if !term.is_empty() {
        take(form, range);
    }
}

/// Overlapping pairs of characters of a run; a single character as it is. Marks stay with their character.
fn pairs(text: &str, run: &Range<usize>, side: Side, take: &mut impl FnMut(Form, Range<usize>)) {
    let mut fixed = |range: Range<usize>| {
        give(Form::Fixed(clip(lower(cut(text, &range)).into_owned())), range, take);
    };
    let mut last: Option<Range<usize>> = None;
    for unit in units(text, run) {
        let alone = unit == *run || (side == Side::Document && cut(text, &unit).starts_with(is_han));
        if let Some(last) = last {
            fixed(last.start..unit.end);
        }
        if alone {
            fixed(unit.clone());
        }
        last = Some(unit);
    }
}

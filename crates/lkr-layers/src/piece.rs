//! The validated blocks of a parsed text, and the text between them.

use std::ops::Range;

use lkr_domain::{Block, BlockKind, Parsed};

use crate::front_matter::is_fenced;

/// A range of text that is not blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// Its kind.
    pub(crate) kind: PieceKind<'a>,
    /// Its byte range, trimmed of white space.
    pub(crate) range: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceKind<'a> {
    /// A heading; its title may be empty.
    Heading { level: u8, title: &'a str },
    /// Text of a block or between blocks.
    Body(Body),
    /// Furniture: part of no node.
    Furniture,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    Prose,
    List,
    Table,
    TableHeader,
    Code,
    /// Front matter: keys and values before the text.
    FrontMatter,
}

/// The pieces of `parsed`, in order, disjoint, on character boundaries. Invalid blocks are dropped, and their text
/// counts as text between blocks.
pub(crate) fn pieces(parsed: &Parsed) -> Vec<Piece<'_>> {
    let text = parsed.text.as_str();
    let mut pieces = Vec::with_capacity(parsed.blocks.len());
    let mut end = 0;
    for block in &parsed.blocks {
        if block.range.start < end || text.get(block.range.clone()).is_none() {
            continue;
        }
        push(&mut pieces, text, end..block.range.start, PieceKind::Body(Body::Prose));
        push(&mut pieces, text, block.range.clone(), kind(block, text));
        end = block.range.end;
    }
    push(&mut pieces, text, end..text.len(), PieceKind::Body(Body::Prose));
    mark_front_matter(text, &mut pieces);
    pieces
}

/// The range without white space at its ends.
pub(crate) fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let slice = text.get(range.clone()).unwrap_or_default();
    let start = range.start + slice.len() - slice.trim_start().len();
    start..start + slice.trim().len()
}

/// Marks front matter: code at the very start of the text.
fn mark_front_matter(text: &str, pieces: &mut [Piece<'_>]) {
    let Some(first) = pieces.first_mut() else { return };
    let words = text.get(first.range.clone()).unwrap_or_default();
    let before = text.get(..first.range.start).unwrap_or_default();
    let at_start = before.chars().all(|c| c == '\u{feff}');
    if first.kind == PieceKind::Body(Body::Code) && at_start && is_fenced(words) {
        first.kind = PieceKind::Body(Body::FrontMatter);
    }
}

fn push<'a>(pieces: &mut Vec<Piece<'a>>, text: &str, range: Range<usize>, kind: PieceKind<'a>) {
    let range = trim(text, range);
    // A byte order mark is not text.
    let blank = text.get(range.clone()).is_none_or(|text| text.chars().all(|c| c == '\u{feff}'));
    if !blank || (range.start > 0 && !range.is_empty()) {
        pieces.push(Piece { kind, range });
    }
}

fn kind<'a>(block: &'a Block, text: &str) -> PieceKind<'a> {
    let has_words = || text.get(block.range.clone()).is_some_and(|raw| raw.contains(char::is_alphanumeric));
    match &block.kind {
        _ if block.furniture => PieceKind::Furniture,
        // A heading of markup alone: its words are in no title, so that they would not be found.
        BlockKind::Heading { title, .. } if title.trim().is_empty() && has_words() => {
            PieceKind::Body(Body::Prose)
        }
        BlockKind::Heading { level, title } => PieceKind::Heading { level: *level, title: title.trim() },
        BlockKind::Paragraph => PieceKind::Body(Body::Prose),
        BlockKind::List => PieceKind::Body(Body::List),
        BlockKind::Table => PieceKind::Body(Body::Table),
        BlockKind::TableHeader => PieceKind::Body(Body::TableHeader),
        BlockKind::Code => PieceKind::Body(Body::Code),
    }
}

//! The blocks of a parsed text made safe to rely on, with the text between them.

use std::ops::Range;

use lkr_domain::{Block, BlockKind, Parsed};

use crate::front_matter::is_fenced;

/// A stretch of text that is not blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// What it is.
    pub(crate) kind: PieceKind<'a>,
    /// Its byte range, without white space at its ends.
    pub(crate) range: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceKind<'a> {
    /// A heading; one without words has an empty title.
    Heading { level: u8, title: &'a str },
    /// Text of a block, or between blocks.
    Body(Body),
    /// Part of no node.
    Furniture,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    Prose,
    List,
    Table,
    Code,
    /// Keys and values before the text.
    FrontMatter,
}

/// The pieces of `parsed` in order, apart, on character boundaries. Blocks that break their contract are left out,
/// and their text counts as text between blocks.
pub(crate) fn pieces(parsed: &Parsed) -> Vec<Piece<'_>> {
    let text = parsed.text.as_str();
    let mut pieces = Vec::with_capacity(parsed.blocks.len());
    let mut end = 0;
    for block in &parsed.blocks {
        if block.range.start < end || text.get(block.range.clone()).is_none() {
            continue;
        }
        push(&mut pieces, text, end..block.range.start, PieceKind::Body(Body::Prose));
        push(&mut pieces, text, block.range.clone(), kind(block));
        end = block.range.end;
    }
    push(&mut pieces, text, end..text.len(), PieceKind::Body(Body::Prose));
    mark_front_matter(text, &mut pieces);
    pieces
}

/// The range without the white space at its ends.
pub(crate) fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let slice = text.get(range.clone()).unwrap_or_default();
    let start = range.start + slice.len() - slice.trim_start().len();
    start..start + slice.trim().len()
}

/// Tells the front matter from other code: it stands at the very start.
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
    // A byte order mark is no text.
    let blank = text.get(range.clone()).is_none_or(|text| text.chars().all(|c| c == '\u{feff}'));
    if !blank || (range.start > 0 && !range.is_empty()) {
        pieces.push(Piece { kind, range });
    }
}

fn kind(block: &Block) -> PieceKind<'_> {
    match &block.kind {
        _ if block.furniture => PieceKind::Furniture,
        BlockKind::Heading { level, title } => PieceKind::Heading { level: *level, title: title.trim() },
        BlockKind::Paragraph => PieceKind::Body(Body::Prose),
        BlockKind::List => PieceKind::Body(Body::List),
        BlockKind::Table => PieceKind::Body(Body::Table),
        BlockKind::Code => PieceKind::Body(Body::Code),
    }
}

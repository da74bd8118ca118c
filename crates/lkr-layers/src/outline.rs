//! The headings and units of a document, and the heading levels of its layers.

use std::ops::Range;

use lkr_domain::Parsed;

use crate::{
    piece::{Body, Piece, PieceKind, pieces, trim},
    unit::{Boundary, Unit, push_units},
};

/// A heading that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heading<'a> {
    pub(crate) level: u8,
    pub(crate) title: &'a str,
    /// Its byte range.
    pub(crate) range: Range<usize>,
    /// Its parent heading, of a higher level; the document's title is none.
    pub(crate) parent: Option<usize>,
    /// The first unit after it, or its own if it is a unit.
    pub(crate) first_unit: usize,
}

/// A document as headings and units.
#[derive(Debug)]
pub(crate) struct Outline<'a> {
    /// The headings in order.
    pub(crate) headings: Vec<Heading<'a>>,
    /// The index of the heading that is the document's title.
    pub(crate) title: Option<usize>,
    /// The units in order.
    pub(crate) units: Vec<Unit>,
}

impl<'a> Outline<'a> {
    /// Splits `parsed` into units of at most `max` hundredths of a token.
    pub(crate) fn new(parsed: &'a Parsed, max: u32) -> Self {
        let pieces = pieces(parsed);
        let title = title(&pieces);
        let mut outline = Self { headings: Vec::new(), title: None, units: Vec::new() };
        let mut stack: Vec<usize> = Vec::new();
        let mut barrier = false;
        for (at, piece) in pieces.iter().enumerate() {
            let first = outline.units.len();
            let under = stack.last().copied();
            match piece.kind {
                PieceKind::Body(body) => {
                    push_units(&mut outline.units, &parsed.text, piece.range.clone(), body, under, max);
                }
                PieceKind::Heading { level, title: words } if !words.is_empty() => {
                    outline.push_heading(level, words, piece.range.clone(), &mut stack, title == Some(at));
                    if is_empty_section(level, pieces.get(at + 1..).unwrap_or_default()) {
                        let under = stack.last().copied();
                        push_units(
                            &mut outline.units,
                            &parsed.text,
                            piece.range.clone(),
                            Body::Prose,
                            under,
                            max,
                        );
                    }
                }
                PieceKind::Heading { .. } | PieceKind::Furniture => {}
            }
            barrier |= !matches!(piece.kind, PieceKind::Body(_));
            if let Some(unit) = outline.units.get_mut(first) {
                unit.before = if std::mem::take(&mut barrier) { Boundary::Barrier } else { Boundary::Block };
                // A heading that is a unit is also a barrier before the next unit.
                barrier = !matches!(piece.kind, PieceKind::Body(_));
            }
        }
        outline.or_whole_text(parsed, max)
    }

    /// The path of `heading`: its parents and itself, without the document's title.
    pub(crate) fn path(&self, heading: Option<usize>) -> Vec<String> {
        let lead = std::iter::successors(heading.and_then(|at| self.headings.get(at)), |heading| {
            self.headings.get(heading.parent?)
        });
        let mut path: Vec<String> = lead.map(|heading| heading.title.to_owned()).collect();
        path.reverse();
        path
    }

    /// The headings except the document's title, with their indexes.
    pub(crate) fn below_title(&self) -> impl Iterator<Item = (usize, &Heading<'a>)> {
        self.headings.iter().enumerate().filter(|(at, _)| Some(*at) != self.title)
    }

    fn push_heading(
        &mut self,
        level: u8,
        title: &'a str,
        range: Range<usize>,
        stack: &mut Vec<usize>,
        is_title: bool,
    ) {
        let at = self.headings.len();
        while stack.pop_if(|open| self.headings.get(*open).is_none_or(|open| open.level >= level)).is_some() {
        }
        let parent = stack.last().copied();
        self.headings.push(Heading { level, title, range, parent, first_unit: self.units.len() });
        if is_title {
            self.title = Some(at);
        } else {
            stack.push(at);
        }
    }

    /// A text that consists of furniture and markup alone becomes one range of units.
    fn or_whole_text(mut self, parsed: &Parsed, max: u32) -> Self {
        if self.units.is_empty() {
            let range = trim(&parsed.text, 0..parsed.text.len());
            push_units(&mut self.units, &parsed.text, range, Body::Prose, None, max);
        }
        self
    }
}

/// The piece that is the document's title: the only heading of the highest level, before any text except front matter.
fn title(pieces: &[Piece<'_>]) -> Option<usize> {
    let level = |piece: &Piece<'_>| match piece.kind {
        PieceKind::Heading { level, title } if !title.is_empty() => Some(level),
        _ => None,
    };
    let highest = pieces.iter().filter_map(level).min()?;
    let mut tops = pieces.iter().enumerate().filter(|(_, piece)| level(piece) == Some(highest));
    let (at, _) = tops.next()?;
    let mut before = pieces.iter().take(at);
    let first = before.all(|piece| match piece.kind {
        PieceKind::Heading { title, .. } => title.is_empty(),
        PieceKind::Furniture => true,
        PieceKind::Body(body) => body == Body::FrontMatter,
    });
    (first && tops.next().is_none()).then_some(at)
}

/// Whether a heading of `level` followed by `following` has neither text nor lower headings.
fn is_empty_section(level: u8, following: &[Piece<'_>]) -> bool {
    let next = following.iter().find_map(|piece| match piece.kind {
        PieceKind::Heading { title: "", .. } | PieceKind::Furniture => None,
        PieceKind::Heading { level: next, .. } => Some(next <= level),
        PieceKind::Body(_) => Some(false),
    });
    next.unwrap_or(true)
}

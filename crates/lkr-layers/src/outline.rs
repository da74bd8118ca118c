//! The headings and units of a document, and the heading levels of its layers.

use std::ops::Range;

use lkr_domain::{IndexedTitle, Parsed};

use crate::{
    front_matter::value,
    indexed::is_indexed_whole,
    piece::{Body, Piece, PieceKind, pieces, trim},
    table::TableHeaders,
    title::is_title,
    unit::{Boundary, Unit, push_units},
};

/// A heading that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heading<'a> {
    pub(crate) level: u8,
    pub(crate) title: &'a str,
    /// Its byte range.
    pub(crate) range: Range<usize>,
    /// Its parent heading, of a higher level; the top heading only if it is in paths.
    pub(crate) parent: Option<usize>,
    /// The first unit after it, or its own if it is a unit.
    pub(crate) first_unit: usize,
}

/// A document as headings and units.
#[derive(Debug)]
pub(crate) struct Outline<'a> {
    /// The headings in order.
    pub(crate) headings: Vec<Heading<'a>>,
    /// The index of the top heading: the only one of the highest level, at the start. It makes no section.
    pub(crate) top: Option<usize>,
    /// Whether the top heading begins every path, because the document's title is another.
    pub(crate) top_is_in_paths: bool,
    /// The title in the front matter.
    front_matter_title: Option<&'a str>,
    /// Whether the title in the front matter begins every path: that of a text without a top heading whose given title is
    /// another, such as the name of its file.
    front_matter_is_in_paths: bool,
    /// The units in order.
    pub(crate) units: Vec<Unit>,
    pub(crate) table_headers: TableHeaders,
}

impl<'a> Outline<'a> {
    /// Splits `parsed` into units of at most `max` hundredths of a token. `title` is the title that the client gave.
    pub(crate) fn new(parsed: &'a Parsed, title: &str, max: u32) -> Self {
        let pieces = pieces(parsed);
        let (top, named) = (top_heading(&pieces), front_matter_title(parsed, &pieces));
        // Only headings without a title come before the top heading, so that its index is 0.
        let mut outline = Self {
            headings: Vec::new(),
            top: top.map(|_| 0),
            top_is_in_paths: top.is_some_and(|heading| !is_title(title, heading)),
            front_matter_title: named,
            front_matter_is_in_paths: named
                .is_some_and(|named| top.is_none() && !title.trim().is_empty() && !is_title(title, named)),
            units: Vec::new(),
            table_headers: TableHeaders::default(),
        };
        let mut stack: Vec<usize> = Vec::new();
        let mut barrier = false;
        for (at, piece) in pieces.iter().enumerate() {
            let first = outline.units.len();
            let under = stack.last().copied();
            match piece.kind {
                PieceKind::Body(body) => outline.push_text(&parsed.text, &piece.range, body, under, max),
                PieceKind::Heading { level, title: words } if !words.is_empty() => {
                    outline.push_heading(level, words, piece.range.clone(), &mut stack);
                    if is_empty_section(level, pieces.get(at + 1..).unwrap_or_default()) {
                        let under = stack.last().copied();
                        outline.push_text(&parsed.text, &piece.range, Body::Prose, under, max);
                    }
                }
                PieceKind::Heading { .. } | PieceKind::Furniture => {}
            }
            match piece.kind {
                PieceKind::Body(body) => {
                    outline.table_headers.note(body, &parsed.text, &piece.range, first..outline.units.len());
                }
                _ => outline.table_headers.interrupt(),
            }
            barrier |= !matches!(piece.kind, PieceKind::Body(_));
            if let Some(unit) = outline.units.get_mut(first) {
                let is_below_header = outline.table_headers.begins_rows(first);
                unit.before = match std::mem::take(&mut barrier) {
                    true => Boundary::Barrier,
                    false if is_below_header => Boundary::Sentence,
                    false => Boundary::Block,
                };
                // A heading that is a unit is also a barrier before the next unit.
                barrier = !matches!(piece.kind, PieceKind::Body(_));
            }
        }
        outline.or_whole_text(parsed, max).below_path_root()
    }

    /// The heading that begins every path.
    pub(crate) fn path_root(&self) -> Option<usize> {
        self.top.filter(|_| self.top_is_in_paths)
    }

    /// The path of `heading`: its parents and itself, without the document's title.
    pub(crate) fn path(&self, heading: Option<usize>) -> Vec<String> {
        let lead = std::iter::successors(heading.and_then(|at| self.headings.get(at)), |heading| {
            self.headings.get(heading.parent?)
        });
        let mut path: Vec<String> = lead.map(|heading| heading.title.to_owned()).collect();
        let named = self.front_matter_title.filter(|_| self.front_matter_is_in_paths);
        path.extend(named.map(str::to_owned));
        path.reverse();
        path
    }

    /// The title that the text gives itself: that in its front matter, otherwise its first heading.
    pub(crate) fn own_title(&self) -> Option<IndexedTitle> {
        let first = self.headings.first().map(|heading| heading.title);
        let top = first.filter(|_| self.top.is_some());
        let (text, is_path_root) = match (self.front_matter_title, top) {
            (Some(named), None) => (named, self.front_matter_is_in_paths),
            (Some(named), Some(top)) if self.top_is_in_paths && !is_title(named, top) => (named, false),
            // A top heading that is in no path is found by the title alone.
            (_, Some(top)) => (top, self.top_is_in_paths),
            (None, None) => (first?, false),
        };
        Some(IndexedTitle { text: text.to_owned(), begins_paths: is_path_root && is_indexed_whole(text) })
    }

    /// The headings except the top heading, with their indexes.
    pub(crate) fn below_top(&self) -> impl Iterator<Item = (usize, &Heading<'a>)> {
        self.headings.iter().enumerate().filter(|(at, _)| Some(*at) != self.top)
    }

    fn push_text(&mut self, text: &str, range: &Range<usize>, body: Body, under: Option<usize>, max: u32) {
        push_units(&mut self.units, text, range.clone(), body, under, max);
    }

    fn push_heading(&mut self, level: u8, title: &'a str, range: Range<usize>, stack: &mut Vec<usize>) {
        let at = self.headings.len();
        while stack.pop_if(|open| self.headings.get(*open).is_none_or(|open| open.level >= level)).is_some() {
        }
        let parent = stack.last().copied();
        self.headings.push(Heading { level, title, range, parent, first_unit: self.units.len() });
        if self.top != Some(at) || self.top_is_in_paths {
            stack.push(at);
        }
    }

    /// Puts the front matter, which comes before the path root, below it like everything else.
    fn below_path_root(mut self) -> Self {
        let root = self.path_root();
        for unit in self.units.iter_mut().take_while(|unit| unit.heading.is_none()) {
            unit.heading = root;
        }
        self
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

fn front_matter_title<'a>(parsed: &'a Parsed, pieces: &[Piece<'_>]) -> Option<&'a str> {
    let first = pieces.first().filter(|piece| piece.kind == PieceKind::Body(Body::FrontMatter))?;
    value(parsed.text.get(first.range.clone())?, "title")
}

/// The only heading of the highest level, if it comes before any text except front matter.
fn top_heading<'a>(pieces: &[Piece<'a>]) -> Option<&'a str> {
    let heading = |piece: &Piece<'a>| match piece.kind {
        PieceKind::Heading { level, title } if !title.is_empty() => Some((level, title)),
        _ => None,
    };
    let (highest, _) = pieces.iter().filter_map(heading).min_by_key(|(level, _)| *level)?;
    let headings = pieces.iter().enumerate().filter_map(|(at, piece)| Some((at, heading(piece)?)));
    let mut tops = headings.filter(|(_, (level, _))| *level == highest);
    let (at, (_, title)) = tops.next()?;
    let mut before = pieces.iter().take(at);
    let first = before.all(|piece| match piece.kind {
        PieceKind::Heading { title, .. } => title.is_empty(),
        PieceKind::Furniture => true,
        PieceKind::Body(body) => body == Body::FrontMatter,
    });
    (first && tops.next().is_none()).then_some(title)
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

//! Lines that run across columns: joined again where an engine has cut them at a gutter.
//!
//! A gutter parts a page only where it is empty. Lines across it part the page into bands, and each band is read column
//! by column; within a column the engine's order stays.

mod pieces;

use crate::{page::Rect, runs::Run};

/// Pages of more pieces than this are left as they are.
const MAX_PIECES: usize = 4000;

/// Places of a gutter beyond this many are not tried.
const MAX_EDGES: usize = 500;

/// A line across the page that is cut has at least so many letters; shorter ones may be formulas.
const LEAST_LETTERS: usize = 10;

/// A column has at least so many lines in a band.
const LEAST_LINES: usize = 3;

/// A line of a column has so many letters on average; the cells of tables have fewer.
const LINE_LETTERS: usize = 12;

/// Text beside text in bands without columns speaks so many times as much against a gutter.
const MIXED: usize = 3;

/// Cells inside cells beyond this stay as they are.
const MAX_DEPTH: usize = 4;

/// Part of a line, or all of it, without wide gaps.
#[derive(Debug, Clone)]
struct Piece {
    /// The runs it is made of, by number.
    runs: Vec<usize>,
    place: Rect,
    /// The line that most of its letters stand on.
    base: f32,
    /// The size of most of its letters.
    size: f32,
    letters: usize,
    upright: bool,
    /// Whether it was put together from pieces that the engine has cut.
    torn: bool,
}

/// The runs, those of cut lines together again; in the engine's order where no line is cut.
pub(crate) fn mended<'a>(runs: Vec<Run<'a>>) -> Vec<Run<'a>> {
    let pieces = pieces::pieces(&runs);
    if pieces.len() > MAX_PIECES {
        return runs;
    }
    let pieces = pieces::joined(&pieces);
    if !pieces.iter().any(|piece| piece.torn) {
        return runs;
    }
    let mut runs: Vec<Option<Run<'a>>> = runs.into_iter().map(Some).collect();
    let order = ordered(pieces, 0).into_iter().flat_map(|piece| piece.runs);
    order.filter_map(|at| runs.get_mut(at)?.take()).collect()
}

/// The pieces band by band, and column by column where a band has columns.
fn ordered(pieces: Vec<Piece>, depth: usize) -> Vec<Piece> {
    if depth > MAX_DEPTH || !pieces.iter().any(|piece| piece.torn) {
        return pieces;
    }
    let Some(gutter) = gutter(&pieces) else { return downward(pieces) };
    let bands = Bands::new(&pieces, gutter);
    let mut cells: Vec<Vec<Piece>> = vec![vec![]; 3 * bands.columns.len()];
    let mut turned = Vec::new();
    for piece in pieces {
        match cells.get_mut(bands.cell(&piece)) {
            Some(cell) if piece.upright => cell.push(piece),
            _ => turned.push(piece),
        }
    }
    let inner = cells.into_iter().flat_map(|cell| ordered(cell, depth + 1));
    inner.chain(turned).collect()
}

/// The pieces from top to bottom, where no two stand side by side.
fn downward(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut sorted = pieces.clone();
    sorted.sort_by(|a, b| b.base.total_cmp(&a.base));
    let mut pairs = sorted.iter().zip(sorted.iter().skip(1));
    let clear = pairs.all(|(above, below)| above.base - below.base > 0.5 * above.size.min(below.size));
    if clear && pieces.iter().all(|piece| piece.upright) { sorted } else { pieces }
}

/// On which side of a gutter a piece stands, in the order in which a band is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Across = 0,
    Left = 1,
    Right = 2,
}

fn side(piece: &Piece, gutter: f32) -> Side {
    if piece.place.right <= gutter + 0.5 {
        Side::Left
    } else if piece.place.left >= gutter - 0.5 {
        Side::Right
    } else {
        Side::Across
    }
}

/// What stands on one side of a gutter in one band.
#[derive(Debug, Clone, Copy, Default)]
struct Column {
    lines: usize,
    letters: usize,
}

impl Column {
    /// Whether it holds lines of text rather than cells of a table.
    fn is_text(&self) -> bool {
        self.lines >= LEAST_LINES && self.letters >= LINE_LETTERS * self.lines
    }
}

/// What the lines across a gutter part a page into.
struct Bands {
    gutter: f32,
    /// The heights of the lines across, the highest first; each begins a band.
    heads: Vec<f32>,
    columns: Vec<[Column; 2]>,
    /// Whether the engine has cut a line across.
    torn: bool,
}

impl Bands {
    fn new(pieces: &[Piece], gutter: f32) -> Self {
        let upright = || pieces.iter().filter(|piece| piece.upright);
        let across = || upright().filter(|piece| side(piece, gutter) == Side::Across);
        let torn = across().any(|piece| piece.torn);
        let mut heads: Vec<f32> = across().map(|piece| piece.base).collect();
        heads.sort_by(|a, b| b.total_cmp(a));
        let columns = vec![<[Column; 2]>::default(); heads.len() + 1];
        let mut bands = Self { gutter, heads, columns, torn };
        for piece in upright() {
            bands.count(piece);
        }
        bands
    }

    fn count(&mut self, piece: &Piece) {
        let band = self.band(piece);
        let Some([left, right]) = self.columns.get_mut(band) else { return };
        let column = match side(piece, self.gutter) {
            Side::Left => left,
            Side::Right => right,
            Side::Across => return,
        };
        column.lines += 1;
        column.letters += piece.letters;
    }

    /// The number of a piece's band: how many lines across the gutter stand above it or are itself.
    fn band(&self, piece: &Piece) -> usize {
        self.heads.partition_point(|head| *head >= piece.base)
    }

    /// The number of a piece's place in the order; what stands in a band without columns is one.
    fn cell(&self, piece: &Piece) -> usize {
        let band = self.band(piece);
        let parted = self.columns.get(band).is_some_and(|columns| columns.iter().all(Column::is_text));
        let side = match side(piece, self.gutter) {
            Side::Right if !parted => Side::Left,
            side => side,
        };
        3 * band + side as usize
    }

    /// How many letters the lesser column has, of all bands that have two, less what other bands have on both sides;
    /// nothing where no line shows that the gutter misled the engine.
    fn weight(&self) -> usize {
        if !self.torn {
            return 0;
        }
        let (mut parted, mut mixed) = (0, 0);
        for columns in &self.columns {
            let [left, right] = columns;
            let least = left.letters.min(right.letters);
            *if columns.iter().all(Column::is_text) { &mut parted } else { &mut mixed } += least;
        }
        parted.saturating_sub(MIXED * mixed)
    }
}

/// The gutter with the most text on both of its sides.
fn gutter(pieces: &[Piece]) -> Option<f32> {
    let upright = pieces.iter().filter(|piece| piece.upright);
    let mut edges: Vec<f32> = upright.map(|piece| piece.place.left - 0.5).collect();
    edges.sort_by(f32::total_cmp);
    edges.dedup_by(|a, b| (*a - *b).abs() < 1.0);
    edges.truncate(MAX_EDGES);
    let scored = edges.into_iter().map(|edge| (Bands::new(pieces, edge).weight(), edge));
    let (weight, gutter) = scored.max_by_key(|(weight, _)| *weight)?;
    (weight > 0).then_some(gutter)
}

#[cfg(test)]
mod tests;

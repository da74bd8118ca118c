//! Joins lines across columns that an engine has split at the gutter.
//!
//! A gutter divides a page only where it is empty. Lines across it divide the page into bands, and each band is read column
//! by column. Within a column, the order of the engine is kept.

mod pieces;

use crate::{page::Rect, runs::Run};

/// Pages with more pieces are left unchanged.
const MAX_PIECES: usize = 4000;

/// Most positions of a gutter that are tried.
const MAX_EDGES: usize = 500;

/// A split line across the page has at least this many letters; shorter ones may be formulas. See
/// docs/studies.md#pdf-layout.
const MIN_LETTERS: usize = 10;

/// A column has at least this many lines in a band. See docs/studies.md#pdf-layout.
const MIN_LINES: usize = 3;

/// A line of a column has at least this many letters on average; table cells have fewer. See
/// docs/studies.md#pdf-layout.
const LINE_LETTERS: usize = 12;

/// Adjacent text in bands without columns counts this many times against a gutter. See docs/studies.md#pdf-layout.
const MIXED: usize = 3;

/// Deeper nested cells are left unchanged.
const MAX_DEPTH: usize = 4;

/// A line, or a part of it, without wide gaps.
#[derive(Debug, Clone)]
struct Piece {
    /// The indexes of its runs.
    runs: Vec<usize>,
    place: Rect,
    /// The baseline of most of its letters.
    base: f32,
    /// The font size of most of its letters.
    size: f32,
    letters: usize,
    is_horizontal: bool,
    /// Whether it was joined from pieces that the engine had split.
    is_joined: bool,
}

/// The runs with split lines joined; in the order of the engine if no line is split.
pub(crate) fn join_split_lines<'a>(runs: Vec<Run<'a>>) -> Vec<Run<'a>> {
    let pieces = pieces::pieces(&runs);
    if pieces.len() > MAX_PIECES {
        return runs;
    }
    let pieces = pieces::join_pieces(&pieces);
    if !pieces.iter().any(|piece| piece.is_joined) {
        return runs;
    }
    let mut runs: Vec<Option<Run<'a>>> = runs.into_iter().map(Some).collect();
    let order = ordered(pieces, 0).into_iter().flat_map(|piece| piece.runs);
    order.filter_map(|at| runs.get_mut(at)?.take()).collect()
}

/// The pieces band by band, and column by column in bands with columns.
fn ordered(pieces: Vec<Piece>, depth: usize) -> Vec<Piece> {
    if depth > MAX_DEPTH || !pieces.iter().any(|piece| piece.is_joined) {
        return pieces;
    }
    let Some(gutter) = gutter(&pieces) else { return downward(pieces) };
    let bands = Bands::new(&pieces, gutter);
    let mut cells: Vec<Vec<Piece>> = vec![vec![]; 3 * bands.columns.len()];
    let mut is_rotated = Vec::new();
    for piece in pieces {
        match cells.get_mut(bands.cell(&piece)) {
            Some(cell) if piece.is_horizontal => cell.push(piece),
            _ => is_rotated.push(piece),
        }
    }
    let inner = cells.into_iter().flat_map(|cell| ordered(cell, depth + 1));
    inner.chain(is_rotated).collect()
}

/// The pieces from top to bottom, unless two are side by side.
fn downward(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut sorted = pieces.clone();
    sorted.sort_by(|a, b| b.base.total_cmp(&a.base));
    let mut pairs = sorted.iter().zip(sorted.iter().skip(1));
    let clear = pairs.all(|(above, below)| above.base - below.base > 0.5 * above.size.min(below.size));
    if clear && pieces.iter().all(|piece| piece.is_horizontal) { sorted } else { pieces }
}

/// The side of a gutter, in the reading order of a band.
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

/// The text on one side of a gutter in one band.
#[derive(Debug, Clone, Copy, Default)]
struct Column {
    lines: usize,
    letters: usize,
}

impl Column {
    /// Whether it has lines of text rather than table cells.
    fn is_text(&self) -> bool {
        self.lines >= MIN_LINES && self.letters >= LINE_LETTERS * self.lines
    }
}

/// The bands into which the lines across a gutter divide a page.
struct Bands {
    gutter: f32,
    /// The positions of the lines across, from the top; each starts a band.
    heads: Vec<f32>,
    columns: Vec<[Column; 2]>,
    /// Whether the engine has split a line across the gutter.
    is_joined: bool,
}

impl Bands {
    fn new(pieces: &[Piece], gutter: f32) -> Self {
        let is_horizontal = || pieces.iter().filter(|piece| piece.is_horizontal);
        let across = || is_horizontal().filter(|piece| side(piece, gutter) == Side::Across);
        let is_joined = across().any(|piece| piece.is_joined);
        let mut heads: Vec<f32> = across().map(|piece| piece.base).collect();
        heads.sort_by(|a, b| b.total_cmp(a));
        let columns = vec![<[Column; 2]>::default(); heads.len() + 1];
        let mut bands = Self { gutter, heads, columns, is_joined };
        for piece in is_horizontal() {
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

    /// The index of a piece's band: the number of lines across the gutter down to the piece.
    fn band(&self, piece: &Piece) -> usize {
        self.heads.partition_point(|head| *head >= piece.base)
    }

    /// The position of a piece in the reading order. A band without columns has one position for its text.
    fn cell(&self, piece: &Piece) -> usize {
        let band = self.band(piece);
        let parted = self.columns.get(band).is_some_and(|columns| columns.iter().all(Column::is_text));
        let side = match side(piece, self.gutter) {
            Side::Right if !parted => Side::Left,
            side => side,
        };
        3 * band + side as usize
    }

    /// The letters in the smaller columns of all bands with two, minus those on both sides in other bands;
    /// 0 if no line shows that the engine split at the gutter.
    fn weight(&self) -> usize {
        if !self.is_joined {
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

/// The gutter with the most text on both sides.
fn gutter(pieces: &[Piece]) -> Option<f32> {
    let is_horizontal = pieces.iter().filter(|piece| piece.is_horizontal);
    let mut edges: Vec<f32> = is_horizontal.map(|piece| piece.place.left - 0.5).collect();
    edges.sort_by(f32::total_cmp);
    edges.dedup_by(|a, b| (*a - *b).abs() < 1.0);
    edges.truncate(MAX_EDGES);
    let scored = edges.into_iter().map(|edge| (Bands::new(pieces, edge).weight(), edge));
    let (weight, gutter) = scored.max_by_key(|(weight, _)| *weight)?;
    (weight > 0).then_some(gutter)
}

#[cfg(test)]
mod tests;

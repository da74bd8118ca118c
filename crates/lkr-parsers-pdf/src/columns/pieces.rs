//! Builds pieces of lines from runs, and lines from pieces.

use super::{MIN_LETTERS, Piece};
use crate::runs::Run;

/// A gap up to this many times the font size is a gap between words. See docs/studies.md#pdf-layout.
const MAX_WORD_GAP: f32 = 0.5;

/// This many pieces with the same left edge show the edge of a column. See docs/studies.md#pdf-layout.
const EDGE_LINES: usize = 4;

/// A gap beyond this many times the font size ends a piece. See docs/studies.md#pdf-layout.
const MAX_PIECE_GAP: f32 = 1.0;

/// Most candidates for the continuation of a piece.
const MAX_NEAR: usize = 16;

/// Builds pieces from runs, in their order.
pub(super) fn pieces(runs: &[Run<'_>]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut last: Option<&Run<'_>> = None;
    for (at, run) in runs.iter().enumerate() {
        let letters = run.text.chars().filter(|c| c.is_alphabetic()).count();
        match pieces.last_mut() {
            Some(piece) if run.text.trim().is_empty() => {
                piece.runs.push(at);
                continue;
            }
            Some(piece) if last.is_some_and(|last| continues_piece(last, run)) => {
                add(piece, at, run, letters);
            }
            _ => pieces.push(piece(at, run, letters)),
        }
        last = Some(run);
    }
    pieces
}

fn piece(at: usize, run: &Run<'_>, letters: usize) -> Piece {
    let (base, size, is_horizontal) =
        (run.place.bottom, run.size, run.is_horizontal && !is_right_to_left(run));
    Piece { runs: vec![at], place: run.place, base, size, letters, is_horizontal, is_joined: false }
}

/// Whether text runs from right to left. Such lines are left to the engine.
fn is_right_to_left(run: &Run<'_>) -> bool {
    run.text.chars().any(|c| matches!(u32::from(c), 0x590..=0x8ff | 0xfb1d..=0xfdff | 0xfe70..=0xfeff))
}

/// Whether a run continues the piece that ends with the run before it.
fn continues_piece(last: &Run<'_>, run: &Run<'_>) -> bool {
    let size = last.size.max(run.size);
    let gap = run.place.left - last.place.right;
    let alike = last.is_horizontal == run.is_horizontal && is_right_to_left(last) == is_right_to_left(run);
    let level = (last.place.bottom - run.place.bottom).abs() < 0.5 * size;
    alike && level && (-2.0 * size..MAX_PIECE_GAP * size).contains(&gap)
}

fn add(piece: &mut Piece, at: usize, run: &Run<'_>, letters: usize) {
    piece.runs.push(at);
    piece.place = piece.place.union(run.place);
    if letters > piece.letters {
        (piece.base, piece.size) = (run.place.bottom, run.size);
    }
    piece.letters += letters;
}

/// Joins pieces of one line that other lines separate in the order. A joined line
/// takes the position of its first piece.
pub(super) fn join_pieces(pieces: &[Piece]) -> Vec<Piece> {
    let next = links(pieces);
    let mut follower = vec![false; pieces.len()];
    for at in next.iter().flatten() {
        if let Some(follower) = follower.get_mut(*at) {
            *follower = true;
        }
    }
    let mut lines: Vec<(usize, Piece)> = Vec::new();
    for (at, _) in follower.iter().enumerate().filter(|(_, follower)| !**follower) {
        let chain: Vec<usize> =
            std::iter::successors(Some(at), |at| next.get(*at).copied().flatten()).collect();
        lines.extend(line(pieces, &chain));
    }
    lines.sort_by_key(|(at, _)| *at);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The line of a chain of pieces with the index of its first one; the separate pieces if it is too short.
fn line(pieces: &[Piece], chain: &[usize]) -> Vec<(usize, Piece)> {
    let parts: Vec<(usize, &Piece)> = chain.iter().filter_map(|at| Some((*at, pieces.get(*at)?))).collect();
    let letters: usize = parts.iter().map(|(_, part)| part.letters).sum();
    if parts.len() < 2 || letters < MIN_LETTERS {
        return parts.into_iter().map(|(at, part)| (at, part.clone())).collect();
    }
    let most = parts.iter().map(|(_, part)| *part).max_by_key(|part| part.letters);
    let place = parts.iter().map(|(_, part)| part.place).reduce(crate::page::Rect::union);
    let first = parts.iter().map(|(at, _)| *at).min();
    let (Some(most), Some(place), Some(first)) = (most, place, first) else { return vec![] };
    let runs = parts.iter().flat_map(|(_, part)| part.runs.iter().copied()).collect();
    vec![(first, Piece { runs, place, letters, is_joined: true, ..*most })]
}

/// For every piece, the index of its continuation after other lines, if any.
fn links(pieces: &[Piece]) -> Vec<Option<usize>> {
    let mut by_left: Vec<usize> = (0..pieces.len()).collect();
    let left = |at: &usize| pieces.get(*at).map_or(0.0, |piece| piece.place.left);
    by_left.sort_by(|a, b| left(a).total_cmp(&left(b)));
    let begins_column = |edge: f32| {
        let from = by_left.partition_point(|other| left(other) < edge - 0.7);
        by_left.iter().skip(from).take_while(|other| left(other) < edge + 0.7).count() >= EDGE_LINES
    };
    let mut pairs: Vec<(f32, usize, usize)> = Vec::new();
    for (at, piece) in pieces.iter().enumerate().filter(|(_, piece)| piece.is_horizontal) {
        let from = by_left.partition_point(|other| left(other) < piece.place.right - 0.3 * piece.size);
        let near =
            by_left.iter().skip(from).take_while(|other| left(other) <= piece.place.right + piece.size);
        let fits = |other: &&usize| {
            **other != at && pieces.get(**other).is_some_and(|other| continues(piece, other))
        };
        for other in near.filter(fits).take(MAX_NEAR) {
            if is_split(pieces, at, *other) && !begins_column(left(other)) {
                pairs.push(((left(other) - piece.place.right).abs(), at, *other));
            }
        }
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut next, mut taken) = (vec![None; pieces.len()], vec![false; pieces.len()]);
    for (_, at, other) in pairs {
        if let (Some(next @ None), Some(taken @ false)) = (next.get_mut(at), taken.get_mut(other)) {
            (*next, *taken) = (Some(other), true);
        }
    }
    next
}

/// Whether a piece continues another one on its line after a normal gap. Superscripts may be a little higher.
fn continues(piece: &Piece, other: &Piece) -> bool {
    let (less, more) = (piece.size.min(other.size), piece.size.max(other.size));
    let gap = other.place.left - piece.place.right;
    let is_separate = (piece.base - other.base).abs();
    let alike = less > 0.85 * more;
    let mark = piece.letters.min(other.letters) <= 3 && gap < 0.3 * more;
    other.is_horizontal
        && other.place.right > piece.place.right
        && gap < MAX_WORD_GAP * less.max(0.6 * more)
        && if alike { is_separate < 0.15 * less } else { mark && is_separate < 0.5 * more }
}

/// Whether other lines are between two pieces in the order.
fn is_split(pieces: &[Piece], at: usize, other: usize) -> bool {
    let between = pieces.get(at.min(other) + 1..at.max(other)).unwrap_or_default();
    let base = pieces.get(at).map_or(0.0, |piece| piece.base);
    between.iter().any(|piece| (piece.base - base).abs() > 0.5 * piece.size)
}

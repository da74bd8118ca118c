//! Pieces of lines from runs, and whole lines from pieces.

use super::{LEAST_LETTERS, Piece};
use crate::runs::Run;

/// A gap up to this many times the size parts words of one line.
const WORDS: f32 = 0.5;

/// Pieces of so many lines that begin at one place show the edge of a column.
const EDGE_LINES: usize = 4;

/// A gap beyond this many times the size ends a piece.
const PIECES: f32 = 1.0;

/// Pieces beyond this many that may go on with one are not looked at.
const MAX_NEAR: usize = 16;

/// The pieces that the runs make, in their order.
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
            Some(piece) if last.is_some_and(|last| follows(last, run)) => add(piece, at, run, letters),
            _ => pieces.push(piece(at, run, letters)),
        }
        last = Some(run);
    }
    pieces
}

fn piece(at: usize, run: &Run<'_>, letters: usize) -> Piece {
    let (base, size, upright) = (run.place.bottom, run.size, run.upright && !is_leftward(run));
    Piece { runs: vec![at], place: run.place, base, size, letters, upright, torn: false }
}

/// Whether letters are written from right to left: such lines are the engine's alone.
fn is_leftward(run: &Run<'_>) -> bool {
    run.text.chars().any(|c| matches!(u32::from(c), 0x590..=0x8ff | 0xfb1d..=0xfdff | 0xfe70..=0xfeff))
}

/// Whether a run goes on with the piece that the run before it ends.
fn follows(last: &Run<'_>, run: &Run<'_>) -> bool {
    let size = last.size.max(run.size);
    let gap = run.place.left - last.place.right;
    let alike = last.upright == run.upright && is_leftward(last) == is_leftward(run);
    let level = (last.place.bottom - run.place.bottom).abs() < 0.5 * size;
    alike && level && (-2.0 * size..PIECES * size).contains(&gap)
}

fn add(piece: &mut Piece, at: usize, run: &Run<'_>, letters: usize) {
    piece.runs.push(at);
    piece.place = piece.place.union(run.place);
    if letters > piece.letters {
        (piece.base, piece.size) = (run.place.bottom, run.size);
    }
    piece.letters += letters;
}

/// The pieces with those joined that are one line although other lines stand between them in the order; a joined line
/// stands where its first piece stood.
pub(super) fn joined(pieces: &[Piece]) -> Vec<Piece> {
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

/// The line that a chain of pieces makes, with the number of its first; the pieces alone where it is too short.
fn line(pieces: &[Piece], chain: &[usize]) -> Vec<(usize, Piece)> {
    let parts: Vec<(usize, &Piece)> = chain.iter().filter_map(|at| Some((*at, pieces.get(*at)?))).collect();
    let letters: usize = parts.iter().map(|(_, part)| part.letters).sum();
    if parts.len() < 2 || letters < LEAST_LETTERS {
        return parts.into_iter().map(|(at, part)| (at, part.clone())).collect();
    }
    let most = parts.iter().map(|(_, part)| *part).max_by_key(|part| part.letters);
    let place = parts.iter().map(|(_, part)| part.place).reduce(crate::page::Rect::union);
    let first = parts.iter().map(|(at, _)| *at).min();
    let (Some(most), Some(place), Some(first)) = (most, place, first) else { return vec![] };
    let runs = parts.iter().flat_map(|(_, part)| part.runs.iter().copied()).collect();
    vec![(first, Piece { runs, place, letters, torn: true, ..*most })]
}

/// For every piece the one that goes on with it after other lines, if any.
fn links(pieces: &[Piece]) -> Vec<Option<usize>> {
    let mut by_left: Vec<usize> = (0..pieces.len()).collect();
    let left = |at: &usize| pieces.get(*at).map_or(0.0, |piece| piece.place.left);
    by_left.sort_by(|a, b| left(a).total_cmp(&left(b)));
    let begins_column = |edge: f32| {
        let from = by_left.partition_point(|other| left(other) < edge - 0.7);
        by_left.iter().skip(from).take_while(|other| left(other) < edge + 0.7).count() >= EDGE_LINES
    };
    let mut pairs: Vec<(f32, usize, usize)> = Vec::new();
    for (at, piece) in pieces.iter().enumerate().filter(|(_, piece)| piece.upright) {
        let from = by_left.partition_point(|other| left(other) < piece.place.right - 0.3 * piece.size);
        let near =
            by_left.iter().skip(from).take_while(|other| left(other) <= piece.place.right + piece.size);
        let fits = |other: &&usize| {
            **other != at && pieces.get(**other).is_some_and(|other| go_together(piece, other))
        };
        for other in near.filter(fits).take(MAX_NEAR) {
            if is_torn(pieces, at, *other) && !begins_column(left(other)) {
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

/// Whether a piece goes on with another on one line, behind an ordinary gap; raised marks may stand a little higher.
fn go_together(piece: &Piece, other: &Piece) -> bool {
    let (less, more) = (piece.size.min(other.size), piece.size.max(other.size));
    let gap = other.place.left - piece.place.right;
    let apart = (piece.base - other.base).abs();
    let alike = less > 0.85 * more;
    let mark = piece.letters.min(other.letters) <= 3 && gap < 0.3 * more;
    other.upright
        && other.place.right > piece.place.right
        && gap < WORDS * less.max(0.6 * more)
        && if alike { apart < 0.15 * less } else { mark && apart < 0.5 * more }
}

/// Whether other lines stand between two pieces of a line.
fn is_torn(pieces: &[Piece], at: usize, other: usize) -> bool {
    let between = pieces.get(at.min(other) + 1..at.max(other)).unwrap_or_default();
    let base = pieces.get(at).map_or(0.0, |piece| piece.base);
    between.iter().any(|piece| (piece.base - base).abs() > 0.5 * piece.size)
}

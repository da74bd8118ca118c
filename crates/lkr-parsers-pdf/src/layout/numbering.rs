//! Finds headings by their numbers alone: `1`, `2`, `3` or `I.`, `II.`, `III.` through a document, each on a line of its
//! own and far from the one before it. The items of a list are close to each other.

use std::collections::HashSet;

use super::{LayoutPage, blocks, evidence, heading_words, sizes::tenths};
use crate::page::Line;

/// A sequence has at least this many numbers.
const MIN_NUMBERS: usize = 3;

/// The numbers of a sequence are at least this many lines apart on average.
const MIN_LINES: usize = 8;

/// Most characters of a numbered heading.
const MAX_CHARS: usize = 100;

/// A gap above a heading is at least this many times the line spacing.
const GAP: f32 = 1.2;

/// Most sequences that are open at once.
const MAX_OPEN: usize = 64;

/// The page and the line of a heading.
pub(super) type Place = (usize, usize);

/// A line that begins with a number.
struct Numbered {
    place: Place,
    /// How many lines of the document precede it.
    lines: usize,
    number: Number,
    size: u32,
    is_bold: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Number {
    Roman(u32),
    Letter(u32),
    Decimal(Vec<u32>),
}

impl Number {
    /// Whether it follows another number of a sequence.
    fn follows(&self, before: &Self) -> bool {
        match (before, self) {
            (Self::Roman(a), Self::Roman(b)) | (Self::Letter(a), Self::Letter(b)) => a + 1 == *b,
            (Self::Decimal(a), Self::Decimal(b)) => {
                a.len() == b.len()
                    && a.split_last()
                        .zip(b.split_last())
                        .is_some_and(|((a, above), (b, over))| above == over && a + 1 == *b)
            }
            _ => false,
        }
    }

    fn is_first(&self) -> bool {
        match self {
            Self::Roman(number) | Self::Letter(number) => *number == 1,
            Self::Decimal(parts) => parts.last() == Some(&1),
        }
    }
}

/// The headings that sequences of numbers show.
pub(super) fn find(page_layouts: &[LayoutPage]) -> HashSet<Place> {
    let mut open: Vec<Vec<Numbered>> = Vec::new();
    let mut found = HashSet::new();
    let mut close = |sequence: Vec<Numbered>| {
        let lines = sequence.first().zip(sequence.last()).map_or(0, |(first, last)| last.lines - first.lines);
        if sequence.len() >= MIN_NUMBERS && lines >= MIN_LINES * (sequence.len() - 1) {
            found.extend(sequence.iter().map(|numbered| numbered.place));
        }
    };
    let mut lines = 0;
    for (page, page_layout) in page_layouts.iter().enumerate() {
        let spacing = blocks::line_spacing(&page_layout.lines.iter().collect::<Vec<_>>());
        for (at, line) in page_layout.lines.iter().enumerate() {
            lines += 1;
            let Some(number) = number(page_layout, at, spacing) else { continue };
            let numbered =
                Numbered { place: (page, at), lines, number, size: tenths(line.size), is_bold: line.is_bold };
            let continues = |sequence: &&mut Vec<Numbered>| {
                sequence.last().is_some_and(|last| {
                    numbered.number.follows(&last.number)
                        && (numbered.size, numbered.is_bold) == (last.size, last.is_bold)
                })
            };
            match open.iter_mut().rev().find(continues) {
                Some(sequence) => sequence.push(numbered),
                None if numbered.number.is_first() => {
                    if open.len() >= MAX_OPEN {
                        close(open.remove(0));
                    }
                    open.push(vec![numbered]);
                }
                None => {}
            }
        }
    }
    open.into_iter().for_each(close);
    found
}

/// The number of a line that looks like a numbered heading.
fn number(page_layout: &LayoutPage, at: usize, spacing: Option<f32>) -> Option<Number> {
    let line = page_layout.lines.get(at)?;
    let (mark, rest) = line.text.split_once(' ')?;
    let begins = rest.trim_start().starts_with(|c: char| c.is_alphabetic() && !c.is_lowercase());
    let fits = begins && rest.chars().count() <= MAX_CHARS && !line.has_cells();
    if !fits || heading_words::ends_as_text(rest) || !is_after_gap(page_layout, at, spacing) {
        return None;
    }
    parse(mark)
}

/// Whether the line above is further away than the lines of a paragraph, or the line begins a column.
fn is_after_gap(page_layout: &LayoutPage, at: usize, spacing: Option<f32>) -> bool {
    let before = at.checked_sub(1).and_then(|before| page_layout.lines.get(before));
    let (Some(before), Some(line)) = (before, page_layout.lines.get(at)) else { return true };
    let step = |above: &Line, line: &Line| Some(above.place?.bottom - line.place?.bottom);
    match (step(before, line), spacing) {
        (Some(step), Some(spacing)) => step < 0.0 || step >= GAP * spacing,
        _ => !evidence::is_close(before, line),
    }
}

fn parse(mark: &str) -> Option<Number> {
    let bare = mark.trim_end_matches(['.', ')', ':']);
    if let Some(roman) = roman(bare).filter(|_| mark.ends_with('.') && (bare.len() > 1 || bare != "C")) {
        return Some(Number::Roman(roman));
    }
    if let Some(letter) = Some(bare).filter(|_| mark.ends_with('.')).and_then(letter) {
        return Some(Number::Letter(letter));
    }
    let parts: Option<Vec<u32>> =
        bare.split('.').map(|part| part.parse().ok().filter(|_| part.len() <= 2)).collect();
    parts.filter(|parts| parts.len() <= 4).map(Number::Decimal)
}

fn letter(bare: &str) -> Option<u32> {
    let mut chars = bare.chars();
    let (only, None) = (chars.next().filter(char::is_ascii_uppercase)?, chars.next()) else { return None };
    Some(u32::from(only) - u32::from('A') + 1)
}

/// The value of a Roman number below forty.
fn roman(bare: &str) -> Option<u32> {
    let tens = bare.trim_start_matches('X');
    let ones = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"];
    let count = u32::try_from(bare.len() - tens.len()).ok().filter(|count| *count <= 3)?;
    let ones = u32::try_from(ones.iter().position(|one| *one == tens)?).ok()?;
    Some(count * 10 + ones).filter(|value| *value > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_headings_are_parsed() {
        assert_eq!(parse("IV."), Some(Number::Roman(4)));
        assert_eq!(parse("B."), Some(Number::Letter(2)));
        assert_eq!(parse("C."), Some(Number::Letter(3)));
        assert_eq!(parse("2.10"), Some(Number::Decimal(vec![2, 10])));
        assert_eq!(parse("3."), Some(Number::Decimal(vec![3])));
        for mark in ["B", "2019", "A1.", "", ".", "IIII.", "1.2.3.4.5"] {
            assert_eq!(parse(mark), None, "{mark}");
        }
    }
}

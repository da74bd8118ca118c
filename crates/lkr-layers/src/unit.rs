//! Units, of which chunks consist: sentences, list items, table rows, lines.

use std::ops::Range;

use lkr_text::{sentences, token_costs, words};

use crate::piece::{Body, trim};

/// Neighbours in one block that are shorter than this are joined, in hundredths of a token.
const TINY: u32 = 800;

/// A unit of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Its byte range, trimmed of white space.
    pub(crate) range: Range<usize>,
    /// The estimated cost in hundredths of a token.
    pub(crate) cost: u32,
    /// The kind of text that it is part of.
    pub(crate) body: Body,
    /// The boundary before it.
    pub(crate) before: Boundary,
    /// Its heading, as an index of the outline's headings.
    pub(crate) heading: Option<usize>,
}

/// The kinds of boundaries between units, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Boundary {
    /// Inside a sentence.
    Words,
    /// The end of a sentence, item, row or line.
    Sentence,
    /// The end of a block.
    Block,
    /// A heading or furniture between the units.
    Barrier,
}

/// White space up to this many bytes between two words is free, as for a tokenizer.
const FREE_SPACE: usize = 256;

/// The bytes of white space beyond that which cost as much as a token, so that no chunk is longer than some tens of kilobytes.
const SPACE_BYTES_PER_TOKEN: usize = 64;

/// The cost of the white space between two parts, in hundredths of a token.
pub(crate) fn gap_cost(before: &Range<usize>, after: &Range<usize>) -> u32 {
    let bytes = after.start.saturating_sub(before.end).saturating_sub(FREE_SPACE);
    u32::try_from(bytes / SPACE_BYTES_PER_TOKEN * 100).unwrap_or(u32::MAX)
}

/// The parts of a text with their costs. Each costs something, so that no chunk has any number of them: marks are free for a
/// tokenizer, and cost a hundredth of a token after a letter, and a token alone.
fn part_costs(text: &str) -> impl Iterator<Item = (Range<usize>, u32)> + '_ {
    let mut end = 0;
    token_costs(text).map(move |(range, cost)| {
        let least = if range.start == end { 1 } else { 100 };
        end = range.end;
        (range, if cost == 0 { least } else { cost })
    })
}

/// Appends the units of a piece of text; none costs more than `max`.
pub(crate) fn push_units(
    units: &mut Vec<Unit>,
    text: &str,
    range: Range<usize>,
    body: Body,
    heading: Option<usize>,
    max: u32,
) {
    let first = units.len();
    for part in parts(text, &range, body) {
        let cost = cost(text, &part);
        let mut push = |range, cost, before| units.push(Unit { range, cost, body, before, heading });
        if cost <= max {
            push(part, cost, Boundary::Sentence);
            join_tiny(units, first, max);
        } else {
            let mut before = Boundary::Sentence;
            split_long(text, &part, max, |range, cost| {
                push(range, cost, before);
                before = Boundary::Words;
            });
        }
    }
    if let Some(unit) = units.get_mut(first) {
        unit.before = Boundary::Block;
    }
}

/// The estimated cost of a range, in hundredths of a token.
fn cost(text: &str, range: &Range<usize>) -> u32 {
    let mut before = 0..0;
    part_costs(text.get(range.clone()).unwrap_or_default()).fold(0, |sum: u32, (part, cost)| {
        let gap = gap_cost(&before, &part);
        before = part;
        sum.saturating_add(gap).saturating_add(cost)
    })
}

fn parts(text: &str, range: &Range<usize>, body: Body) -> Vec<Range<usize>> {
    let slice = text.get(range.clone()).unwrap_or_default();
    let shift = |part: Range<usize>| range.start + part.start..range.start + part.end;
    match body {
        Body::Prose | Body::List => sentences(slice).into_iter().map(shift).collect(),
        Body::Table | Body::TableHeader | Body::Code | Body::FrontMatter => lines(slice).map(shift).collect(),
    }
}

/// The lines of `text` that are not blank, trimmed of white space.
fn lines(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    text.split_inclusive(['\n', '\r']).filter_map(move |line| {
        let range = trim(text, at..at + line.len());
        at += line.len();
        (!range.is_empty()).then_some(range)
    })
}

/// Joins the last unit to the one before if either is tiny.
fn join_tiny(units: &mut Vec<Unit>, first: usize, max: u32) {
    if units.len() < first + 2 {
        return;
    }
    let Some(last) = units.pop() else { return };
    match units.last_mut() {
        Some(unit) if unit.cost < TINY || last.cost < TINY / 4 => {
            let joined =
                unit.cost.saturating_add(gap_cost(&unit.range, &last.range)).saturating_add(last.cost);
            if joined > max {
                units.push(last);
            } else {
                unit.range.end = last.range.end;
                unit.cost = joined;
            }
        }
        _ => units.push(last),
    }
}

/// Cuts a range into parts of at most `max`, between words if possible: `2.13` in two is found by neither half.
fn split_long(text: &str, range: &Range<usize>, max: u32, mut take: impl FnMut(Range<usize>, u32)) {
    let mut open: Option<(Range<usize>, u32)> = None;
    let mut add = |part: Range<usize>, cost: u32| {
        if let Some((range, sum)) = &mut open {
            let joined = sum.saturating_add(gap_cost(range, &part)).saturating_add(cost);
            if joined <= max {
                range.end = part.end;
                *sum = joined;
                return;
            }
        }
        if let Some((range, cost)) = open.replace((part, cost)) {
            take(range, cost);
        }
    };
    for_each_part(text, range, max, &mut add);
    if let Some((range, cost)) = open {
        take(range, cost);
    }
}

/// Calls `visit` with the words of a range, and with what is between them. A word that costs more than `max` is visited in
/// parts.
fn for_each_part(text: &str, range: &Range<usize>, max: u32, visit: &mut impl FnMut(Range<usize>, u32)) {
    let slice = text.get(range.clone()).unwrap_or_default();
    let words = words(slice);
    let parts: Vec<(Range<usize>, u32)> = part_costs(slice).collect();
    let word_of = |(part, _): &(Range<usize>, u32)| {
        let at = words.partition_point(|word| word.end <= part.start);
        // A part may begin with marks, with which no word begins.
        words.get(at).filter(|word| word.start < part.end).map(|_| at)
    };
    let shift = |part: Range<usize>| range.start + part.start..range.start + part.end;
    for word in parts.chunk_by(|one, next| word_of(one).is_some_and(|word| word_of(next) == Some(word))) {
        let cost = word.iter().fold(0, |sum: u32, (_, cost)| sum.saturating_add(*cost));
        if cost <= max {
            visit(shift(outer(word)), cost);
            continue;
        }
        for (part, cost) in word.iter().map(|(part, cost)| (shift(part.clone()), *cost)) {
            if cost <= max {
                visit(part, cost);
            } else {
                slices(text, &part, max).for_each(|part| visit(part.clone(), self::cost(text, &part)));
            }
        }
    }
}

/// From the start of the first part to the end of the last.
fn outer(parts: &[(Range<usize>, u32)]) -> Range<usize> {
    let start = parts.first().map_or(0, |(part, _)| part.start);
    start..parts.last().map_or(start, |(part, _)| part.end)
}

/// Cuts a long word into slices with so few characters that each fits, whatever its letters are.
fn slices<'a>(text: &'a str, word: &Range<usize>, max: u32) -> impl Iterator<Item = Range<usize>> + 'a {
    let chars = (max / 80).max(1) as usize;
    let Range { mut start, end } = *word;
    std::iter::from_fn(move || {
        let rest = text.get(start..end).filter(|rest| !rest.is_empty())?;
        let cut = rest.char_indices().nth(chars).map_or(rest.len(), |(at, _)| at);
        let range = start..start + cut;
        start = range.end;
        Some(range)
    })
}

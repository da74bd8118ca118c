//! Topic boundaries after Hearst, "TextTiling" (1997): the similarity of the words on both sides of each gap between
//! units, and the depth of its valleys.

use std::{collections::HashMap, ops::Range};

use crate::{
    terms::Terms,
    unit::{Boundary, Unit},
};

/// The amount of text that is compared on each side of a gap, in hundredths of a token.
const WINDOW: u32 = 12_000;

/// The most gaps on each side in which the rim of a valley is searched.
const RIM: usize = 24;

/// The sizes of parts, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) least: u32,
    pub(crate) best: u32,
    pub(crate) most: u32,
}

/// The depth of the topic boundary before each unit of `range`, including the first; 0 for none.
pub(crate) fn depths(units: &[Unit], terms: &Terms, range: &Range<usize>) -> Vec<f32> {
    let similarities = similarities(units, terms, range);
    let valleys = (0..similarities.len()).map(|gap| depth(&similarities, gap));
    let bonus = |unit: &Unit| match unit.before {
        Boundary::Words => -2.0,
        Boundary::Sentence => -0.35,
        Boundary::Block => 0.0,
        Boundary::Barrier => 0.75,
    };
    valleys.zip(units.iter().skip(range.start)).map(|(depth, unit)| depth + bonus(unit)).collect()
}

/// The cheapest split of consecutive items with these costs (hundredths of a token) and `depths` of the boundaries
/// before them: ranges of items that are in order and cover all.
pub(crate) fn parts(costs: &[u32], depths: &[f32], sizes: Sizes) -> Vec<Range<usize>> {
    // The best split of the first n items: its price and the start of its last part.
    let mut best: Vec<(f32, usize)> = vec![(0.0, 0)];
    for (last, _) in costs.iter().enumerate() {
        let end = last + 1;
        let mut cost = 0;
        let mut choice = (f32::INFINITY, last);
        for (start, item) in costs.iter().enumerate().take(end).rev() {
            cost += item;
            if cost > sizes.most * 100 && start < last {
                break;
            }
            let (before, depth) =
                (best.get(start).map_or(0.0, |(price, _)| *price), depths.get(start).copied());
            let parting = if start == 0 { 0.0 } else { 1.0 - depth.unwrap_or_default() };
            let price = before + parting + size_price(cost / 100, sizes);
            if price < choice.0 {
                choice = (price, start);
            }
        }
        best.push(choice);
    }
    trace(&best)
}

/// The price of a part of `tokens`: 0 at the best size, growing with the square of the distance, and steeply outside
/// the limits.
fn size_price(tokens: u32, sizes: Sizes) -> f32 {
    let off = (tokens as f32 - sizes.best as f32) / sizes.best as f32;
    let outside = if tokens < sizes.least { 1.0 - tokens as f32 / sizes.least as f32 } else { 0.0 };
    off * off + 2.0 * outside
}

/// The parts of the solution in a table of choices.
pub(crate) fn trace<P>(best: &[(P, usize)]) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut end = best.len().saturating_sub(1);
    while end > 0 {
        let start = best.get(end).map_or(0, |(_, start)| *start).min(end - 1);
        parts.push(start..end);
        end = start;
    }
    parts.reverse();
    parts
}

/// The depth of a gap below the rims on its two sides.
fn depth(similarities: &[f32], gap: usize) -> f32 {
    let here = similarities.get(gap).copied().unwrap_or_default();
    let climb = |values: &mut dyn Iterator<Item = &f32>| {
        let mut top = here;
        for value in values.take(RIM) {
            if *value < top {
                break;
            }
            top = *value;
        }
        top - here
    };
    climb(&mut similarities.iter().skip(gap)) + climb(&mut similarities.iter().take(gap).rev())
}

/// The cosine of the words before and after each unit of `range`. It is 1 for the first unit, which has nothing before
/// it.
fn similarities(units: &[Unit], terms: &Terms, range: &Range<usize>) -> Vec<f32> {
    let cost = |unit: usize| units.get(unit).map_or(0, |unit| unit.cost);
    let mut sides = Sides::default();
    let (mut left, mut right) = (range.start, range.start);
    let (mut left_cost, mut right_cost) = (0, 0);
    let mut similarities = Vec::with_capacity(range.len());
    for gap in range.clone() {
        if gap > range.start {
            let moved = gap - 1;
            terms.of(moved).iter().for_each(|term| sides.shift(*term, 1, -1));
            (left_cost, right_cost) = (left_cost + cost(moved), right_cost - cost(moved));
        }
        while right < range.end && (right_cost < WINDOW || right <= gap) {
            terms.of(right).iter().for_each(|term| sides.shift(*term, 0, 1));
            right_cost += cost(right);
            right += 1;
        }
        while left + 1 < gap && left_cost.saturating_sub(cost(left)) >= WINDOW {
            terms.of(left).iter().for_each(|term| sides.shift(*term, -1, 0));
            left_cost -= cost(left);
            left += 1;
        }
        similarities.push(if gap == range.start { 1.0 } else { sides.cosine() });
    }
    similarities
}

/// Term counts on both sides of a gap, with the sums of a cosine kept up to date.
#[derive(Debug, Default)]
struct Sides {
    counts: HashMap<u32, (i64, i64)>,
    dot: i64,
    left: i64,
    right: i64,
}

impl Sides {
    /// Changes the counts of a term on the left and on the right.
    fn shift(&mut self, term: u32, left: i64, right: i64) {
        let entry = self.counts.entry(term).or_default();
        let old = *entry;
        *entry = (old.0 + left, old.1 + right);
        let new = *entry;
        self.dot += new.0 * new.1 - old.0 * old.1;
        self.left += new.0 * new.0 - old.0 * old.0;
        self.right += new.1 * new.1 - old.1 * old.1;
        if new == (0, 0) {
            self.counts.remove(&term);
        }
    }

    fn cosine(&self) -> f32 {
        let norm = (self.left as f64).sqrt() * (self.right as f64).sqrt();
        if norm > 0.0 { (self.dot as f64 / norm) as f32 } else { 0.0 }
    }
}

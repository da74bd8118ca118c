//! Groups units into chunks.

use std::ops::Range;

use crate::{
    topic::trace,
    unit::{Boundary, Unit, gap_cost},
};

/// The target and maximum cost of a chunk, in hundredths of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) target: u32,
    pub(crate) most: u32,
}

/// Splits `range` of the units into chunks: ranges of units that are in order, cover all and cross no barrier.
pub(crate) fn chunks(units: &[Unit], range: &Range<usize>, budget: Budget) -> Vec<Range<usize>> {
    let mut chunks = Vec::new();
    let mut start = range.start;
    let slice = units.get(range.clone()).unwrap_or_default();
    for run in slice.chunk_by(|_, next| next.before != Boundary::Barrier) {
        chunks.extend(pack(run, budget).into_iter().map(|part| start + part.start..start + part.end));
        start += run.len();
    }
    chunks
}

/// The cheapest split of a run.
fn pack(run: &[Unit], budget: Budget) -> Vec<Range<usize>> {
    // The best split of the first n units: its price and the start of its last part.
    let mut best: Vec<(u64, usize)> = vec![(0, 0)];
    for (last, _) in run.iter().enumerate() {
        let mut cost = 0_u32;
        let mut choice = (u64::MAX, last);
        let mut next: Option<&Unit> = None;
        for (start, unit) in run.iter().enumerate().take(last + 1).rev() {
            let gap = next.replace(unit).map_or(0, |next| gap_cost(&unit.range, &next.range));
            cost = unit.cost.saturating_add(gap).saturating_add(cost);
            if cost > budget.most && start < last {
                break;
            }
            let before = best.get(start).map_or(0, |(price, _)| *price);
            let price =
                before + size_price(cost, budget) + if start == 0 { 0 } else { boundary_price(unit.before) };
            if price < choice.0 {
                choice = (price, start);
            }
        }
        best.push(choice);
    }
    trace(&best)
}

/// The price of a chunk's size: up to 1,000 below the target, up to 250 above. See docs/studies.md#chunk-size.
fn size_price(cost: u32, budget: Budget) -> u64 {
    let square =
        |part: u32, whole: u32, worst: u64| worst * u64::from(part).pow(2) / u64::from(whole.max(1)).pow(2);
    match cost.checked_sub(budget.target) {
        Some(over) => square(over, budget.most - budget.target, 250),
        None => square(budget.target - cost, budget.target, 1_000),
    }
}

/// The price of a chunk that ends at this boundary. See docs/studies.md#chunk-size.
const fn boundary_price(boundary: Boundary) -> u64 {
    match boundary {
        Boundary::Barrier | Boundary::Block => 0,
        Boundary::Sentence => 90,
        Boundary::Words => 500,
    }
}

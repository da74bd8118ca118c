//! Groups units into L2 and L3 nodes.

use std::ops::Range;

use crate::{
    outline::Outline,
    terms::Terms,
    topic::{Sizes, depths, parts},
    unit::Unit,
};

/// Sizes of passages of a text that is split by topic. See docs/studies.md#chunk-size.
const L3_SIZES: Sizes = Sizes { least: 250, best: 420, most: 650 };

/// Sizes of sections of a text that is split by topic. See docs/studies.md#chunk-size.
const L2_SIZES: Sizes = Sizes { least: 700, best: 1_100, most: 1_700 };

/// A planned node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Its units, at least one.
    pub(crate) units: Range<usize>,
    /// The heading at its start.
    pub(crate) heading: Option<usize>,
    /// The last heading of its path.
    pub(crate) under: Option<usize>,
}

/// An L2 node with its L3 nodes, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) node: Plan,
    pub(crate) passages: Vec<Plan>,
}

/// The sections of a document.
pub(crate) fn sections(outline: &Outline<'_>, terms: &Terms) -> Vec<Section> {
    let all = 0..outline.units.len();
    let Some(l2) = outline.below_top().map(|(_, heading)| heading.level).min() else {
        return by_topic(outline, terms);
    };
    let l3 = outline.below_top().map(|(_, heading)| heading.level).filter(|level| *level > l2).min();
    let plans = by_headings(outline, &all, l2, outline.path_root());
    let with_passages = |node: Plan| {
        let passages = passages(outline, terms, &node, l3);
        Section { node, passages }
    };
    plans.into_iter().map(with_passages).collect()
}

/// Splits `units` before every heading of `level`. Units before the first one belong to `under`.
fn by_headings(outline: &Outline<'_>, units: &Range<usize>, level: u8, under: Option<usize>) -> Vec<Plan> {
    let from = outline.headings.partition_point(|heading| heading.first_unit < units.start);
    let starts: Vec<(usize, usize)> = outline
        .headings
        .iter()
        .enumerate()
        .skip(from)
        .take_while(|(_, heading)| heading.first_unit < units.end)
        .filter(|(at, heading)| heading.level == level && Some(*at) != outline.top)
        .map(|(at, heading)| (at, heading.first_unit))
        .collect();
    let ends = starts.iter().skip(1).map(|(_, first)| *first).chain([units.end]);
    let lead = units.start..starts.first().map_or(units.end, |(_, first)| *first);
    let led = starts.iter().zip(ends).map(|((at, first), end)| Plan {
        units: *first..end,
        heading: Some(*at),
        under: Some(*at),
    });
    std::iter::once(Plan { units: lead, heading: None, under })
        .chain(led)
        .filter(|plan| !plan.units.is_empty())
        .collect()
}

/// The L3 nodes of an L2 node: by headings if it has any, by topic if it is long, otherwise itself.
fn passages(outline: &Outline<'_>, terms: &Terms, node: &Plan, l3: Option<u8>) -> Vec<Plan> {
    let by_heading = l3.map(|level| by_headings(outline, &node.units, level, node.under)).unwrap_or_default();
    if by_heading.iter().any(|plan| plan.heading.is_some()) {
        return by_heading;
    }
    let units = outline.units.get(node.units.clone()).unwrap_or_default();
    if tokens(units) <= L3_SIZES.most {
        return vec![node.clone()];
    }
    let depths = depths(&outline.units, terms, &node.units);
    let costs: Vec<u32> = units.iter().map(|unit| unit.cost).collect();
    let plan = |part: Range<usize>| Plan {
        units: node.units.start + part.start..node.units.start + part.end,
        heading: if part.start == 0 { node.heading } else { None },
        under: node.under,
    };
    parts(&costs, &depths, L3_SIZES).into_iter().map(plan).collect()
}

/// Splits a text without headings by topic, into passages and sections of passages.
fn by_topic(outline: &Outline<'_>, terms: &Terms) -> Vec<Section> {
    let plan = |units: Range<usize>| Plan { units, heading: None, under: outline.path_root() };
    let all = plan(0..outline.units.len());
    if all.units.is_empty() {
        return Vec::new();
    }
    if tokens(&outline.units) <= L2_SIZES.most {
        let passages = passages(outline, terms, &all, None);
        return vec![Section { node: all, passages }];
    }
    let depths = depths(&outline.units, terms, &all.units);
    let costs: Vec<u32> = outline.units.iter().map(|unit| unit.cost).collect();
    let passages = parts(&costs, &depths, L3_SIZES);
    let sums: Vec<u32> =
        passages.iter().map(|part| cost(outline.units.get(part.clone()).unwrap_or_default())).collect();
    let between: Vec<f32> =
        passages.iter().map(|part| depths.get(part.start).copied().unwrap_or_default()).collect();
    let section = |group: Range<usize>| {
        let passages: Vec<Plan> = passages.get(group).unwrap_or_default().iter().cloned().map(plan).collect();
        let (first, last) = (passages.first()?, passages.last()?);
        Some(Section { node: plan(first.units.start..last.units.end), passages })
    };
    parts(&sums, &between, L2_SIZES).into_iter().filter_map(section).collect()
}

fn tokens(units: &[Unit]) -> u32 {
    cost(units) / 100
}

fn cost(units: &[Unit]) -> u32 {
    units.iter().fold(0, |sum: u32, unit| sum.saturating_add(unit.cost))
}

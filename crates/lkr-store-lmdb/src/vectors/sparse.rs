//! Sparse queries: `Σ idf(t) · q(t) · w(t)` over the terms that a point shares with the query.

use heed::RoTxn;
use lkr_domain::SparseVector;
use roaring::RoaringBitmap;

use super::{
    cache::{PendingTable, PointCache},
    postings::{self, Block, Entry, NearEntries},
    registry::IdCounters,
    scope::PointScope,
    top_k::TopK,
};
use crate::{env::Kb, error::InternalResult};

/// The number of ids whose scores are summed at a time: their sums fit into the cache.
const WINDOW_IDS: usize = 1 << 14;

/// The points with the highest scores that are in the scope, share a term with the query and are `selected`, including
/// ties with the last.
pub(crate) fn search(
    kb: &Kb,
    txn: &RoTxn,
    (collection, cache): (u16, &PointCache<PendingTable>),
    query: &SparseVector,
    (scope, selected): (&PointScope, Option<&RoaringBitmap>),
    limit: usize,
) -> InternalResult<Vec<(f32, u32)>> {
    let mut lists = lists(kb, txn, (collection, cache), scope, query)?;
    let room = scope.ids().max().map_or(0, |last| last as usize + 1);
    best(&mut lists, ScoreWindow::new(room), (selected, limit))
}

/// The selected points with the highest sums.
fn best(
    lists: &mut [PostingCursor],
    mut window: ScoreWindow,
    (selected, limit): (Option<&RoaringBitmap>, usize),
) -> InternalResult<Vec<(f32, u32)>> {
    let mut top = TopK::new(limit);
    while let Some(next) = lists.iter().filter_map(PostingCursor::next_id).min() {
        window.start = next - next % WINDOW_IDS as u32;
        lists.iter_mut().try_for_each(|list| list.add_to(&mut window))?;
        window.drain(&mut top, |id| selected.is_none_or(|selected| selected.contains(id)));
    }
    Ok(top.into_top())
}

/// The posting lists of the query's terms in the spaces of the scope, each with `idf · q`, in the order of the terms.
fn lists<'t>(
    kb: &Kb,
    txn: &'t RoTxn,
    (collection, cache): (u16, &PointCache<PendingTable>),
    scope: &PointScope,
    query: &SparseVector,
) -> InternalResult<Vec<PostingCursor<'t>>> {
    let pending = pending(kb, txn, (collection, cache), scope.ids(), query)?;
    let points = scope.points() as f64;
    let mut cursors = Vec::with_capacity(query.len());
    for ((term, weight), pending) in query.iter().zip(pending) {
        let lists = scope.blocks(kb, txn, collection, term)?;
        let posted = lists.iter().flatten().map(|block| usize::from(block.count())).sum::<usize>();
        let holders = posted + pending.len();
        if holders == 0 {
            continue;
        }
        let weight = idf(points, holders as f64) * f64::from(weight);
        cursors.extend(lists.into_iter().map(|blocks| PostingCursor::of_blocks(blocks, weight)));
        cursors.push(PostingCursor::of_entries(pending, weight));
    }
    Ok(cursors)
}

/// For each term of the query, the entries of those of the points that are pending.
fn pending(
    kb: &Kb,
    txn: &RoTxn,
    (collection, cache): (u16, &PointCache<PendingTable>),
    points: &RoaringBitmap,
    query: &SparseVector,
) -> InternalResult<Vec<Vec<Entry>>> {
    let of_table = |table: &PendingTable, ids: IdCounters, end| {
        (table.entries(query, ids.posted..end, points), ids, end)
    };
    let (mut entries, ids, end) = cache.read(kb, txn, collection, PendingTable::default, of_table)?;
    let missing = IdCounters { posted: ids.posted.max(end), ..ids };
    postings::for_each_pending(kb, txn, collection, missing, |id, terms| {
        for (term, entries) in query.indices().iter().zip(&mut entries) {
            entries.extend(terms.weight(*term).filter(|_| points.contains(id)).map(|weight| (id, weight)));
        }
    })?;
    Ok(entries)
}

/// The IDF of BM25 of a term that `holders` of `points` contain. It is never negative.
fn idf(points: f64, holders: f64) -> f64 {
    (1.0 + (points - holders + 0.5) / (holders + 0.5)).ln()
}

/// A cursor of a posting list.
struct PostingCursor<'t> {
    blocks: std::vec::IntoIter<Block<'t>>,
    /// The entries in front of the blocks that were not added to a window.
    near: Option<NearEntries<'t>>,
    /// The entries in front of these, and the number of those that were added to a window.
    entries: Vec<Entry>,
    added: usize,
    weight: f64,
}

impl<'t> PostingCursor<'t> {
    fn of_blocks(blocks: Vec<Block<'t>>, weight: f64) -> Self {
        Self { blocks: blocks.into_iter(), near: None, entries: Vec::new(), added: 0, weight }
    }

    fn of_entries(entries: Vec<Entry>, weight: f64) -> Self {
        Self { blocks: Vec::new().into_iter(), near: None, entries, added: 0, weight }
    }

    /// A lower bound of the ids that were not added; `None` at the end of the list.
    fn next_id(&self) -> Option<u32> {
        let entry = self.entries.get(self.added).map(|(id, _)| *id);
        let near = || self.near.as_ref().and_then(NearEntries::first);
        entry.or_else(near).or_else(|| self.blocks.as_slice().first().map(Block::base))
    }

    /// Adds the entries below the end of the window, which begins at or before the next id.
    fn add_to(&mut self, window: &mut ScoreWindow) -> InternalResult<()> {
        while self.next_id().is_some_and(|id| window.contains(id)) {
            if let rest @ [_, ..] = self.entries.get(self.added..).unwrap_or_default() {
                let in_window = rest.partition_point(|(id, _)| window.contains(*id));
                let rest = rest.get(..in_window).unwrap_or_default();
                let mut add = window.adder(rest.last().map_or(window.start, |(id, _)| *id));
                // Adding zero makes 0 of −0.
                rest.iter().for_each(|(id, stored)| add(*id, self.weight * f64::from(*stored) + 0.0));
                self.added += in_window;
            } else if let Some(near) = self.near.as_mut().filter(|near| near.first().is_some()) {
                let in_window = near.take_while(|id| window.contains(id));
                in_window.for_each_product(self.weight, window.adder(in_window.last()));
            } else if let Some(block) = self.blocks.next() {
                let block = block.entries()?;
                self.near = block.near();
                if self.near.is_none() {
                    block.read_into(&mut self.entries)?;
                    self.added = 0;
                }
            }
        }
        Ok(())
    }
}

/// How many sums are compared with the lowest of the best at a time, and how many until that is determined again.
const SUMS_AT_A_TIME: usize = 8;
const SUMS_OF_A_THRESHOLD: usize = 512;
/// The sum of an id without entries. No sum of entries is −0.
const NO_SUM: f64 = -0.0;

/// The score sums of neighbouring ids. There are as many as were needed, so that small collections have few.
struct ScoreWindow {
    start: u32,
    sums: Vec<f64>,
}

impl ScoreWindow {
    /// There is room for the sums of `ids` ids at first.
    fn new(ids: usize) -> Self {
        Self { start: 0, sums: Vec::with_capacity(ids.min(WINDOW_IDS)) }
    }

    /// Whether an id, which is not below the start, is in the window.
    const fn contains(&self, id: u32) -> bool {
        id.wrapping_sub(self.start) < WINDOW_IDS as u32
    }

    /// Adds numbers to the sums of ids in the window, which are at most `last`. The numbers are not −0, so that no sum is.
    fn adder(&mut self, last: u32) -> impl FnMut(u32, f64) {
        let needed = (last.wrapping_sub(self.start) as usize + 1).next_multiple_of(SUMS_AT_A_TIME);
        if self.sums.len() < needed {
            self.sums.resize(needed, NO_SUM);
        }
        let (start, sums) = (self.start, self.sums.as_mut_slice());
        move |id, number| {
            if let Some(sum) = sums.get_mut(id.wrapping_sub(start) as usize) {
                *sum += number;
            }
        }
    }

    /// Adds the sums of the ids that are `selected` to the best ones, and resets all.
    fn drain(&mut self, top: &mut TopK, selected: impl Fn(u32) -> bool) {
        let parts = self.sums.chunks_mut(SUMS_OF_A_THRESHOLD);
        for (part, base) in parts.zip((self.start..).step_by(SUMS_OF_A_THRESHOLD)) {
            let lower_bound = top.lower_bound();
            let groups = part.as_chunks_mut::<SUMS_AT_A_TIME>().0.iter_mut();
            for (sums, base) in groups.zip((base..).step_by(SUMS_AT_A_TIME)) {
                if sums.iter().fold(false, |any, sum| any | (*sum >= lower_bound) | sum.is_nan()) {
                    for (sum, id) in sums.iter().zip(base..) {
                        // Adding zero makes −0 and 0, which are equal, tie.
                        let score = *sum as f32 + 0.0;
                        if sum.to_bits() != NO_SUM.to_bits() && top.admits(score) && selected(id) {
                            top.push(score, id);
                        }
                    }
                }
                *sums = [NO_SUM; SUMS_AT_A_TIME];
            }
            top.raise_threshold();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::vectors::postings::{encode, encode_as_format_4};

    /// Ids near each other and far from each other, of several windows.
    fn ids() -> impl Strategy<Value = Vec<u32>> {
        let difference = prop_oneof![9 => 1_u32..9, 2 => 100_u32..3_000, 1 => 10_000_u32..100_000];
        (0_u32..100_000, prop::collection::vec(difference, 1..400)).prop_map(|(first, differences)| {
            let next = |id: &mut u32, difference| {
                *id += difference;
                Some(*id)
            };
            differences.into_iter().scan(first, next).collect()
        })
    }

    /// The entries of a list, and its weight.
    fn list() -> impl Strategy<Value = (Vec<Entry>, f64)> {
        let eighths = (1_u8..32).prop_map(|eighths| f32::from(eighths) / 8.0);
        // A range such as 0.1..3.0 may fail in proptest, which then asserts that a number is less than a negative one.
        let positive = (1_000_u16..30_000).prop_map(|n| f32::from(n) / 10_000.0);
        let number =
            prop_oneof![2 => eighths, 2 => positive, 1 => Just(0.0_f32), 1 => Just(-0.0), 1 => -2.0_f32..0.0];
        (ids(), prop::collection::vec(number.clone(), 400), number)
            .prop_map(|(ids, numbers, weight)| (ids.into_iter().zip(numbers).collect(), f64::from(weight)))
    }

    proptest! {
        #[test]
        fn best_are_the_highest_sums(
            lists in prop::collection::vec(list(), 1..6), limit in 0_usize..40, every in 1_u32..4, block in 1_usize..400, as_format_4: bool,
        ) {
            let mut sums = BTreeMap::<u32, f64>::new();
            for (entries, weight) in &lists {
                for (id, stored) in entries {
                    *sums.entry(*id).or_default() += weight * f64::from(*stored);
                }
            }
            let selected: RoaringBitmap = sums.keys().copied().filter(|id| id.is_multiple_of(every)).collect();
            let mut expected: Vec<(f32, u32)> =
                sums.iter().filter(|(id, _)| selected.contains(**id)).map(|(id, sum)| (*sum as f32 + 0.0, *id)).collect();
            expected.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let last = limit.checked_sub(1).and_then(|last| expected.get(last)).map(|(score, _)| *score);
            expected.retain(|(score, _)| limit > 0 && last.is_none_or(|last| *score >= last));

            let encode = if as_format_4 { encode_as_format_4 } else { encode };
            let encoded: Vec<Vec<(u32, Vec<u8>)>> = lists.iter().map(|(entries, _)| {
                entries.chunks(block).map(|entries| (entries[0].0, encode(entries[0].0, entries))).collect()
            }).collect();
            let mut cursors = Vec::new();
            for (blocks, (entries, weight)) in encoded.iter().zip(&lists) {
                // The last entries are pending.
                let (pending, posted) = blocks.split_last().unwrap();
                let parsed = posted.iter().map(|(base, bytes)| Block::parse(&base.to_be_bytes(), bytes).unwrap());
                cursors.push(PostingCursor::of_blocks(parsed.collect(), *weight));
                let pending = entries.iter().filter(|(id, _)| *id >= pending.0).copied().collect();
                cursors.push(PostingCursor::of_entries(pending, *weight));
            }
            let mut found = best(&mut cursors, ScoreWindow::new(block), (Some(&selected), limit)).unwrap();
            found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            prop_assert_eq!(found, expected);
        }
    }
}

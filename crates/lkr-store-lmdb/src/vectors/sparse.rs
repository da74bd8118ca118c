//! Sparse queries: `Σ idf(t) · q(t) · w(t)` over the terms that a point shares with the query.

use std::mem;

use heed::RoTxn;
use lkr_domain::SparseVector;
use roaring::RoaringBitmap;

use super::{
    cache::{PendingTable, PointCache},
    postings::{self, Block, Entry},
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
    let mut window = ScoreWindow::new();
    let mut top = TopK::new(limit);
    while let Some(start) = lists.iter().filter_map(PostingCursor::next_id).min() {
        let start = start - start % WINDOW_IDS as u32;
        for list in &mut lists {
            window.add(start, list)?;
        }
        window.drain(start, |score, id| {
            if top.admits(score) && selected.is_none_or(|selected| selected.contains(id)) {
                top.push(score, id);
            }
        });
        top.raise_threshold();
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
    let mut cursors = Vec::with_capacity(query.len());
    for ((term, weight), pending) in query.iter().zip(pending) {
        let mut lists = scope.blocks(kb, txn, collection, term)?;
        let posted = lists.iter().flatten().map(|block| usize::from(block.count())).sum::<usize>();
        let holders = posted + pending.len();
        if holders == 0 {
            continue;
        }
        let weight = idf(scope.points() as f64, holders as f64) * f64::from(weight);
        // Pending points follow the posted ones of every space.
        cursors.push(PostingCursor::new(lists.pop().unwrap_or_default(), pending, weight)?);
        for blocks in lists {
            cursors.push(PostingCursor::new(blocks, Vec::new(), weight)?);
        }
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
    /// The pending entries, which follow the last block.
    pending: Vec<Entry>,
    /// The entries of the current block, and the number that were read.
    entries: Vec<Entry>,
    read: usize,
    weight: f64,
}

impl<'t> PostingCursor<'t> {
    fn new(blocks: Vec<Block<'t>>, pending: Vec<Entry>, weight: f64) -> InternalResult<Self> {
        let mut list = Self { blocks: blocks.into_iter(), pending, entries: Vec::new(), read: 0, weight };
        list.next_block()?;
        Ok(list)
    }

    /// Without a further block the list is at its end.
    fn next_block(&mut self) -> InternalResult<()> {
        self.read = 0;
        match self.blocks.next() {
            Some(block) => block.decode_into(&mut self.entries),
            None => {
                self.entries = mem::take(&mut self.pending);
                Ok(())
            }
        }
    }

    fn next_id(&self) -> Option<u32> {
        self.entries.get(self.read).map(|(id, _)| *id)
    }
}

/// The score sums of neighbouring ids, and which ids have one.
struct ScoreWindow {
    sums: Vec<f64>,
    /// 1 for an id that has a sum. Bytes, because entries of neighbouring ids would wait for each other's bits.
    touched: Vec<u8>,
}

impl ScoreWindow {
    fn new() -> Self {
        Self { sums: vec![0.0; WINDOW_IDS], touched: vec![0; WINDOW_IDS] }
    }

    /// Adds the list's entries below the end of the window that begins at `start`.
    fn add(&mut self, start: u32, list: &mut PostingCursor) -> InternalResult<()> {
        loop {
            let entries = list.entries.get(list.read..).unwrap_or_default();
            let in_window = entries.partition_point(|(id, _)| (id - start) < WINDOW_IDS as u32);
            let weight = list.weight;
            for (id, stored) in entries.iter().take(in_window) {
                self.add_one((id - start) as usize, weight * f64::from(*stored));
            }
            list.read += in_window;
            if list.read < list.entries.len() || list.entries.is_empty() {
                return Ok(());
            }
            list.next_block()?;
        }
    }

    fn add_one(&mut self, at: usize, score: f64) {
        if let (Some(sum), Some(touched)) = (self.sums.get_mut(at), self.touched.get_mut(at)) {
            *sum += score;
            *touched = 1;
        }
    }

    /// Emits all sums and resets them.
    fn drain(&mut self, start: u32, mut emit: impl FnMut(f32, u32)) {
        let groups = self.touched.as_chunks_mut::<8>().0.iter_mut().zip(self.sums.as_chunks_mut::<8>().0);
        for ((touched, sums), base) in groups.zip((start..).step_by(8)) {
            if *touched == [0; 8] {
                continue;
            }
            for ((touched, sum), id) in touched.iter_mut().zip(sums).zip(base..) {
                if *touched != 0 {
                    // Adding zero makes −0 and 0, which are equal, tie.
                    emit(*sum as f32 + 0.0, id);
                    (*touched, *sum) = (0, 0.0);
                }
            }
        }
    }
}

//! Sparse queries: `Σ idf(t) · q(t) · w(t)` over the terms that a point shares with the query.

use std::mem;

use heed::RoTxn;
use lkr_domain::SparseVector;
use roaring::RoaringBitmap;

use super::{
    bitmap::{self, Field},
    postings::{self, Block, Entry},
    registry,
    top::Top,
};
use crate::{env::Kb, error::Done};

/// Scores are added up for so many ids at a time: their sums fit into the processor's cache.
const WINDOW: usize = 1 << 14;

/// The best of the points that share a term with the query and are `selected`, with those that tie with the last.
pub(crate) fn search(
    kb: &Kb,
    txn: &RoTxn,
    collection: u16,
    query: &SparseVector,
    selected: Option<&RoaringBitmap>,
    limit: usize,
) -> Done<Vec<(f32, u32)>> {
    let mut lists = lists(kb, txn, collection, query)?;
    let mut window = Window::new();
    let mut top = Top::new(limit);
    while let Some(start) = lists.iter().filter_map(List::next_id).min() {
        let start = start - start % WINDOW as u32;
        for list in &mut lists {
            window.add(start, list)?;
        }
        window.harvest(start, |score, id| {
            if selected.is_none_or(|selected| selected.contains(id)) {
                top.push(score, id);
            }
        });
    }
    Ok(top.into_best())
}

/// The posting lists of the query's terms, each with `idf · q`, in the order of the terms.
fn lists<'t>(kb: &Kb, txn: &'t RoTxn, collection: u16, query: &SparseVector) -> Done<Vec<List<'t>>> {
    let points = bitmap::read(kb, txn, collection, Field::Live)?.len() as f64;
    let waiting = waiting(kb, txn, collection, query)?;
    let mut lists = Vec::with_capacity(query.len());
    for ((term, weight), waiting) in query.iter().zip(waiting) {
        let blocks = postings::blocks(kb, txn, collection, term)?;
        let holders = blocks.iter().map(|block| usize::from(block.count())).sum::<usize>() + waiting.len();
        if holders > 0 {
            lists.push(List::new(blocks, waiting, idf(points, holders as f64) * f64::from(weight))?);
        }
    }
    Ok(lists)
}

/// For each of the query's terms the entries of the points that are in no posting list yet.
fn waiting(kb: &Kb, txn: &RoTxn, collection: u16, query: &SparseVector) -> Done<Vec<Vec<Entry>>> {
    let ids = registry::ids(kb, txn, collection)?;
    let mut entries = vec![Vec::new(); query.len()];
    for point in postings::waiting(kb, txn, collection, ids)? {
        let (id, terms) = point?;
        for (term, entries) in query.indices().iter().zip(&mut entries) {
            entries.extend(terms.weight(*term).map(|weight| (id, weight)));
        }
    }
    Ok(entries)
}

/// How much a term says that `holders` of `points` hold: the IDF of BM25, which is never negative.
fn idf(points: f64, holders: f64) -> f64 {
    (1.0 + (points - holders + 0.5) / (holders + 0.5)).ln()
}

/// A posting list that is being read.
struct List<'t> {
    blocks: std::vec::IntoIter<Block<'t>>,
    /// The entries behind the last block.
    waiting: Vec<Entry>,
    /// The entries of the present block, and how many of them were read.
    entries: Vec<Entry>,
    read: usize,
    weight: f64,
}

impl<'t> List<'t> {
    fn new(blocks: Vec<Block<'t>>, waiting: Vec<Entry>, weight: f64) -> Done<Self> {
        let mut list = Self { blocks: blocks.into_iter(), waiting, entries: Vec::new(), read: 0, weight };
        list.next_block()?;
        Ok(list)
    }

    /// Where no block is left, nothing is.
    fn next_block(&mut self) -> Done<()> {
        self.read = 0;
        match self.blocks.next() {
            Some(block) => block.decode_into(&mut self.entries),
            None => {
                self.entries = mem::take(&mut self.waiting);
                Ok(())
            }
        }
    }

    fn next_id(&self) -> Option<u32> {
        self.entries.get(self.read).map(|(id, _)| *id)
    }
}

/// The sums of the scores of neighbouring ids, and which of them have one.
struct Window {
    sums: Vec<f64>,
    touched: Vec<u64>,
}

impl Window {
    fn new() -> Self {
        Self { sums: vec![0.0; WINDOW], touched: vec![0; WINDOW / 64] }
    }

    /// Adds the list's entries below the end of the window that begins at `start`.
    fn add(&mut self, start: u32, list: &mut List) -> Done<()> {
        loop {
            let entries = list.entries.get(list.read..).unwrap_or_default();
            let here = entries.partition_point(|(id, _)| (id - start) < WINDOW as u32);
            for (id, weight) in entries.iter().take(here) {
                self.add_one((id - start) as usize, list.weight * f64::from(*weight));
            }
            list.read += here;
            if list.read < list.entries.len() || list.entries.is_empty() {
                return Ok(());
            }
            list.next_block()?;
        }
    }

    fn add_one(&mut self, at: usize, score: f64) {
        if let Some(sum) = self.sums.get_mut(at) {
            *sum += score;
        }
        if let Some(word) = self.touched.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    /// Hands out all sums, and sets them to zero.
    fn harvest(&mut self, start: u32, mut each: impl FnMut(f32, u32)) {
        for ((word, sums), base) in
            self.touched.iter_mut().zip(self.sums.chunks_mut(64)).zip((start..).step_by(64))
        {
            while *word != 0 {
                let bit = word.trailing_zeros();
                *word &= *word - 1;
                if let Some(sum) = sums.get_mut(bit as usize) {
                    // Zero is added so that −0 and 0, which are equal, tie.
                    each(*sum as f32 + 0.0, base + bit);
                    *sum = 0.0;
                }
            }
        }
    }
}

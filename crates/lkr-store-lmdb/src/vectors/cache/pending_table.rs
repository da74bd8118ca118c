//! The terms of the pending points of a collection, ordered by term. A query reads the entries of its own terms instead of
//! the terms of all pending points.

use std::ops::Range;

use heed::RoTxn;
use lkr_domain::SparseVector;
use roaring::RoaringBitmap;

use super::PointTable;
use crate::{
    env::Kb,
    error::InternalResult,
    vectors::{
        postings::{self, Entry},
        registry::IdCounters,
    },
};

/// The terms of pending points.
#[derive(Debug, Default)]
pub(crate) struct PendingTable {
    /// Runs of entries, each ordered by term and then by id. The ids of a run are above those of the runs before it. Each run
    /// is more than twice as long as the next one: so there are few runs, and an entry is seldom moved to another one.
    runs: Vec<Vec<PendingEntry>>,
    posted: u32,
}

/// The weight of a term in a pending point.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PendingEntry {
    term: u32,
    id: u32,
    weight: f32,
}

impl PendingTable {
    /// For each term of the query, the entries of those of the points whose ids are in `pending`, ordered by id.
    pub(crate) fn entries(
        &self,
        query: &SparseVector,
        pending: Range<u32>,
        points: &RoaringBitmap,
    ) -> Vec<Vec<Entry>> {
        let is_pending = |id: u32| pending.contains(&id) && points.contains(id);
        let of_term = |term: &u32| {
            let entries = self.runs.iter().flat_map(|run| of_term(run, *term));
            entries.filter(|entry| is_pending(entry.id)).map(|entry| (entry.id, entry.weight)).collect()
        };
        query.indices().iter().map(of_term).collect()
    }

    /// Adds entries whose ids are above all others, ordered by term and id.
    fn push(&mut self, run: Vec<PendingEntry>) {
        let mut run = run;
        while let Some(last) = self.runs.pop_if(|last| last.len() <= 2 * run.len()) {
            run = merged(&last, &run);
        }
        if !run.is_empty() {
            self.runs.push(run);
        }
    }
}

/// The entries of a term in a run.
fn of_term(run: &[PendingEntry], term: u32) -> &[PendingEntry] {
    let from = run.partition_point(|entry| entry.term < term);
    let rest = run.get(from..).unwrap_or_default();
    // Few points have the same term, so the search for its last entry begins near the first one.
    let mut reach = 1;
    while rest.get(reach).is_some_and(|entry| entry.term == term) {
        reach *= 2;
    }
    let near = rest.get(..reach).unwrap_or(rest);
    let count = near.partition_point(|entry| entry.term == term);
    near.get(..count).unwrap_or_default()
}

/// Both runs as one.
fn merged(first: &[PendingEntry], second: &[PendingEntry]) -> Vec<PendingEntry> {
    let mut all = [first, second].concat();
    // Stable, and fast on two runs. Ids of the second are above those of the first.
    all.sort_by_key(|entry| entry.term);
    all
}

impl PointTable for PendingTable {
    /// Adds the new points, and removes those that were posted.
    fn extend(
        &mut self,
        kb: &Kb,
        txn: &RoTxn,
        collection: u16,
        from: u32,
        ids: IdCounters,
    ) -> InternalResult<bool> {
        let unread = IdCounters { posted: ids.posted.max(from), ..ids };
        let mut run = Vec::new();
        postings::for_each_pending(kb, txn, collection, unread, |id, terms| {
            run.extend(terms.iter().map(|(term, weight)| PendingEntry { term, id, weight }));
        })?;
        run.sort_by_key(|entry| entry.term);
        let has_removed = ids.posted > self.posted;
        if has_removed {
            self.runs.iter_mut().for_each(|run| run.retain(|entry| entry.id >= ids.posted));
            self.runs.retain(|run| !run.is_empty());
        }
        self.push(run);
        self.posted = ids.posted;
        Ok(has_removed)
    }
}

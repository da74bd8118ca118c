//! What queries keep of points in memory: their quantised vectors, their origins, and the terms of pending points.
//!
//! A point keeps its vectors and its origin as long as it keeps its internal id, and ids only grow. So what is kept is never wrong; it
//! may only be of a point that the snapshot of a query does not have, or no longer has.

mod code_table;
mod origin_table;
mod pending_table;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use heed::RoTxn;

pub(crate) use self::{code_table::CodeTable, origin_table::OriginTable, pending_table::PendingTable};
use super::registry::{self, IdCounters};
use crate::{env::Kb, error::InternalResult};

/// Points that are gone are removed when they are more than one of this many.
const GONE_SHARE: u64 = 3;
/// How many readings of a table are remembered. A search takes tens of milliseconds, in which a table is seldom read more often.
const MAX_READINGS: usize = 64;

/// What is kept of the points of all collections.
#[derive(Debug, Default)]
pub(crate) struct PointCaches {
    /// The quantised vectors of the collections that are scanned.
    pub(crate) codes: PointCache<CodeTable>,
    /// The ids and origins of the points of these collections.
    pub(crate) origins: PointCache<OriginTable>,
    /// The terms of pending points.
    pub(crate) pending: PointCache<PendingTable>,
}

impl PointCaches {
    /// Frees what is kept of a collection.
    pub(crate) fn forget(&self, collection: u16) {
        self.codes.forget(collection);
        self.origins.forget(collection);
        self.pending.forget(collection);
    }
}

/// What is kept of the points of one collection.
pub(crate) trait PointTable {
    /// Reads points from a newer snapshot, whose counters are `ids`: those from the id `from` on. Returns whether points were removed
    /// that are gone from it.
    fn extend(
        &mut self,
        kb: &Kb,
        txn: &RoTxn,
        collection: u16,
        from: u32,
        ids: IdCounters,
    ) -> InternalResult<bool>;
}

/// A table and the readings that it consists of.
#[derive(Debug)]
struct Kept<T> {
    table: T,
    readings: Readings,
}

impl<T: PointTable> Kept<T> {
    fn extend(&mut self, kb: &Kb, txn: &RoTxn, collection: u16, ids: IdCounters) -> InternalResult<()> {
        if self.table.extend(kb, txn, collection, self.readings.end(), ids)? {
            self.readings = Readings::default();
        }
        self.readings.add(txn.id(), ids.next);
        Ok(())
    }
}

/// Which points a table has read, and from which snapshots. A point that is in two snapshots is in all between them, so a table
/// has all points of a snapshot that were read from it or an earlier one, until points that are gone are removed.
#[derive(Debug, Default)]
struct Readings {
    /// The snapshots and the ids up to which points were read from them, in the order of the readings.
    newest: VecDeque<(usize, u32)>,
}

impl Readings {
    /// Points from this id on were not read yet.
    fn end(&self) -> u32 {
        self.newest.back().map_or(0, |(_, end)| *end)
    }

    /// The table has the points of the snapshot below this id.
    fn end_in(&self, snapshot: usize) -> u32 {
        let earlier = self.newest.partition_point(|(read, _)| *read <= snapshot);
        let last = earlier.checked_sub(1).and_then(|last| self.newest.get(last));
        last.map_or(0, |(_, end)| *end)
    }

    /// Adds a reading of the points up to `end`.
    fn add(&mut self, snapshot: usize, end: u32) {
        if self.newest.len() == MAX_READINGS {
            self.newest.pop_front();
        }
        self.newest.push_back((snapshot, end));
    }
}

/// A table for each collection that was queried.
#[derive(Debug)]
pub(crate) struct PointCache<T> {
    tables: Mutex<Tables<T>>,
}

#[derive(Debug)]
struct Tables<T> {
    kept: HashMap<u16, Arc<RwLock<Kept<T>>>>,
    /// The collections that were dropped. Their numbers are never used again.
    dropped: HashSet<u16>,
}

impl<T> Default for PointCache<T> {
    fn default() -> Self {
        Self { tables: Mutex::new(Tables { kept: HashMap::new(), dropped: HashSet::new() }) }
    }
}

impl<T: PointTable> PointCache<T> {
    /// Calls `work` with a table of points of a collection, with the counters of the snapshot `txn`, and with the id from which
    /// on points of the snapshot may be missing: the next id, except in a snapshot that is older than the table.
    pub(crate) fn read<R>(
        &self,
        kb: &Kb,
        txn: &RoTxn,
        collection: u16,
        new: impl FnOnce() -> T,
        work: impl FnOnce(&T, IdCounters, u32) -> R,
    ) -> InternalResult<R> {
        let ids = registry::ids(kb, txn, collection)?;
        let table = self.table(collection, new);
        let mut held = read(&table);
        if held.readings.end() < ids.next {
            drop(held);
            let mut changed = write(&table);
            // Another query may have read the points meanwhile.
            if changed.readings.end() < ids.next {
                changed.extend(kb, txn, collection, ids)?;
            }
            held = RwLockWriteGuard::downgrade(changed);
        }
        let end = held.readings.end_in(txn.id()).min(ids.next);
        Ok(work(&held.table, ids, end))
    }

    /// Whether something is kept of a collection.
    pub(crate) fn has(&self, collection: u16) -> bool {
        self.lock().kept.contains_key(&collection)
    }

    /// Frees what is kept of a collection that was dropped, and keeps nothing of it any more: queries on snapshots of before may go on.
    pub(crate) fn forget(&self, collection: u16) {
        let mut tables = self.lock();
        tables.kept.remove(&collection);
        tables.dropped.insert(collection);
    }

    fn table(&self, collection: u16, new: impl FnOnce() -> T) -> Arc<RwLock<Kept<T>>> {
        let mut tables = self.lock();
        let empty = || Arc::new(RwLock::new(Kept { table: new(), readings: Readings::default() }));
        if tables.dropped.contains(&collection) {
            return empty();
        }
        Arc::clone(tables.kept.entry(collection).or_insert_with(empty))
    }

    fn lock(&self) -> MutexGuard<'_, Tables<T>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A table is changed by single steps that do not panic, so that it is whole after a panic, too.
fn read<T>(table: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    table.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(table: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    table.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

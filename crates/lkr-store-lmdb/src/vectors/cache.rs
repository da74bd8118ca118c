//! What queries keep of points in memory: their quantised vectors, their origins, and the terms of pending points.
//!
//! A point keeps its vectors and its origin as long as it keeps its internal id, and ids only grow. So what is kept is never wrong; it
//! may only be of a point that the snapshot of a query does not have, or no longer has.

mod code_table;
mod origin_table;
mod pending_table;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use heed::RoTxn;

pub(crate) use self::{code_table::CodeTable, origin_table::OriginTable, pending_table::PendingTable};
use super::registry::{self, IdCounters};
use crate::{env::Kb, error::InternalResult};

/// Points that are gone are removed when they are more than one of this many.
const GONE_SHARE: u64 = 3;

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
    /// Points from this id on were not read yet.
    fn end(&self) -> u32;

    /// The newest snapshot that points were read from. Points that were gone then may be missing.
    fn snapshot(&self) -> usize;

    /// Reads the points from [`end`](Self::end) up to the next id from a newer snapshot.
    fn extend(&mut self, kb: &Kb, txn: &RoTxn, collection: u16, ids: IdCounters) -> InternalResult<()>;
}

/// A table for each collection that was queried.
#[derive(Debug)]
pub(crate) struct PointCache<T> {
    tables: Mutex<HashMap<u16, Arc<RwLock<T>>>>,
}

impl<T> Default for PointCache<T> {
    fn default() -> Self {
        Self { tables: Mutex::default() }
    }
}

impl<T: PointTable> PointCache<T> {
    /// Calls `work` with a table of all points that a collection has in the snapshot `txn`, and possibly of others, and
    /// with the counters of the snapshot. Returns `None` if the table was read from a newer snapshot, in which points of
    /// this one may be gone.
    pub(crate) fn read<R>(
        &self,
        kb: &Kb,
        txn: &RoTxn,
        collection: u16,
        new: impl FnOnce() -> T,
        work: impl FnOnce(&T, IdCounters) -> R,
    ) -> InternalResult<Option<R>> {
        let ids = registry::ids(kb, txn, collection)?;
        let table = self.table(collection, new);
        let mut held = read(&table);
        if held.end() < ids.next {
            drop(held);
            let mut changed = write(&table);
            // Another query may have read the points meanwhile.
            if changed.end() < ids.next {
                changed.extend(kb, txn, collection, ids)?;
            }
            held = RwLockWriteGuard::downgrade(changed);
        }
        Ok((txn.id() >= held.snapshot()).then(|| work(&held, ids)))
    }

    /// Whether something is kept of a collection.
    pub(crate) fn has(&self, collection: u16) -> bool {
        self.lock().contains_key(&collection)
    }

    /// Frees what is kept of a collection.
    pub(crate) fn forget(&self, collection: u16) {
        self.lock().remove(&collection);
    }

    fn table(&self, collection: u16, new: impl FnOnce() -> T) -> Arc<RwLock<T>> {
        let mut tables = self.lock();
        Arc::clone(tables.entry(collection).or_insert_with(|| Arc::new(RwLock::new(new()))))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u16, Arc<RwLock<T>>>> {
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

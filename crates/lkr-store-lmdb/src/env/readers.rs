//! Which states of an environment are being read.

use std::{
    collections::BTreeMap,
    fmt,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use heed::{RoTxn, WithoutTls};

use super::Environment;
use crate::error::InternalResult;

/// The open snapshots of an environment, counted by the number of the last transaction that was committed when they
/// were asked for. LMDB has such a table, too, but `heed` does not show it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Readers(Arc<Mutex<BTreeMap<usize, usize>>>);

impl Readers {
    /// Notes a reader, which must begin to read afterwards. It reads the state of the transaction `from` or a later one.
    pub(super) fn enter(&self, env: &Environment) -> Reader {
        let mut readers = self.lock();
        let from = env.info().last_txn_id;
        *readers.entry(from).or_default() += 1;
        Reader { readers: self.clone(), from }
    }

    /// The oldest transaction whose state may be being read, or become read.
    pub(super) fn oldest(&self, env: &Environment) -> usize {
        let readers = self.lock();
        let last = env.info().last_txn_id;
        readers.keys().next().map_or(last, |oldest| last.min(*oldest))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, usize>> {
        // Each change is a single step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader that is noted until this is dropped.
#[derive(Debug)]
pub(crate) struct Reader {
    readers: Readers,
    from: usize,
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut readers = self.readers.lock();
        if let Some(count) = readers.get_mut(&self.from) {
            *count -= 1;
            if *count == 0 {
                readers.remove(&self.from);
            }
        }
    }
}

/// A read transaction that owns its environment and may move between threads.
pub(crate) struct Snapshot {
    /// The first field: the transaction ends before it is forgotten.
    txn: RoTxn<'static, WithoutTls>,
    _reader: Reader,
}

impl Snapshot {
    pub(super) fn open(env: &Environment, readers: &Readers) -> InternalResult<Self> {
        let reader = readers.enter(env);
        Ok(Self { txn: env.clone().static_read_txn()?, _reader: reader })
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("id", &self.txn.id()).finish_non_exhaustive()
    }
}

impl Deref for Snapshot {
    type Target = RoTxn<'static, WithoutTls>;

    fn deref(&self) -> &Self::Target {
        &self.txn
    }
}

//! What the operations share: the connection, the specifications that were read, the locks.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lkr_vectors::{Collection, CollectionSpec};
use tokio::{
    sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock},
    time::Instant,
};

use crate::{
    QdrantOptions,
    connection::Connection,
    error::{Failure, InternalResult},
    indexes::FieldIndex,
    names::Names,
    snapshot::Copying,
};

/// For how long a specification is used without asking the server. What another process changed meanwhile is refused by
/// the server.
const SPEC_LIFETIME: Duration = Duration::from_secs(10);

/// The most indexes that filters may add to a collection in the life of a process.
const MAX_ADDED_INDEXES: usize = 64;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) connection: Connection,
    pub(crate) names: Names,
    /// Without the API key.
    pub(crate) options: QdrantOptions,
    /// Writes of points whose result depends on no other point share it. All other changes hold it alone.
    writes: Arc<RwLock<()>>,
    /// By name or alias.
    specs: Mutex<HashMap<Collection, (CollectionSpec, Instant)>>,
    added_indexes: Mutex<HashMap<Collection, HashSet<FieldIndex>>>,
    /// The snapshot that is being written.
    pub(crate) copying: Mutex<Option<Arc<Copying>>>,
    /// Held while a snapshot is written.
    pub(crate) snapshots: tokio::sync::Mutex<()>,
}

impl Shared {
    pub(crate) fn new(options: QdrantOptions) -> InternalResult<Self> {
        Ok(Self {
            connection: Connection::new(&options)?,
            names: Names::new(&options.prefix),
            options: QdrantOptions { api_key: None, ..options },
            writes: Arc::default(),
            specs: Mutex::default(),
            added_indexes: Mutex::default(),
            copying: Mutex::default(),
            snapshots: tokio::sync::Mutex::default(),
        })
    }

    /// Whether the server answers, is of a supported version and takes the API key.
    pub(crate) async fn check_health(&self) -> InternalResult<()> {
        self.connection.check_health().await?;
        // A check of health needs no API key.
        self.aliases().await.map(drop)
    }

    /// Waits until no change runs that must run alone.
    pub(crate) async fn share_writes(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.writes).read_owned().await
    }

    /// Waits until no other change of this process runs.
    pub(crate) async fn stop_writes(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.writes).write_owned().await
    }

    /// The specification of a collection or of the collection of an alias.
    pub(crate) async fn spec(&self, name: &Collection) -> InternalResult<CollectionSpec> {
        if let Some((spec, read_at)) = lock(&self.specs).get(name)
            && read_at.elapsed() < SPEC_LIFETIME
        {
            return Ok(spec.clone());
        }
        self.fresh_spec(name).await
    }

    pub(crate) async fn fresh_spec(&self, name: &Collection) -> InternalResult<CollectionSpec> {
        let spec = self.describe(name).await?;
        let spec = spec.ok_or_else(|| Failure::not_found(format!("no collection or alias {name}")))?;
        lock(&self.specs).insert(name.clone(), (spec.clone(), Instant::now()));
        Ok(spec)
    }

    /// Forgets the specifications, because names mean something else now.
    pub(crate) fn forget_specs(&self) {
        lock(&self.specs).clear();
    }

    pub(crate) fn forget_indexes(&self, collection: &Collection) {
        lock(&self.added_indexes).remove(collection);
    }

    /// Notes that an index is being added; whether it was not noted before.
    pub(crate) fn note_index(&self, collection: &Collection, index: &FieldIndex) -> bool {
        let mut added = lock(&self.added_indexes);
        let added = added.entry(collection.clone()).or_default();
        added.len() < MAX_ADDED_INDEXES && added.insert(index.clone())
    }

    pub(crate) fn copying(&self) -> Option<Arc<Copying>> {
        lock(&self.copying).clone()
    }
}

/// A poisoned lock is safe to use: no change of these maps can end in its middle.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

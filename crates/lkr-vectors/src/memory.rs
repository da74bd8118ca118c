mod collection;
mod dump;

use std::{
    collections::BTreeMap,
    fmt,
    path::Path,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use async_trait::async_trait;
use lkr_domain::PointId;

use self::collection::MemoryCollection;
use crate::{
    BegunBatch, Collection, CollectionSpec, Error, ErrorKind, Filter, Hit, Include, Page, Point, Query,
    Result, ScrollCursor, Tags, VectorStore,
};

/// A [`VectorStore`] in memory. All of its results are exact, because each query scans every point.
///
/// Data is lost when the value is dropped. It is meant for tests, examples and small collections, and is the reference
/// for the conformance tests of other stores.
#[derive(Default)]
pub struct MemoryVectors {
    state: RwLock<MemoryVectorsState>,
}

/// The whole state is behind one lock, so each operation is atomic.
#[derive(Default, Clone)]
struct MemoryVectorsState {
    collections: BTreeMap<Collection, MemoryCollection>,
    aliases: BTreeMap<Collection, Collection>,
}

impl MemoryVectors {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Loads the [`snapshot`](VectorStore::snapshot) in `folder`.
    ///
    /// # Errors
    /// `Corrupt` if the file in the folder is not a snapshot, `Internal` if it cannot be read.
    pub fn open_snapshot(folder: &Path) -> Result<Self> {
        let state = dump::read(folder).map_err(|error| Error::io("open_snapshot", error))?;
        Ok(Self { state: RwLock::new(state) })
    }

    // A poisoned lock is safe to use: every change is validated before it begins.
    fn read(&self) -> RwLockReadGuard<'_, MemoryVectorsState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, MemoryVectorsState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryVectorsState {
    fn query_batch(&self, queries: &[Query]) -> Result<Vec<Vec<Hit>>> {
        let answer = |query: &Query| self.collection("query_batch", &query.collection)?.query(query);
        queries.iter().map(answer).collect()
    }

    fn resolve(&self, name: &Collection) -> Option<&Collection> {
        self.collections.get_key_value(name).map(|(name, _)| name).or_else(|| self.aliases.get(name))
    }

    fn collection(&self, operation: &'static str, name: &Collection) -> Result<&MemoryCollection> {
        self.resolve(name)
            .and_then(|name| self.collections.get(name))
            .ok_or_else(|| not_found(operation, name))
    }

    fn collection_mut(
        &mut self,
        operation: &'static str,
        name: &Collection,
    ) -> Result<&mut MemoryCollection> {
        let resolved = self.resolve(name).cloned();
        resolved.and_then(|name| self.collections.get_mut(&name)).ok_or_else(|| not_found(operation, name))
    }
}

/// A begun batch with a copy of the state in which it began.
#[derive(Debug)]
struct MemoryBatch {
    store: MemoryVectors,
    queries: Vec<Query>,
}

#[async_trait]
impl BegunBatch for MemoryBatch {
    async fn begun(&mut self) -> Result<Vec<Vec<Hit>>> {
        self.store.read().query_batch(&self.queries)
    }

    async fn finish(mut self: Box<Self>, more: &[Query]) -> Result<Vec<Vec<Hit>>> {
        self.queries.extend_from_slice(more);
        self.store.read().query_batch(&self.queries)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl VectorStore for MemoryVectors {
    async fn ensure(&self, spec: &CollectionSpec) -> Result<()> {
        let mut state = self.write();
        let name = &spec.collection;
        if state.aliases.contains_key(name) {
            return Err(Error::new(ErrorKind::Conflict, "ensure", format!("an alias is named {name}")));
        }
        match state.collections.get(name) {
            Some(existing) if existing.spec() == spec => {}
            Some(_) => {
                let message = format!("collection {name} exists with another specification");
                return Err(Error::new(ErrorKind::Conflict, "ensure", message));
            }
            None => {
                state.collections.insert(name.clone(), MemoryCollection::new(spec.clone()));
            }
        }
        Ok(())
    }

    async fn describe(&self, collection: &Collection) -> Result<Option<CollectionSpec>> {
        Ok(self.read().collection("describe", collection).ok().map(|existing| existing.spec().clone()))
    }

    async fn collections(&self) -> Result<Vec<CollectionSpec>> {
        Ok(self.read().collections.values().map(|existing| existing.spec().clone()).collect())
    }

    async fn switch(&self, aliases: &[(Collection, Collection)]) -> Result<()> {
        let mut state = self.write();
        let mut resolved = Vec::with_capacity(aliases.len());
        for (alias, target) in aliases {
            if state.collections.contains_key(alias) {
                let message = format!("a collection is named {alias}");
                return Err(Error::new(ErrorKind::Conflict, "switch", message));
            }
            let resolved_target = state.resolve(target).ok_or_else(|| not_found("switch", target))?;
            resolved.push((alias.clone(), resolved_target.clone()));
        }
        state.aliases.extend(resolved);
        Ok(())
    }

    async fn drop_collection(&self, collection: &Collection) -> Result<()> {
        let mut state = self.write();
        if let Some(name) = state.resolve(collection).cloned() {
            state.collections.remove(&name);
            state.aliases.retain(|_, target| *target != name);
        }
        Ok(())
    }

    async fn upsert(&self, collection: &Collection, points: Vec<Point>) -> Result<()> {
        let mut state = self.write();
        let target = state.collection_mut("upsert", collection)?;
        points
            .iter()
            .filter_map(|point| point.dense.as_deref())
            .try_for_each(|v| target.check_dense(v, "upsert"))?;
        points.into_iter().for_each(|point| target.put(point));
        Ok(())
    }

    async fn upsert_all(&self, points: Vec<(Collection, Vec<Point>)>) -> Result<()> {
        for (collection, points) in points.into_iter().filter(|(_, points)| !points.is_empty()) {
            self.upsert(&collection, points).await?;
        }
        Ok(())
    }

    async fn delete(&self, collection: &Collection, filter: &Filter) -> Result<u64> {
        Ok(self.write().collection_mut("delete", collection)?.delete(filter))
    }

    async fn set_tags(&self, collection: &Collection, filter: &Filter, tags: &Tags) -> Result<u64> {
        Ok(self.write().collection_mut("set_tags", collection)?.set_tags(filter, tags))
    }

    async fn query_batch(&self, queries: &[Query]) -> Result<Vec<Vec<Hit>>> {
        self.read().query_batch(queries)
    }

    fn begin_batch(&self, queries: &[Query]) -> Result<Option<Box<dyn BegunBatch>>> {
        let store = Self { state: RwLock::new(self.read().clone()) };
        Ok(Some(Box::new(MemoryBatch { store, queries: queries.to_vec() })))
    }

    async fn get(
        &self,
        collection: &Collection,
        ids: &[PointId],
        with: Include,
    ) -> Result<Vec<Option<Point>>> {
        let state = self.read();
        let source = state.collection("get", collection)?;
        Ok(ids.iter().map(|id| source.get(*id, with)).collect())
    }

    async fn scroll(
        &self,
        collection: &Collection,
        filter: &Filter,
        after: Option<&ScrollCursor>,
        limit: usize,
        with: Include,
    ) -> Result<Page> {
        let state = self.read();
        state.collection("scroll", collection)?.scroll(filter, after, limit, with)
    }

    async fn count(&self, collection: &Collection, filter: &Filter) -> Result<u64> {
        Ok(self.read().collection("count", collection)?.count(filter))
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        let state = self.read().clone();
        let to = to.to_owned();
        // The blocking task runs to its end even if this future is dropped, so the copy is complete.
        tokio::task::spawn_blocking(move || dump::write(&state, &to))
            .await
            .map_err(|error| Error::new(ErrorKind::Internal, "snapshot", error))?
            .map_err(|error| Error::io("snapshot", error))
    }

    fn reads_block(&self) -> bool {
        false
    }

    async fn health(&self) -> Result<()> {
        Ok(())
    }
}

impl fmt::Debug for MemoryVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.read();
        f.debug_struct("MemoryVectors")
            .field("collections", &state.collections.keys().map(Collection::name).collect::<Vec<_>>())
            .field("aliases", &state.aliases.len())
            .finish()
    }
}

fn not_found(operation: &'static str, name: &Collection) -> Error {
    Error::new(ErrorKind::NotFound, operation, format!("no collection or alias {name}"))
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use super::MemoryVectors;
    use crate::{ErrorKind, VectorStore};

    async fn store() -> (Arc<dyn VectorStore>, ()) {
        (Arc::new(MemoryVectors::new()), ())
    }

    async fn copy(folder: &Path) -> (Arc<dyn VectorStore>, ()) {
        (Arc::new(MemoryVectors::open_snapshot(folder).unwrap()), ())
    }

    crate::vector_store_suite!(store(), copy: copy);

    #[test]
    fn store_after_a_panic_under_its_lock_is_usable() {
        let store = MemoryVectors::new();
        let poisoned = std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    let _guard = store.write();
                    panic!("panic while the lock is held");
                })
                .join()
        });
        assert!(poisoned.is_err() && store.state.is_poisoned());
        assert!(store.read().collections.is_empty() && store.write().aliases.is_empty());
    }

    #[test]
    fn open_snapshot_without_a_valid_file_fails() {
        let folder = tempfile::tempdir().unwrap();
        let kind = || MemoryVectors::open_snapshot(folder.path()).unwrap_err().kind();
        assert_eq!(kind(), ErrorKind::Internal);
        for text in ["", "{}", r#"{"version":2,"collections":[],"aliases":[]}"#] {
            std::fs::write(folder.path().join("vectors.json"), text).unwrap();
            assert_eq!(kind(), ErrorKind::Corrupt, "{text}");
        }
    }
}

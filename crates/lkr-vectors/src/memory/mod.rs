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

use self::collection::Stored;
use crate::{
    Collection, CollectionSpec, Error, ErrorKind, Filter, Hit, Include, Page, Point, Query, Result,
    ScrollCursor, Tags, VectorStore,
};

/// A [`VectorStore`] in memory, exact in everything: each query looks at every point.
///
/// It keeps what it is given for as long as it lives. Meant for tests, examples, small collections, and as the
/// reference that other stores are compared with.
#[derive(Default)]
pub struct MemoryVectors {
    inner: RwLock<Inner>,
}

/// Everything under the one lock, so that each operation is one step.
#[derive(Default, Clone)]
struct Inner {
    collections: BTreeMap<Collection, Stored>,
    aliases: BTreeMap<Collection, Collection>,
}

impl MemoryVectors {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The store of which `folder` holds a [`snapshot`](VectorStore::snapshot).
    ///
    /// # Errors
    /// `Corrupt` where the folder holds something else, `Internal` where it cannot be read.
    pub fn open_snapshot(folder: &Path) -> Result<Self> {
        let inner = dump::read(folder).map_err(|error| Error::io("open_snapshot", error))?;
        Ok(Self { inner: RwLock::new(inner) })
    }

    // A panic elsewhere does not make the points wrong: every change is checked before it is begun.
    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn resolve(&self, name: &Collection) -> Option<&Collection> {
        self.collections.get_key_value(name).map(|(own, _)| own).or_else(|| self.aliases.get(name))
    }

    fn stored(&self, operation: &'static str, name: &Collection) -> Result<&Stored> {
        self.resolve(name).and_then(|own| self.collections.get(own)).ok_or_else(|| not_found(operation, name))
    }

    fn stored_mut(&mut self, operation: &'static str, name: &Collection) -> Result<&mut Stored> {
        let own = self.resolve(name).cloned();
        own.and_then(|own| self.collections.get_mut(&own)).ok_or_else(|| not_found(operation, name))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl VectorStore for MemoryVectors {
    async fn ensure(&self, spec: &CollectionSpec) -> Result<()> {
        let mut inner = self.write();
        let name = &spec.collection;
        if inner.aliases.contains_key(name) {
            return Err(Error::new(ErrorKind::Conflict, "ensure", format!("{name} is an alias")));
        }
        match inner.collections.get(name) {
            Some(stored) if stored.spec() == spec => {}
            Some(_) => {
                let message = format!("{name} is there with another specification");
                return Err(Error::new(ErrorKind::Conflict, "ensure", message));
            }
            None => {
                inner.collections.insert(name.clone(), Stored::new(spec.clone()));
            }
        }
        Ok(())
    }

    async fn describe(&self, collection: &Collection) -> Result<Option<CollectionSpec>> {
        Ok(self.read().stored("describe", collection).ok().map(|stored| stored.spec().clone()))
    }

    async fn collections(&self) -> Result<Vec<CollectionSpec>> {
        Ok(self.read().collections.values().map(|stored| stored.spec().clone()).collect())
    }

    async fn switch(&self, aliases: &[(Collection, Collection)]) -> Result<()> {
        let mut inner = self.write();
        let mut resolved = Vec::with_capacity(aliases.len());
        for (alias, target) in aliases {
            if inner.collections.contains_key(alias) {
                let message = format!("{alias} is a collection");
                return Err(Error::new(ErrorKind::Conflict, "switch", message));
            }
            let own = inner.resolve(target).ok_or_else(|| not_found("switch", target))?;
            resolved.push((alias.clone(), own.clone()));
        }
        inner.aliases.extend(resolved);
        Ok(())
    }

    async fn drop_collection(&self, collection: &Collection) -> Result<()> {
        let mut inner = self.write();
        if let Some(own) = inner.resolve(collection).cloned() {
            inner.collections.remove(&own);
            inner.aliases.retain(|_, target| *target != own);
        }
        Ok(())
    }

    async fn upsert(&self, collection: &Collection, points: Vec<Point>) -> Result<()> {
        let mut inner = self.write();
        let stored = inner.stored_mut("upsert", collection)?;
        points
            .iter()
            .filter_map(|point| point.dense.as_deref())
            .try_for_each(|v| stored.check(v, "upsert"))?;
        points.into_iter().for_each(|point| stored.put(point));
        Ok(())
    }

    async fn delete(&self, collection: &Collection, filter: &Filter) -> Result<u64> {
        Ok(self.write().stored_mut("delete", collection)?.delete(filter))
    }

    async fn set_tags(&self, collection: &Collection, filter: &Filter, tags: &Tags) -> Result<u64> {
        Ok(self.write().stored_mut("set_tags", collection)?.set_tags(filter, tags))
    }

    async fn query_batch(&self, queries: &[Query]) -> Result<Vec<Vec<Hit>>> {
        let inner = self.read();
        queries.iter().map(|query| inner.stored("query_batch", &query.collection)?.query(query)).collect()
    }

    async fn get(
        &self,
        collection: &Collection,
        ids: &[PointId],
        with: Include,
    ) -> Result<Vec<Option<Point>>> {
        let inner = self.read();
        let stored = inner.stored("get", collection)?;
        Ok(ids.iter().map(|id| stored.get(*id, with)).collect())
    }

    async fn scroll(
        &self,
        collection: &Collection,
        filter: &Filter,
        after: Option<&ScrollCursor>,
        limit: usize,
        with: Include,
    ) -> Result<Page> {
        let inner = self.read();
        inner.stored("scroll", collection)?.scroll(filter, after, limit, with)
    }

    async fn count(&self, collection: &Collection, filter: &Filter) -> Result<u64> {
        Ok(self.read().stored("count", collection)?.count(filter))
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        let inner = self.read().clone();
        let to = to.to_owned();
        // The blocking task runs to its end also where this future is dropped, so that a copy is whole.
        tokio::task::spawn_blocking(move || dump::write(&inner, &to))
            .await
            .map_err(|error| Error::new(ErrorKind::Internal, "snapshot", error))?
            .map_err(|error| Error::io("snapshot", error))
    }

    async fn health(&self) -> Result<()> {
        Ok(())
    }
}

impl fmt::Debug for MemoryVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.read();
        f.debug_struct("MemoryVectors")
            .field("collections", &inner.collections.keys().map(Collection::name).collect::<Vec<_>>())
            .field("aliases", &inner.aliases.len())
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
    fn a_poisoned_lock_is_taken_over() {
        let store = MemoryVectors::new();
        let poisoned = std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    let _guard = store.write();
                    panic!("while the lock is held");
                })
                .join()
        });
        assert!(poisoned.is_err() && store.inner.is_poisoned());
        assert!(store.read().collections.is_empty() && store.write().aliases.is_empty());
    }

    #[test]
    fn what_is_no_snapshot_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let kind = || MemoryVectors::open_snapshot(folder.path()).unwrap_err().kind();
        assert_eq!(kind(), ErrorKind::Internal);
        for text in ["", "{}", r#"{"version":2,"collections":[],"aliases":[]}"#] {
            std::fs::write(folder.path().join("vectors.json"), text).unwrap();
            assert_eq!(kind(), ErrorKind::Corrupt, "{text}");
        }
    }
}

use std::{fmt, path::Path, sync::Arc};

use async_trait::async_trait;
use lkr_domain::PointId;

use crate::{
    BegunBatch, Collection, CollectionSpec, Error, ErrorKind, Filter, Hit, Include, Page, Point, Query,
    Result, ScrollCursor, Tags, VectorStore,
};

/// A decorator that injects faults, for tests of error handling.
///
/// Before each operation it calls a closure with the operation's name. The closure returns the kind of error to fail
/// with, or `None` to let the operation through. An operation that fails has no effect.
pub struct FailingVectors {
    inner: Arc<dyn VectorStore>,
    fault: Arc<Fault>,
}

impl FailingVectors {
    /// Wraps `inner` so that operations fail as `fault` decides.
    pub fn new(
        inner: Arc<dyn VectorStore>,
        fault: impl Fn(&'static str) -> Option<ErrorKind> + Send + Sync + 'static,
    ) -> Self {
        Self { inner, fault: Arc::new(fault) }
    }

    fn inject_fault(&self, operation: &'static str) -> Result<()> {
        inject(&*self.fault, operation)
    }
}

/// Says how an operation fails, if it does.
type Fault = dyn Fn(&'static str) -> Option<ErrorKind> + Send + Sync;

fn inject(fault: &Fault, operation: &'static str) -> Result<()> {
    fault(operation).map_or(Ok(()), |kind| Err(Error::new(kind, operation, "injected fault")))
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl VectorStore for FailingVectors {
    async fn ensure(&self, spec: &CollectionSpec) -> Result<()> {
        self.inject_fault("ensure")?;
        self.inner.ensure(spec).await
    }

    async fn describe(&self, collection: &Collection) -> Result<Option<CollectionSpec>> {
        self.inject_fault("describe")?;
        self.inner.describe(collection).await
    }

    async fn collections(&self) -> Result<Vec<CollectionSpec>> {
        self.inject_fault("collections")?;
        self.inner.collections().await
    }

    async fn switch(&self, aliases: &[(Collection, Collection)]) -> Result<()> {
        self.inject_fault("switch")?;
        self.inner.switch(aliases).await
    }

    async fn drop_collection(&self, collection: &Collection) -> Result<()> {
        self.inject_fault("drop_collection")?;
        self.inner.drop_collection(collection).await
    }

    async fn upsert(&self, collection: &Collection, points: Vec<Point>) -> Result<()> {
        self.inject_fault("upsert")?;
        self.inner.upsert(collection, points).await
    }

    async fn upsert_all(&self, points: Vec<(Collection, Vec<Point>)>) -> Result<()> {
        for (collection, points) in points.into_iter().filter(|(_, points)| !points.is_empty()) {
            self.upsert(&collection, points).await?;
        }
        Ok(())
    }

    async fn delete(&self, collection: &Collection, filter: &Filter) -> Result<u64> {
        self.inject_fault("delete")?;
        self.inner.delete(collection, filter).await
    }

    async fn set_tags(&self, collection: &Collection, filter: &Filter, tags: &Tags) -> Result<u64> {
        self.inject_fault("set_tags")?;
        self.inner.set_tags(collection, filter, tags).await
    }

    async fn query_batch(&self, queries: &[Query]) -> Result<Vec<Vec<Hit>>> {
        self.inject_fault("query_batch")?;
        self.inner.query_batch(queries).await
    }

    fn begin_batch(&self, queries: &[Query]) -> Result<Option<Box<dyn BegunBatch>>> {
        self.inject_fault("begin_batch")?;
        let fault = Arc::clone(&self.fault);
        let failing = |inner| Box::new(FailingBatch { inner, fault }) as Box<dyn BegunBatch>;
        Ok(self.inner.begin_batch(queries)?.map(failing))
    }

    async fn get(
        &self,
        collection: &Collection,
        ids: &[PointId],
        with: Include,
    ) -> Result<Vec<Option<Point>>> {
        self.inject_fault("get")?;
        self.inner.get(collection, ids, with).await
    }

    async fn scroll(
        &self,
        collection: &Collection,
        filter: &Filter,
        after: Option<&ScrollCursor>,
        limit: usize,
        with: Include,
    ) -> Result<Page> {
        self.inject_fault("scroll")?;
        self.inner.scroll(collection, filter, after, limit, with).await
    }

    async fn count(&self, collection: &Collection, filter: &Filter) -> Result<u64> {
        self.inject_fault("count")?;
        self.inner.count(collection, filter).await
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        self.inject_fault("snapshot")?;
        self.inner.snapshot(to).await
    }

    fn reads_block(&self) -> bool {
        self.inner.reads_block()
    }

    async fn health(&self) -> Result<()> {
        self.inject_fault("health")?;
        self.inner.health().await
    }
}

impl fmt::Debug for FailingVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailingVectors").field("inner", &self.inner).finish_non_exhaustive()
    }
}

/// A begun batch whose end may fail like a whole one.
struct FailingBatch {
    inner: Box<dyn BegunBatch>,
    fault: Arc<Fault>,
}

#[async_trait]
impl BegunBatch for FailingBatch {
    async fn begun(&mut self) -> Result<Vec<Vec<Hit>>> {
        inject(&*self.fault, "query_batch")?;
        self.inner.begun().await
    }

    async fn finish(self: Box<Self>, more: &[Query]) -> Result<Vec<Vec<Hit>>> {
        inject(&*self.fault, "query_batch")?;
        self.inner.finish(more).await
    }
}

impl fmt::Debug for FailingBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailingBatch").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryVectors;

    async fn store_without_faults() -> (Arc<dyn VectorStore>, ()) {
        (Arc::new(FailingVectors::new(Arc::new(MemoryVectors::new()), |_| None)), ())
    }

    crate::vector_store_suite!(store_without_faults());

    #[tokio::test]
    async fn fault_in_any_operation_names_it_and_has_no_effect() {
        let inner: Arc<dyn VectorStore> = Arc::new(MemoryVectors::new());
        let store = FailingVectors::new(Arc::clone(&inner), |_| Some(ErrorKind::Unavailable));
        let name = Collection::new("name").unwrap();
        let spec = CollectionSpec { collection: name.clone(), dense: None };
        inner.ensure(&spec).await.unwrap();
        let (all, folder) = (Filter::all(), tempfile::tempdir().unwrap());
        let copy = folder.path().join("copy");
        let alias = [(Collection::new("alias").unwrap(), name.clone())];
        let errors = [
            store.ensure(&spec).await.unwrap_err(),
            store.describe(&name).await.unwrap_err(),
            store.collections().await.unwrap_err(),
            store.switch(&alias).await.unwrap_err(),
            store.drop_collection(&name).await.unwrap_err(),
            store.upsert(&name, vec![]).await.unwrap_err(),
            store.delete(&name, &all).await.unwrap_err(),
            store.set_tags(&name, &all, &Tags::new()).await.unwrap_err(),
            store.query_batch(&[]).await.unwrap_err(),
            store.begin_batch(&[]).unwrap_err(),
            store.get(&name, &[], Include::All).await.unwrap_err(),
            store.scroll(&name, &all, None, 1, Include::All).await.unwrap_err(),
            store.count(&name, &all).await.unwrap_err(),
            store.snapshot(&copy).await.unwrap_err(),
            store.health().await.unwrap_err(),
        ];
        let names = "ensure describe collections switch drop_collection upsert delete set_tags query_batch begin_batch \
                     get scroll count snapshot health";
        assert_eq!(errors.each_ref().map(Error::operation).join(" "), names);
        assert!(errors.iter().all(Error::is_retryable));
        assert_eq!(inner.describe(&name).await.unwrap(), Some(spec), "the collection must not be dropped");
        assert!(inner.describe(&alias[0].0).await.unwrap().is_none() && !copy.exists());
    }

    #[tokio::test]
    async fn fault_in_one_operation_leaves_the_others_working() {
        let fault = |operation| (operation == "count").then_some(ErrorKind::Internal);
        let store = FailingVectors::new(Arc::new(MemoryVectors::new()), fault);
        store.health().await.unwrap();
        let error = store.count(&Collection::new("name").unwrap(), &Filter::all()).await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Internal, "count"));
    }
}

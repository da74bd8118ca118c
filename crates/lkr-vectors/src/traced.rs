use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use lkr_domain::PointId;
use tracing::{Instrument, debug_span};

use crate::{
    BegunBatch, Collection, CollectionSpec, Filter, Hit, Include, Page, Point, Query, Result, ScrollCursor,
    Tags, VectorStore,
};

/// A decorator that runs each operation in a span of its own, at the level `debug`. Spans contain counts and no contents.
#[derive(Debug)]
pub struct TracedVectors {
    inner: Arc<dyn VectorStore>,
}

impl TracedVectors {
    /// Wraps `inner`.
    #[must_use]
    pub const fn new(inner: Arc<dyn VectorStore>) -> Self {
        Self { inner }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl VectorStore for TracedVectors {
    async fn ensure(&self, spec: &CollectionSpec) -> Result<()> {
        self.inner.ensure(spec).instrument(debug_span!("vectors.ensure")).await
    }

    async fn describe(&self, collection: &Collection) -> Result<Option<CollectionSpec>> {
        self.inner.describe(collection).instrument(debug_span!("vectors.describe")).await
    }

    async fn collections(&self) -> Result<Vec<CollectionSpec>> {
        self.inner.collections().instrument(debug_span!("vectors.collections")).await
    }

    async fn switch(&self, aliases: &[(Collection, Collection)]) -> Result<()> {
        self.inner.switch(aliases).instrument(debug_span!("vectors.switch")).await
    }

    async fn drop_collection(&self, collection: &Collection) -> Result<()> {
        self.inner.drop_collection(collection).instrument(debug_span!("vectors.drop_collection")).await
    }

    async fn upsert(&self, collection: &Collection, points: Vec<Point>) -> Result<()> {
        let span = debug_span!("vectors.upsert", points = points.len());
        self.inner.upsert(collection, points).instrument(span).await
    }

    async fn upsert_all(&self, points: Vec<(Collection, Vec<Point>)>) -> Result<()> {
        let count: usize = points.iter().map(|(_, points)| points.len()).sum();
        let span = debug_span!("vectors.upsert_all", points = count);
        self.inner.upsert_all(points).instrument(span).await
    }

    async fn delete(&self, collection: &Collection, filter: &Filter) -> Result<u64> {
        self.inner.delete(collection, filter).instrument(debug_span!("vectors.delete")).await
    }

    async fn set_tags(&self, collection: &Collection, filter: &Filter, tags: &Tags) -> Result<u64> {
        self.inner.set_tags(collection, filter, tags).instrument(debug_span!("vectors.set_tags")).await
    }

    async fn query_batch(&self, queries: &[Query]) -> Result<Vec<Vec<Hit>>> {
        let span = debug_span!("vectors.query_batch", queries = queries.len());
        self.inner.query_batch(queries).instrument(span).await
    }

    fn begin_batch(&self, queries: &[Query]) -> Result<Option<Box<dyn BegunBatch>>> {
        let begun = self.inner.begin_batch(queries)?;
        Ok(begun.map(|inner| Box::new(TracedBatch { inner, queries: queries.len() }) as Box<dyn BegunBatch>))
    }

    async fn get(
        &self,
        collection: &Collection,
        ids: &[PointId],
        with: Include,
    ) -> Result<Vec<Option<Point>>> {
        let span = debug_span!("vectors.get", points = ids.len());
        self.inner.get(collection, ids, with).instrument(span).await
    }

    async fn scroll(
        &self,
        collection: &Collection,
        filter: &Filter,
        after: Option<&ScrollCursor>,
        limit: usize,
        with: Include,
    ) -> Result<Page> {
        let span = debug_span!("vectors.scroll", limit);
        self.inner.scroll(collection, filter, after, limit, with).instrument(span).await
    }

    async fn count(&self, collection: &Collection, filter: &Filter) -> Result<u64> {
        self.inner.count(collection, filter).instrument(debug_span!("vectors.count")).await
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        self.inner.snapshot(to).instrument(debug_span!("vectors.snapshot")).await
    }

    fn reads_block(&self) -> bool {
        self.inner.reads_block()
    }

    async fn health(&self) -> Result<()> {
        self.inner.health().instrument(debug_span!("vectors.health")).await
    }
}

/// A batch whose end has a span.
#[derive(Debug)]
struct TracedBatch {
    inner: Box<dyn BegunBatch>,
    /// How many queries it began with.
    queries: usize,
}

#[async_trait]
impl BegunBatch for TracedBatch {
    async fn begun(&mut self) -> Result<Vec<Vec<Hit>>> {
        self.inner.begun().await
    }

    async fn finish(self: Box<Self>, more: &[Query]) -> Result<Vec<Vec<Hit>>> {
        let span = debug_span!("vectors.query_batch", queries = self.queries + more.len());
        self.inner.finish(more).instrument(span).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryVectors;

    async fn store() -> (Arc<dyn VectorStore>, ()) {
        (Arc::new(TracedVectors::new(Arc::new(MemoryVectors::new()))), ())
    }

    crate::vector_store_suite!(store());
}

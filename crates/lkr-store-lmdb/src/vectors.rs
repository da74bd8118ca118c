//! The port `VectorStore`.

mod batch;
mod bitmap;
mod cache;
mod dense;
mod filter;
mod kernel;
pub(crate) mod keys;
mod migrate;
mod postings;
mod quantised;
mod query;
mod read;
mod record;
pub(crate) mod registry;
mod rows;
mod scope;
mod sparse;
mod stored_terms;
mod stored_vector;
mod tag_changes;
mod tag_sets;
mod top_k;
mod value_filter;
mod value_key;
mod verify;
mod write;

#[cfg(test)]
mod tests;

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use heed::{RoTxn, RwTxn};
use lkr_domain::PointId;
use lkr_vectors::{
    BegunBatch, Collection, CollectionSpec, Filter, Hit, Include, Page, Point, Query, Result, ScrollCursor,
    Tags, VectorStore,
};

pub(crate) use self::{
    bitmap::{Field, read as read_bitmap},
    cache::PointCaches,
    dense::{Candidate, DenseQuery, vector as read_vector},
    migrate::migrate_from_format_2,
    quantised::{Quantised, QuantisedQuery, QuantisedRow},
    top_k::TopK,
    verify::{migrate_bitmaps, rebuild_indexes, verify},
};
use crate::{
    env::Kb,
    error::{Failure, InternalResult},
    shared::StoreShared,
};

/// The handle for vectors of a store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LmdbVectors {
    shared: Arc<StoreShared>,
}

impl LmdbVectors {
    pub(crate) const fn new(shared: Arc<StoreShared>) -> Self {
        Self { shared }
    }

    /// The number of points of a collection that its clusters do not contain yet. Searches scan them, so they are found
    /// anyway.
    ///
    /// # Errors
    /// `NotFound` if there is no such collection.
    pub async fn cluster_lag(&self, collection: &Collection) -> Result<u64> {
        let (name, clusters) = (collection.clone(), Arc::clone(&self.shared.clusters));
        self.read("cluster_lag", move |kb, txn| {
            let number = registry::require(kb, txn, &name)?.number;
            let live = read_bitmap(kb, txn, number, Field::Live)?;
            let watermark = clusters.open(number).map_or(0, |open| open.watermark());
            Ok(live.range_cardinality(watermark..))
        })
        .await
    }

    async fn read<T, F>(&self, operation: &'static str, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Kb, &RoTxn) -> InternalResult<T> + Send + 'static,
    {
        StoreShared::read(&self.shared, work).await.map_err(|failure| failure.into_vectors(operation))
    }

    /// Stores points in one transaction.
    async fn upsert_each(
        &self,
        operation: &'static str,
        points: Vec<(Collection, Vec<Point>)>,
    ) -> Result<()> {
        // Encoding takes CPU time, so it runs neither on the async runtime nor on the writer thread.
        let encode = move |_: &StoreShared| {
            let encode = |(name, points)| Ok((name, write::encode_points(points)?));
            points.into_iter().map(encode).collect::<InternalResult<Vec<_>>>()
        };
        let prepared = StoreShared::blocking(&self.shared, encode).await;
        let prepared = prepared.map_err(|failure: Failure| failure.into_vectors(operation))?;
        self.write(operation, move |kb, txn| {
            // All is checked before anything is written.
            let checked = |(name, points): &(Collection, Vec<write::EncodedPoint>)| {
                let entry = registry::require(kb, txn, name)?;
                write::check_points(&entry, points)?;
                Ok(entry)
            };
            let entries = prepared.iter().map(checked).collect::<InternalResult<Vec<_>>>()?;
            let mut parts = entries.iter().zip(&prepared);
            parts.try_for_each(|(entry, (_, points))| write::upsert(kb, txn, entry, points))
        })
        .await
    }

    async fn write<T, F>(&self, operation: &'static str, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Kb, &mut RwTxn) -> InternalResult<T> + Send + 'static,
    {
        self.shared.write(work).await.map_err(|failure| failure.into_vectors(operation))
    }
}

#[async_trait]
impl VectorStore for LmdbVectors {
    async fn ensure(&self, spec: &CollectionSpec) -> Result<()> {
        let spec = spec.clone();
        self.write("ensure", move |kb, txn| registry::ensure(kb, txn, &spec)).await
    }

    async fn describe(&self, collection: &Collection) -> Result<Option<CollectionSpec>> {
        let entry = self.shared.read_in_place(|kb, txn| registry::resolve(kb, txn, collection));
        Ok(entry.map_err(|failure| failure.into_vectors("describe"))?.map(|entry| entry.spec))
    }

    async fn collections(&self) -> Result<Vec<CollectionSpec>> {
        self.read("collections", |kb, txn| {
            Ok(registry::all(kb, txn)?.into_iter().map(|entry| entry.spec).collect())
        })
        .await
    }

    async fn switch(&self, aliases: &[(Collection, Collection)]) -> Result<()> {
        let aliases = aliases.to_vec();
        self.write("switch", move |kb, txn| registry::switch(kb, txn, &aliases)).await
    }

    async fn drop_collection(&self, collection: &Collection) -> Result<()> {
        let name = collection.clone();
        let dropped = self.write("drop_collection", move |kb, txn| registry::remove(kb, txn, &name)).await?;
        dropped.into_iter().for_each(|number| self.shared.caches.forget(number));
        Ok(())
    }

    async fn upsert(&self, collection: &Collection, points: Vec<Point>) -> Result<()> {
        self.upsert_each("upsert", vec![(collection.clone(), points)]).await
    }

    async fn upsert_all(&self, mut points: Vec<(Collection, Vec<Point>)>) -> Result<()> {
        points.retain(|(_, points)| !points.is_empty());
        self.upsert_each("upsert_all", points).await
    }

    async fn delete(&self, collection: &Collection, filter: &Filter) -> Result<u64> {
        let (name, filter) = (collection.clone(), filter.clone());
        self.write("delete", move |kb, txn| {
            let entry = registry::require(kb, txn, &name)?;
            write::delete(kb, txn, &entry, &filter)
        })
        .await
    }

    async fn set_tags(&self, collection: &Collection, filter: &Filter, tags: &Tags) -> Result<u64> {
        let (name, filter, tags) = (collection.clone(), filter.clone(), tags.clone());
        self.write("set_tags", move |kb, txn| {
            let entry = registry::require(kb, txn, &name)?;
            write::set_tags(kb, txn, &entry, &filter, &tags)
        })
        .await
    }

    async fn query_batch(&self, queries: &[Query]) -> Result<Vec<Vec<Hit>>> {
        let answered = batch::batch(&self.shared, queries.to_vec()).await;
        answered.map_err(|failure| failure.into_vectors("query_batch"))
    }

    fn begin_batch(&self, queries: &[Query]) -> Result<Option<Box<dyn BegunBatch>>> {
        let begun = batch::begin(&self.shared, queries.to_vec());
        let begun = begun.map_err(|failure| failure.into_vectors("query_batch"))?;
        Ok(begun.map(|batch| Box::new(batch) as Box<dyn BegunBatch>))
    }

    async fn get(
        &self,
        collection: &Collection,
        ids: &[PointId],
        with: Include,
    ) -> Result<Vec<Option<Point>>> {
        let (name, ids) = (collection.clone(), ids.to_vec());
        self.read("get", move |kb, txn| {
            let entry = registry::require(kb, txn, &name)?;
            read::get(kb, txn, &entry, &ids, with)
        })
        .await
    }

    async fn scroll(
        &self,
        collection: &Collection,
        filter: &Filter,
        after: Option<&ScrollCursor>,
        limit: usize,
        with: Include,
    ) -> Result<Page> {
        let (name, filter, after) = (collection.clone(), filter.clone(), after.cloned());
        self.read("scroll", move |kb, txn| {
            let entry = registry::require(kb, txn, &name)?;
            read::scroll(kb, txn, &entry, &filter, after.as_ref(), limit, with)
        })
        .await
    }

    async fn count(&self, collection: &Collection, filter: &Filter) -> Result<u64> {
        let (name, filter) = (collection.clone(), filter.clone());
        self.read("count", move |kb, txn| {
            let entry = registry::require(kb, txn, &name)?;
            Ok(filter::matching_ids(kb, txn, entry.number, &filter)?.len())
        })
        .await
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        StoreShared::snapshot(&self.shared, to).await.map_err(|failure| failure.into_vectors("snapshot"))
    }

    fn reads_block(&self) -> bool {
        true
    }

    async fn health(&self) -> Result<()> {
        StoreShared::health(&self.shared).await.map_err(|failure| failure.into_vectors("health"))
    }
}

#[async_trait]
impl BegunBatch for batch::Batch {
    async fn begun(&mut self) -> Result<Vec<Vec<Hit>>> {
        Self::begun(self).await.map_err(|failure| failure.into_vectors("query_batch"))
    }

    async fn finish(self: Box<Self>, more: &[Query]) -> Result<Vec<Vec<Hit>>> {
        Self::finish(*self, more).await.map_err(|failure| failure.into_vectors("query_batch"))
    }
}

/// The name of a part of a point in errors: by the point id if that is readable.
fn describe_point_part(kb: &Kb, txn: &RoTxn, collection: u16, id: u32, part: &str) -> String {
    match rows::origin(kb, txn, collection, id) {
        Ok((point, _)) => format!("{part} of point {point}"),
        Err(_) => format!("{part} of point number {id} of collection number {collection}"),
    }
}

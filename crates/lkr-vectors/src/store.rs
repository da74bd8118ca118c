use std::{fmt::Debug, path::Path};

use async_trait::async_trait;
use lkr_domain::{PointId, Scope, SparseVector};

use crate::{Collection, CollectionSpec, Filter, Hit, Point, Result, Tags};

/// A store of points with dense and sparse vectors.
///
/// Every method that takes a [`Collection`] also accepts an alias. Operations are cancellation-safe: if a future is
/// dropped at an await, its operation takes effect completely or not at all. When the future of a write returns, the
/// write is durable and visible to every later read.
///
/// # Errors
/// `NotFound` if a collection or alias does not exist, unless a method says otherwise. An invalid request has no
/// effect.
#[async_trait]
pub trait VectorStore: Debug + Send + Sync + 'static {
    /// Creates a collection if it does not exist.
    ///
    /// # Errors
    /// `Conflict` if it exists with another specification, or if an alias has its name.
    async fn ensure(&self, spec: &CollectionSpec) -> Result<()>;

    /// The specification of the collection with this name or alias; `None` if there is none.
    async fn describe(&self, collection: &Collection) -> Result<Option<CollectionSpec>>;

    /// The specifications of all collections, sorted by name.
    async fn collections(&self) -> Result<Vec<CollectionSpec>>;

    /// Points each alias to its collection atomically, and creates aliases that do not exist. Each pair is an alias and
    /// its target. The target may be an alias, too; it means the collection to which that alias pointed before. If an
    /// alias occurs twice, the last pair counts.
    ///
    /// # Errors
    /// `NotFound` if a target does not exist, `Conflict` if an alias has the name of a collection. No alias changes
    /// in either case.
    async fn switch(&self, aliases: &[(Collection, Collection)]) -> Result<()>;

    /// Removes a collection, its points and all aliases that point to it. Does nothing if it does not exist. If an
    /// alias is given, its collection is removed.
    async fn drop_collection(&self, collection: &Collection) -> Result<()>;

    /// Stores all of the points or none. Points with the same id are replaced; within one call the last counts.
    ///
    /// # Errors
    /// `Invalid` if the number of dimensions of a dense vector differs from the collection's, if the collection has no
    /// dense vectors, or if a number is not finite.
    async fn upsert(&self, collection: &Collection, points: Vec<Point>) -> Result<()>;

    /// Stores points of several collections as [`upsert`](Self::upsert) does, those of the last collection after all others.
    /// Collections without points are left out. A store that can store all of them at once should do so instead of one after
    /// another.
    ///
    /// # Errors
    /// Those of [`upsert`](Self::upsert); then points of some of the collections may be stored, but not of the last.
    async fn upsert_all(&self, points: Vec<(Collection, Vec<Point>)>) -> Result<()>;

    /// Removes the points that match, and returns their number.
    async fn delete(&self, collection: &Collection, filter: &Filter) -> Result<u64>;

    /// Replaces all tags of the points that match, and returns the number of those points.
    async fn set_tags(&self, collection: &Collection, filter: &Filter, tags: &Tags) -> Result<u64>;

    /// Runs several queries and returns their hits in the same order. Hits are sorted by descending score, then by id.
    ///
    /// # Errors
    /// `NotFound` or `Invalid` (as in [`upsert`](Self::upsert)) if any of the queries is invalid.
    async fn query_batch(&self, queries: &[Query]) -> Result<Vec<Vec<Hit>>>;

    /// Opens a batch that will have more queries: a search looks for words while a model embeds its question. All queries of the
    /// batch see one state of the store, that of this call, so the store keeps it until the batch is finished or dropped. Begin one
    /// only if the others will be known within milliseconds. `None` if the store answers the whole batch no later without it; ask
    /// with [`query_batch`](Self::query_batch) then.
    ///
    /// # Errors
    /// Those of a store that fails. An invalid query is noticed when the batch is finished.
    fn begin_batch(&self, queries: &[Query]) -> Result<Option<Box<dyn BegunBatch>>> {
        let _ = queries;
        Ok(None)
    }

    /// The points with these ids, in the order of the ids; `None` for ids that do not exist. An id that occurs twice
    /// is returned twice.
    async fn get(
        &self,
        collection: &Collection,
        ids: &[PointId],
        with: Include,
    ) -> Result<Vec<Option<Point>>>;

    /// The points that match, in pages and in a stable order. `after` is the cursor of the previous page.
    ///
    /// A point that exists during the whole scroll is on exactly one page, even if other points are added or removed
    /// between pages. With `limit` 0 the page is empty and is the last one.
    ///
    /// # Errors
    /// `Invalid` if `after` is not a cursor of this store.
    async fn scroll(
        &self,
        collection: &Collection,
        filter: &Filter,
        after: Option<&ScrollCursor>,
        limit: usize,
        with: Include,
    ) -> Result<Page>;

    /// The number of points that match.
    async fn count(&self, collection: &Collection, filter: &Filter) -> Result<u64>;

    /// Writes a consistent copy of the whole store into the folder `to`, which must not exist. Reads and writes continue
    /// meanwhile.
    ///
    /// # Errors
    /// `Invalid` if `to` exists; it is not changed.
    async fn snapshot(&self, to: &Path) -> Result<()>;

    /// Whether a thread waits for each of its reads: one of the blocking pool, or the one that asks if that
    /// [may block](crate::may_block). If so, work that reads several times had better run on
    /// [one such thread](crate::on_blocking_thread).
    fn reads_block(&self) -> bool;

    /// Whether the store is reachable.
    async fn health(&self) -> Result<()>;
}

/// A batch of queries that a store has [begun](VectorStore::begin_batch). It ends when it is dropped.
#[async_trait]
pub trait BegunBatch: Debug + Send {
    /// Runs the queries that the batch began with, and returns their hits in order. On a thread that [may block](crate::may_block), a
    /// store in this process runs them on that thread, and lets other futures run after each. The batch can be finished even if the
    /// future is dropped before.
    ///
    /// # Errors
    /// Those of [`query_batch`](VectorStore::query_batch). The batch cannot be finished then.
    async fn begun(&mut self) -> Result<Vec<Vec<Hit>>>;

    /// The hits of the queries that the batch began with, in their order, and those of `more`.
    ///
    /// # Errors
    /// Those of [`query_batch`](VectorStore::query_batch).
    async fn finish(self: Box<Self>, more: &[Query]) -> Result<Vec<Vec<Hit>>>;
}

/// One leg of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The collection to search.
    pub collection: Collection,
    /// The vector to search for.
    pub vector: QueryVector,
    /// The spaces to search in, by the tag [`SPACE_TAG`](crate::SPACE_TAG). Points of other spaces do not affect the hits: scores are those
    /// of a store that holds the points in the scope only.
    pub scope: Scope,
    /// Which points of the scope to search.
    pub filter: Filter,
    /// The maximum number of hits.
    pub limit: usize,
}

/// The vector of a query.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryVector {
    /// Finds the points with the highest cosine. The vector has length 1, like the stored ones. Points without a dense
    /// vector are never hits. The search may be approximate in collections of more than a thousand points.
    Dense(Vec<f32>),
    /// Finds the points with the highest `Σ idf(t) · q(t) · w(t)` over shared terms, with
    /// `idf(t) = ln(1 + (N − n + ½) / (n + ½))`. `N` is the number of points in the scope and `n` the number of those
    /// with the term; the filter does not affect them. The search is exact, to the accuracy of `f32`. Points without a
    /// shared term are never hits.
    Sparse(SparseVector),
}

/// Which parts of a point to return besides id and origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Include {
    /// The payload; the tags and the vectors are empty.
    Content,
    /// The payload and the tags; the vectors are empty.
    Payload,
    /// Everything.
    All,
}

/// The position of a scroll; opaque outside the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScrollCursor(pub Vec<u8>);

/// A page of a scroll.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The points.
    pub points: Vec<Point>,
    /// The cursor for the next page; `None` on the last page. The last page may be empty.
    pub next: Option<ScrollCursor>,
}

use std::{fmt::Debug, path::Path};

use async_trait::async_trait;
use lkr_domain::{PointId, SparseVector};

use crate::{Collection, CollectionSpec, Filter, Hit, Point, Result, Tags};

/// A store of points with dense and sparse vectors.
///
/// Every method that takes a [`Collection`] takes an alias as well. Every future may be dropped at any await: the
/// operation then happens whole or not at all. A write is durable, and seen by every later read, when its future
/// answers.
///
/// # Errors
/// `NotFound` where a collection or alias is not there, except where a method says otherwise. A wrong request is
/// refused whole, before anything of it is done.
#[async_trait]
pub trait VectorStore: Debug + Send + Sync + 'static {
    /// Makes a collection unless it is there.
    ///
    /// # Errors
    /// `Conflict` where it is there with another specification or the name is an alias.
    async fn ensure(&self, spec: &CollectionSpec) -> Result<()>;

    /// The specification of the collection that a name or alias stands for; `None` where there is none.
    async fn describe(&self, collection: &Collection) -> Result<Option<CollectionSpec>>;

    /// The specifications of all collections, by name.
    async fn collections(&self) -> Result<Vec<CollectionSpec>>;

    /// Points each alias at its collection, all in one step; an alias that is not there is made. Pairs are alias and
    /// collection; an alias in place of the collection stands for what it pointed at before the step. Where an alias
    /// comes twice, the last counts.
    ///
    /// # Errors
    /// `NotFound` where a collection is not there, `Conflict` where an alias is a collection's name; none is
    /// switched then.
    async fn switch(&self, aliases: &[(Collection, Collection)]) -> Result<()>;

    /// Removes a collection, its points and the aliases that point at it; nothing where it is not there. An alias
    /// stands for its collection here too.
    async fn drop_collection(&self, collection: &Collection) -> Result<()>;

    /// Stores points, all of them or none. Points of the same id are replaced; within one call the last counts.
    ///
    /// # Errors
    /// `Invalid` where a dense vector has other dimensions than the collection, or the collection has none, or a
    /// number is not finite.
    async fn upsert(&self, collection: &Collection, points: Vec<Point>) -> Result<()>;

    /// Removes the points that pass, and answers how many there were.
    async fn delete(&self, collection: &Collection, filter: &Filter) -> Result<u64>;

    /// Replaces the tags of the points that pass, and answers how many there were.
    async fn set_tags(&self, collection: &Collection, filter: &Filter, tags: &Tags) -> Result<u64>;

    /// Answers several queries at once, in their order. Hits are sorted by score, highest first, ties by id.
    ///
    /// # Errors
    /// `NotFound` and `Invalid`, the latter as in [`upsert`](Self::upsert), where any of the queries is wrong.
    async fn query_batch(&self, queries: &[Query]) -> Result<Vec<Vec<Hit>>>;

    /// The stored points of these ids, in the order of the ids; `None` for those that are not there. An id that
    /// comes twice is answered twice.
    async fn get(
        &self,
        collection: &Collection,
        ids: &[PointId],
        with: Include,
    ) -> Result<Vec<Option<Point>>>;

    /// The points that pass, by pages in a stable order. A page follows `after`, which an earlier page gave.
    ///
    /// A point that is there throughout is on exactly one page, whatever comes and goes between the pages. A page of
    /// `limit` 0 is empty and the last.
    ///
    /// # Errors
    /// `Invalid` where `after` is no cursor of this store.
    async fn scroll(
        &self,
        collection: &Collection,
        filter: &Filter,
        after: Option<&ScrollCursor>,
        limit: usize,
        with: Include,
    ) -> Result<Page>;

    /// How many points pass.
    async fn count(&self, collection: &Collection, filter: &Filter) -> Result<u64>;

    /// Writes a consistent copy of everything into the folder `to`, which must not exist. Reads and writes go on.
    ///
    /// # Errors
    /// `Invalid` where `to` exists; it is left as it is.
    async fn snapshot(&self, to: &Path) -> Result<()>;

    /// Whether the store answers.
    async fn health(&self) -> Result<()>;
}

/// One leg of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Where to look.
    pub collection: Collection,
    /// What to look for.
    pub vector: QueryVector,
    /// Which points count.
    pub filter: Filter,
    /// How many hits at the most.
    pub limit: usize,
}

/// What a query looks for.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryVector {
    /// The points of the highest cosine; of length 1, like those stored. Points without a dense vector are no hits.
    /// Approximate in large collections; exact in those of up to a thousand points.
    Dense(Vec<f32>),
    /// The points of the highest `Σ idf(t) · q(t) · w(t)` over shared terms, with
    /// `idf(t) = ln(1 + (N − n + ½) / (n + ½))`, where `N` is the number of points in the collection and `n` the
    /// number of those that hold the term, whatever the filter. Exact, to the accuracy of `f32`. Points that share no term are no hits.
    Sparse(SparseVector),
}

/// What of a point is wanted besides id and origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Include {
    /// The payload and the tags; vectors are left empty.
    Payload,
    /// Everything.
    All,
}

/// A place in a scroll; opaque outside the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScrollCursor(pub Vec<u8>);

/// A page of a scroll.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The points.
    pub points: Vec<Point>,
    /// Where the next page begins; `None` after the last. The last page may be empty.
    pub next: Option<ScrollCursor>,
}

//! What the cases share.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use lkr_domain::{DocId, PointId, SparseVector};
use serde_json::json;

use crate::{
    Collection, CollectionSpec, DenseSpec, ErrorKind, Filter, Hit, Include, Point, PointOrigin, Query,
    QueryVector, Result, ScrollCursor, Tags, VectorStore,
};

/// The store under test.
pub(super) type Store = Arc<dyn VectorStore>;

/// The dimensions of most cases.
pub(super) const DIMS: usize = 4;

/// A name that nothing has yet.
pub(super) fn fresh() -> Collection {
    Collection::new(format!("case-{}", DocId::new())).unwrap()
}

pub(super) fn spec(name: &Collection, dims: usize) -> CollectionSpec {
    let dense = DenseSpec { model: "model-of-the-suite".to_owned(), dims };
    CollectionSpec { collection: name.clone(), dense: Some(dense) }
}

/// A new collection with dense vectors of [`DIMS`] dimensions.
pub(super) async fn made(store: &Store) -> Collection {
    made_with(store, DIMS).await
}

pub(super) async fn made_with(store: &Store, dims: usize) -> Collection {
    let name = fresh();
    store.ensure(&spec(&name, dims)).await.unwrap();
    name
}

/// The id of the point `n`; ids sort like their numbers.
pub(super) fn id(n: u32) -> PointId {
    PointId::from_bytes(u128::from(n).to_be_bytes())
}

/// The number of a point.
pub(super) fn number(id: PointId) -> u32 {
    u128::from_be_bytes(*id.as_bytes()) as u32
}

/// The id of the document `n`.
pub(super) fn doc(n: u32) -> DocId {
    DocId::from_bytes((u128::from(n) | 1 << 120).to_be_bytes())
}

/// A point with a payload that tells its number, without vectors and tags.
pub(super) fn point(n: u32) -> Point {
    let origin = PointOrigin { doc_id: doc(n / 10), revision: 1, ordinal: n, l2: None, l3: None };
    Point {
        id: id(n),
        origin,
        tags: Tags::new(),
        dense: None,
        sparse: SparseVector::default(),
        payload: json!({ "n": n }),
    }
}

pub(super) fn with_dense(n: u32, dense: &[f32]) -> Point {
    Point { dense: Some(unit(dense.to_vec())), ..point(n) }
}

pub(super) fn with_sparse(n: u32, terms: &[(u32, f32)]) -> Point {
    Point { sparse: sparse(terms), ..point(n) }
}

pub(super) fn with_tags(n: u32, pairs: &[(&str, &str)]) -> Point {
    Point { tags: tags(pairs), ..point(n) }
}

pub(super) fn tags(pairs: &[(&str, &str)]) -> Tags {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub(super) fn sparse(terms: &[(u32, f32)]) -> SparseVector {
    SparseVector::from_pairs(terms.iter().copied())
}

/// The vector scaled to length 1.
pub(super) fn unit(vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    vector.into_iter().map(|x| (f64::from(x) / length) as f32).collect()
}

pub(super) fn query(collection: &Collection, vector: QueryVector, filter: &Filter, limit: usize) -> Query {
    Query { collection: collection.clone(), vector, filter: filter.clone(), limit }
}

pub(super) async fn ask(
    store: &Store,
    collection: &Collection,
    vector: QueryVector,
    filter: &Filter,
    limit: usize,
) -> Result<Vec<Hit>> {
    let mut answers = store.query_batch(&[query(collection, vector, filter, limit)]).await?;
    assert_eq!(answers.len(), 1, "one answer for one query");
    Ok(answers.remove(0))
}

/// The best points for a dense query, all of them.
pub(super) async fn ask_dense(store: &Store, collection: &Collection, vector: &[f32]) -> Vec<Hit> {
    ask(store, collection, QueryVector::Dense(unit(vector.to_vec())), &Filter::all(), 100).await.unwrap()
}

/// The best points for a sparse query, all of them.
pub(super) async fn ask_sparse(store: &Store, collection: &Collection, terms: &[(u32, f32)]) -> Vec<Hit> {
    ask(store, collection, QueryVector::Sparse(sparse(terms)), &Filter::all(), 1000).await.unwrap()
}

/// The numbers of the points that were hit, in order.
pub(super) fn numbers(hits: &[Hit]) -> Vec<u32> {
    hits.iter().map(|hit| number(hit.id)).collect()
}

/// `idf(t)` where `holders` of `points` hold the term, as the port defines it.
pub(super) fn idf(points: u32, holders: u32) -> f64 {
    let (points, holders) = (f64::from(points), f64::from(holders));
    (1.0 + (points - holders + 0.5) / (holders + 0.5)).ln()
}

#[track_caller]
pub(super) fn assert_score(hit: &Hit, expected: f64) {
    let difference = (f64::from(hit.score) - expected).abs();
    assert!(difference <= 1e-5 * expected.abs().max(1.0), "{hit:?}, expected {expected}");
}

#[track_caller]
pub(super) fn assert_near(left: &[f32], right: &[f32]) {
    assert_eq!(left.len(), right.len());
    let near = left.iter().zip(right).all(|(a, b)| (a - b).abs() <= 1e-5);
    assert!(near, "{left:?} is not {right:?}");
}

/// Compares two points; dense vectors to the accuracy that a store may lose by normalising them.
#[track_caller]
pub(super) fn assert_same(left: &Point, right: &Point) {
    match (&left.dense, &right.dense) {
        (Some(a), Some(b)) => assert_near(a, b),
        (a, b) => assert_eq!(a, b, "dense vectors"),
    }
    let bare = |point: &Point| Point { dense: None, ..point.clone() };
    assert_eq!(bare(left), bare(right));
}

#[track_caller]
pub(super) fn assert_kind<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind) {
    match result {
        Ok(value) => panic!("{kind:?} was expected, not {value:?}"),
        Err(error) => assert_eq!(error.kind(), kind, "{error}"),
    }
}

pub(super) async fn count(store: &Store, collection: &Collection) -> u64 {
    store.count(collection, &Filter::all()).await.unwrap()
}

/// The numbers of all points that pass, by pages of `limit`, in the order in which they came.
pub(super) async fn scrolled(
    store: &Store,
    collection: &Collection,
    filter: &Filter,
    limit: usize,
) -> Vec<u32> {
    let mut numbers = Vec::new();
    let mut after: Option<ScrollCursor> = None;
    loop {
        let page = store.scroll(collection, filter, after.as_ref(), limit, Include::Payload).await.unwrap();
        assert!(page.points.len() <= limit, "a page of more than {limit}");
        numbers.extend(page.points.iter().map(|point| number(point.id)));
        match page.next {
            Some(next) => after = Some(next),
            None => return numbers,
        }
    }
}

/// Polls a future once and drops it; answers whether it was done by then.
pub(super) fn poll_once(future: impl Future) -> bool {
    pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// Starts a future, and drops it after `pause` unless it is done by then.
pub(super) async fn drop_after(pause: Duration, future: impl Future) {
    let _dropped_or_done = tokio::time::timeout(pause, future).await;
}

/// Waits until what a dropped future began has come to its end: until `count` is one of `allowed`.
pub(super) async fn settle(store: &Store, collection: &Collection, filter: &Filter, allowed: &[u64]) -> u64 {
    let mut last = 0;
    for _ in 0..200 {
        last = store.count(collection, filter).await.unwrap();
        if allowed.contains(&last) {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the count stays at {last}, which is none of {allowed:?}");
}

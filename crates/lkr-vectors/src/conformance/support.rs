//! Helpers shared by the cases.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use lkr_domain::{DocId, PointId, Scope, SparseVector};
use serde_json::json;

use crate::{
    Collection, CollectionSpec, DenseSpec, ErrorKind, Filter, Hit, Include, Point, PointOrigin, Query,
    QueryVector, Result, ScrollCursor, Tags, VectorStore,
};

/// The store under test.
pub(super) type Store = Arc<dyn VectorStore>;

/// The number of dimensions in most cases.
pub(super) const DIMS: usize = 4;

/// A random collection name.
pub(super) fn unique_name() -> Collection {
    Collection::new(format!("case-{}", DocId::new())).unwrap()
}

pub(super) fn spec(name: &Collection, dims: usize) -> CollectionSpec {
    let dense = DenseSpec { model: "conformance-model".to_owned(), dims };
    CollectionSpec { collection: name.clone(), dense: Some(dense) }
}

/// Creates a collection with dense vectors of [`DIMS`] dimensions.
pub(super) async fn create_collection(store: &Store) -> Collection {
    create_collection_with_dims(store, DIMS).await
}

pub(super) async fn create_collection_with_dims(store: &Store, dims: usize) -> Collection {
    let name = unique_name();
    store.ensure(&spec(&name, dims)).await.unwrap();
    name
}

/// The id of the point `n`; ids sort like their numbers.
pub(super) fn id(n: u32) -> PointId {
    PointId::from_bytes(u128::from(n).to_be_bytes())
}

/// The number of a point.
pub(super) fn point_number(id: PointId) -> u32 {
    u128::from_be_bytes(*id.as_bytes()) as u32
}

/// The id of the document `n`.
pub(super) fn doc(n: u32) -> DocId {
    DocId::from_bytes((u128::from(n) | 1 << 120).to_be_bytes())
}

/// A point without vectors and tags; its payload contains its number.
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
    Query { collection: collection.clone(), vector, scope: Scope::All, filter: filter.clone(), limit }
}

pub(super) async fn search(
    store: &Store,
    collection: &Collection,
    vector: QueryVector,
    filter: &Filter,
    limit: usize,
) -> Result<Vec<Hit>> {
    let mut results = store.query_batch(&[query(collection, vector, filter, limit)]).await?;
    assert_eq!(results.len(), 1, "one query must have one result");
    Ok(results.remove(0))
}

/// Runs a dense query without a filter, with a limit of 100.
pub(super) async fn search_dense(store: &Store, collection: &Collection, vector: &[f32]) -> Vec<Hit> {
    search(store, collection, QueryVector::Dense(unit(vector.to_vec())), &Filter::all(), 100).await.unwrap()
}

/// Runs a sparse query without a filter, with a limit of 1000.
pub(super) async fn search_sparse(store: &Store, collection: &Collection, terms: &[(u32, f32)]) -> Vec<Hit> {
    search(store, collection, QueryVector::Sparse(sparse(terms)), &Filter::all(), 1000).await.unwrap()
}

/// The numbers of the points of the hits, in order.
pub(super) fn point_numbers(hits: &[Hit]) -> Vec<u32> {
    hits.iter().map(|hit| point_number(hit.id)).collect()
}

/// `idf(t)` as the port defines it, for a term that occurs in `frequency` of `points` points.
pub(super) fn idf(points: u32, frequency: u32) -> f64 {
    let (points, frequency) = (f64::from(points), f64::from(frequency));
    (1.0 + (points - frequency + 0.5) / (frequency + 0.5)).ln()
}

#[track_caller]
pub(super) fn assert_score(hit: &Hit, expected: f64) {
    let difference = (f64::from(hit.score) - expected).abs();
    assert!(difference <= 1e-5 * expected.abs().max(1.0), "{hit:?}, expected {expected}");
}

/// How far a cosine, or a value of a vector of length 1, may be off in a store that keeps values in half precision: 2⁻¹¹, and
/// what single precision adds. With the four dimensions of most cases, cosines come near that; with hundreds, errors cancel out.
pub(super) const HALF_PRECISION: f32 = 5e-4;

#[track_caller]
pub(super) fn assert_cosine(hit: &Hit, expected: f64) {
    let difference = (f64::from(hit.score) - expected).abs();
    assert!(difference <= f64::from(HALF_PRECISION), "{hit:?}, expected {expected}");
}

#[track_caller]
pub(super) fn assert_vectors_close(left: &[f32], right: &[f32]) {
    assert_eq!(left.len(), right.len());
    let near = left.iter().zip(right).all(|(a, b)| (a - b).abs() <= HALF_PRECISION);
    assert!(near, "{left:?} differs from {right:?}");
}

/// Compares two points. Dense vectors may differ by the rounding of a store.
#[track_caller]
pub(super) fn assert_points_equal(left: &Point, right: &Point) {
    match (&left.dense, &right.dense) {
        (Some(a), Some(b)) => assert_vectors_close(a, b),
        (a, b) => assert_eq!(a, b, "dense vectors"),
    }
    let bare = |point: &Point| Point { dense: None, ..point.clone() };
    assert_eq!(bare(left), bare(right));
}

#[track_caller]
pub(super) fn assert_kind<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind) {
    match result {
        Ok(value) => panic!("expected the error {kind:?}, got {value:?}"),
        Err(error) => assert_eq!(error.kind(), kind, "{error}"),
    }
}

pub(super) async fn count(store: &Store, collection: &Collection) -> u64 {
    store.count(collection, &Filter::all()).await.unwrap()
}

/// Scrolls through all matching points in pages of `limit`, and returns their numbers in order.
pub(super) async fn scroll_all(
    store: &Store,
    collection: &Collection,
    filter: &Filter,
    limit: usize,
) -> Vec<u32> {
    let mut point_numbers = Vec::new();
    let mut after: Option<ScrollCursor> = None;
    loop {
        let page = store.scroll(collection, filter, after.as_ref(), limit, Include::Payload).await.unwrap();
        assert!(page.points.len() <= limit, "a page has more than {limit} points");
        point_numbers.extend(page.points.iter().map(|point| point_number(point.id)));
        match page.next {
            Some(next) => after = Some(next),
            None => return point_numbers,
        }
    }
}

/// Polls a future once and drops it; returns whether it was ready.
pub(super) fn poll_once(future: impl Future) -> bool {
    pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// Starts a future and drops it after `delay` unless it is ready earlier.
pub(super) async fn drop_after(delay: Duration, future: impl Future) {
    let _ready_or_elapsed = tokio::time::timeout(delay, future).await;
}

/// Waits until the work of a dropped future has ended, that is, until `count` is one of `allowed`.
pub(super) async fn wait_for_count(
    store: &Store,
    collection: &Collection,
    filter: &Filter,
    allowed: &[u64],
) -> u64 {
    let mut last = 0;
    for _ in 0..200 {
        last = store.count(collection, filter).await.unwrap();
        if allowed.contains(&last) {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the count stays at {last}; expected one of {allowed:?}");
}

//! Stores under test.

use std::{env, num::NonZeroU32, path::Path, sync::Arc, time::Duration};

use lkr_domain::{DocId, PointId, SparseVector};
use lkr_test_qdrant::{Loopback, RealCollections};
use lkr_vectors::{
    Collection, CollectionSpec, DenseSpec, MemoryVectors, Point, PointOrigin, Tags, VectorStore,
};
use lkr_vectors_qdrant::{QdrantOptions, QdrantVectors};

/// The address of a real server.
const URL: &str = "LKR_TEST_QDRANT_URL";

/// How many shards collections have on the real server, how many copies each shard has, and how many of these must have a write.
const NUMBERS: [&str; 3] =
    ["LKR_TEST_QDRANT_SHARDS", "LKR_TEST_QDRANT_REPLICAS", "LKR_TEST_QDRANT_WRITE_CONSISTENCY"];

/// What lives as long as a test.
#[derive(Debug)]
pub(crate) enum Guard {
    Loopback { _server: Loopback },
    Real { _collections: RealCollections },
    Nothing,
}

/// Options for tests: short times.
pub(crate) fn options(url: &str) -> QdrantOptions {
    let mut options = QdrantOptions::new(url);
    options.prefix = format!("test_{}_", DocId::new());
    options.write_retry_for = Duration::from_secs(10);
    options.probe_interval = Duration::from_millis(300);
    options
}

/// An empty store on a loopback server of its own.
pub(crate) async fn on_loopback() -> (QdrantVectors, Loopback) {
    let server = Loopback::start().await;
    let store = QdrantVectors::open(options(&server.url())).await.unwrap();
    (store, server)
}

/// The address of the real server; `None` without one, which is printed.
pub(crate) fn real_url() -> Option<String> {
    let url = env::var(URL).ok();
    if url.is_none() {
        lkr_test_support::note_skip(&format!("{URL} is not set"));
    }
    url
}

/// The options of an empty store on the real server.
pub(crate) fn real_options() -> Option<(QdrantOptions, Guard)> {
    let url = real_url()?;
    let mut options = options(&url);
    [options.shard_number, options.replication_factor, options.write_consistency_factor] =
        NUMBERS.map(number);
    let guard = Guard::Real { _collections: RealCollections::new(url, options.prefix.clone()) };
    Some((options, guard))
}

/// The number in a variable; 1 without it.
fn number(variable: &str) -> NonZeroU32 {
    env::var(variable).map_or(NonZeroU32::MIN, |number| number.parse().unwrap())
}

pub(crate) async fn loopback_store() -> (Arc<dyn VectorStore>, Guard) {
    let (store, server) = on_loopback().await;
    (Arc::new(store), Guard::Loopback { _server: server })
}

pub(crate) async fn loopback_copy(folder: &Path) -> (Arc<dyn VectorStore>, Guard) {
    let server = Loopback::start().await;
    let store = QdrantVectors::restore(options(&server.url()), folder).await.unwrap();
    (Arc::new(store), Guard::Loopback { _server: server })
}

/// Without a real server, a store in memory, so that the case passes.
pub(crate) async fn real_store() -> (Arc<dyn VectorStore>, Guard) {
    match real_options() {
        Some((options, guard)) => (Arc::new(QdrantVectors::open(options).await.unwrap()), guard),
        None => (Arc::new(MemoryVectors::new()), Guard::Nothing),
    }
}

pub(crate) async fn real_copy(folder: &Path) -> (Arc<dyn VectorStore>, Guard) {
    match real_options() {
        Some((options, guard)) => (Arc::new(QdrantVectors::restore(options, folder).await.unwrap()), guard),
        None => (Arc::new(MemoryVectors::open_snapshot(folder).unwrap()), Guard::Nothing),
    }
}

pub(crate) const DIMS: usize = 4;

pub(crate) fn collection(name: &str) -> Collection {
    Collection::new(name).unwrap()
}

pub(crate) fn spec(name: &Collection) -> CollectionSpec {
    let dense = DenseSpec { model: "model".to_owned(), dims: DIMS };
    CollectionSpec { collection: name.clone(), dense: Some(dense) }
}

/// Creates the collection `chunks`.
pub(crate) async fn create(store: &QdrantVectors) -> Collection {
    let name = collection("chunks");
    store.ensure(&spec(&name)).await.unwrap();
    name
}

pub(crate) fn id(n: u32) -> PointId {
    PointId::from_bytes(u128::from(n).to_be_bytes())
}

/// A point of document `n / 10`.
pub(crate) fn point(n: u32) -> Point {
    let doc_id = DocId::from_bytes(u128::from(n / 10).to_be_bytes());
    Point {
        id: id(n),
        origin: PointOrigin { doc_id, revision: 1, ordinal: n, l2: None, l3: None },
        tags: Tags::new(),
        dense: Some(vec![0.6, 0.8, 0.0, 0.0]),
        sparse: SparseVector::from_pairs([(1, 1.0), (2 + n, 0.5)]),
        payload: serde_json::json!({ "n": n }),
    }
}

pub(crate) fn points(numbers: std::ops::Range<u32>) -> Vec<Point> {
    numbers.map(point).collect()
}

//! Shared helpers of the tests.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "each test uses a part of it"
)]

use std::{path::Path, time::Duration};

use half::f16;
use heed::{CommitOrAbort, Database, EnvOpenOptions, RwTxn, types::Bytes};
use lkr_domain::{DocId, PointId, Scope, SparseVector};
use lkr_store_lmdb::{LmdbOptions, LmdbStore, LmdbVectors};
use lkr_vectors::{
    Collection, CollectionSpec, DenseSpec, Filter, Hit, Point, PointOrigin, Query, QueryVector, Tags,
    VectorStore,
};
use rand::{RngExt, rngs::StdRng};

pub const DIMS: usize = 24;
/// The number of vectors in a batch of clusters under [`options`].
pub const BATCH: u32 = 64;

/// Options that build clusters from 100 points on, search by them whenever they exist, and give free space back early.
pub fn options() -> LmdbOptions {
    let mut options = LmdbOptions::default();
    options.codes_below = 100;
    options.linear_below = 100;
    options.probe = 8;
    options.cluster_batch = BATCH;
    options.spare_bytes = 0;
    options
}

/// Options that scan every vector.
pub fn exact() -> LmdbOptions {
    let mut options = LmdbOptions::default();
    options.codes_below = u64::MAX;
    options
}

pub fn open(folder: &Path) -> LmdbStore {
    // The first test of a process installs the subscriber; later calls fail and change nothing.
    let _ = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_writer(std::io::stderr)
        .try_init();
    LmdbStore::open(folder, options()).unwrap()
}

pub fn name(text: &str) -> Collection {
    Collection::new(text).unwrap()
}

pub fn spec(collection: &Collection) -> CollectionSpec {
    let dense = Some(DenseSpec { model: "model".to_owned(), dims: DIMS });
    CollectionSpec { collection: collection.clone(), dense }
}

pub fn id(n: u32) -> PointId {
    PointId::from_bytes(u128::from(n).to_be_bytes())
}

pub fn number(id: PointId) -> u32 {
    u128::from_be_bytes(*id.as_bytes()) as u32
}

pub fn doc(n: u32) -> DocId {
    DocId::from_bytes((u128::from(n) | 1 << 100).to_be_bytes())
}

/// A vector near one of forty centres, as embeddings lie near their subjects. Its values have half precision, so that it comes
/// back from a store as it was.
pub fn vector(rng: &mut StdRng) -> Vec<f32> {
    let centre = rng.random_range(0..40_u32);
    let along = |axis: usize| ((centre as usize * 31 + axis * 17) % 23) as f32 / 11.0 - 1.0;
    let values: Vec<f32> = (0..DIMS).map(|axis| along(axis) + rng.random_range(-0.5..0.5)).collect();
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
    values.into_iter().map(|value| f16::from_f32(value / length).to_f32()).collect()
}

/// Terms with the distribution of words: a few are frequent, most are rare.
pub fn terms(rng: &mut StdRng, count: usize) -> SparseVector {
    let term = |rng: &mut StdRng| (400.0 * rng.random::<f64>().powi(4)) as u32;
    SparseVector::from_pairs((0..count).map(|_| (term(rng), rng.random_range(0.1..2.5))))
}

/// A point with both vectors, tags and a payload. Ten points form a document.
pub fn point(n: u32, rng: &mut StdRng) -> Point {
    Point {
        id: id(n),
        origin: PointOrigin { doc_id: doc(n / 10), revision: 1, ordinal: n, l2: Some(id(n / 5)), l3: None },
        tags: Tags::from([
            ("fifth".to_owned(), (n % 5).to_string()),
            ("hundredth".to_owned(), (n % 100).to_string()),
        ]),
        dense: Some(vector(rng)),
        sparse: terms(rng, 12),
        payload: serde_json::json!({ "n": n, "text": "some words ".repeat(rng.random_range(0..30)) }),
    }
}

pub async fn search(
    store: &dyn VectorStore,
    name: &Collection,
    vector: QueryVector,
    filter: &Filter,
    limit: usize,
) -> Vec<Hit> {
    let query = Query { collection: name.clone(), vector, scope: Scope::All, filter: filter.clone(), limit };
    store.query_batch(&[query]).await.unwrap().remove(0)
}

/// Waits until at most a batch of the points, or one in a hundred, is missing from the clusters.
pub async fn built(vectors: &LmdbVectors, name: &Collection) {
    let most = vectors.count(name, &Filter::all()).await.unwrap() / 100;
    for _ in 0..3_000 {
        if vectors.cluster_lag(name).await.unwrap() < most.max(BATCH.into()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the clusters are not built within a minute");
}

/// Writes to a table of a closed store without the store.
pub fn write_rows(folder: &Path, table: &str, write: impl FnOnce(Database<Bytes, Bytes>, &mut RwTxn)) {
    let mut options = EnvOpenOptions::new();
    options.map_size(1 << 30).max_dbs(20);
    #[expect(unsafe_code, reason = "a memory map is only as sound as its file")]
    // SAFETY: the store is closed, and no other process has opened the file.
    let env = unsafe { options.open(folder.join("kb")) }.unwrap();
    let txn = env.write_txn().unwrap();
    let opened = env.create_databases_and_commit(txn, |opener, txn| {
        opener.create_database::<Bytes, Bytes>(txn, Some(table)).map(CommitOrAbort::<_, ()>::Commit)
    });
    let mut txn = env.write_txn().unwrap();
    write(opened.unwrap().unwrap_commit(), &mut txn);
    txn.commit().unwrap();
    env.prepare_for_closing().wait();
}

//! Points in the embedded store.

use std::hint::black_box;

use criterion::{BatchSize, Criterion};
use lkr_domain::{DocId, PointId, Scope};
use lkr_models::{EmbedKind, Embedder, MemoryEmbedder, SparseEncoder, calibration_passages};
use lkr_store_lmdb::{LmdbOptions, LmdbStore, LmdbVectors};
use lkr_text::Language;
use lkr_vectors::{
    Collection, CollectionSpec, DenseSpec, Filter, Point, PointOrigin, Query, QueryVector, Tags, VectorStore,
};
use tokio::runtime::Runtime;

use crate::cpu_time::CpuTime;

/// As those of all-MiniLM-L6-v2.
const DIMS: usize = 384;
/// The number of points that queries look at.
const POINTS: u32 = 10_000;
/// The number of points that are written at once, as those of a document.
const BATCH: u32 = 32;
/// The hits of a query, as in a search.
const LIMIT: usize = 100;

/// The points of `numbers`. Their texts are pairs of passages, so no two have equal vectors.
async fn points(numbers: std::ops::Range<u32>) -> Vec<Point> {
    let passages: Vec<&str> = calibration_passages().collect();
    let embedder = MemoryEmbedder::with_dims(DIMS);
    let mut points = Vec::new();
    for number in numbers {
        let (first, second) = (number as usize % passages.len(), number as usize / passages.len());
        let text = format!("{} {}", passages[first], passages[(first + second + 1) % passages.len()]);
        let dense = embedder.embed(EmbedKind::Passage, std::slice::from_ref(&text)).await.unwrap().pop();
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        points.push(Point {
            id: PointId::from_bytes(id),
            origin: PointOrigin {
                doc_id: DocId::from_bytes([1; 16]),
                revision: 1,
                ordinal: number,
                l2: None,
                l3: None,
            },
            tags: Tags::from([("of".to_owned(), (number % 100).to_string())]),
            dense,
            sparse: SparseEncoder::default().passage(&text, Some(Language::ENGLISH), 150.0),
            payload: text.into(),
        });
    }
    points
}

async fn filled(vectors: &LmdbVectors) -> Collection {
    let collection = Collection::new("hot").unwrap();
    let dense = Some(DenseSpec { model: "memory".to_owned(), dims: DIMS });
    vectors.ensure(&CollectionSpec { collection: collection.clone(), dense }).await.unwrap();
    for from in (0..POINTS).step_by(500) {
        vectors.upsert(&collection, points(from..from + 500).await).await.unwrap();
    }
    collection
}

pub(crate) fn benches(criterion: &mut Criterion<CpuTime>) {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let vectors = LmdbStore::open(folder.path(), LmdbOptions::default()).unwrap().vectors();
    let collection = runtime.block_on(filled(&vectors));
    let query = |vector| Query {
        collection: collection.clone(),
        vector,
        filter: Filter::default(),
        scope: Scope::All,
        limit: LIMIT,
    };
    let text = "how does water reach the city and who works there";
    let dense = runtime.block_on(MemoryEmbedder::with_dims(DIMS).embed(EmbedKind::Query, &[text.to_owned()]));
    let dense = query(QueryVector::Dense(dense.unwrap().remove(0)));
    let sparse = query(QueryVector::Sparse(SparseEncoder::default().query(text)));

    let mut group = criterion.benchmark_group("store");
    for (name, query) in [("dense query", dense), ("sparse query", sparse)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                black_box(runtime.block_on(vectors.query_batch(std::slice::from_ref(&query))).unwrap())
            });
        });
    }
    let mut next = POINTS;
    group.bench_function("write of 32 points", |bencher| {
        let prepare = || {
            next += BATCH;
            runtime.block_on(points(next - BATCH..next))
        };
        bencher.iter_batched(
            prepare,
            |points| runtime.block_on(vectors.upsert(&collection, points)).unwrap(),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

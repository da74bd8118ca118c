//! What several shards cost: the scores of sparse queries with one shard and with three, and the time of a query in all
//! spaces and in one of ten, also without the second request for exact sums.
//!
//! `cargo run -p lkr-vectors-qdrant --example shards -- URL [POINTS] [QUERIES]`
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a measurement"
)]

use std::{
    env,
    num::NonZeroU32,
    time::{Duration, Instant},
};

use lkr_domain::{DocId, PointId, Scope, SpaceName, SparseVector};
use lkr_vectors::{
    Collection, CollectionSpec, Filter, Hit, Point, PointOrigin, Query, QueryVector, SPACE_TAG, Tags,
    VectorStore,
};
use lkr_vectors_qdrant::{QdrantOptions, QdrantVectors};

const BATCH: usize = 1_000;
const LIMIT: usize = 100;
const SHARDS: [u32; 2] = [1, 3];

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A term of a vocabulary of 50,000 whose frequencies fall with the rank, as words do.
    fn term(&mut self) -> u32 {
        50_000_f64.powf(self.unit()) as u32
    }
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |at: usize, default| arguments.get(at).map_or(default, |text| text.parse().unwrap());
    let url = arguments.first().expect("the address of a Qdrant server");
    let (points, queries) = (number(1, 20_000), number(2, 200));
    let mut rng = Rng(1);
    let points: Vec<Point> = (0..points).map(|n| point(n as u32, &mut rng)).collect();
    let queries: Vec<SparseVector> = (0..queries).map(|_| query(&mut rng)).collect();
    let mut results = Vec::new();
    for shards in SHARDS {
        results.push(measure(url, shards, &points, &queries).await);
    }
    compare(&results[0], &results[1]);
}

fn point(n: u32, rng: &mut Rng) -> Point {
    let terms: Vec<(u32, f32)> = (0..100).map(|_| (rng.term(), 0.5 + rng.unit() as f32)).collect();
    Point {
        id: PointId::from_bytes(u128::from(n).to_be_bytes()),
        origin: PointOrigin {
            doc_id: DocId::from_bytes(u128::from(n / 10).to_be_bytes()),
            revision: 1,
            ordinal: n,
            l2: None,
            l3: None,
        },
        tags: Tags::from([(SPACE_TAG.to_owned(), format!("space-{}", n / 10 % 10))]),
        dense: None,
        sparse: SparseVector::from_pairs(terms),
        payload: serde_json::Value::Null,
    }
}

/// Five words, none of the most frequent ones.
fn query(rng: &mut Rng) -> SparseVector {
    SparseVector::from_pairs((0..5).map(|_| (rng.term().max(30), 1.0)))
}

async fn measure(url: &str, shards: u32, points: &[Point], queries: &[SparseVector]) -> Vec<Vec<Hit>> {
    let mut options = QdrantOptions::new(url);
    options.prefix = format!("shards_{shards}_");
    options.shard_number = NonZeroU32::new(shards).unwrap();
    let store = QdrantVectors::open(options.clone()).await.unwrap();
    options.exact_sums = false;
    let inexact = QdrantVectors::open(options).await.unwrap();
    let collection = Collection::new("chunks").unwrap();
    store.drop_collection(&collection).await.unwrap();
    store.ensure(&CollectionSpec { collection: collection.clone(), dense: None }).await.unwrap();
    let start = Instant::now();
    for batch in points.chunks(BATCH) {
        store.upsert(&collection, batch.to_vec()).await.unwrap();
    }
    println!("{shards} shards: {} points stored in {:.1} s", points.len(), start.elapsed().as_secs_f64());
    let mut results = Vec::new();
    let one_space = Scope::of(SpaceName::new("space-3").unwrap());
    for (name, store, scope) in [
        ("all spaces", &store, Scope::All),
        ("one space", &store, one_space.clone()),
        ("all spaces, sums of Qdrant", &inexact, Scope::All),
        ("one space, sums of Qdrant", &inexact, one_space),
    ] {
        let mut times = Vec::new();
        for vector in queries {
            let vector = QueryVector::Sparse(vector.clone());
            let query = Query {
                collection: collection.clone(),
                vector,
                scope: scope.clone(),
                filter: Filter::all(),
                limit: LIMIT,
            };
            let start = Instant::now();
            let hits = store.query_batch(&[query]).await.unwrap().remove(0);
            times.push(start.elapsed());
            results.push(hits);
        }
        times.sort_unstable();
        let at = |part: usize| {
            times.get(times.len() * part / 100).copied().unwrap_or(Duration::ZERO).as_secs_f64() * 1e3
        };
        println!("  {name}: median {:.1} ms, 95th percentile {:.1} ms", at(50), at(95));
    }
    store.drop_collection(&collection).await.unwrap();
    results
}

fn compare(one: &[Vec<Hit>], three: &[Vec<Hit>]) {
    let queries = one.len() / 4;
    for (name, range) in [("all spaces", 0..queries), ("one space", queries..2 * queries)] {
        let (mut differences, mut common, mut total) = (Vec::new(), 0, 0);
        for (one, three) in one[range.clone()].iter().zip(&three[range]) {
            let top = |hits: &[Hit]| hits.iter().take(10).map(|hit| hit.id).collect::<Vec<_>>();
            let (best, other) = (top(one), top(three));
            common += best.iter().filter(|id| other.contains(id)).count();
            total += best.len();
            let pairs = one
                .iter()
                .filter_map(|hit| Some((hit.score, three.iter().find(|other| other.id == hit.id)?.score)));
            differences.extend(pairs.map(|(a, b)| f64::from((a - b).abs() / a)));
        }
        differences.sort_unstable_by(f64::total_cmp);
        let at = |part: usize| {
            differences
                .get((differences.len() * part / 100).min(differences.len().saturating_sub(1)))
                .copied()
                .unwrap_or(0.0)
                * 100.0
        };
        println!(
            "{name}: relative difference of a point's two scores: median {:.2} %, 95th percentile {:.2} %, largest {:.2} %; \
             {common} of {total} of the ten best points are equal",
            at(50),
            at(95),
            at(100)
        );
    }
}

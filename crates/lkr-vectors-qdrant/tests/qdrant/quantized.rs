//! Searches in quantised collections on a real server.

use lkr_domain::Scope;
use lkr_vectors::{CollectionSpec, DenseSpec, Filter, Point, Query, QueryVector, VectorStore};
use lkr_vectors_qdrant::{QdrantVectors, Quantization};

use crate::support::{collection, id, point, real_options};

const DIMS: usize = 64;
const POINTS: u32 = 900;

/// A vector of length 1 that depends on `n`.
fn vector(n: u32) -> Vec<f32> {
    let raw: Vec<f32> = (1..=DIMS as u32).map(|k| ((n * 31 + 7) as f32 * (k as f32).sqrt()).sin()).collect();
    let length = raw.iter().map(|x| x * x).sum::<f32>().sqrt();
    raw.into_iter().map(|x| x / length).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quantized_searches_below_a_thousand_points_are_exact() {
    for quantization in [Quantization::ScalarInt8, Quantization::Binary] {
        let Some((mut options, _guard)) = real_options() else { return };
        options.quantization = quantization;
        let store = QdrantVectors::open(options).await.unwrap();
        let name = collection("chunks");
        let dense = DenseSpec { model: "model".to_owned(), dims: DIMS };
        store.ensure(&CollectionSpec { collection: name.clone(), dense: Some(dense) }).await.unwrap();
        let points = (0..POINTS).map(|n| Point { dense: Some(vector(n)), ..point(n) });
        store.upsert(&name, points.collect()).await.unwrap();
        for n in 0..20 {
            let wanted = vector(10_000 + n);
            let cosine = |n: u32| vector(n).iter().zip(&wanted).map(|(a, b)| a * b).sum::<f32>();
            let mut expected: Vec<(f32, u32)> = (0..POINTS).map(|n| (cosine(n), n)).collect();
            expected.sort_by(|a, b| b.0.total_cmp(&a.0));
            let query = Query {
                collection: name.clone(),
                vector: QueryVector::Dense(wanted.clone()),
                scope: Scope::All,
                filter: Filter::all(),
                limit: 10,
            };
            let hits = store.query_batch(&[query]).await.unwrap().remove(0);
            assert_eq!(hits.len(), 10);
            for (hit, (score, n)) in hits.iter().zip(&expected) {
                assert!(
                    (hit.score - score).abs() < 1e-5,
                    "{quantization:?}: {hit:?}, expected {score} of {:?}",
                    id(*n)
                );
            }
        }
    }
}

//! Sparse, filtered and small dense answers equal those of the exact reference, whatever was replaced and deleted.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

#[path = "support/common.rs"]
mod common;

use common::{doc, id, name, open, point, search, spec, terms, vector};
use lkr_vectors::{Condition, Filter, Include, MemoryVectors, Point, QueryVector, Tags, VectorStore};
use rand::{RngExt, SeedableRng, rngs::StdRng};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_equal_the_reference() {
    for seed in 0..4 {
        compare(seed, u64::MAX).await;
        // Quantised until there are more points, then all vectors are read.
        compare(seed, 700).await;
    }
}

async fn compare(seed: u64, codes_below: u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = common::options();
    options.codes_below = codes_below;
    options.linear_below = u64::MAX;
    let store = lkr_store_lmdb::LmdbStore::open(folder.path(), options).unwrap().vectors();
    let (reference, name, mut rng) = (MemoryVectors::new(), name("points"), StdRng::seed_from_u64(seed));
    store.ensure(&spec(&name)).await.unwrap();
    reference.ensure(&spec(&name)).await.unwrap();
    for round in 0..6 {
        let batch: Vec<Point> = (0..500)
            .map(|_| {
                let n = rng.random_range(0..2_500);
                point(n, &mut rng)
            })
            .collect();
        store.upsert(&name, batch.clone()).await.unwrap();
        reference.upsert(&name, batch).await.unwrap();
        let gone = random_filter(&mut rng);
        assert_eq!(store.delete(&name, &gone).await.unwrap(), reference.delete(&name, &gone).await.unwrap());
        let (tagged, tags) = (random_filter(&mut rng), Tags::from([("fifth".to_owned(), round.to_string())]));
        let changed = store.set_tags(&name, &tagged, &tags).await.unwrap();
        assert_eq!(changed, reference.set_tags(&name, &tagged, &tags).await.unwrap());
        for _ in 0..30 {
            let filter = if rng.random_bool(0.3) { Filter::all() } else { random_filter(&mut rng) };
            let limit = [1, 10, 100, 5_000][rng.random_range(0..4)];
            let sparse = QueryVector::Sparse(terms(&mut rng, 15));
            let dense = QueryVector::Dense(vector(&mut rng));
            for vector in [sparse, dense] {
                let found = search(&store, &name, vector.clone(), &filter, limit).await;
                let expected = search(&reference, &name, vector, &filter, limit).await;
                assert_eq!(found.len(), expected.len(), "{filter:?}");
                for (found, expected) in found.iter().zip(&expected) {
                    assert_eq!((found.id, found.origin), (expected.id, expected.origin), "{filter:?}");
                    assert!((found.score - expected.score).abs() <= 1e-5, "{found:?} {expected:?}");
                }
            }
            assert_eq!(
                store.count(&name, &filter).await.unwrap(),
                reference.count(&name, &filter).await.unwrap()
            );
            let page = store.scroll(&name, &filter, None, 50, Include::All).await.unwrap();
            assert_eq!(page, reference.scroll(&name, &filter, None, 50, Include::All).await.unwrap());
        }
    }
}

fn random_filter(rng: &mut StdRng) -> Filter {
    let tag = |key: &str, any: Vec<u32>| Condition::Tag {
        key: key.to_owned(),
        any: any.into_iter().map(|n| n.to_string()).collect(),
    };
    let mut condition = || match rng.random_range(0..5) {
        0 => Condition::Ids((0..100).map(|_| id(rng.random_range(0..2_500))).collect()),
        1 => Condition::Docs((0..9).map(|_| doc(rng.random_range(0..250))).collect()),
        2 => Condition::Revision(doc(rng.random_range(0..250)), rng.random_range(1..3)),
        3 => tag("fifth", vec![rng.random_range(0..6)]),
        _ => tag("hundredth", (0..3).map(|_| rng.random_range(0..100)).collect()),
    };
    let filter = Filter::only(condition());
    match rng_of(&filter) % 3 {
        0 => filter,
        1 => filter.and_not(condition()),
        _ => Filter::only(Condition::Tag {
            key: "fifth".to_owned(),
            any: vec!["1".to_owned(), "2".to_owned()],
        })
        .and_not(condition()),
    }
}

/// A number that is a function of the filter.
fn rng_of(filter: &Filter) -> usize {
    format!("{filter:?}").bytes().map(usize::from).sum()
}

#[tokio::test]
async fn store_closes_with_its_last_handle() {
    let folder = tempfile::tempdir().unwrap();
    let vectors = open(folder.path()).vectors();
    vectors.health().await.unwrap();
    drop(vectors);
    open(folder.path()).vectors().health().await.unwrap();
}

use std::{collections::BTreeMap, sync::Arc};

use lkr_domain::{PointId, Scope, SpaceName};

use super::{rng::Rng, support::*};
use crate::{
    Collection, Condition, Filter, Hit, Include, MemoryVectors, Point, Query, QueryVector, SPACE_TAG,
};

pub(super) const IDS: u64 = 80;
pub(super) const DOCS: u64 = 8;
pub(super) const TERMS: u64 = 25;
const SPACES: [&str; 3] = ["red", "green", "blue"];

/// Seeded random sequences of writes and reads: every result equals that of [`MemoryVectors`].
pub async fn random_operations_match_the_reference(store: Store) {
    for seed in 1..=6 {
        let reference: Store = Arc::new(MemoryVectors::new());
        let name = create_collection(&store).await;
        reference.ensure(&spec(&name, DIMS)).await.unwrap();
        let mut rng = Rng::new(seed);
        for step in 0..60 {
            let context = format!("seed {seed}, step {step}");
            apply_random_change(&store, &reference, &name, &mut rng, &context).await;
            compare_random_reads(&store, &reference, &name, &mut rng, &context).await;
        }
        store.drop_collection(&name).await.unwrap();
    }
}

async fn apply_random_change(
    store: &Store,
    reference: &Store,
    name: &Collection,
    rng: &mut Rng,
    context: &str,
) {
    match rng.below(10) {
        0..6 => {
            let points: Vec<Point> = (0..rng.below(15)).map(|_| random_point(rng)).collect();
            reference.upsert(name, points.clone()).await.unwrap();
            store.upsert(name, points).await.unwrap();
        }
        6..8 => {
            let filter = random_filter(rng).and(Condition::Docs(vec![doc(rng.below(DOCS) as u32)]));
            let expected = reference.delete(name, &filter).await.unwrap();
            assert_eq!(store.delete(name, &filter).await.unwrap(), expected, "{context}: {filter:?}");
        }
        _ => {
            let (filter, new) = (random_filter(rng), random_tags(rng));
            let expected = reference.set_tags(name, &filter, &new).await.unwrap();
            assert_eq!(store.set_tags(name, &filter, &new).await.unwrap(), expected, "{context}: {filter:?}");
        }
    }
}

async fn compare_random_reads(
    store: &Store,
    reference: &Store,
    name: &Collection,
    rng: &mut Rng,
    context: &str,
) {
    let filter = random_filter(rng);
    let expected = reference.count(name, &filter).await.unwrap();
    assert_eq!(store.count(name, &filter).await.unwrap(), expected, "{context}: {filter:?}");
    let mut expected = scroll_all(reference, name, &filter, 50).await;
    let mut actual = scroll_all(store, name, &filter, 1 + rng.below(20) as usize).await;
    expected.sort_unstable();
    actual.sort_unstable();
    assert_eq!(actual, expected, "{context}: {filter:?}");

    let ids: Vec<PointId> = (0..5).map(|_| id(rng.below(IDS) as u32)).collect();
    let expected = reference.get(name, &ids, Include::All).await.unwrap();
    let actual = store.get(name, &ids, Include::All).await.unwrap();
    assert_eq!(actual.len(), expected.len(), "{context}");
    for pair in actual.iter().zip(&expected) {
        match pair {
            (Some(actual), Some(expected)) => assert_points_equal(actual, expected),
            (actual, expected) => assert_eq!(actual, expected, "{context}"),
        }
    }
    let mut batch = Vec::new();
    for limit in [3, 200] {
        batch.push(query(name, QueryVector::Dense(rng.dense(DIMS)), &filter, limit));
        batch.push(query(name, QueryVector::Sparse(rng.sparse(6, TERMS)), &filter, limit));
        batch.push(query(name, QueryVector::Sparse(rng.sparse(2, TERMS)), &Filter::all(), limit));
        for vector in [QueryVector::Dense(rng.dense(DIMS)), QueryVector::Sparse(rng.sparse(6, TERMS))] {
            batch.push(Query { scope: random_scope(rng), ..query(name, vector, &filter, limit) });
        }
    }
    let expected = reference.query_batch(&batch).await.unwrap();
    let results = store.query_batch(&batch).await.unwrap();
    assert_eq!(results.len(), expected.len(), "{context}");
    for ((actual, expected), query) in results.iter().zip(&expected).zip(&batch) {
        assert_hits_equal(actual, expected, query, &format!("{context}: {query:?}"));
    }
}

/// Scores must be equal at every position. Points must be equal where rounding cannot change the order.
fn assert_hits_equal(actual: &[Hit], expected: &[Hit], query: &Query, context: &str) {
    let rounding = match query.vector {
        QueryVector::Dense(_) => HALF_PRECISION,
        QueryVector::Sparse(_) => 1e-4,
    };
    assert_eq!(actual.len(), expected.len(), "{context}");
    let ordered = |a: &Hit, b: &Hit| a.score > b.score || (a.score == b.score && a.id < b.id);
    assert!(actual.is_sorted_by(ordered), "{context}: {actual:?}");
    for (a, b) in actual.iter().zip(expected) {
        assert!((a.score - b.score).abs() <= rounding, "{context}: {a:?}, expected {b:?}");
    }
    if expected.len() < query.limit {
        let origins = |hits: &[Hit]| hits.iter().map(|hit| (hit.id, hit.origin)).collect::<BTreeMap<_, _>>();
        assert_eq!(origins(actual), origins(expected), "{context}");
    }
    let scores: BTreeMap<PointId, f32> = expected.iter().map(|hit| (hit.id, hit.score)).collect();
    let lowest = expected.last().map_or(0.0, |hit| hit.score);
    for hit in actual.iter().filter(|hit| hit.score > lowest + rounding) {
        let score = scores.get(&hit.id).copied();
        assert!(
            score.is_some_and(|score| (score - hit.score).abs() <= rounding),
            "{context}: {hit:?}, {score:?}"
        );
    }
}

pub(super) fn random_point(rng: &mut Rng) -> Point {
    let n = rng.below(IDS) as u32;
    let mut point = point(n);
    point.origin.doc_id = doc(n % DOCS as u32);
    point.origin.revision = rng.below(3);
    point.tags = random_tags(rng);
    point.dense = (rng.below(8) > 0).then(|| rng.dense(DIMS));
    let terms = rng.below(8);
    point.sparse = rng.sparse(terms, TERMS);
    point.payload = serde_json::json!({ "x": rng.below(1000) });
    point
}

pub(super) fn random_tags(rng: &mut Rng) -> crate::Tags {
    let mut tags = crate::Tags::new();
    if rng.below(8) > 0 {
        tags.insert(SPACE_TAG.to_owned(), SPACES[rng.below(3) as usize].to_owned());
    }
    for key in ["a", "b", "c"] {
        if rng.below(3) > 0 {
            tags.insert(key.to_owned(), rng.below(3).to_string());
        }
    }
    tags
}

fn random_scope(rng: &mut Rng) -> Scope {
    let chosen = SPACES.into_iter().chain(["unknown"]).filter(|_| rng.below(2) == 0);
    chosen.map(|name| SpaceName::new(name).unwrap()).collect()
}

pub(super) fn random_filter(rng: &mut Rng) -> Filter {
    let mut filter = Filter::all();
    for _ in 0..rng.below(3) {
        filter = filter.and(random_condition(rng));
    }
    if rng.below(3) == 0 {
        filter = filter.and_not(random_condition(rng));
    }
    filter
}

fn random_condition(rng: &mut Rng) -> Condition {
    match rng.below(6) {
        0 => Condition::Ids((0..rng.below(60)).map(|_| id(rng.below(IDS) as u32)).collect()),
        1 => Condition::Docs((0..rng.below(6)).map(|_| doc(rng.below(DOCS) as u32)).collect()),
        2 => Condition::Revision(doc(rng.below(DOCS) as u32), rng.below(3)),
        _ => Condition::Tag {
            key: ["a", "b", "c", "d"][rng.below(4) as usize].to_owned(),
            any: (0..rng.below(3)).map(|_| rng.below(4).to_string()).collect(),
        },
    }
}

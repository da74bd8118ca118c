use super::rng::Rng;
use super::support::*;
use crate::{Condition, Filter, Include, Point, QueryVector};

const POINTS: u32 = 5_000;
const DIMS_AT_SCALE: usize = 16;

/// The points of one batch are stored, found, counted and scrolled through, and half of them are deleted.
pub async fn upsert_of_five_thousand_points_is_stored_completely(store: Store) {
    let name = create_collection_with_dims(&store, DIMS_AT_SCALE).await;
    let mut rng = Rng::new(5);
    let points: Vec<Point> = (0..POINTS)
        .map(|n| Point {
            tags: tags(&[("parity", if n % 2 == 0 { "even" } else { "odd" })]),
            dense: Some(rng.dense(DIMS_AT_SCALE)),
            sparse: sparse(&[(1, 1.0 + n as f32 / POINTS as f32), (10 + n % 7, 1.0)]),
            ..point(n)
        })
        .collect();
    store.upsert(&name, points.clone()).await.unwrap();
    assert_eq!(count(&store, &name).await, u64::from(POINTS));
    assert_eq!(scroll_all(&store, &name, &Filter::all(), 999).await.len(), POINTS as usize);
    let hits = search_sparse(&store, &name, &[(1, 1.0)]).await;
    assert_eq!(point_numbers(&hits), (POINTS - 1000..POINTS).rev().collect::<Vec<_>>());
    assert_score(&hits[0], idf(POINTS, POINTS) * (1.0 + 4999.0 / 5000.0));
    let found = store.get(&name, &[id(4321)], Include::All).await.unwrap();
    assert_points_equal(found[0].as_ref().unwrap(), &points[4321]);
    assert_points_find_themselves(&store, &name, &points).await;

    let odd = Condition::Tag { key: "parity".to_owned(), any: vec!["odd".to_owned()] };
    assert_eq!(store.delete(&name, &Filter::only(odd)).await.unwrap(), u64::from(POINTS / 2));
    assert_eq!(count(&store, &name).await, u64::from(POINTS / 2));
    let hits = search_sparse(&store, &name, &[(1, 1.0)]).await;
    assert!(hits.iter().all(|hit| point_number(hit.id).is_multiple_of(2)));
    assert_score(&hits[0], idf(POINTS / 2, POINTS / 2) * (1.0 + 4998.0 / 5000.0));
    assert_points_find_themselves(&store, &name, &points).await;
}

/// Searches for the vectors of 25 even points. An approximate store may miss up to two of them.
async fn assert_points_find_themselves(store: &Store, name: &crate::Collection, points: &[Point]) {
    let targets: Vec<&Point> = points.iter().step_by(200).collect();
    let batch: Vec<_> = targets
        .iter()
        .map(|point| query(name, QueryVector::Dense(point.dense.clone().unwrap()), &Filter::all(), 10))
        .collect();
    let results = store.query_batch(&batch).await.unwrap();
    let found = targets.iter().zip(&results).filter(|(point, hits)| hits[0].id == point.id).count();
    assert!(
        found + 2 >= targets.len(),
        "only {found} of {} points are the first hit of their own vector",
        targets.len()
    );
    assert!(results.iter().all(|hits| hits.len() == 10), "each query must return as many hits as its limit");
}

/// Filters and `get` accept thousands of ids, documents and tag values, most of which do not exist.
pub async fn filters_and_gets_accept_thousands_of_ids(store: Store) {
    let name = create_collection(&store).await;
    store.upsert(&name, (0..500).map(|n| with_sparse(n * 10, &[(1, 1.0)])).collect()).await.unwrap();
    let ids: Vec<_> = (0..5_000).map(|n| id(n * 2)).collect();
    let docs: Vec<_> = (0..5_000).map(|n| doc(n * 2)).collect();
    let by_ids = Filter::only(Condition::Ids(ids.clone()));
    let by_docs = Filter::only(Condition::Docs(docs));
    let values: Vec<_> = (0..5_000).map(|n| n.to_string()).collect();
    let by_tags = Filter::all().and_not(Condition::Tag { key: "none".to_owned(), any: values });
    for (filter, expected) in [(&by_ids, 500), (&by_docs, 250), (&by_tags, 500)] {
        assert_eq!(store.count(&name, filter).await.unwrap(), expected);
        let vector = QueryVector::Sparse(sparse(&[(1, 1.0)]));
        let hits = search(&store, &name, vector, filter, 1000).await.unwrap();
        assert_eq!(hits.len() as u64, expected);
    }
    let found = store.get(&name, &ids, Include::Payload).await.unwrap();
    assert_eq!(found.len(), 5_000);
    assert_eq!(found.iter().flatten().count(), 500);
    let first = Filter::only(Condition::Docs(vec![doc(0), doc(4)]));
    let one = query(&name, QueryVector::Sparse(sparse(&[(1, 1.0)])), &first, 3);
    let results = store.query_batch(&vec![one; 300]).await.unwrap();
    assert_eq!(results.len(), 300);
    results.iter().for_each(|hits| assert_eq!(point_numbers(hits), [0, 40]));
}

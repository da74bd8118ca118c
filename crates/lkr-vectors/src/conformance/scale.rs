use super::rng::Rng;
use super::support::*;
use crate::{Condition, Filter, Include, Point, QueryVector};

const POINTS: u32 = 5_000;
const WIDE: usize = 16;

/// Five thousand points in one call are stored, found, counted, scrolled through, and half of them deleted.
pub async fn a_large_batch_is_taken_at_once(store: Store) {
    let name = made_with(&store, WIDE).await;
    let mut rng = Rng::new(5);
    let points: Vec<Point> = (0..POINTS)
        .map(|n| Point {
            tags: tags(&[("parity", if n % 2 == 0 { "even" } else { "odd" })]),
            dense: Some(rng.dense(WIDE)),
            sparse: sparse(&[(1, 1.0 + n as f32 / POINTS as f32), (10 + n % 7, 1.0)]),
            ..point(n)
        })
        .collect();
    store.upsert(&name, points.clone()).await.unwrap();
    assert_eq!(count(&store, &name).await, u64::from(POINTS));
    assert_eq!(scrolled(&store, &name, &Filter::all(), 999).await.len(), POINTS as usize);
    let hits = ask_sparse(&store, &name, &[(1, 1.0)]).await;
    assert_eq!(numbers(&hits), (POINTS - 1000..POINTS).rev().collect::<Vec<_>>());
    assert_score(&hits[0], idf(POINTS, POINTS) * (1.0 + 4999.0 / 5000.0));
    let found = store.get(&name, &[id(4321)], Include::All).await.unwrap();
    assert_same(found[0].as_ref().unwrap(), &points[4321]);
    finds_itself(&store, &name, &points).await;

    let odd = Condition::Tag { key: "parity".to_owned(), any: vec!["odd".to_owned()] };
    assert_eq!(store.delete(&name, &Filter::only(odd)).await.unwrap(), u64::from(POINTS / 2));
    assert_eq!(count(&store, &name).await, u64::from(POINTS / 2));
    let hits = ask_sparse(&store, &name, &[(1, 1.0)]).await;
    assert!(hits.iter().all(|hit| number(hit.id).is_multiple_of(2)));
    assert_score(&hits[0], idf(POINTS / 2, POINTS / 2) * (1.0 + 4998.0 / 5000.0));
    finds_itself(&store, &name, &points).await;
}

/// Asks for the vectors of 25 even points; an approximate store may miss one or two of them.
async fn finds_itself(store: &Store, name: &crate::Collection, points: &[Point]) {
    let asked: Vec<&Point> = points.iter().step_by(200).collect();
    let batch: Vec<_> = asked
        .iter()
        .map(|point| query(name, QueryVector::Dense(point.dense.clone().unwrap()), &Filter::all(), 10))
        .collect();
    let answers = store.query_batch(&batch).await.unwrap();
    let found = asked.iter().zip(&answers).filter(|(point, hits)| hits[0].id == point.id).count();
    assert!(found + 2 >= asked.len(), "{found} of {} points find themselves", asked.len());
    assert!(answers.iter().all(|hits| hits.len() == 10), "the limit is reached");
}

/// Lists of thousands of ids and documents, most of them of points that are not there.
pub async fn long_lists_in_filters_and_gets(store: Store) {
    let name = made(&store).await;
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
        let hits = ask(&store, &name, vector, filter, 1000).await.unwrap();
        assert_eq!(hits.len() as u64, expected);
    }
    let found = store.get(&name, &ids, Include::Payload).await.unwrap();
    assert_eq!(found.len(), 5_000);
    assert_eq!(found.iter().flatten().count(), 500);
    let first = Filter::only(Condition::Docs(vec![doc(0), doc(4)]));
    let one = query(&name, QueryVector::Sparse(sparse(&[(1, 1.0)])), &first, 3);
    let answers = store.query_batch(&vec![one; 300]).await.unwrap();
    assert_eq!(answers.len(), 300);
    answers.iter().for_each(|hits| assert_eq!(numbers(hits), [0, 40]));
}

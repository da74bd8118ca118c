use super::support::*;
use crate::{CollectionSpec, Condition, ErrorKind, Filter, Point, QueryVector};

/// Hits come by cosine, highest first, with the exact cosine and their origin; opposite vectors too.
pub async fn dense_hits_are_sorted_by_cosine(store: Store) {
    let name = made(&store).await;
    let vectors = [[0.0, 1.0, 0.0, 0.0], [1.0, 0.2, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]];
    let points = vectors.iter().zip(0..).map(|(vector, n)| with_dense(n, vector));
    store.upsert(&name, points.collect()).await.unwrap();
    let hits = ask_dense(&store, &name, &[1.0, 0.0, 0.0, 0.0]).await;
    assert_eq!(numbers(&hits), [1, 3, 0, 2]);
    for (hit, cosine) in hits.iter().zip([1.0 / 1.04_f64.sqrt(), 0.5_f64.sqrt(), 0.0, -1.0]) {
        assert_score(hit, cosine);
        assert_eq!(hit.origin, point(number(hit.id)).origin);
    }
}

/// Equal vectors come in the order of their ids.
pub async fn dense_ties_are_sorted_by_id(store: Store) {
    let name = made(&store).await;
    let order = [5, 3, 9, 1, 7, 200, 2];
    for n in order {
        store.upsert(&name, vec![with_dense(n, &[0.3, 0.4, 0.5, 0.6])]).await.unwrap();
    }
    store.upsert(&name, vec![with_dense(100, &[0.3, 0.4, 0.5, 0.7])]).await.unwrap();
    let hits = ask_dense(&store, &name, &[0.3, 0.4, 0.5, 0.6]).await;
    assert_eq!(numbers(&hits), [1, 2, 3, 5, 7, 9, 200, 100]);
    let vector = QueryVector::Dense(unit(vec![0.3, 0.4, 0.5, 0.6]));
    let best = ask(&store, &name, vector, &Filter::all(), 3).await.unwrap();
    assert_eq!(numbers(&best), [1, 2, 3], "the limit cuts ties by id");
}

/// A point that was added, replaced or deleted is seen so by the next query.
pub async fn dense_queries_see_changes_at_once(store: Store) {
    let name = made(&store).await;
    let (east, north) = ([1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]);
    for round in 0..5 {
        store.upsert(&name, vec![with_dense(1, &east), with_dense(2, &north)]).await.unwrap();
        let hits = ask_dense(&store, &name, &east).await;
        assert_eq!(numbers(&hits), [1, 2], "round {round}");
        assert_score(&hits[0], 1.0);
        store.upsert(&name, vec![with_dense(1, &north), with_dense(2, &east)]).await.unwrap();
        let hits = ask_dense(&store, &name, &east).await;
        assert_eq!(numbers(&hits), [2, 1], "round {round}");
        assert_score(&hits[1], 0.0);
        store.delete(&name, &Filter::only(Condition::Ids(vec![id(2)]))).await.unwrap();
        assert_eq!(numbers(&ask_dense(&store, &name, &east).await), [1], "round {round}");
    }
}

/// They are counted and found otherwise, but a dense query passes them over.
pub async fn points_without_dense_vector_are_no_dense_hits(store: Store) {
    let name = made(&store).await;
    let batch = vec![with_sparse(1, &[(1, 1.0)]), with_dense(2, &[1.0, 0.0, 0.0, 0.0]), point(3)];
    store.upsert(&name, batch).await.unwrap();
    assert_eq!(numbers(&ask_dense(&store, &name, &[0.0, 1.0, 0.0, 0.0]).await), [2]);
    assert_eq!(count(&store, &name).await, 3);
    store.upsert(&name, vec![point(2)]).await.unwrap();
    assert!(ask_dense(&store, &name, &[0.0, 1.0, 0.0, 0.0]).await.is_empty(), "it lost its vector");
}

/// One wrong query refuses the batch, whether the collection holds points or not.
pub async fn wrong_dense_queries_are_invalid(store: Store) {
    let name = made(&store).await;
    let all = Filter::all();
    let right = query(&name, QueryVector::Dense(vec![1.0, 0.0, 0.0, 0.0]), &all, 5);
    for filled in [false, true] {
        if filled {
            store.upsert(&name, vec![with_dense(1, &[1.0, 0.0, 0.0, 0.0])]).await.unwrap();
        }
        let not_finite = [f32::NAN, f32::INFINITY].map(|bad| vec![1.0, bad, 0.0, 0.0]);
        let wrong_dims = [vec![], vec![1.0; DIMS - 1], vec![1.0; DIMS + 1]];
        for vector in wrong_dims.into_iter().chain(not_finite) {
            let wrong = query(&name, QueryVector::Dense(vector), &all, 5);
            assert_kind(store.query_batch(&[right.clone(), wrong]).await, ErrorKind::Invalid);
        }
    }
    let bare = CollectionSpec { collection: fresh(), dense: None };
    store.ensure(&bare).await.unwrap();
    let vector = QueryVector::Dense(vec![1.0, 0.0, 0.0, 0.0]);
    assert_kind(ask(&store, &bare.collection, vector, &all, 5).await, ErrorKind::Invalid);
}

/// The best of those that pass are answered, up to the limit, also where the best of all do not pass.
pub async fn dense_queries_obey_filters_and_limits(store: Store) {
    let name = made(&store).await;
    let points = (0..100).map(|n| Point {
        tags: tags(&[("half", if n < 50 { "low" } else { "high" })]),
        ..with_dense(n, &[1.0, n as f32 / 50.0, 0.0, 0.0])
    });
    store.upsert(&name, points.collect()).await.unwrap();
    let half = |value: &str| Condition::Tag { key: "half".to_owned(), any: vec![value.to_owned()] };
    let vector = || QueryVector::Dense(vec![1.0, 0.0, 0.0, 0.0]);
    for (filter, limit, expected) in [
        (Filter::all(), 3, vec![0, 1, 2]),
        (Filter::all(), 0, vec![]),
        (Filter::only(half("high")), 4, vec![50, 51, 52, 53]),
        (Filter::only(half("none")), 4, vec![]),
        (Filter::all().and_not(half("low")), 2, vec![50, 51]),
        (Filter::only(Condition::Ids(vec![id(90), id(3), id(40)])), 10, vec![3, 40, 90]),
        (Filter::only(Condition::Docs(vec![doc(6)])).and(half("high")), 2, vec![60, 61]),
    ] {
        let hits = ask(&store, &name, vector(), &filter, limit).await.unwrap();
        assert_eq!(numbers(&hits), expected, "{filter:?}");
    }
    let hits = ask(&store, &name, vector(), &Filter::all(), 1000).await.unwrap();
    assert_eq!(numbers(&hits), (0..100).collect::<Vec<_>>());
}

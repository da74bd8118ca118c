use super::support::*;
use crate::{CollectionSpec, Condition, ErrorKind, Filter, Point, QueryVector};

/// Hits have their cosine, to within what half precision loses, and their origin, highest cosine first; opposite vectors are included.
pub async fn dense_hits_are_sorted_by_cosine(store: Store) {
    let name = create_collection(&store).await;
    let vectors = [[0.0, 1.0, 0.0, 0.0], [1.0, 0.2, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]];
    let points = vectors.iter().zip(0..).map(|(vector, n)| with_dense(n, vector));
    store.upsert(&name, points.collect()).await.unwrap();
    let hits = search_dense(&store, &name, &[1.0, 0.0, 0.0, 0.0]).await;
    assert_eq!(point_numbers(&hits), [1, 3, 0, 2]);
    for (hit, cosine) in hits.iter().zip([1.0 / 1.04_f64.sqrt(), 0.5_f64.sqrt(), 0.0, -1.0]) {
        assert_cosine(hit, cosine);
        assert_eq!(hit.origin, point(point_number(hit.id)).origin);
    }
}

/// Points with equal vectors are sorted by id.
pub async fn dense_ties_are_sorted_by_id(store: Store) {
    let name = create_collection(&store).await;
    let order = [5, 3, 9, 1, 7, 200, 2];
    for n in order {
        store.upsert(&name, vec![with_dense(n, &[0.3, 0.4, 0.5, 0.6])]).await.unwrap();
    }
    store.upsert(&name, vec![with_dense(100, &[0.3, 0.4, 0.5, 0.7])]).await.unwrap();
    let hits = search_dense(&store, &name, &[0.3, 0.4, 0.5, 0.6]).await;
    assert_eq!(point_numbers(&hits), [1, 2, 3, 5, 7, 9, 200, 100]);
    let vector = QueryVector::Dense(unit(vec![0.3, 0.4, 0.5, 0.6]));
    let best = search(&store, &name, vector, &Filter::all(), 3).await.unwrap();
    assert_eq!(point_numbers(&best), [1, 2, 3], "the limit must cut ties in the order of ids");
}

/// The next query sees an added, replaced or deleted point.
pub async fn dense_query_after_a_change_sees_it(store: Store) {
    let name = create_collection(&store).await;
    let (east, north) = ([1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]);
    for round in 0..5 {
        store.upsert(&name, vec![with_dense(1, &east), with_dense(2, &north)]).await.unwrap();
        let hits = search_dense(&store, &name, &east).await;
        assert_eq!(point_numbers(&hits), [1, 2], "round {round}");
        assert_cosine(&hits[0], 1.0);
        store.upsert(&name, vec![with_dense(1, &north), with_dense(2, &east)]).await.unwrap();
        let hits = search_dense(&store, &name, &east).await;
        assert_eq!(point_numbers(&hits), [2, 1], "round {round}");
        assert_cosine(&hits[1], 0.0);
        store.delete(&name, &Filter::only(Condition::Ids(vec![id(2)]))).await.unwrap();
        assert_eq!(point_numbers(&search_dense(&store, &name, &east).await), [1], "round {round}");
    }
}

/// Such points are counted, but a dense query does not return them.
pub async fn dense_query_skips_points_without_a_dense_vector(store: Store) {
    let name = create_collection(&store).await;
    let batch = vec![with_sparse(1, &[(1, 1.0)]), with_dense(2, &[1.0, 0.0, 0.0, 0.0]), point(3)];
    store.upsert(&name, batch).await.unwrap();
    assert_eq!(point_numbers(&search_dense(&store, &name, &[0.0, 1.0, 0.0, 0.0]).await), [2]);
    assert_eq!(count(&store, &name).await, 3);
    store.upsert(&name, vec![point(2)]).await.unwrap();
    assert!(
        search_dense(&store, &name, &[0.0, 1.0, 0.0, 0.0]).await.is_empty(),
        "the replaced point has no vector any more"
    );
}

/// One invalid query fails the whole batch, in an empty collection and in one with points.
pub async fn invalid_dense_query_fails_the_batch(store: Store) {
    let name = create_collection(&store).await;
    let all = Filter::all();
    let valid = query(&name, QueryVector::Dense(vec![1.0, 0.0, 0.0, 0.0]), &all, 5);
    for has_points in [false, true] {
        if has_points {
            store.upsert(&name, vec![with_dense(1, &[1.0, 0.0, 0.0, 0.0])]).await.unwrap();
        }
        let not_finite = [f32::NAN, f32::INFINITY].map(|bad| vec![1.0, bad, 0.0, 0.0]);
        let wrong_dims = [vec![], vec![1.0; DIMS - 1], vec![1.0; DIMS + 1]];
        for vector in wrong_dims.into_iter().chain(not_finite) {
            let invalid = query(&name, QueryVector::Dense(vector), &all, 5);
            assert_kind(store.query_batch(&[valid.clone(), invalid]).await, ErrorKind::Invalid);
        }
    }
    let bare = CollectionSpec { collection: unique_name(), dense: None };
    store.ensure(&bare).await.unwrap();
    let vector = QueryVector::Dense(vec![1.0, 0.0, 0.0, 0.0]);
    assert_kind(search(&store, &bare.collection, vector, &all, 5).await, ErrorKind::Invalid);
}

/// A query returns the best matching points, even if the best points overall do not match the filter.
pub async fn dense_query_respects_filter_and_limit(store: Store) {
    let name = create_collection(&store).await;
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
        let hits = search(&store, &name, vector(), &filter, limit).await.unwrap();
        assert_eq!(point_numbers(&hits), expected, "{filter:?}");
    }
    let hits = search(&store, &name, vector(), &Filter::all(), 1000).await.unwrap();
    assert_eq!(point_numbers(&hits), (0..100).collect::<Vec<_>>());
}

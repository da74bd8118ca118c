use super::support::*;
use crate::{Condition, Filter, Point, QueryVector};

/// Scores are `Σ idf · q · w` over shared terms, and hits carry the origin of their point.
pub async fn sparse_scores_equal_the_formula(store: Store) {
    let name = create_collection(&store).await;
    let batch = vec![
        with_sparse(0, &[(10, 1.0), (20, 0.5), (30, 2.0)]),
        with_sparse(1, &[(10, 0.3), (40, 1.7)]),
        with_sparse(2, &[(20, 1.1), (30, 0.7)]),
        with_sparse(3, &[(50, 1.0)]),
        with_sparse(4, &[(10, 2.2)]),
    ];
    store.upsert(&name, batch).await.unwrap();
    let (ten, twenty, thirty) = (idf(5, 3), idf(5, 2), idf(5, 2));
    let hits = search_sparse(&store, &name, &[(10, 1.0), (20, 0.4), (30, 2.0), (99, 9.0)]).await;
    let expected = [
        (0, ten + 0.4 * twenty * 0.5 + 2.0 * thirty * 2.0),
        (2, 0.4 * twenty * 1.1 + 2.0 * thirty * 0.7),
        (4, ten * 2.2),
        (1, ten * 0.3),
    ];
    assert_eq!(point_numbers(&hits), expected.map(|(n, _)| n));
    for (hit, (n, score)) in hits.iter().zip(expected) {
        assert_score(hit, score);
        assert_eq!(hit.origin, point(n).origin);
    }
}

/// Deleted and replaced points count neither in `N` nor in `n`.
pub async fn sparse_idf_ignores_deleted_and_replaced_points(store: Store) {
    let name = create_collection(&store).await;
    store
        .upsert(&name, (0..40).map(|n| with_sparse(n, &[(1, 1.0), (2 + n % 4, 1.0)])).collect())
        .await
        .unwrap();
    assert_score(&search_sparse(&store, &name, &[(1, 1.0)]).await[0], idf(40, 40));
    assert_score(&search_sparse(&store, &name, &[(2, 1.0)]).await[0], idf(40, 10));
    let half = Filter::only(Condition::Docs(vec![doc(0), doc(1)]));
    assert_eq!(store.delete(&name, &half).await.unwrap(), 20);
    assert_score(&search_sparse(&store, &name, &[(1, 1.0)]).await[0], idf(20, 20));
    assert_score(&search_sparse(&store, &name, &[(2, 1.0)]).await[0], idf(20, 5));
    store.upsert(&name, (20..40).map(|n| with_sparse(n, &[(9, 1.0)])).collect()).await.unwrap();
    assert!(search_sparse(&store, &name, &[(1, 1.0), (2, 1.0)]).await.is_empty());
    store.upsert(&name, vec![with_sparse(0, &[(2, 1.0)])]).await.unwrap();
    let hits = search_sparse(&store, &name, &[(2, 1.0)]).await;
    assert_eq!(point_numbers(&hits), [0]);
    assert_score(&hits[0], idf(21, 1));
    store.set_tags(&name, &Filter::all(), &tags(&[("a", "b")])).await.unwrap();
    assert_score(&search_sparse(&store, &name, &[(9, 1.0)]).await[0], idf(21, 20));
}

/// A point has the same score with and without a filter.
pub async fn sparse_idf_ignores_the_filter(store: Store) {
    let name = create_collection(&store).await;
    store.upsert(&name, (0..30).map(|n| with_sparse(n, &[(n % 3, 1.0)])).collect()).await.unwrap();
    for filter in [Filter::all(), Filter::only(Condition::Ids(vec![id(3)]))] {
        let hits =
            search(&store, &name, QueryVector::Sparse(sparse(&[(0, 1.0)])), &filter, 100).await.unwrap();
        let hit = hits.iter().find(|hit| hit.id == id(3)).unwrap();
        assert_score(hit, idf(30, 10));
    }
}

/// Points with equal scores are sorted by id, and the limit cuts in that order.
pub async fn sparse_ties_are_sorted_by_id(store: Store) {
    let name = create_collection(&store).await;
    for n in [9, 4, 300, 1, 6] {
        store.upsert(&name, vec![with_sparse(n, &[(1, 0.5), (2, 0.25)])]).await.unwrap();
    }
    store.upsert(&name, vec![with_sparse(7, &[(1, 0.75), (2, 0.25)])]).await.unwrap();
    assert_eq!(
        point_numbers(&search_sparse(&store, &name, &[(1, 1.0), (2, 1.0)]).await),
        [7, 1, 4, 6, 9, 300]
    );
    let vector = QueryVector::Sparse(sparse(&[(1, 1.0), (2, 1.0)]));
    let best = search(&store, &name, vector, &Filter::all(), 3).await.unwrap();
    assert_eq!(point_numbers(&best), [7, 1, 4]);
}

/// Points with other terms or without terms are never hits, even if the limit is not reached.
pub async fn sparse_query_skips_points_without_a_shared_term(store: Store) {
    let name = create_collection(&store).await;
    let mut both = with_dense(3, &[1.0, 0.0, 0.0, 0.0]);
    both.sparse = sparse(&[(2, 1.0)]);
    store.upsert(&name, vec![with_sparse(1, &[(1, 1.0)]), with_sparse(2, &[(2, 1.0)]), both]).await.unwrap();
    assert_eq!(point_numbers(&search_sparse(&store, &name, &[(1, 1.0)]).await), [1]);
    assert!(search_sparse(&store, &name, &[(3, 1.0), (4, 1.0)]).await.is_empty());
}

/// A query without terms has no hits. A point without terms counts in `N`.
pub async fn empty_sparse_vectors_are_accepted(store: Store) {
    let name = create_collection(&store).await;
    store
        .upsert(&name, vec![point(1), with_dense(2, &[1.0, 0.0, 0.0, 0.0]), with_sparse(3, &[(1, 1.0)])])
        .await
        .unwrap();
    assert!(search_sparse(&store, &name, &[]).await.is_empty());
    let hits = search_sparse(&store, &name, &[(1, 1.0)]).await;
    assert_eq!(point_numbers(&hits), [3]);
    assert_score(&hits[0], idf(3, 1));
    assert_eq!(count(&store, &name).await, 3);
}

/// A query returns the best matching points, up to its limit.
pub async fn sparse_query_respects_filter_and_limit(store: Store) {
    let name = create_collection(&store).await;
    let points = (0..200).map(|n| Point {
        tags: tags(&[("parity", if n % 2 == 0 { "even" } else { "odd" })]),
        ..with_sparse(n, &[(1, 2.0 - n as f32 / 200.0)])
    });
    store.upsert(&name, points.collect()).await.unwrap();
    let parity = |value: &str| Condition::Tag { key: "parity".to_owned(), any: vec![value.to_owned()] };
    for (filter, limit, expected) in [
        (Filter::all(), 3, vec![0, 1, 2]),
        (Filter::all(), 0, vec![]),
        (Filter::only(parity("odd")), 3, vec![1, 3, 5]),
        (Filter::all().and_not(parity("odd")), 3, vec![0, 2, 4]),
        (Filter::only(parity("neither")), 3, vec![]),
        (Filter::only(Condition::Docs(vec![doc(3)])).and(parity("even")), 9, vec![30, 32, 34, 36, 38]),
        (Filter::only(Condition::Ids(vec![id(199), id(7), id(500)])), 9, vec![7, 199]),
    ] {
        let vector = QueryVector::Sparse(sparse(&[(1, 1.0)]));
        let hits = search(&store, &name, vector, &filter, limit).await.unwrap();
        assert_eq!(point_numbers(&hits), expected, "{filter:?}");
    }
}

/// Covers the smallest and the largest term id, long vectors, and weights of very different size.
pub async fn sparse_query_handles_extreme_terms_and_weights(store: Store) {
    let name = create_collection(&store).await;
    let long: Vec<(u32, f32)> = (0..5000).map(|n| (n * 1000 + 1, 1.0 + n as f32 / 5000.0)).collect();
    let batch = vec![
        with_sparse(1, &[(0, 1e-6), (u32::MAX, 1e6)]),
        with_sparse(2, &[(0, 1e6), (u32::MAX - 1, 1.0)]),
        with_sparse(3, &long),
    ];
    store.upsert(&name, batch).await.unwrap();
    let hits = search_sparse(&store, &name, &[(0, 1.0)]).await;
    assert_eq!(point_numbers(&hits), [2, 1]);
    assert_score(&hits[0], 1e6 * idf(3, 2));
    assert!(hits[1].score > 0.0);
    assert_score(&search_sparse(&store, &name, &[(u32::MAX, 0.5)]).await[0], 0.5e6 * idf(3, 1));
    assert_eq!(point_numbers(&search_sparse(&store, &name, &[(u32::MAX - 1, 1.0)]).await), [2]);
    let hits = search_sparse(&store, &name, &long).await;
    let expected: f64 = long.iter().map(|(_, weight)| f64::from(*weight).powi(2) * idf(3, 1)).sum();
    assert_eq!(point_numbers(&hits), [3]);
    assert_score(&hits[0], expected);
}

/// A batch may mix dense and sparse queries over several collections.
pub async fn query_batch_returns_results_in_query_order(store: Store) {
    let (one, two) = (create_collection(&store).await, create_collection_with_dims(&store, 2).await);
    let mut both = with_dense(1, &[1.0, 0.0, 0.0, 0.0]);
    both.sparse = sparse(&[(1, 1.0)]);
    store.upsert(&one, vec![both, with_sparse(2, &[(2, 1.0)])]).await.unwrap();
    store.upsert(&two, vec![with_dense(3, &[1.0, 0.0]), with_sparse(4, &[(1, 1.0)])]).await.unwrap();
    let terms = |term| QueryVector::Sparse(sparse(&[(term, 1.0)]));
    let all = Filter::all();
    let batch = [
        query(&two, terms(1), &all, 9),
        query(&one, terms(2), &all, 9),
        query(&one, QueryVector::Dense(vec![1.0, 0.0, 0.0, 0.0]), &all, 9),
        query(&one, terms(7), &all, 9),
        query(&two, QueryVector::Dense(vec![0.0, 1.0]), &all, 9),
        query(&one, terms(1), &all, 0),
        query(&one, terms(1), &all, 9),
        query(&one, terms(1), &all, 9),
    ];
    let results = store.query_batch(&batch).await.unwrap();
    let results: Vec<_> = results.iter().map(|hits| point_numbers(hits)).collect();
    assert_eq!(results, [vec![4], vec![2], vec![1], vec![], vec![3], vec![], vec![1], vec![1]]);
}

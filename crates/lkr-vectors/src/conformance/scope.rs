use lkr_domain::{Scope, SpaceName};

use super::support::*;
use crate::{Collection, Condition, Filter, Hit, Point, Query, QueryVector, SPACE_TAG, Tags};

fn space(name: &str) -> SpaceName {
    SpaceName::new(name).unwrap()
}

fn scope(names: &[&str]) -> Scope {
    names.iter().map(|name| space(name)).collect()
}

/// A point of a space that shares terms with the points of the other spaces.
fn in_space(n: u32, space: &str) -> Point {
    let tags = tags(&[(SPACE_TAG, space)]);
    let dense = Some(unit(vec![1.0, n as f32 / 10.0, 0.5, 0.0]));
    Point { tags, dense, ..with_sparse(n, &[(1, 1.0 + n as f32 / 100.0), (2 + n % 3, 0.5)]) }
}

fn vectors() -> [QueryVector; 2] {
    [QueryVector::Sparse(sparse(&[(1, 1.0), (2, 0.7), (3, 0.2)])), QueryVector::Dense(unit(vec![0.4; DIMS]))]
}

async fn search_in(
    store: &Store,
    name: &Collection,
    scope: &Scope,
    vector: &QueryVector,
    filter: &Filter,
) -> Vec<Hit> {
    let query = Query { scope: scope.clone(), ..query(name, vector.clone(), filter, 100) };
    store.query_batch(&[query]).await.unwrap().remove(0)
}

/// Hits and scores in a scope equal those of a collection that holds the points of the scope only, while points of other
/// spaces come and go.
pub async fn points_outside_the_scope_change_no_hit(store: Store) {
    let (mixed, alone) = (create_collection(&store).await, create_collection(&store).await);
    let readable: Vec<Point> = (0..40).map(|n| in_space(n, if n % 4 == 0 { "b" } else { "a" })).collect();
    store.upsert(&alone, readable.clone()).await.unwrap();
    store.upsert(&mixed, readable).await.unwrap();
    for round in 0..3 {
        let secret = (100..160).filter(|n| n % 3 != round).map(|n| in_space(n, "secret")).collect();
        store.upsert(&mixed, secret).await.unwrap();
        store.upsert(&mixed, vec![with_sparse(200 + round, &[(1, 9.0), (2, 9.0)])]).await.unwrap();
        for vector in vectors() {
            for filter in [Filter::all(), Filter::only(Condition::Docs(vec![doc(0), doc(2), doc(11)]))] {
                let expected = search_in(&store, &alone, &Scope::All, &vector, &filter).await;
                let hits = search_in(&store, &mixed, &scope(&["a", "b"]), &vector, &filter).await;
                assert_eq!(hits, expected);
            }
        }
        store.delete(&mixed, &Filter::only(Condition::Docs(vec![doc(10), doc(14)]))).await.unwrap();
    }
}

/// A scope lists the points of its spaces alone; points without a space are in no scope but [`Scope::All`].
pub async fn scope_contains_the_points_of_its_spaces(store: Store) {
    let name = create_collection(&store).await;
    let bare = Point { tags: Tags::new(), ..in_space(2, "a") };
    store.upsert(&name, vec![in_space(0, "a"), in_space(1, "b"), bare]).await.unwrap();
    for vector in vectors() {
        for (scope, expected) in [
            (Scope::All, &[0, 1, 2][..]),
            (scope(&["a"]), &[0]),
            (scope(&["a", "b", "unknown"]), &[0, 1]),
            (scope(&["unknown"]), &[]),
            (Scope::none(), &[]),
        ] {
            let mut hits = point_numbers(&search_in(&store, &name, &scope, &vector, &Filter::all()).await);
            hits.sort_unstable();
            assert_eq!(hits, expected, "{scope:?}");
        }
    }
}

/// A point that gets the tags of another space counts in that space alone.
pub async fn set_tags_moves_points_between_spaces(store: Store) {
    let name = create_collection(&store).await;
    store.upsert(&name, (0..20).map(|n| in_space(n, "a")).collect()).await.unwrap();
    let moved = Filter::only(Condition::Docs(vec![doc(1)]));
    let of_b = tags(&[(SPACE_TAG, "b"), ("kind", "moved")]);
    assert_eq!(store.set_tags(&name, &moved, &of_b).await.unwrap(), 10);
    let vector = QueryVector::Sparse(sparse(&[(1, 1.0)]));
    for (space, numbers) in [("a", 0..10), ("b", 10..20)] {
        let hits = search_in(&store, &name, &scope(&[space]), &vector, &Filter::all()).await;
        let mut found = point_numbers(&hits);
        found.sort_unstable();
        assert_eq!(found, numbers.clone().collect::<Vec<_>>());
        let best = f64::from(1.0 + (numbers.end - 1) as f32 / 100.0);
        assert_score(&hits[0], idf(10, 10) * best);
    }
    let [_, dense] = vectors();
    let hits = search_in(&store, &name, &scope(&["b"]), &dense, &Filter::all()).await;
    assert_eq!(hits.len(), 10);
    let all = search_in(&store, &name, &Scope::All, &vector, &Filter::all()).await;
    assert_eq!(all.len(), 20);
    assert_eq!(count(&store, &name).await, 20);
}

use std::sync::Arc;

use tokio::task::JoinSet;

use super::support::*;
use crate::{Condition, Filter, Include, Point};

/// Sixteen tasks store and delete their own points concurrently; afterwards points and counts are as each task left them.
pub async fn concurrent_writers_lose_no_update(store: Store) {
    let name = create_collection(&store).await;
    let mut tasks = JoinSet::new();
    for task in 0..16_u32 {
        let (store, name) = (Arc::clone(&store), name.clone());
        tasks.spawn(async move {
            for round in 0..5 {
                let first = task * 100 + round * 20;
                let batch = (first..first + 20).map(|n| with_sparse(n, &[(1, 1.0), (2 + task, 1.0)]));
                store.upsert(&name, batch.collect()).await.unwrap();
                let odd = (first..first + 20).filter(|n| n % 2 == 1).map(id).collect();
                let deleted = store.delete(&name, &Filter::only(Condition::Ids(odd))).await.unwrap();
                assert_eq!(deleted, 10);
            }
        });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
    assert_eq!(count(&store, &name).await, 16 * 50);
    let mut remaining = scroll_all(&store, &name, &Filter::all(), 64).await;
    remaining.sort_unstable();
    assert_eq!(remaining, (0..1600).filter(|n| n % 2 == 0).collect::<Vec<_>>());
    let hits = search_sparse(&store, &name, &[(1, 1.0)]).await;
    assert_eq!(hits.len(), 800);
    assert_score(&hits[0], idf(800, 800));
    assert_score(&search_sparse(&store, &name, &[(5, 1.0)]).await[0], idf(800, 50));
}

/// After forty concurrent upserts of one id, one version remains, and every index agrees with it.
pub async fn concurrent_upserts_of_one_id_leave_one_complete_version(store: Store) {
    let name = create_collection(&store).await;
    let version = |n: u32| Point {
        tags: tags(&[("version", &n.to_string())]),
        dense: Some(unit(vec![1.0, n as f32, 0.0, 0.0])),
        sparse: sparse(&[(n, 1.0), (1000, 1.0)]),
        payload: serde_json::json!(n),
        ..point(1)
    };
    let mut tasks = JoinSet::new();
    for n in 0..40 {
        let (store, name) = (Arc::clone(&store), name.clone());
        tasks.spawn(async move { store.upsert(&name, vec![version(n)]).await.unwrap() });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
    let found = store.get(&name, &[id(1)], Include::All).await.unwrap().remove(0).unwrap();
    let winner = found.payload.as_u64().unwrap() as u32;
    assert_points_equal(&found, &version(winner));
    assert_eq!(count(&store, &name).await, 1);
    let hits = search_sparse(&store, &name, &[(1000, 1.0)]).await;
    assert_eq!(hits.len(), 1);
    assert_score(&hits[0], idf(1, 1));
    for n in 0..40 {
        let found = !search_sparse(&store, &name, &[(n, 1.0)]).await.is_empty();
        assert_eq!(found, n == winner, "term of version {n}");
        let tag = Condition::Tag { key: "version".to_owned(), any: vec![n.to_string()] };
        let tagged = store.count(&name, &Filter::only(tag)).await.unwrap();
        assert_eq!(tagged == 1, n == winner, "tag of version {n}");
    }
}

/// Concurrent deletes of overlapping ranges report each point once in total.
pub async fn concurrent_deletes_count_each_point_once(store: Store) {
    let name = create_collection(&store).await;
    store.upsert(&name, (0..200).map(point).collect()).await.unwrap();
    let mut tasks = JoinSet::new();
    for task in 0..20_u32 {
        let (store, name) = (Arc::clone(&store), name.clone());
        tasks.spawn(async move {
            let range = (task * 10).saturating_sub(10)..(task * 10 + 20).min(200);
            store.delete(&name, &Filter::only(Condition::Ids(range.map(id).collect()))).await.unwrap()
        });
    }
    let mut deleted = 0;
    while let Some(result) = tasks.join_next().await {
        deleted += result.unwrap();
    }
    assert_eq!(deleted, 200);
    assert_eq!(count(&store, &name).await, 0);
}

/// Concurrent `ensure` calls for the same collection all succeed.
pub async fn concurrent_ensure_creates_one_collection(store: Store) {
    let name = unique_name();
    let mut tasks = JoinSet::new();
    for n in 0..16 {
        let (store, name) = (Arc::clone(&store), name.clone());
        tasks.spawn(async move {
            store.ensure(&spec(&name, DIMS)).await.unwrap();
            store.upsert(&name, vec![point(n)]).await.unwrap();
        });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
    assert_eq!(count(&store, &name).await, 16);
    let listed = store.collections().await.unwrap();
    assert_eq!(listed.iter().filter(|spec| spec.collection == name).count(), 1);
}

use std::time::Duration;

use super::support::*;
use crate::{Condition, Filter, Include, Point};

const BATCH: u32 = 25;
const ROUNDS: u32 = 30;

fn round_points(round: u32) -> Vec<Point> {
    let mut points: Vec<Point> =
        (0..BATCH).map(|n| with_sparse(round * BATCH + n, &[(1, 1.0), (100 + round, 1.0)])).collect();
    for point in &mut points {
        point.origin.doc_id = doc(round);
    }
    points
}

fn round_filter(round: u32) -> Filter {
    Filter::only(Condition::Docs(vec![doc(round)]))
}

/// From 0 to about 4 milliseconds.
fn drop_delay(round: u32) -> Duration {
    Duration::from_micros(u64::from(round) * 150)
}

/// If the future of an upsert is dropped, all of its points are stored or none, in every index.
pub async fn dropped_upsert_stores_all_points_or_none(store: Store) {
    let name = create_collection(&store).await;
    for round in 0..ROUNDS {
        if round % 3 == 0 {
            poll_once(store.upsert(&name, round_points(round)));
        } else {
            drop_after(drop_delay(round), store.upsert(&name, round_points(round))).await;
        }
    }
    store.upsert(&name, round_points(ROUNDS)).await.unwrap();
    let mut total = 0;
    for round in 0..=ROUNDS {
        let stored = wait_for_count(&store, &name, &round_filter(round), &[0, BATCH.into()]).await;
        let hits = search_sparse(&store, &name, &[(100 + round, 1.0)]).await;
        assert_eq!(hits.len() as u64, stored, "round {round}");
        total += stored;
    }
    assert!(total >= u64::from(BATCH), "the upsert that was not dropped must be stored");
    assert_eq!(count(&store, &name).await, total);
    let hits = search_sparse(&store, &name, &[(1, 1.0)]).await;
    assert_score(&hits[0], idf(total as u32, total as u32));
}

/// If the future of a delete is dropped, all matching points are removed or none.
pub async fn dropped_delete_removes_all_points_or_none(store: Store) {
    let name = create_collection(&store).await;
    for round in 0..ROUNDS {
        store.upsert(&name, round_points(round)).await.unwrap();
        if round % 3 == 0 {
            poll_once(store.delete(&name, &round_filter(round)));
        } else {
            drop_after(drop_delay(round), store.delete(&name, &round_filter(round))).await;
        }
    }
    store.upsert(&name, round_points(ROUNDS)).await.unwrap();
    assert_eq!(store.delete(&name, &round_filter(ROUNDS)).await.unwrap(), u64::from(BATCH));
    for round in 0..ROUNDS {
        let remaining = wait_for_count(&store, &name, &round_filter(round), &[0, BATCH.into()]).await;
        let hits = search_sparse(&store, &name, &[(100 + round, 1.0)]).await;
        assert_eq!(hits.len() as u64, remaining, "round {round}");
    }
}

/// The store works after dropped reads, tag changes, alias switches and snapshots.
pub async fn dropped_reads_and_snapshots_leave_the_store_usable(store: Store) {
    let name = create_collection(&store).await;
    let folder = tempfile::tempdir().unwrap();
    store.upsert(&name, round_points(0)).await.unwrap();
    let all = Filter::all();
    let terms = [query(&name, crate::QueryVector::Sparse(sparse(&[(1, 1.0)])), &all, 9)];
    for round in 0..10 {
        let alias = unique_name();
        poll_once(store.query_batch(&terms));
        poll_once(store.get(&name, &[id(1)], Include::All));
        poll_once(store.scroll(&name, &all, None, 5, Include::All));
        poll_once(store.count(&name, &all));
        poll_once(store.snapshot(&folder.path().join(format!("polled-{round}"))));
        poll_once(store.switch(&[(alias.clone(), name.clone())]));
        poll_once(store.health());
        drop_after(drop_delay(round), store.snapshot(&folder.path().join(format!("dropped-{round}")))).await;
        let tag = tags(&[("round", &round.to_string())]);
        drop_after(drop_delay(round), store.set_tags(&name, &all, &tag)).await;
    }
    store.set_tags(&name, &all, &tags(&[("round", "last")])).await.unwrap();
    let last = Filter::only(Condition::Tag { key: "round".to_owned(), any: vec!["last".to_owned()] });
    assert_eq!(store.count(&name, &last).await.unwrap(), u64::from(BATCH));
    assert_eq!(search_sparse(&store, &name, &[(1, 1.0)]).await.len(), BATCH as usize);
    store.snapshot(&folder.path().join("complete")).await.unwrap();
}

use std::{sync::Arc, time::Duration};

use super::support::*;
use crate::{Condition, Filter, Include, Point};

const BATCH: u32 = 25;
const ROUNDS: u32 = 30;

fn batch(round: u32) -> Vec<Point> {
    let mut points: Vec<Point> =
        (0..BATCH).map(|n| with_sparse(round * BATCH + n, &[(1, 1.0), (100 + round, 1.0)])).collect();
    for point in &mut points {
        point.origin.doc_id = doc(round);
    }
    points
}

fn of(round: u32) -> Filter {
    Filter::only(Condition::Docs(vec![doc(round)]))
}

/// From an immediate drop to one after some milliseconds.
fn pause(round: u32) -> Duration {
    Duration::from_micros(u64::from(round) * 150)
}

/// An upsert whose future is dropped has stored all of its points or none, in every index.
pub async fn dropped_upserts_happen_whole_or_not_at_all(store: Store) {
    let name = made(&store).await;
    for round in 0..ROUNDS {
        if round % 3 == 0 {
            poll_once(store.upsert(&name, batch(round)));
        } else {
            drop_after(pause(round), store.upsert(&name, batch(round))).await;
        }
    }
    store.upsert(&name, batch(ROUNDS)).await.unwrap();
    let mut total = 0;
    for round in 0..=ROUNDS {
        let stored = settle(&store, &name, &of(round), &[0, BATCH.into()]).await;
        let hits = ask_sparse(&store, &name, &[(100 + round, 1.0)]).await;
        assert_eq!(hits.len() as u64, stored, "round {round}");
        total += stored;
    }
    assert!(total >= u64::from(BATCH), "the one that was not dropped is there");
    assert_eq!(count(&store, &name).await, total);
    let hits = ask_sparse(&store, &name, &[(1, 1.0)]).await;
    assert_score(&hits[0], idf(total as u32, total as u32));
}

/// A delete whose future is dropped has removed all that passed or nothing.
pub async fn dropped_deletes_happen_whole_or_not_at_all(store: Store) {
    let name = made(&store).await;
    for round in 0..ROUNDS {
        store.upsert(&name, batch(round)).await.unwrap();
        if round % 3 == 0 {
            poll_once(store.delete(&name, &of(round)));
        } else {
            drop_after(pause(round), store.delete(&name, &of(round))).await;
        }
    }
    store.upsert(&name, batch(ROUNDS)).await.unwrap();
    assert_eq!(store.delete(&name, &of(ROUNDS)).await.unwrap(), u64::from(BATCH));
    for round in 0..ROUNDS {
        let left = settle(&store, &name, &of(round), &[0, BATCH.into()]).await;
        let hits = ask_sparse(&store, &name, &[(100 + round, 1.0)]).await;
        assert_eq!(hits.len() as u64, left, "round {round}");
    }
}

/// Dropped reads, tag changes, switches and snapshots leave the store as good as before.
pub async fn dropped_reads_and_snapshots_do_no_harm(store: Store) {
    let name = made(&store).await;
    let folder = tempfile::tempdir().unwrap();
    store.upsert(&name, batch(0)).await.unwrap();
    let all = Filter::all();
    let terms = [query(&name, crate::QueryVector::Sparse(sparse(&[(1, 1.0)])), &all, 9)];
    for round in 0..10 {
        let alias = fresh();
        poll_once(store.query_batch(&terms));
        poll_once(store.get(&name, &[id(1)], Include::All));
        poll_once(store.scroll(&name, &all, None, 5, Include::All));
        poll_once(store.count(&name, &all));
        poll_once(store.snapshot(&folder.path().join(format!("polled-{round}"))));
        poll_once(store.switch(&[(alias.clone(), name.clone())]));
        poll_once(store.health());
        drop_after(pause(round), store.snapshot(&folder.path().join(format!("dropped-{round}")))).await;
        let tag = tags(&[("round", &round.to_string())]);
        drop_after(pause(round), store.set_tags(&name, &all, &tag)).await;
    }
    store.set_tags(&name, &all, &tags(&[("round", "last")])).await.unwrap();
    let last = Filter::only(Condition::Tag { key: "round".to_owned(), any: vec!["last".to_owned()] });
    assert_eq!(store.count(&name, &last).await.unwrap(), u64::from(BATCH));
    let same = Arc::clone(&store);
    assert_eq!(ask_sparse(&same, &name, &[(1, 1.0)]).await.len(), BATCH as usize);
    store.snapshot(&folder.path().join("whole")).await.unwrap();
}

use std::{collections::BTreeSet, sync::Arc};

use tokio::task::JoinSet;

use super::support::*;
use crate::{ErrorKind, Expect, Op, ScanOrder, StateStoreExt as _, Write};

/// A value is answered as it was put, until another is put.
pub async fn records_come_back(store: Store) {
    let key = fresh() + "key";
    assert_eq!(get(&store, &key).await, None);
    for value in [&b"first"[..], b"", b"\0\xff\xfe bytes that are no text", "ünï".as_bytes()] {
        store.apply(vec![Write::put(&key, Expect::Any, value)]).await.unwrap();
        assert_eq!(get(&store, &key).await.unwrap().value, value);
    }
}

/// Answers stand where their keys stood, with gaps for those that are not there.
pub async fn get_many_keeps_the_order_of_the_keys(store: Store) {
    let base = fresh();
    for n in 0..5 {
        store.apply(vec![Write::put(format!("{base}{n}"), Expect::Any, n.to_string())]).await.unwrap();
    }
    let wanted: Vec<String> = ["4", "x", "0", "4", "1/"].map(|n| format!("{base}{n}")).to_vec();
    let found = store.get_many(&wanted).await.unwrap();
    let values: Vec<_> = found.iter().map(|record| record.as_ref().map(|r| &r.value[..])).collect();
    assert_eq!(values, [Some(&b"4"[..]), None, Some(b"0"), Some(b"4"), None]);
}

/// `Absent` holds where there is no record, before the first put and after a delete, for every kind of write.
pub async fn absent_is_expected_rightly(store: Store) {
    let key = fresh() + "key";
    for round in 0..3 {
        store.apply(vec![Write::check(&key, Expect::Absent)]).await.unwrap();
        store.apply(vec![Write::delete(&key, Expect::Absent)]).await.unwrap();
        store.apply(vec![Write::put(&key, Expect::Absent, "here")]).await.unwrap();
        let puts = store.apply(vec![Write::put(&key, Expect::Absent, "again")]).await;
        assert_kind(puts, ErrorKind::Conflict);
        assert_kind(store.apply(vec![Write::delete(&key, Expect::Absent)]).await, ErrorKind::Conflict);
        assert_kind(store.apply(vec![Write::check(&key, Expect::Absent)]).await, ErrorKind::Conflict);
        let counts = Write { key: key.clone(), expect: Expect::Absent, op: Op::Increment };
        assert_kind(store.apply(vec![counts]).await, ErrorKind::Conflict);
        assert_eq!(text(&store, &key).await.unwrap(), "here", "round {round}");
        store.apply(vec![Write::delete(&key, Expect::Any)]).await.unwrap();
    }
}

/// A version is good until the next write of its key, and for its key alone.
pub async fn versions_are_expected_rightly(store: Store) {
    let base = fresh();
    let (key, other) = (format!("{base}a"), format!("{base}b"));
    let old = put(&store, &key, "1").await;
    store.apply(vec![Write::put(&key, Expect::Version(old), "2")]).await.unwrap();
    let new = version(&store, &key).await;
    for wrong in [old, new + 1, 0, u64::MAX] {
        let expect = Expect::Version(wrong);
        assert_kind(store.apply(vec![Write::put(&key, expect, "3")]).await, ErrorKind::Conflict);
        assert_kind(store.apply(vec![Write::delete(&key, expect)]).await, ErrorKind::Conflict);
        assert_kind(store.apply(vec![Write::check(&key, expect)]).await, ErrorKind::Conflict);
        assert_kind(store.apply(vec![Write::put(&other, expect, "3")]).await, ErrorKind::Conflict);
    }
    assert_eq!(text(&store, &key).await.unwrap(), "2");
    store.apply(vec![Write::check(&key, Expect::Version(new))]).await.unwrap();
    let counts = Write { key: key.clone(), expect: Expect::Version(new), op: Op::Increment };
    store.apply(vec![counts]).await.unwrap();
    let counted = version(&store, &key).await;
    assert_kind(store.apply(vec![Write::delete(&key, Expect::Version(new))]).await, ErrorKind::Conflict);
    store.apply(vec![Write::delete(&key, Expect::Version(counted))]).await.unwrap();
    assert_kind(store.apply(vec![Write::check(&key, Expect::Version(counted))]).await, ErrorKind::Conflict);
}

/// One expectation that does not hold, wherever it stands, and no key of the step is touched.
pub async fn a_conflict_changes_nothing(store: Store) {
    let base = fresh();
    let key = |n: usize| format!("{base}{n}");
    let there = put(&store, &key(0), "kept").await;
    store.apply(vec![Write::increment(key(1))]).await.unwrap();
    let counter = version(&store, &key(1)).await;
    let good = [
        Write::put(key(0), Expect::Version(there), "lost"),
        Write::increment(key(1)),
        Write::put(key(2), Expect::Absent, "lost"),
        Write::delete(key(3), Expect::Any),
    ];
    let bad = [
        Write::check(key(9), Expect::Version(1)),
        Write::put(key(9), Expect::Version(there), "lost"),
        Write::delete(key(9), Expect::Version(there)),
    ];
    for bad in bad {
        for at in 0..=good.len() {
            let mut step = good.to_vec();
            step.insert(at, bad.clone());
            assert_kind(store.apply(step).await, ErrorKind::Conflict);
        }
    }
    assert_eq!(version(&store, &key(0)).await, there);
    assert_eq!(version(&store, &key(1)).await, counter);
    assert_eq!(store.counter(&key(1)).await.unwrap(), 1);
    assert_eq!(keys(&store, &base, "", None, ScanOrder::Ascending).await, ["0", "1"]);
    store.apply(good.to_vec()).await.unwrap();
    assert_eq!(keys(&store, &base, "", None, ScanOrder::Ascending).await, ["0", "1", "2"]);
}

/// A check neither makes a record nor gives it a new version, and guards the other writes of its step.
pub async fn checks_change_nothing(store: Store) {
    let base = fresh();
    let (guard, key) = (format!("{base}guard"), format!("{base}key"));
    store.apply(vec![Write::check(&guard, Expect::Any), Write::check(&key, Expect::Absent)]).await.unwrap();
    assert_eq!(get(&store, &guard).await, None);
    let held = put(&store, &guard, "v").await;
    let step = |expect| vec![Write::check(&guard, expect), Write::put(&key, Expect::Any, "done")];
    assert_kind(store.apply(step(Expect::Absent)).await, ErrorKind::Conflict);
    assert_eq!(get(&store, &key).await, None);
    store.apply(step(Expect::Version(held))).await.unwrap();
    assert_eq!(version(&store, &guard).await, held);
    assert_eq!(text(&store, &key).await.unwrap(), "done");
}

/// A deleted record is gone from every read; to delete what is not there does nothing.
pub async fn deletes_remove_records(store: Store) {
    let base = fresh();
    let key = format!("{base}key");
    store.apply(vec![Write::delete(&key, Expect::Any)]).await.unwrap();
    put(&store, &key, "v").await;
    store.apply(vec![Write::delete(&key, Expect::Any)]).await.unwrap();
    assert_eq!(get(&store, &key).await, None);
    assert!(keys(&store, &base, "", None, ScanOrder::Ascending).await.is_empty());
    store.apply(vec![Write::delete(&key, Expect::Any)]).await.unwrap();
}

/// Every write of a key has a greater version than all before it, over deletes and expiry.
pub async fn versions_grow_and_never_come_back(store: Store) {
    let key = fresh() + "key";
    let mut last = 0;
    for round in 0..20 {
        match round % 5 {
            0 | 1 => store.apply(vec![Write::put(&key, Expect::Any, "same")]).await.unwrap(),
            2 => store.apply(vec![Write::increment(&key)]).await.unwrap(),
            3 => {
                store.apply(vec![Write::delete(&key, Expect::Any)]).await.unwrap();
                store.apply(vec![Write::put(&key, Expect::Absent, "back")]).await.unwrap();
            }
            _ => {
                store.apply(vec![Write::put_for(&key, Expect::Any, "short", ms(1))]).await.unwrap();
                tokio::time::sleep(ms(20)).await;
                store.apply(vec![Write::put(&key, Expect::Absent, "after")]).await.unwrap();
            }
        }
        let version = version(&store, &key).await;
        assert!(version > last, "round {round}: {version} after {last}");
        last = version;
    }
}

/// A step of some hundred writes of every kind is done as one.
pub async fn a_step_over_many_keys_is_one(store: Store) {
    let base = fresh();
    let key = |n: usize| format!("{base}{n:04}");
    store.apply((0..400).map(|n| Write::put(key(n), Expect::Absent, "old")).collect()).await.unwrap();
    let step = |n: usize| match n % 4 {
        0 => Write::put(key(n), Expect::Any, "new"),
        1 => Write::delete(key(n), Expect::Any),
        2 => Write::increment(key(n)),
        _ => Write::check(key(n), Expect::Any),
    };
    store.apply((0..400).map(step).collect()).await.unwrap();
    let found = store.get_many(&(0..400).map(key).collect::<Vec<_>>()).await.unwrap();
    for (n, record) in found.iter().enumerate() {
        let value = record.as_ref().map(|record| &record.value[..]);
        let expected = [Some(&b"new"[..]), None, Some(b"1"), Some(b"old")][n % 4];
        assert_eq!(value, expected, "{n}");
    }
}

/// Of many that expect the key to be absent, exactly one is served.
pub async fn concurrent_claims_of_a_key_have_one_winner(store: Store) {
    let base = fresh();
    for round in 0..5 {
        let mut tasks = JoinSet::new();
        for n in 0..20 {
            let (store, key, mark) =
                (Arc::clone(&store), format!("{base}{round}"), format!("{base}mark/{round}/{n}"));
            tasks.spawn(async move {
                let step = vec![
                    Write::put(&key, Expect::Absent, n.to_string()),
                    Write::put(&mark, Expect::Any, "written"),
                ];
                store.apply(step).await.map(|()| n)
            });
        }
        let mut winners = Vec::new();
        while let Some(done) = tasks.join_next().await {
            match done.unwrap() {
                Ok(n) => winners.push(n),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
            }
        }
        assert_eq!(winners.len(), 1, "{winners:?}");
        let value = text(&store, &format!("{base}{round}")).await.unwrap();
        assert_eq!(value, winners[0].to_string());
        let marks = keys(&store, &base, &format!("mark/{round}/"), None, ScanOrder::Ascending).await;
        assert_eq!(marks, [format!("mark/{round}/{value}")], "losers wrote nothing");
    }
}

/// Tasks that read, add one and write back, and begin anew on a conflict, lose no addition.
pub async fn concurrent_compare_and_set_loses_no_update(store: Store) {
    let key = fresh() + "sum";
    store.apply(vec![Write::put(&key, Expect::Absent, "0")]).await.unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let (store, key) = (Arc::clone(&store), key.clone());
        tasks.spawn(async move {
            for _ in 0..5 {
                loop {
                    let old = get(&store, &key).await.unwrap();
                    let sum = (old.as_counter() + 1).to_string();
                    match store.apply(vec![Write::put(&key, Expect::Version(old.version), sum)]).await {
                        Ok(()) => break,
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
                    }
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(store.counter(&key).await.unwrap(), 40);
}

/// Whoever reads several keys at once, or scans them, sees all writes of a step or none.
pub async fn steps_are_seen_whole(store: Store) {
    let base = fresh();
    let keys: Vec<String> = (0..8).map(|n| format!("{base}{n}")).collect();
    let step = |value: u32| {
        keys.iter().map(|key| Write::put(key, Expect::Any, value.to_string())).collect::<Vec<_>>()
    };
    store.apply(step(0)).await.unwrap();
    let writer = {
        let (store, steps) = (Arc::clone(&store), (1..60).map(step).collect::<Vec<_>>());
        tokio::spawn(async move {
            for step in steps {
                store.apply(step).await.unwrap();
            }
        })
    };
    loop {
        let ended = writer.is_finished();
        let records = store.get_many(&keys).await.unwrap();
        let values: BTreeSet<_> = records.into_iter().map(|record| record.unwrap().value).collect();
        assert_eq!(values.len(), 1, "get_many: {values:?}");
        let records = store.scan(&base, None, ScanOrder::Ascending, 100).await.unwrap();
        let values: BTreeSet<_> = records.into_iter().map(|(_, record)| record.value).collect();
        assert_eq!(values.len(), 1, "scan: {values:?}");
        if ended {
            break;
        }
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
    assert_eq!(text(&store, &keys[0]).await.unwrap(), "59");
}

/// A step whose future is dropped has written all of its keys or none, and its counter counts with it.
pub async fn dropped_steps_happen_whole_or_not_at_all(store: Store) {
    let base = fresh();
    let counter = format!("{base}steps");
    let key = |round: u64, n: u64| format!("{base}{round:02}/{n}");
    let step = |round: u64| {
        let mut step: Vec<_> = (0..10).map(|n| Write::put(key(round, n), Expect::Absent, "v")).collect();
        step.push(Write::increment(&counter));
        step
    };
    for round in 0..40 {
        if round % 2 == 0 {
            poll_once(store.apply(step(round)));
        } else {
            drop_after(std::time::Duration::from_micros(round * 100), store.apply(step(round))).await;
        }
        poll_once(store.get_many(&[key(round, 0)]));
        poll_once(store.scan(&base, None, ScanOrder::Ascending, 10));
    }
    store.apply(step(40)).await.unwrap();
    // What a dropped future began may still be under way: it is waited for by trying the same step again.
    for round in 0..40 {
        match store.apply(step(round)).await {
            Ok(()) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
        let found = keys(&store, &base, &format!("{round:02}/"), None, ScanOrder::Ascending).await;
        assert_eq!(found.len(), 10, "round {round}");
    }
    assert_eq!(store.counter(&counter).await.unwrap(), 41, "each step was done once");
}

use std::{collections::BTreeSet, sync::Arc};

use tokio::task::JoinSet;

use super::support::*;
use crate::{ErrorKind, Expect, Op, ScanOrder, StateStoreExt as _, Write};

/// A read returns the value of the last put.
pub async fn get_returns_the_last_value_put(store: Store) {
    let key = unique_prefix() + "key";
    assert_eq!(get(&store, &key).await, None);
    for value in [&b"first"[..], b"", b"\0\xff\xfe bytes that are no text", "ünï".as_bytes()] {
        store.apply(vec![Write::put(&key, Expect::Any, value)]).await.unwrap();
        assert_eq!(get(&store, &key).await.unwrap().value, value);
    }
}

/// The result for each key is at the position of the key, `None` if it does not exist.
pub async fn get_many_returns_records_in_the_order_of_the_keys(store: Store) {
    let base = unique_prefix();
    for n in 0..5 {
        store.apply(vec![Write::put(format!("{base}{n}"), Expect::Any, n.to_string())]).await.unwrap();
    }
    let requested: Vec<String> = ["4", "x", "0", "4", "1/"].map(|n| format!("{base}{n}")).to_vec();
    let found = store.get_many(&requested).await.unwrap();
    let values: Vec<_> = found.iter().map(|record| record.as_ref().map(|r| &r.value[..])).collect();
    assert_eq!(values, [Some(&b"4"[..]), None, Some(b"0"), Some(b"4"), None]);
}

/// `Absent` holds before the first put and after a delete, for every kind of write.
pub async fn expect_absent_holds_only_without_a_record(store: Store) {
    let key = unique_prefix() + "key";
    for round in 0..3 {
        store.apply(vec![Write::check(&key, Expect::Absent)]).await.unwrap();
        store.apply(vec![Write::delete(&key, Expect::Absent)]).await.unwrap();
        store.apply(vec![Write::put(&key, Expect::Absent, "here")]).await.unwrap();
        let second_put = store.apply(vec![Write::put(&key, Expect::Absent, "again")]).await;
        assert_kind(second_put, ErrorKind::Conflict);
        assert_kind(store.apply(vec![Write::delete(&key, Expect::Absent)]).await, ErrorKind::Conflict);
        assert_kind(store.apply(vec![Write::check(&key, Expect::Absent)]).await, ErrorKind::Conflict);
        let increment = Write { key: key.clone(), expect: Expect::Absent, op: Op::Increment };
        assert_kind(store.apply(vec![increment]).await, ErrorKind::Conflict);
        assert_eq!(text(&store, &key).await.unwrap(), "here", "round {round}");
        store.apply(vec![Write::delete(&key, Expect::Any)]).await.unwrap();
    }
}

/// A version matches its own key only, and only until the next write of that key.
pub async fn expect_version_holds_only_until_the_next_write(store: Store) {
    let base = unique_prefix();
    let (key, other) = (format!("{base}a"), format!("{base}b"));
    let old = put(&store, &key, "1").await;
    store.apply(vec![Write::put(&key, Expect::Version(old), "2")]).await.unwrap();
    let new = version(&store, &key).await;
    for other_version in [old, new + 1, 0, u64::MAX] {
        let expect = Expect::Version(other_version);
        assert_kind(store.apply(vec![Write::put(&key, expect, "3")]).await, ErrorKind::Conflict);
        assert_kind(store.apply(vec![Write::delete(&key, expect)]).await, ErrorKind::Conflict);
        assert_kind(store.apply(vec![Write::check(&key, expect)]).await, ErrorKind::Conflict);
        assert_kind(store.apply(vec![Write::put(&other, expect, "3")]).await, ErrorKind::Conflict);
    }
    assert_eq!(text(&store, &key).await.unwrap(), "2");
    store.apply(vec![Write::check(&key, Expect::Version(new))]).await.unwrap();
    let increment = Write { key: key.clone(), expect: Expect::Version(new), op: Op::Increment };
    store.apply(vec![increment]).await.unwrap();
    let counted = version(&store, &key).await;
    assert_kind(store.apply(vec![Write::delete(&key, Expect::Version(new))]).await, ErrorKind::Conflict);
    store.apply(vec![Write::delete(&key, Expect::Version(counted))]).await.unwrap();
    assert_kind(store.apply(vec![Write::check(&key, Expect::Version(counted))]).await, ErrorKind::Conflict);
}

/// If one expectation does not hold, at any position, no key of the step changes.
pub async fn conflict_in_one_write_changes_no_key(store: Store) {
    let base = unique_prefix();
    let key = |n: usize| format!("{base}{n}");
    let kept = put(&store, &key(0), "kept").await;
    store.apply(vec![Write::increment(key(1))]).await.unwrap();
    let counter = version(&store, &key(1)).await;
    let good = [
        Write::put(key(0), Expect::Version(kept), "lost"),
        Write::increment(key(1)),
        Write::put(key(2), Expect::Absent, "lost"),
        Write::delete(key(3), Expect::Any),
    ];
    let bad = [
        Write::check(key(9), Expect::Version(1)),
        Write::put(key(9), Expect::Version(kept), "lost"),
        Write::delete(key(9), Expect::Version(kept)),
    ];
    for bad in bad {
        for position in 0..=good.len() {
            let mut step = good.to_vec();
            step.insert(position, bad.clone());
            assert_kind(store.apply(step).await, ErrorKind::Conflict);
        }
    }
    assert_eq!(version(&store, &key(0)).await, kept);
    assert_eq!(version(&store, &key(1)).await, counter);
    assert_eq!(store.counter(&key(1)).await.unwrap(), 1);
    assert_eq!(keys(&store, &base, "", None, ScanOrder::Ascending).await, ["0", "1"]);
    store.apply(good.to_vec()).await.unwrap();
    assert_eq!(keys(&store, &base, "", None, ScanOrder::Ascending).await, ["0", "1", "2"]);
}

/// A check creates no record and changes no version, but its failure fails the whole step.
pub async fn check_guards_other_writes_and_changes_nothing(store: Store) {
    let base = unique_prefix();
    let (guard, key) = (format!("{base}guard"), format!("{base}key"));
    store.apply(vec![Write::check(&guard, Expect::Any), Write::check(&key, Expect::Absent)]).await.unwrap();
    assert_eq!(get(&store, &guard).await, None);
    let guard_version = put(&store, &guard, "v").await;
    let step = |expect| vec![Write::check(&guard, expect), Write::put(&key, Expect::Any, "done")];
    assert_kind(store.apply(step(Expect::Absent)).await, ErrorKind::Conflict);
    assert_eq!(get(&store, &key).await, None);
    store.apply(step(Expect::Version(guard_version))).await.unwrap();
    assert_eq!(version(&store, &guard).await, guard_version);
    assert_eq!(text(&store, &key).await.unwrap(), "done");
}

/// No read returns a deleted record, and deleting a missing record does nothing.
pub async fn delete_removes_the_record_from_every_read(store: Store) {
    let base = unique_prefix();
    let key = format!("{base}key");
    store.apply(vec![Write::delete(&key, Expect::Any)]).await.unwrap();
    put(&store, &key, "v").await;
    store.apply(vec![Write::delete(&key, Expect::Any)]).await.unwrap();
    assert_eq!(get(&store, &key).await, None);
    assert!(keys(&store, &base, "", None, ScanOrder::Ascending).await.is_empty());
    store.apply(vec![Write::delete(&key, Expect::Any)]).await.unwrap();
}

/// Each write of a key gets a greater version than all earlier ones, even after deletes and expiry.
pub async fn versions_increase_across_deletes_and_expiry(store: Store) {
    let key = unique_prefix() + "key";
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

/// A step may consist of 400 writes of every kind.
pub async fn apply_of_four_hundred_writes_applies_all(store: Store) {
    let base = unique_prefix();
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

/// Of twenty concurrent steps that expect a key to be absent, exactly one succeeds.
pub async fn concurrent_puts_that_expect_absent_have_one_winner(store: Store) {
    let base = unique_prefix();
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
        while let Some(result) = tasks.join_next().await {
            match result.unwrap() {
                Ok(n) => winners.push(n),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
            }
        }
        assert_eq!(winners.len(), 1, "{winners:?}");
        let value = text(&store, &format!("{base}{round}")).await.unwrap();
        assert_eq!(value, winners[0].to_string());
        let marks = keys(&store, &base, &format!("mark/{round}/"), None, ScanOrder::Ascending).await;
        assert_eq!(marks, [format!("mark/{round}/{value}")], "refused steps must write nothing");
    }
}

/// Concurrent tasks that read, add one and write back, and retry on a conflict, lose no addition.
pub async fn concurrent_compare_and_set_loses_no_update(store: Store) {
    let key = unique_prefix() + "sum";
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
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
    assert_eq!(store.counter(&key).await.unwrap(), 40);
}

/// A read of several keys or a scan sees all writes of a step or none.
pub async fn concurrent_reads_see_all_writes_of_a_step_or_none(store: Store) {
    let base = unique_prefix();
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
        let writer_finished = writer.is_finished();
        let records = store.get_many(&keys).await.unwrap();
        let values: BTreeSet<_> = records.into_iter().map(|record| record.unwrap().value).collect();
        assert_eq!(values.len(), 1, "get_many: {values:?}");
        let records = store.scan(&base, None, ScanOrder::Ascending, 100).await.unwrap();
        let values: BTreeSet<_> = records.into_iter().map(|(_, record)| record.value).collect();
        assert_eq!(values.len(), 1, "scan: {values:?}");
        if writer_finished {
            break;
        }
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
    assert_eq!(text(&store, &keys[0]).await.unwrap(), "59");
}

/// If the future of a step is dropped, all of its keys and its counter are written or none.
pub async fn dropped_apply_writes_all_keys_or_none(store: Store) {
    let base = unique_prefix();
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
    // The work of a dropped future may still be running. Applying the same step again waits for it.
    for round in 0..40 {
        match store.apply(step(round)).await {
            Ok(()) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
        let found = keys(&store, &base, &format!("{round:02}/"), None, ScanOrder::Ascending).await;
        assert_eq!(found.len(), 10, "round {round}");
    }
    assert_eq!(store.counter(&counter).await.unwrap(), 41, "each step must be applied once");
}

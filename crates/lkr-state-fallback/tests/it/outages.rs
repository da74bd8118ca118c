//! What is answered while the remote store is away, and after it returned.

use std::{sync::Arc, time::Duration};

use lkr_state::{ErrorKind, Expect, RecordsLost, Scan, ScanOrder, StateStore, StateStoreExt, Write};
use lkr_state_fallback::{FallbackConfig, FallbackState};

use crate::support::{Remote, TestPolicy, assert_kind, config, fallback, open, text, version};

fn put(key: &str, value: &'static str) -> Vec<Write> {
    vec![Write::put(key, Expect::Any, value)]
}

async fn keys(store: &dyn StateStore, prefix: &str, order: ScanOrder) -> Vec<String> {
    store.scan(prefix, None, order, 10).await.unwrap().into_iter().map(|(key, _)| key).collect()
}

fn scan(prefix: &str) -> Scan {
    Scan { prefix: prefix.to_owned(), after: None, order: ScanOrder::Ascending, limit: 10 }
}

#[tokio::test]
async fn mirrored_records_are_read_and_written_during_an_outage_and_merged_after_it() {
    let (state, remote, _folder) = fallback().await;
    state.apply(put("m/a", "1")).await.unwrap();
    state.apply(put("m/b", "1")).await.unwrap();
    remote.off();
    assert_eq!(text(&*state, "m/a").await.unwrap(), "1");
    state.apply(vec![Write::delete("m/a", Expect::Any), Write::increment("m/n")]).await.unwrap();
    state
        .apply(vec![Write::put("m/b", Expect::Any, "2"), Write::put("log/1", Expect::Absent, "b")])
        .await
        .unwrap();
    state.apply(put("m/c", "2")).await.unwrap();
    assert_eq!(text(&*state, "m/a").await, None);
    assert_eq!(text(&*state, "m/b").await.unwrap(), "2");
    assert_eq!(state.counter("m/n").await.unwrap(), 1);
    assert_eq!(keys(&*state, "m/", ScanOrder::Ascending).await, ["m/b", "m/c", "m/n"]);
    assert_eq!(keys(&*state, "m/", ScanOrder::Descending).await, ["m/n", "m/c", "m/b"]);
    let found = state.scan_many(&[scan("m/n"), scan("m/"), scan("m/x")]).await.unwrap();
    let found: Vec<Vec<_>> =
        found.iter().map(|found| found.iter().map(|(key, _)| key.as_str()).collect()).collect();
    assert_eq!(found, [vec!["m/n"], vec!["m/b", "m/c", "m/n"], vec![]]);
    let status = state.status().await;
    assert!(!status.is_remote_used && status.away_since.is_some() && status.journal_entries == 3);
    assert_kind(state.health().await, ErrorKind::Unavailable);
    assert_kind(state.recover().await, ErrorKind::Unavailable);

    remote.on();
    state.recover().await.unwrap();
    for store in [&*state as &dyn StateStore, &*remote.store()] {
        assert_eq!(keys(store, "m/", ScanOrder::Ascending).await, ["m/b", "m/c", "m/n"]);
        assert_eq!(text(store, "m/b").await.unwrap(), "2");
        assert_eq!(store.counter("m/n").await.unwrap(), 1);
        assert_eq!(text(store, "log/1").await.unwrap(), "b");
    }
    let status = state.status().await;
    assert!(status.is_remote_used && status.away_since.is_none() && status.journal_entries == 0);
    state.health().await.unwrap();
}

#[tokio::test]
async fn other_records_and_mixed_calls_are_unavailable_during_an_outage() {
    let (state, remote, _folder) = fallback().await;
    state.apply(put("m/a", "1")).await.unwrap();
    state.apply(put("doc/1", "1")).await.unwrap();
    remote.off();
    assert_kind(state.get("doc/1").await, ErrorKind::Unavailable);
    assert_kind(state.get_many(&["m/a".to_owned(), "doc/1".to_owned()]).await, ErrorKind::Unavailable);
    assert_kind(state.get("log/1").await, ErrorKind::Unavailable);
    for prefix in ["doc/", "", "m", "log/"] {
        let scan = state.scan(prefix, None, ScanOrder::Ascending, 1).await;
        assert_kind(scan, ErrorKind::Unavailable);
    }
    assert_kind(state.scan_many(&[scan("m/"), scan("doc/")]).await, ErrorKind::Unavailable);
    assert_kind(state.scan_many(&[scan("doc/")]).await, ErrorKind::Unavailable);
    let mixed = vec![Write::put("m/a", Expect::Any, "2"), Write::put("doc/1", Expect::Any, "2")];
    assert_kind(state.apply(mixed).await, ErrorKind::Unavailable);
    assert_kind(state.apply(vec![Write::delete("log/1", Expect::Any)]).await, ErrorKind::Unavailable);
    assert_eq!(text(&*state, "m/a").await.unwrap(), "1");
    assert_eq!(state.status().await.journal_entries, 0);
}

#[tokio::test]
async fn limits_hold_during_an_outage() {
    let (state, remote, _folder) = fallback().await;
    remote.off();
    let long = format!("m/{}", "x".repeat(399));
    assert_kind(state.get("m/a").await.map(drop).and(state.get(&long).await.map(drop)), ErrorKind::Invalid);
    assert_kind(state.apply(vec![Write::put(long, Expect::Any, "")]).await, ErrorKind::Invalid);
    let large = vec![0_u8; (1 << 20) + 1];
    assert_kind(state.apply(vec![Write::put("m/a", Expect::Any, large)]).await, ErrorKind::Invalid);
    let twice = vec![Write::put("m/a", Expect::Any, ""), Write::delete("m/a", Expect::Any)];
    assert_kind(state.apply(twice).await, ErrorKind::Invalid);
}

#[tokio::test]
async fn expectations_hold_across_the_beginning_and_the_end_of_an_outage() {
    let (state, remote, _folder) = fallback().await;
    state.apply(put("m/a", "1")).await.unwrap();
    let read_before = version(&*state, "m/a").await;
    remote.off();
    state.get("m/a").await.unwrap();
    assert_kind(state.apply(vec![Write::put("m/a", Expect::Absent, "2")]).await, ErrorKind::Conflict);
    let replace = |version, value: &'static str| vec![Write::put("m/a", Expect::Version(version), value)];
    state.apply(replace(read_before, "2")).await.unwrap();
    assert_kind(state.apply(replace(read_before, "3")).await, ErrorKind::Conflict);
    let read_during = version(&*state, "m/a").await;
    assert!(read_during > read_before);
    state.apply(vec![Write::check("m/a", Expect::Version(read_during))]).await.unwrap();
    assert_eq!(state.status().await.journal_entries, 1, "a check is not journalled");
    remote.on();
    state.recover().await.unwrap();
    assert_kind(state.apply(replace(read_during, "3")).await, ErrorKind::Conflict);
    let read_after = version(&*state, "m/a").await;
    assert!(read_after > read_during, "{read_after} {read_during}");
    state.apply(replace(read_after, "3")).await.unwrap();
    assert_eq!(text(&*remote.store(), "m/a").await.unwrap(), "3");
}

#[tokio::test]
async fn records_expire_during_an_outage_and_keep_their_lifetime_after_it() {
    let (state, remote, _folder) = fallback().await;
    let put_for = |key, ttl| vec![Write::put_for(key, Expect::Any, "1", ttl)];
    state.apply(put_for("m/early", Duration::from_millis(300))).await.unwrap();
    remote.off();
    state.apply(put_for("m/short", Duration::from_millis(300))).await.unwrap();
    state.apply(put_for("m/medium", Duration::from_secs(2))).await.unwrap();
    state.apply(put_for("m/long", Duration::from_secs(600))).await.unwrap();
    for key in ["m/early", "m/short"] {
        while state.get(key).await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    state.apply(vec![Write::check("m/short", Expect::Absent)]).await.unwrap();
    assert_eq!(keys(&*state, "m/", ScanOrder::Ascending).await, ["m/long", "m/medium"]);
    remote.on();
    state.recover().await.unwrap();
    let store = remote.store();
    assert_eq!(text(&*store, "m/short").await, None);
    assert!(text(&*store, "m/long").await.is_some());
    while store.get("m/medium").await.unwrap().is_some() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn every_read_goes_to_the_remote_store_while_it_answers() {
    let (state, remote, _folder) = fallback().await;
    state.apply(put("m/a", "1")).await.unwrap();
    for value in ["2", "3"] {
        remote.store().apply(put("m/a", value)).await.unwrap();
        let reads = remote.reads();
        assert_eq!(text(&*state, "m/a").await.unwrap(), value);
        assert_eq!(remote.reads(), reads + 1);
    }
}

#[tokio::test]
async fn mirror_contains_what_was_read_and_what_a_refresh_found() {
    let (state, remote, _folder) = fallback().await;
    let store = remote.store();
    for key in ["m/read", "m/scan/1", "m/refreshed", "m/deleted", "m/late"] {
        store.apply(put(key, "old")).await.unwrap();
    }
    state.refresh().await.unwrap();
    store.apply(put("m/refreshed", "new")).await.unwrap();
    store.apply(vec![Write::delete("m/deleted", Expect::Any)]).await.unwrap();
    state.refresh().await.unwrap();
    store.apply(put("m/read", "new")).await.unwrap();
    store.apply(put("m/scan/1", "new")).await.unwrap();
    state.get("m/read").await.unwrap();
    keys(&*state, "m/scan/", ScanOrder::Ascending).await;
    store.apply(put("m/late", "new")).await.unwrap();
    remote.off();
    for (key, value) in [
        ("m/read", Some("new")),
        ("m/scan/1", Some("new")),
        ("m/refreshed", Some("new")),
        ("m/deleted", None),
        ("m/late", Some("old")),
    ] {
        assert_eq!(text(&*state, key).await.as_deref(), value, "{key}");
    }
}

#[tokio::test]
async fn refresh_pages_through_many_records() {
    let (state, remote, _folder) = fallback().await;
    let write = |n: usize| Write::put(format!("m/{n:05}"), Expect::Any, "1");
    for chunk in 0..5 {
        remote.store().apply((chunk * 500..(chunk + 1) * 500).map(write).collect()).await.unwrap();
    }
    state.refresh().await.unwrap();
    let status = state.status().await;
    assert!(status.is_mirror_complete && status.mirror_records == 2_500, "{status:?}");
    let gone = (0..2_500).step_by(5).map(|n| Write::delete(format!("m/{n:05}"), Expect::Any));
    remote.store().apply(gone.collect()).await.unwrap();
    state.refresh().await.unwrap();
    assert_eq!(state.status().await.mirror_records, 2_000);
}

#[tokio::test]
async fn mirror_without_room_is_unavailable_for_what_it_does_not_have() {
    let (remote, folder) = (Remote::new(), tempfile::tempdir().unwrap());
    for key in ["m/1", "m/2", "m/3"] {
        remote.store().apply(put(key, "1234567")).await.unwrap();
    }
    let config = FallbackConfig { max_mirror_bytes: 800, ..config(folder.path()) };
    let state =
        FallbackState::open(Arc::clone(&remote) as _, vec![Arc::new(TestPolicy)], config).await.unwrap();
    let status = state.status().await;
    assert!(!status.is_mirror_complete && status.mirror_bytes <= 800, "{status:?}");
    remote.off();
    assert_eq!(text(&state, "m/1").await.unwrap(), "1234567");
    assert_kind(state.get("m/3").await, ErrorKind::Unavailable);
    assert_kind(state.scan("m/", None, ScanOrder::Ascending, 1).await, ErrorKind::Unavailable);
    assert_kind(state.apply(vec![Write::put("m/9", Expect::Absent, "")]).await, ErrorKind::Unavailable);
    // A revocation needs no knowledge of the record.
    state.apply(vec![Write::delete("m/3", Expect::Any)]).await.unwrap();
    assert_eq!(text(&state, "m/3").await, None);
    remote.on();
    state.recover().await.unwrap();
    assert_eq!(text(&*remote.store(), "m/3").await, None);
}

#[tokio::test]
async fn changes_of_other_processes_are_merged_by_the_policy() {
    let (state, remote, _folder) = fallback().await;
    for key in ["m/both", "m/ours", "m/deleted-here", "m/deleted-there", "m/parent/p", "m/parent/q"] {
        state.apply(put(key, "base")).await.unwrap();
    }
    remote.off();
    for key in ["m/both", "m/ours", "m/deleted-there", "m/new", "m/child/p", "m/child/q"] {
        state.apply(put(key, "ours")).await.unwrap();
    }
    state.apply(vec![Write::delete("m/deleted-here", Expect::Any)]).await.unwrap();
    let store = remote.store();
    store.apply(put("m/both", "theirs")).await.unwrap();
    store.apply(put("m/deleted-here", "theirs")).await.unwrap();
    store.apply(put("m/new", "theirs")).await.unwrap();
    store.apply(vec![Write::delete("m/deleted-there", Expect::Any)]).await.unwrap();
    store.apply(vec![Write::delete("m/parent/q", Expect::Any)]).await.unwrap();
    remote.on();
    state.recover().await.unwrap();
    let expected = [
        ("m/both", Some("theirs")),
        ("m/ours", Some("ours")),
        ("m/deleted-here", None),
        ("m/deleted-there", None),
        ("m/new", Some("theirs")),
        ("m/child/p", Some("ours")),
        ("m/child/q", None),
    ];
    for (key, value) in expected {
        assert_eq!(text(&*store, key).await.as_deref(), value, "{key}");
    }
    // The mirror knows the results, even if the store leaves again at once.
    remote.off();
    for (key, value) in expected {
        assert_eq!(text(&*state, key).await.as_deref(), value, "{key} in memory");
    }
}

/// The remote store answers reads, and the journal is not merged yet.
#[tokio::test]
async fn reads_stay_in_memory_until_the_journal_is_merged() {
    let (state, remote, _folder) = fallback().await;
    state.apply(put("m/session", "1")).await.unwrap();
    remote.off();
    state.apply(vec![Write::delete("m/session", Expect::Any)]).await.unwrap();
    remote.on();
    remote.refuse_steps();
    assert!(text(&*remote.store(), "m/session").await.is_some());
    assert_eq!(text(&*state, "m/session").await, None);
    assert_kind(state.recover().await, ErrorKind::Unavailable);
    assert_eq!(text(&*state, "m/session").await, None);
    state.apply(put("m/other", "1")).await.unwrap();
    assert_eq!(state.status().await.journal_entries, 2);
    remote.on();
    state.recover().await.unwrap();
    assert_eq!(text(&*remote.store(), "m/session").await, None);
    assert_eq!(text(&*remote.store(), "m/other").await.unwrap(), "1");
}

/// The remote store leaves again after some steps were merged.
#[tokio::test]
async fn memory_has_the_results_of_a_merge_that_was_cut_off() {
    let (state, remote, _folder) = fallback().await;
    for key in ["m/both", "m/twice"] {
        state.apply(put(key, "base")).await.unwrap();
    }
    remote.off();
    state.apply(put("m/both", "ours")).await.unwrap();
    state.apply(put("m/twice", "first")).await.unwrap();
    state.apply(put("m/twice", "second")).await.unwrap();
    remote.store().apply(put("m/both", "theirs")).await.unwrap();
    remote.on();
    remote.refuse_steps_after(2);
    assert_kind(state.recover().await, ErrorKind::Unavailable);
    assert_eq!(state.status().await.journal_entries, 1);
    assert_eq!(text(&*remote.store(), "m/twice").await.unwrap(), "first");
    assert_eq!(text(&*state, "m/both").await.unwrap(), "theirs", "the change was overruled");
    assert_eq!(text(&*state, "m/twice").await.unwrap(), "second", "its last change waits");
    let seen = version(&*state, "m/twice").await;
    remote.on();
    state.recover().await.unwrap();
    assert_eq!(text(&*remote.store(), "m/twice").await.unwrap(), "second");
    assert!(version(&*state, "m/twice").await > seen);
}

/// The answer of a read arrives after a revocation that was made without the remote store.
#[tokio::test]
async fn read_that_overlaps_the_beginning_of_an_outage_is_answered_from_memory() {
    let (state, remote, _folder) = fallback().await;
    state.apply(put("m/session", "1")).await.unwrap();
    remote.hold_reads();
    let reader = Arc::clone(&state);
    let read = tokio::spawn(async move { reader.get("m/session").await });
    remote.wait_for_held(1).await;
    remote.off();
    state.apply(vec![Write::delete("m/session", Expect::Any)]).await.unwrap();
    remote.release_answers();
    assert_eq!(read.await.unwrap().unwrap(), None);
    assert_eq!(text(&*state, "m/session").await, None);
}

#[tokio::test]
async fn background_task_returns_to_the_remote_store_and_refreshes_the_mirror() {
    let (remote, folder) = (Remote::new(), tempfile::tempdir().unwrap());
    let interval = Duration::from_millis(20);
    let config =
        FallbackConfig { refresh_interval: interval, probe_interval: interval, ..config(folder.path()) };
    let state =
        FallbackState::open(Arc::clone(&remote) as _, vec![Arc::new(TestPolicy)], config).await.unwrap();
    remote.off();
    state.apply(put("m/a", "1")).await.unwrap();
    remote.on();
    while text(&*remote.store(), "m/a").await.is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    while !state.status().await.is_remote_used {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    remote.store().apply(put("m/b", "1")).await.unwrap();
    while state.status().await.mirror_records < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn overlapping_writes_are_read_again() {
    let (state, remote, _folder) = fallback().await;
    state.apply(put("m/a", "1")).await.unwrap();
    remote.hold_answers();
    let writer = std::sync::Arc::clone(&state);
    let write = tokio::spawn(async move { writer.apply(put("m/a", "2")).await });
    remote.wait_for_held(1).await;
    // Another process writes later, and this process reads that before its own write is answered.
    remote.store().apply(put("m/a", "3")).await.unwrap();
    assert_eq!(text(&*state, "m/a").await.unwrap(), "3");
    let reads = remote.reads();
    remote.release_answers();
    write.await.unwrap().unwrap();
    while remote.reads() == reads {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    remote.off();
    while text(&*state, "m/a").await.unwrap() != "3" {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A call that does not need the mirror notices that the remote store is back.
#[tokio::test]
async fn successful_call_ends_the_outage() {
    let (state, remote, _folder) = fallback().await;
    remote.off();
    state.apply(put("m/a", "1")).await.unwrap();
    remote.on();
    assert!(!state.status().await.is_remote_used, "the next probe is due in an hour");
    while !state.status().await.is_remote_used {
        state.get("doc/1").await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(text(&*remote.store(), "m/a").await.unwrap(), "1");
}

#[tokio::test]
async fn remote_store_that_lost_its_records_gets_nothing_until_they_are_rebuilt() {
    let (remote, folder) = (Remote::new(), tempfile::tempdir().unwrap());
    remote.store().apply(put("m/root", "1")).await.unwrap();
    let with_sentinel = FallbackConfig { sentinel: Some("m/root".to_owned()), ..config(folder.path()) };
    let open =
        || FallbackState::open(Arc::clone(&remote) as _, vec![Arc::new(TestPolicy)], with_sentinel.clone());
    let state = open().await.unwrap();
    remote.off();
    state.apply(put("m/a", "1")).await.unwrap();
    remote.store().apply(vec![Write::delete("m/root", Expect::Any)]).await.unwrap();
    remote.on();
    assert_kind(state.recover().await, ErrorKind::Unavailable);
    let status = state.status().await;
    assert!(status.is_remote_empty && !status.is_remote_used && status.journal_entries == 1);
    // Nothing goes on from memory, because nothing would come of it.
    let (read, listed) = (state.get("m/a").await, state.scan("m/", None, ScanOrder::Ascending, 10).await);
    for refused in [read.map(drop), listed.map(drop), state.apply(put("m/b", "1")).await] {
        let error = refused.unwrap_err();
        assert!(error.kind() == ErrorKind::Unavailable && RecordsLost::caused(&error), "{error}");
    }
    state.close().await;
    drop(state);
    let state = open().await.unwrap();
    assert!(state.status().await.is_remote_empty, "the journal tells after a restart");
    assert_eq!(text(&*remote.store(), "m/a").await, None);
    remote.store().apply(put("m/root", "1")).await.unwrap();
    state.recover().await.unwrap();
    assert!(!state.status().await.is_remote_empty);
    assert_eq!(text(&*remote.store(), "m/a").await.unwrap(), "1");
    // It is also noticed while the remote store is used.
    remote.store().apply(vec![Write::delete("m/root", Expect::Any)]).await.unwrap();
    assert_kind(state.refresh().await, ErrorKind::Unavailable);
    assert!(state.status().await.is_remote_empty);
}

/// A new store has no sentinel, and that is no loss.
#[tokio::test]
async fn sentinel_that_was_never_there_is_not_missed() {
    let (remote, folder) = (Remote::new(), tempfile::tempdir().unwrap());
    let config = FallbackConfig { sentinel: Some("m/root".to_owned()), ..config(folder.path()) };
    let state =
        FallbackState::open(Arc::clone(&remote) as _, vec![Arc::new(TestPolicy)], config).await.unwrap();
    remote.off();
    state.apply(put("m/root", "1")).await.unwrap();
    remote.on();
    state.recover().await.unwrap();
    assert_eq!(text(&*remote.store(), "m/root").await.unwrap(), "1");
}

#[tokio::test]
async fn folder_of_a_journal_is_used_by_one_process() {
    let (state, remote, folder) = fallback().await;
    let second = crate::support::try_open(&remote, folder.path()).await;
    assert_kind(second.map(drop), ErrorKind::Invalid);
    crate::support::kill(state).await;
    open(&remote, folder.path()).await;
}

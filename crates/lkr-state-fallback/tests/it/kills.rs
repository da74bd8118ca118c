//! Processes that end during an outage.

use std::fs;

use lkr_state::{ErrorKind, Expect, ScanOrder, StateStore, StateStoreExt, Write};

use crate::support::{Remote, assert_kind, fallback, kill, open, text};

#[tokio::test]
async fn revocations_hold_after_a_restart_while_the_remote_store_is_away() {
    let (state, remote, folder) = fallback().await;
    for key in ["m/session", "m/other", "m/changed"] {
        state.apply(vec![Write::put(key, Expect::Any, "1")]).await.unwrap();
    }
    remote.off();
    state.apply(vec![Write::delete("m/session", Expect::Any)]).await.unwrap();
    state.apply(vec![Write::put("m/changed", Expect::Any, "2")]).await.unwrap();
    kill(state).await;
    let state = open(&remote, folder.path()).await;
    assert_eq!(text(&*state, "m/session").await, None);
    assert_eq!(text(&*state, "m/changed").await.unwrap(), "2");
    assert_kind(state.get("m/other").await, ErrorKind::Unavailable);
    assert_kind(state.scan("m/", None, ScanOrder::Ascending, 1).await, ErrorKind::Unavailable);
    // Later steps build on the earlier ones.
    let changed = state.get("m/changed").await.unwrap().unwrap().version;
    state.apply(vec![Write::put("m/changed", Expect::Version(changed), "3")]).await.unwrap();
    kill(state).await;
    remote.on();
    let state = open(&remote, folder.path()).await;
    assert_eq!(state.status().await.journal_entries, 0);
    for store in [&*state as &dyn StateStore, &*remote.store()] {
        assert_eq!(text(store, "m/session").await, None);
        assert_eq!(text(store, "m/changed").await.unwrap(), "3");
        assert_eq!(text(store, "m/other").await.unwrap(), "1");
    }
}

/// Whatever part of the journal's end a kill leaves, all steps before it are merged.
#[tokio::test]
async fn journal_cut_at_any_byte_is_merged_up_to_the_cut() {
    let (state, remote, folder) = fallback().await;
    let file = folder.path().join("journal");
    remote.off();
    let mut lengths = vec![];
    for n in 0..3 {
        state.apply(vec![Write::put(format!("m/{n}"), Expect::Any, "1")]).await.unwrap();
        lengths.push(fs::metadata(&file).unwrap().len());
    }
    kill(state).await;
    let journal = fs::read(&file).unwrap();
    for cut in 0..=journal.len() {
        fs::write(&file, &journal[..cut]).unwrap();
        let remote = Remote::new();
        let state = open(&remote, folder.path()).await;
        let whole = lengths.iter().filter(|&&length| length <= cut as u64).count();
        for n in 0..3 {
            let found = text(&*remote.store(), &format!("m/{n}")).await;
            assert_eq!(found.is_some(), n < whole, "cut at {cut}, step {n}");
        }
        kill(state).await;
    }
}

/// A kill between the merge of a step and the note of it: the step is found in the journal again.
#[tokio::test]
async fn steps_that_were_merged_before_a_kill_are_not_merged_again() {
    let (state, remote, folder) = fallback().await;
    let file = folder.path().join("journal");
    remote.off();
    for _ in 0..3 {
        state.apply(vec![Write::increment("m/n"), Write::put("m/session", Expect::Any, "1")]).await.unwrap();
    }
    kill(state).await;
    let journal = fs::read(&file).unwrap();
    remote.on();
    let state = open(&remote, folder.path()).await;
    remote.store().apply(vec![Write::delete("m/session", Expect::Any)]).await.unwrap();
    kill(state).await;
    fs::write(&file, journal).unwrap();
    let state = open(&remote, folder.path()).await;
    assert_eq!(state.counter("m/n").await.unwrap(), 3);
    assert_eq!(text(&*state, "m/session").await, None, "what was revoked since stays revoked");
}

#[tokio::test]
async fn damaged_journal_is_reported() {
    let (state, remote, folder) = fallback().await;
    let file = folder.path().join("journal");
    remote.off();
    for key in ["m/1", "m/2"] {
        state.apply(vec![Write::put(key, Expect::Any, "1")]).await.unwrap();
    }
    kill(state).await;
    let mut journal = fs::read(&file).unwrap();
    journal[40] ^= 1;
    fs::write(&file, journal).unwrap();
    assert_kind(crate::support::try_open(&remote, folder.path()).await.map(drop), ErrorKind::Corrupt);
}

/// A dropped call applies its step completely or not at all, also to the journal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_steps_are_applied_completely_or_not_at_all() {
    let (state, remote, _folder) = fallback().await;
    remote.off();
    state.get("m/0/a").await.unwrap();
    for n in 0..100_u64 {
        let step = vec![
            Write::put(format!("m/{n}/a"), Expect::Any, "1"),
            Write::put(format!("m/{n}/b"), Expect::Any, "1"),
        ];
        let wait = std::time::Duration::from_micros(n * 20);
        let _done_or_dropped = tokio::time::timeout(wait, state.apply(step)).await;
    }
    // The journal is appended to in order, so this step comes last.
    state.apply(vec![Write::put("m/last", Expect::Any, "1")]).await.unwrap();
    remote.on();
    let applied = state.status().await.journal_entries - 1;
    state.recover().await.unwrap();
    let mut found = 0;
    for n in 0..100 {
        let keys = [format!("m/{n}/a"), format!("m/{n}/b")];
        let records = remote.store().get_many(&keys).await.unwrap();
        assert_eq!(records[0].is_some(), records[1].is_some(), "step {n}");
        found += usize::from(records[0].is_some());
    }
    assert_eq!(found, applied);
}

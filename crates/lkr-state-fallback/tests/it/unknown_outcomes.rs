//! Steps of which nobody knows whether the remote store applied them.

use lkr_state::{ErrorKind, Expect, ScanOrder, StateStore, StateStoreExt, Write};

use crate::support::{assert_kind, fallback, kill, open, text};

#[tokio::test]
async fn step_that_was_applied_unanswered_is_merged_once() {
    let (state, remote, _folder) = fallback().await;
    remote.lose_answers();
    state.apply(vec![Write::increment("m/n"), Write::put("m/a", Expect::Absent, "1")]).await.unwrap();
    assert_eq!(state.counter("m/n").await.unwrap(), 1);
    assert_eq!(remote.store().counter("m/n").await.unwrap(), 1);
    remote.on();
    state.recover().await.unwrap();
    assert_eq!(state.counter("m/n").await.unwrap(), 1);
    assert_eq!(text(&*state, "m/a").await.unwrap(), "1");
}

/// Another process revokes what the step created, before this process knows that the step was applied.
#[tokio::test]
async fn record_of_an_unanswered_step_that_was_revoked_elsewhere_does_not_come_back() {
    let (state, remote, folder) = fallback().await;
    remote.lose_answers();
    state.apply(vec![Write::put("m/session", Expect::Absent, "1")]).await.unwrap();
    remote.store().apply(vec![Write::delete("m/session", Expect::Any)]).await.unwrap();
    kill(state).await;
    remote.on();
    let state = open(&remote, folder.path()).await;
    assert_eq!(text(&*remote.store(), "m/session").await, None);
    remote.off();
    assert_eq!(text(&*state, "m/session").await, None, "nor in memory");
}

/// The first attempt of a step arrives after the step was merged, and after what it created was revoked.
#[tokio::test]
async fn step_that_arrives_after_its_merge_is_refused() {
    let (state, remote, _folder) = fallback().await;
    remote.delay_steps();
    state.apply(vec![Write::put("m/session", Expect::Absent, "1"), Write::increment("m/n")]).await.unwrap();
    remote.on();
    state.recover().await.unwrap();
    assert_eq!(text(&*remote.store(), "m/session").await.unwrap(), "1");
    state.apply(vec![Write::delete("m/session", Expect::Any)]).await.unwrap();
    // Later steps delete receipts, but not that one.
    for _ in 0..10 {
        state.apply(vec![Write::put("m/a", Expect::Any, "1")]).await.unwrap();
    }
    assert_eq!(remote.deliver().await, 0);
    assert_eq!(text(&*remote.store(), "m/session").await, None);
    assert_eq!(state.counter("m/n").await.unwrap(), 1);
}

/// The merge itself is not answered.
#[tokio::test]
async fn merge_that_was_applied_unanswered_is_not_repeated() {
    let (state, remote, folder) = fallback().await;
    remote.off();
    state.apply(vec![Write::increment("m/n")]).await.unwrap();
    state.apply(vec![Write::increment("m/n")]).await.unwrap();
    remote.on();
    let once = crate::support::Remote::over(remote.store());
    kill(state).await;
    // Each attempt merges one step, of which the answer is lost, and finds what the attempt before it merged.
    once.lose_answers();
    let state = open(&once, folder.path()).await;
    assert_eq!(state.status().await.journal_entries, 2);
    assert_kind(state.recover().await, ErrorKind::Unavailable);
    assert_eq!(state.status().await.journal_entries, 1);
    kill(state).await;
    let state = open(&remote, folder.path()).await;
    assert_eq!(state.counter("m/n").await.unwrap(), 2);
}

/// A conflict would say that nothing was written, which is not known.
#[tokio::test]
async fn unanswered_step_that_memory_refuses_is_unavailable() {
    let (state, remote, _folder) = fallback().await;
    state.apply(vec![Write::put("m/a", Expect::Any, "1")]).await.unwrap();
    remote.store().apply(vec![Write::put("m/a", Expect::Any, "2")]).await.unwrap();
    let stale = state.get("m/a").await.unwrap().unwrap().version;
    remote.store().apply(vec![Write::delete("m/a", Expect::Any)]).await.unwrap();
    remote.off();
    // The mirror has the record, so memory refuses.
    let step = vec![Write::put("m/a", Expect::Absent, "3")];
    assert_kind(state.apply(step.clone()).await, ErrorKind::Unavailable);
    assert_kind(state.apply(step).await, ErrorKind::Conflict);
    state.apply(vec![Write::check("m/a", Expect::Version(stale))]).await.unwrap();
}

#[tokio::test]
async fn few_receipts_are_kept() {
    let (state, remote, _folder) = fallback().await;
    for _ in 0..50 {
        state.apply(vec![Write::increment("m/n")]).await.unwrap();
    }
    let receipts = remote.store().scan("fallback/receipt/", None, ScanOrder::Ascending, 100).await.unwrap();
    assert!(receipts.len() <= 2, "{}", receipts.len());
}

//! Opening a knowledge base while a store is away.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use lkr::{ErrorKind, KnowledgeBase, OpenOptions, OtherStores, Result, SharedState};
use lkr_state::{FailingState, MemoryQueue, MemoryState, ProcessId};
use lkr_vectors::{FailingVectors, MemoryVectors};
use object_store::{
    memory::InMemory,
    throttle::{ThrottleConfig, ThrottledStore},
};
use tokio::time::Instant;

use crate::{
    change_failures::limit_calls,
    common::{TestStores, document},
};

/// How many of the first descriptions of collections fail.
const FAILURES: u32 = 3;

/// Opens stores whose points cannot be read at first, and returns the time that it took.
async fn open(failure: lkr_vectors::ErrorKind, wait_for_stores: bool) -> (Result<KnowledgeBase>, Duration) {
    let left = AtomicU32::new(FAILURES);
    let fault = move |operation: &str| {
        let fails = operation == "describe"
            && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        fails.then_some(failure)
    };
    let (records, queue) = (Arc::new(MemoryState::new()), Arc::new(MemoryQueue::default()));
    let stores = OtherStores {
        vectors: Some(Arc::new(FailingVectors::new(Arc::new(MemoryVectors::default()), fault))),
        state: Some(SharedState {
            export: Arc::clone(&records) as _,
            records,
            queue,
            process: ProcessId::new(),
        }),
        blobs: Some(Arc::new(InMemory::new())),
    };
    let folder = tempfile::tempdir().unwrap();
    let options = OpenOptions { stores, wait_for_stores, ..OpenOptions::new(folder.path()) };
    let begun = Instant::now();
    let opened = KnowledgeBase::open_with(options).await;
    (opened, begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn opening_waits_for_a_store_that_is_away_if_it_is_asked_to() {
    let (opened, time) = open(lkr_vectors::ErrorKind::Unavailable, true).await;
    opened.unwrap().close().await;
    assert!(time >= Duration::from_secs(FAILURES.into()), "{time:?}");

    let (opened, time) = open(lkr_vectors::ErrorKind::Unavailable, false).await;
    assert_eq!(opened.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(time < Duration::from_secs(1), "{time:?}");
}

#[tokio::test(start_paused = true)]
async fn opening_fails_at_once_if_waiting_does_not_help() {
    let (opened, time) = open(lkr_vectors::ErrorKind::Internal, true).await;
    assert_eq!(opened.unwrap_err().kind(), ErrorKind::Internal);
    assert!(time < Duration::from_secs(1), "{time:?}");
}

/// A probe of readiness waits some seconds only, and searches go on without a blob store.
#[tokio::test(start_paused = true)]
async fn health_of_a_blob_store_that_hangs_is_told_soon() {
    let blobs = Arc::new(ThrottledStore::new(InMemory::new(), ThrottleConfig::default()));
    let stores = TestStores { blobs: Arc::clone(&blobs) as _, ..TestStores::default() };
    let kb = stores.open(None).await;
    assert!(kb.health().await.blobs.is_ok());
    blobs.config_mut(|config| config.wait_get_per_call = Duration::from_secs(60));
    let begun = Instant::now();
    let health = kb.health().await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let failure = health.blobs.failure.unwrap();
    assert!(failure.contains("did not answer within 2s"), "{failure}");
    assert!(health.state.is_ok() && health.vectors.is_ok());
    kb.close().await;
}

/// Who submits a document is not kept waiting until what was stored of it is deleted.
#[tokio::test(start_paused = true)]
async fn document_that_is_not_accepted_is_refused_soon_while_nothing_can_be_deleted() {
    let (left, hook) = limit_calls("apply", lkr_state::ErrorKind::Internal);
    let state = FailingState::new(Arc::new(MemoryState::default()), hook);
    let blobs = Arc::new(ThrottledStore::new(InMemory::new(), ThrottleConfig::default()));
    let stores =
        TestStores { state: Arc::new(state), blobs: Arc::clone(&blobs) as _, ..TestStores::default() };
    let kb = stores.open(None).await;
    blobs.config_mut(|config| config.wait_delete_per_call = Duration::from_secs(60));
    left.store(0, Ordering::SeqCst);
    let begun = Instant::now();
    assert_eq!(kb.add(document("slate", 1)).await.unwrap_err().kind(), ErrorKind::Internal);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    left.store(u64::MAX, Ordering::SeqCst);
    blobs.config_mut(|config| config.wait_delete_per_call = Duration::ZERO);
    kb.close().await;
}

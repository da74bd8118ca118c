//! Opening a knowledge base while a store is away.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use lkr::{ErrorKind, KnowledgeBase, OpenOptions, OtherStores, Result, SharedState};
use lkr_state::{MemoryQueue, MemoryState, ProcessId};
use lkr_vectors::{FailingVectors, MemoryVectors};
use object_store::memory::InMemory;
use tokio::time::Instant;

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

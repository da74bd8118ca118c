//! Runs that end at any of their operations, and those that go on.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "support/mod.rs"]
mod support;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use lkr_catalog::Originals;
use lkr_migrate::{ErrorKind, Migration, Phase, Progress, Stores, unfinished_migration};
use lkr_state::{FailingState, Key, Record, Scan, ScanOrder, StateStore, Write};
use lkr_vectors::{FailingVectors, VectorStore};
use object_store::ObjectStore;
use support::{FailingBlobs, content, data_folder, fill, memory, migration, options, quiet};

/// Lets a number of operations through, and fails all later ones, as a killed process makes none.
#[derive(Debug, Clone)]
struct Budget(Arc<AtomicU64>);

impl Budget {
    fn new(operations: u64) -> Self {
        Self(Arc::new(AtomicU64::new(operations)))
    }

    fn is_used_up(&self) -> bool {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err()
    }
}

/// The same stores, which are reachable for a number of operations. Originals are on the store of the texts.
fn dying(stores: &Stores, budget: &Budget) -> Stores {
    let [of_state, of_vectors, of_blobs] = [budget; 3].map(Clone::clone);
    let state = FailingState::new(Arc::clone(&stores.state), move |_| {
        of_state.is_used_up().then_some(lkr_state::ErrorKind::Internal)
    });
    let vectors: Arc<dyn VectorStore> = Arc::clone(stores.vectors.as_ref().unwrap());
    let vectors = FailingVectors::new(vectors, move |_| {
        of_vectors.is_used_up().then_some(lkr_vectors::ErrorKind::Internal)
    });
    let blobs = Arc::clone(stores.texts.as_ref().unwrap());
    let blobs: Arc<dyn ObjectStore> = Arc::new(FailingBlobs::new(blobs, move || of_blobs.is_used_up()));
    let originals = Some(Originals::on(Arc::clone(&blobs)));
    Stores { state: Arc::new(state), vectors: Some(Arc::new(vectors)), texts: Some(blobs), originals }
}

/// A run that ended because its budget was used up.
fn assert_killed(error: &lkr_migrate::Error) {
    assert!(error.to_string().contains("injected fault"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn run_that_ends_at_any_operation_is_finished_by_the_next() {
    let source = memory();
    fill(&source, 2).await;
    let before = content(&source).await;
    let mut ended = 0;
    for operations in 0.. {
        let target = memory();
        let budget = Budget::new(operations);
        let killed = Migration::new(dying(&source, &budget), dying(&target, &budget), options()).unwrap();
        match killed.run(&quiet).await {
            Ok(_) => break,
            Err(error) => assert_killed(&error),
        }
        // Whatever is there is marked.
        if unfinished_migration(&*target.state).await.unwrap().is_none() {
            let found = content(&target).await;
            assert!(found.records.is_empty() || found == before, "{operations}");
            assert!(found == before || (found.points.is_empty() && found.files.is_empty()), "{operations}");
            if found == before {
                continue;
            }
        }
        migration(&source, &target).run(&quiet).await.unwrap();
        assert_eq!(content(&target).await, before, "{operations}");
        ended += 1;
    }
    assert!(ended > 100, "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_advances_over_many_short_runs() {
    let (source, target) = (memory(), memory());
    fill(&source, 5).await;
    let mut runs = 0;
    loop {
        runs += 1;
        assert!(runs < 100, "no run goes on where the last one ended");
        // The first operations of a run count the source.
        let budget = Budget::new(120);
        let short = Migration::new(source.clone(), dying(&target, &budget), options()).unwrap();
        match short.run(&quiet).await {
            Ok(_) => break,
            Err(error) => assert_killed(&error),
        }
        if unfinished_migration(&*target.state).await.unwrap().is_some_and(|found| found.step == "verifying")
        {
            migration(&source, &target).run(&quiet).await.unwrap();
            break;
        }
    }
    assert!(runs > 1, "{runs}");
    assert_eq!(content(&source).await, content(&target).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn later_run_skips_what_is_copied() {
    let (source, target) = (memory(), memory());
    fill(&source, 5).await;
    let budget = Budget::new(u64::MAX);
    let stop = budget.clone();
    let killed = Migration::new(source.clone(), dying(&target, &budget), options()).unwrap();
    let at_records = move |progress: Progress| {
        if progress.phase == Phase::Records && progress.done >= 10 {
            stop.0.store(0, Ordering::SeqCst);
        }
    };
    killed.run(&at_records).await.unwrap_err();
    let found = unfinished_migration(&*target.state).await.unwrap().unwrap();
    assert_eq!((found.step, found.parts), ("copying records", killed.parts()));
    let phases = std::sync::Mutex::new(Vec::new());
    let watch = |progress: Progress| phases.lock().unwrap().push((progress.phase, progress.earlier));
    migration(&source, &target).run(&watch).await.unwrap();
    let phases = phases.into_inner().unwrap();
    assert!(phases.iter().all(|(phase, _)| !matches!(phase, Phase::Points | Phase::Blobs)), "{phases:?}");
    let earlier = phases.iter().find(|(phase, _)| *phase == Phase::Records).unwrap().1;
    assert!(earlier > 0, "{phases:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn data_folder_survives_a_migration_there_and_back_that_is_killed_on_the_way() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (source, middle) = (data_folder(from.path()), memory());
    fill(&source, 4).await;
    let before = content(&source).await;
    for operations in [20, 60, 90] {
        let budget = Budget::new(operations);
        let killed = Migration::new(source.clone(), dying(&middle, &budget), options()).unwrap();
        killed.run(&quiet).await.unwrap_err();
    }
    migration(&source, &middle).run(&quiet).await.unwrap();
    drop(source);
    let in_folder =
        |stores| Stores { originals: Some(Originals::in_folder(to.path().join("uploads"))), ..stores };
    for operations in [20, 60, 90] {
        // Opened anew each time, as by another process.
        let back = data_folder(to.path());
        let budget = Budget::new(operations);
        let killed = Migration::new(middle.clone(), in_folder(dying(&back, &budget)), options()).unwrap();
        killed.run(&quiet).await.unwrap_err();
    }
    let back = data_folder(to.path());
    migration(&middle, &back).run(&quiet).await.unwrap();
    assert_eq!(content(&back).await, before);
}

#[tokio::test]
async fn discarded_migration_leaves_an_empty_target() {
    let (source, target) = (memory(), memory());
    fill(&source, 3).await;
    let budget = Budget::new(u64::MAX);
    let stop = budget.clone();
    let killed = Migration::new(source.clone(), dying(&target, &budget), options()).unwrap();
    let at_records = move |progress: Progress| {
        if progress.phase == Phase::Records && progress.done >= 5 {
            stop.0.store(0, Ordering::SeqCst);
        }
    };
    killed.run(&at_records).await.unwrap_err();
    assert!(migration(&source, &target).discard(&quiet).await.unwrap());
    let empty = content(&memory()).await;
    assert_eq!(content(&target).await, empty);
    assert!(!migration(&source, &target).discard(&quiet).await.unwrap());
    migration(&source, &target).run(&quiet).await.unwrap();
}

#[tokio::test]
async fn older_run_fails_when_another_one_goes_on() {
    let (source, target) = (memory(), memory());
    fill(&source, 3).await;
    let (begin, go_on) = (tokio::sync::Notify::new(), Arc::new(tokio::sync::Notify::new()));
    let (begin, waits) = (Arc::new(begin), Arc::clone(&go_on));
    let begun = Arc::clone(&begin);
    let count = Arc::new(AtomicU64::new(0));
    // Stops in its third write, when the marker is there.
    let state = FailingState::with_async_fault(Arc::clone(&target.state), move |operation| {
        let is_third = operation == "apply" && count.fetch_add(1, Ordering::SeqCst) == 2;
        let (begun, waits) = (Arc::clone(&begun), Arc::clone(&waits));
        Box::pin(async move {
            if is_third {
                begun.notify_one();
                waits.notified().await;
            }
            None
        })
    });
    let state: Arc<dyn StateStore> = Arc::new(state);
    let slow = Migration::new(source.clone(), Stores { state, ..target.clone() }, options()).unwrap();
    let older = tokio::spawn(async move { slow.run(&quiet).await });
    begin.notified().await;
    migration(&source, &target).run(&quiet).await.unwrap();
    go_on.notify_one();
    let error = older.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InUse, "{error}");
    assert_eq!(content(&source).await, content(&target).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_that_are_away_for_a_moment_are_asked_again() {
    let (source, target) = (memory(), memory());
    fill(&source, 2).await;
    // Every third operation of each store fails.
    let counter = Arc::new(AtomicU64::new(0));
    let away = move || counter.fetch_add(1, Ordering::SeqCst) % 3 == 2;
    let (of_state, of_vectors) = (away.clone(), away);
    let state = FailingState::new(Arc::clone(&target.state), move |_| {
        of_state().then_some(lkr_state::ErrorKind::Unavailable)
    });
    let vectors = Arc::clone(target.vectors.as_ref().unwrap());
    let vectors =
        FailingVectors::new(vectors, move |_| of_vectors().then_some(lkr_vectors::ErrorKind::Unavailable));
    let unreliable = Stores { state: Arc::new(state), vectors: Some(Arc::new(vectors)), ..target.clone() };
    let mut options = options();
    options.points_per_batch = 100;
    options.records_per_batch = 100;
    options.retry_for = Duration::from_secs(60);
    Migration::new(source.clone(), unreliable, options).unwrap().run(&quiet).await.unwrap();
    assert_eq!(content(&source).await, content(&target).await);
}

/// A store whose answers to steps are lost: each step is applied, and every second one fails nevertheless.
#[derive(Debug)]
struct LosingAnswers {
    inner: Arc<dyn StateStore>,
    steps: AtomicU64,
}

#[async_trait]
impl StateStore for LosingAnswers {
    async fn get_many(&self, keys: &[Key]) -> lkr_state::Result<Vec<Option<Record>>> {
        self.inner.get_many(keys).await
    }

    async fn apply(&self, writes: Vec<Write>) -> lkr_state::Result<()> {
        self.inner.apply(writes).await?;
        match self.steps.fetch_add(1, Ordering::SeqCst) % 2 {
            0 => Err(lkr_state::Error::new(lkr_state::ErrorKind::Unavailable, "apply", "the answer is lost")),
            _ => Ok(()),
        }
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> lkr_state::Result<Vec<(Key, Record)>> {
        self.inner.scan(prefix, after, order, limit).await
    }

    async fn scan_many(&self, scans: &[Scan]) -> lkr_state::Result<Vec<Vec<(Key, Record)>>> {
        self.inner.scan_many(scans).await
    }

    async fn snapshot(&self, to: &Path) -> lkr_state::Result<()> {
        self.inner.snapshot(to).await
    }

    async fn health(&self) -> lkr_state::Result<()> {
        self.inner.health().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn step_whose_answer_is_lost_counts_once() {
    let (source, target) = (memory(), memory());
    fill(&source, 1).await;
    let state = LosingAnswers { inner: Arc::clone(&target.state), steps: AtomicU64::new(0) };
    let mut options = options();
    options.points_per_batch = 100;
    options.retry_for = Duration::from_secs(60);
    let losing = Stores { state: Arc::new(state), ..target.clone() };
    Migration::new(source.clone(), losing, options).unwrap().run(&quiet).await.unwrap();
    assert_eq!(content(&source).await, content(&target).await);
    assert!(unfinished_migration(&*target.state).await.unwrap().is_none());
}

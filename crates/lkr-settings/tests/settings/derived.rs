//! Values derived from the settings: when they are built, how often, and when they are dropped.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use lkr_settings::{Derived, IfMatch, RuntimeSettings, Settings};

use crate::support::{new_settings, open, threshold_change};

/// How many values were built and how many were dropped.
#[derive(Default)]
struct Counts {
    built: AtomicUsize,
    dropped: AtomicUsize,
}

/// A derived value that remembers a setting.
struct FakeClient {
    threshold: u8,
    counts: Arc<Counts>,
}

impl Counts {
    fn build(self: &Arc<Self>, settings: &RuntimeSettings) -> FakeClient {
        self.built.fetch_add(1, Ordering::SeqCst);
        FakeClient { threshold: settings.dedup.simhash_threshold, counts: Arc::clone(self) }
    }

    fn both(&self) -> (usize, usize) {
        (self.built.load(Ordering::SeqCst), self.dropped.load(Ordering::SeqCst))
    }
}

impl Drop for FakeClient {
    fn drop(&mut self) {
        self.counts.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

fn derive_counted(settings: &Settings) -> (Derived<FakeClient>, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let derived = settings.derive({
        let counts = Arc::clone(&counts);
        move |settings| counts.build(settings)
    });
    (derived, counts)
}

async fn set(settings: &Settings, threshold: u8) {
    settings.update(&threshold_change(threshold), &IfMatch::Any, vec![]).await.unwrap();
}

#[tokio::test]
async fn value_is_built_once_at_the_first_call() {
    let (settings, _) = new_settings();
    let (derived, counts) = derive_counted(&settings);
    assert_eq!(counts.both(), (0, 0));
    let first = derived.get().await.unwrap();
    for _ in 0..10 {
        assert!(Arc::ptr_eq(&first, &derived.clone().get().await.unwrap()));
    }
    assert_eq!(counts.both(), (1, 0));
}

#[tokio::test]
async fn change_drops_the_value_at_once() {
    let (settings, _) = new_settings();
    let (derived, counts) = derive_counted(&settings);
    let (idle, idle_counts) = derive_counted(&settings);
    drop(derived.get().await.unwrap());
    set(&settings, 9).await;
    assert_eq!(counts.both(), (1, 1), "the old value is dropped, the new one is built on demand");
    assert_eq!(derived.get().await.unwrap().threshold, 9);
    settings.reset(&IfMatch::Any, vec![]).await.unwrap();
    assert_eq!(counts.both(), (2, 2));
    assert_eq!(derived.get().await.unwrap().threshold, 3);
    assert_eq!((counts.both(), idle_counts.both()), ((3, 2), (0, 0)));
    drop((derived, idle));
    assert_eq!(counts.both(), (3, 3), "no other reference is left");
}

#[tokio::test]
async fn value_in_use_survives_a_change_and_later_calls_get_the_new_one() {
    let (settings, _) = new_settings();
    let (derived, counts) = derive_counted(&settings);
    let before = derived.get().await.unwrap();
    set(&settings, 9).await;
    let after = derived.get().await.unwrap();
    assert_eq!((before.threshold, after.threshold), (3, 9));
    assert_eq!(counts.both(), (2, 0));
    drop(before);
    assert_eq!(counts.both(), (2, 1));
}

#[tokio::test]
async fn refused_change_keeps_the_value() {
    let (settings, _) = new_settings();
    let (derived, counts) = derive_counted(&settings);
    derived.get().await.unwrap();
    assert!(settings.update(&threshold_change(65), &IfMatch::Any, vec![]).await.is_err());
    let stale = IfMatch::Tags(vec![]);
    assert!(settings.update(&threshold_change(9), &stale, vec![]).await.is_err());
    assert!(settings.reset(&stale, vec![]).await.is_err());
    derived.get().await.unwrap();
    assert_eq!(counts.both(), (1, 0));
}

#[tokio::test]
async fn change_by_another_process_is_seen_at_the_next_call() {
    let (settings, state) = new_settings();
    let (derived, counts) = derive_counted(&settings);
    derived.get().await.unwrap();
    set(&open(&state), 9).await;
    assert_eq!(derived.get().await.unwrap().threshold, 9);
    assert_eq!(counts.both(), (2, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_callers_build_one_value() {
    let (settings, _) = new_settings();
    let counts = Arc::new(Counts::default());
    let derived = settings.derive({
        let counts = Arc::clone(&counts);
        move |settings| {
            // Long enough for the other callers to arrive.
            std::thread::sleep(Duration::from_millis(20));
            counts.build(settings)
        }
    });
    for round in 1..=3 {
        set(&settings, round).await;
        let callers: Vec<_> = (0..32)
            .map(|_| {
                let derived = derived.clone();
                tokio::spawn(async move { derived.get().await.unwrap().threshold })
            })
            .collect();
        for caller in callers {
            assert_eq!(caller.await.unwrap(), round);
        }
        assert_eq!(counts.both().0, usize::from(round));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn value_outdated_during_its_build_is_not_cached() {
    let (settings, _) = new_settings();
    let counts = Arc::new(Counts::default());
    let (begun, building) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let derived = settings.derive({
        let counts = Arc::clone(&counts);
        move |settings| {
            // The test receives only the first message.
            let _ = begun.send(());
            gate.lock().unwrap().recv().unwrap();
            counts.build(settings)
        }
    });
    let caller = tokio::spawn({
        let derived = derived.clone();
        async move { derived.get().await.unwrap().threshold }
    });
    tokio::task::spawn_blocking(move || building.recv().unwrap()).await.unwrap();
    set(&settings, 9).await;
    go.send(()).unwrap();
    assert_eq!(caller.await.unwrap(), 3, "the call began before the change");
    assert_eq!(counts.both(), (1, 1));
    go.send(()).unwrap();
    assert_eq!(derived.get().await.unwrap().threshold, 9);
}

#[tokio::test]
async fn failed_build_is_cached_like_a_value() {
    let (settings, _) = new_settings();
    let derived = settings.derive(|settings| match settings.dedup.simhash_threshold {
        9 => Ok("client"),
        _ => Err("no such client"),
    });
    assert_eq!(*derived.get().await.unwrap(), Err("no such client"));
    set(&settings, 9).await;
    assert_eq!(*derived.get().await.unwrap(), Ok("client"));
}

//! What is built from the settings: when, how often, and when it goes.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use lkr_settings::{Derived, IfMatch, RuntimeSettings, Settings};

use crate::support::{fresh, of_threshold, over};

/// How many were built and how many are gone.
#[derive(Default)]
struct Counts {
    built: AtomicUsize,
    dropped: AtomicUsize,
}

/// What is built in the tests: it remembers a setting.
struct Fake {
    threshold: u8,
    counts: Arc<Counts>,
}

impl Counts {
    fn build(self: &Arc<Self>, settings: &RuntimeSettings) -> Fake {
        self.built.fetch_add(1, Ordering::SeqCst);
        Fake { threshold: settings.dedup.simhash_threshold, counts: Arc::clone(self) }
    }

    fn both(&self) -> (usize, usize) {
        (self.built.load(Ordering::SeqCst), self.dropped.load(Ordering::SeqCst))
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.counts.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

fn counted(settings: &Settings) -> (Derived<Fake>, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let derived = settings.derive({
        let counts = Arc::clone(&counts);
        move |settings| counts.build(settings)
    });
    (derived, counts)
}

async fn set(settings: &Settings, threshold: u8) {
    settings.update(&of_threshold(threshold), &IfMatch::Any, vec![]).await.unwrap();
}

#[tokio::test]
async fn built_when_first_asked_for_and_once() {
    let (settings, _) = fresh();
    let (derived, counts) = counted(&settings);
    assert_eq!(counts.both(), (0, 0));
    let first = derived.get().await.unwrap();
    for _ in 0..10 {
        assert!(Arc::ptr_eq(&first, &derived.clone().get().await.unwrap()));
    }
    assert_eq!(counts.both(), (1, 0));
}

#[tokio::test]
async fn a_change_drops_it_at_once() {
    let (settings, _) = fresh();
    let (derived, counts) = counted(&settings);
    let (idle, idle_counts) = counted(&settings);
    drop(derived.get().await.unwrap());
    set(&settings, 9).await;
    assert_eq!(counts.both(), (1, 1), "dropped, and not built before it is asked for");
    assert_eq!(derived.get().await.unwrap().threshold, 9);
    settings.reset(&IfMatch::Any, vec![]).await.unwrap();
    assert_eq!(counts.both(), (2, 2));
    assert_eq!(derived.get().await.unwrap().threshold, 3);
    assert_eq!((counts.both(), idle_counts.both()), ((3, 2), (0, 0)));
    drop((derived, idle));
    assert_eq!(counts.both(), (3, 3), "nothing else holds it");
}

#[tokio::test]
async fn a_request_in_flight_keeps_the_old_one_and_later_ones_get_the_new() {
    let (settings, _) = fresh();
    let (derived, counts) = counted(&settings);
    let before = derived.get().await.unwrap();
    set(&settings, 9).await;
    let after = derived.get().await.unwrap();
    assert_eq!((before.threshold, after.threshold), (3, 9));
    assert_eq!(counts.both(), (2, 0));
    drop(before);
    assert_eq!(counts.both(), (2, 1));
}

#[tokio::test]
async fn a_refused_change_drops_nothing() {
    let (settings, _) = fresh();
    let (derived, counts) = counted(&settings);
    derived.get().await.unwrap();
    assert!(settings.update(&of_threshold(65), &IfMatch::Any, vec![]).await.is_err());
    let stale = IfMatch::Tags(vec![]);
    assert!(settings.update(&of_threshold(9), &stale, vec![]).await.is_err());
    assert!(settings.reset(&stale, vec![]).await.is_err());
    derived.get().await.unwrap();
    assert_eq!(counts.both(), (1, 0));
}

#[tokio::test]
async fn a_change_of_another_process_is_seen_at_the_next_call() {
    let (settings, state) = fresh();
    let (derived, counts) = counted(&settings);
    derived.get().await.unwrap();
    set(&over(&state), 9).await;
    assert_eq!(derived.get().await.unwrap().threshold, 9);
    assert_eq!(counts.both(), (2, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_callers_at_once_build_one() {
    let (settings, _) = fresh();
    let counts = Arc::new(Counts::default());
    let derived = settings.derive({
        let counts = Arc::clone(&counts);
        move |settings| {
            // Long enough for the others to come meanwhile.
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
async fn what_a_change_makes_old_while_it_is_built_is_not_held() {
    let (settings, _) = fresh();
    let counts = Arc::new(Counts::default());
    let (begun, building) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let derived = settings.derive({
        let counts = Arc::clone(&counts);
        move |settings| {
            // Only the first one is waited for.
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
    assert_eq!(caller.await.unwrap(), 3, "it was asked for before the change");
    assert_eq!(counts.both(), (1, 1));
    go.send(()).unwrap();
    assert_eq!(derived.get().await.unwrap().threshold, 9);
}

#[tokio::test]
async fn a_build_that_fails_is_kept_as_any_other() {
    let (settings, _) = fresh();
    let derived = settings.derive(|settings| match settings.dedup.simhash_threshold {
        9 => Ok("client"),
        _ => Err("no such client"),
    });
    assert_eq!(*derived.get().await.unwrap(), Err("no such client"));
    set(&settings, 9).await;
    assert_eq!(*derived.get().await.unwrap(), Ok("client"));
}

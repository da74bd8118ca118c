//! Changes that fail or are interrupted.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
    mpsc,
};

use lkr::Layer;
use lkr_state::{FailingState, MemoryState, ScanOrder};
use lkr_vectors::{FailingVectors, Filter, MemoryVectors};

use crate::{
    changes::{assert_tags, category, tags},
    common::{TestStores, document, wait_until},
};

pub(crate) async fn notes(stores: &TestStores) -> usize {
    stores.state.scan("change/", None, ScanOrder::Ascending, 10).await.unwrap().len()
}

#[tokio::test]
async fn failed_change_is_reverted_at_once() {
    let countdown = Arc::new(AtomicU64::new(u64::MAX));
    let counted = Arc::clone(&countdown);
    let state = FailingState::new(Arc::new(MemoryState::default()), move |operation| {
        let fails = operation == "apply" && counted.fetch_sub(1, Ordering::SeqCst) == 0;
        fails.then_some(lkr_state::ErrorKind::Internal)
    });
    let stores = TestStores { state: Arc::new(state), ..TestStores::default() };
    let kb = stores.open(None).await;
    let before = kb.add(document("slate", 3)).await.unwrap();
    // The note is written, the record is not.
    countdown.store(1, Ordering::SeqCst);
    assert!(kb.change(before.doc_id, category("volcanic")).await.is_err());
    assert_tags(&stores, &before).await;
    assert_eq!(
        (kb.document(before.doc_id).await.unwrap().unwrap(), notes(&stores).await),
        (before.clone(), 0)
    );
    assert_eq!(kb.change(before.doc_id, category("volcanic")).await.unwrap().unwrap().category, "volcanic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn janitor_does_not_revert_a_change_in_progress() {
    let armed = Arc::new(AtomicBool::new(false));
    let (reached, wait) = (mpsc::channel(), mpsc::channel::<()>());
    let (signal, hold) = (reached.0, std::sync::Mutex::new(wait.1));
    let is_armed = Arc::clone(&armed);
    let vectors = FailingVectors::new(Arc::new(MemoryVectors::default()), move |operation| {
        if operation == "set_tags" && is_armed.swap(false, Ordering::SeqCst) {
            signal.send(()).unwrap();
            hold.lock().unwrap().recv().unwrap();
        }
        None
    });
    let stores = TestStores { vectors: Arc::new(vectors), ..TestStores::default() };
    let kb = stores.open(None).await;
    let changed = kb.add(document("slate", 3)).await.unwrap();
    let other = kb.add(document("chalk", 1)).await.unwrap();
    armed.store(true, Ordering::SeqCst);
    let changing = tokio::spawn({
        let kb = kb.clone();
        async move { kb.change(changed.doc_id, category("volcanic")).await }
    });
    tokio::task::spawn_blocking(move || reached.1.recv().unwrap()).await.unwrap();
    // A delete starts a round of the janitor.
    kb.delete(other.doc_id).await.unwrap();
    wait_until("the janitor's round is done", async || {
        stores.vectors.count(&Layer::L1.into(), &Filter::all()).await.unwrap() == 1
    })
    .await;
    assert_eq!(notes(&stores).await, 1);
    wait.0.send(()).unwrap();
    let after = changing.await.unwrap().unwrap().unwrap();
    assert_eq!((after.category.as_str(), notes(&stores).await), ("volcanic", 0));
    assert_tags(&stores, &after).await;
}

/// A hook that lets a settable number of calls of an operation pass and fails all further ones.
pub(crate) fn limit_calls<K: Copy>(
    operation: &'static str,
    kind: K,
) -> (Arc<AtomicU64>, impl Fn(&str) -> Option<K>) {
    let left = Arc::new(AtomicU64::new(u64::MAX));
    let counted = Arc::clone(&left);
    let hook = move |called: &str| {
        let cut = called == operation
            && counted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_err();
        cut.then_some(kind)
    };
    (left, hook)
}

/// Stores whose writes of records and of tags can be limited.
fn limited_stores() -> (TestStores, Arc<AtomicU64>, Arc<AtomicU64>) {
    let (writes, hook) = limit_calls("apply", lkr_state::ErrorKind::Internal);
    let state = FailingState::new(Arc::new(MemoryState::default()), hook);
    let (tagged, hook) = limit_calls("set_tags", lkr_vectors::ErrorKind::Internal);
    let vectors = FailingVectors::new(Arc::new(MemoryVectors::default()), hook);
    let stores = TestStores { state: Arc::new(state), vectors: Arc::new(vectors), ..TestStores::default() };
    (stores, writes, tagged)
}

/// If a crash hits between the points and the record, the next start sets the tags of the record again.
#[tokio::test]
async fn interrupted_change_is_reverted_to_the_record_at_start() {
    let (stores, writes, tagged) = limited_stores();
    let kb = stores.open(None).await;
    let before = kb.add(document("slate", 3)).await.unwrap();
    // The note and the tags of all layers are written; all further writes fail.
    writes.store(1, Ordering::SeqCst);
    tagged.store(4, Ordering::SeqCst);
    assert!(kb.change(before.doc_id, category("volcanic")).await.is_err());
    assert!(tags(&stores, before.doc_id).await.iter().all(|tags| tags["category"] == "volcanic"));
    assert_eq!(
        (kb.document(before.doc_id).await.unwrap().unwrap(), notes(&stores).await),
        (before.clone(), 1)
    );
    drop(kb);
    writes.store(u64::MAX, Ordering::SeqCst);
    tagged.store(u64::MAX, Ordering::SeqCst);
    let kb = stores.open(None).await;
    wait_until("the note is gone", async || notes(&stores).await == 0).await;
    assert_tags(&stores, &kb.document(before.doc_id).await.unwrap().unwrap()).await;
}

/// The same in a process that continues, once the stores recover.
#[tokio::test]
async fn failed_revert_is_repeated_by_the_janitor() {
    let (stores, writes, tagged) = limited_stores();
    let kb = stores.open(None).await;
    let before = kb.add(document("slate", 3)).await.unwrap();
    let other = kb.add(document("chalk", 1)).await.unwrap();
    writes.store(1, Ordering::SeqCst);
    tagged.store(4, Ordering::SeqCst);
    assert!(kb.change(before.doc_id, category("volcanic")).await.is_err());
    writes.store(u64::MAX, Ordering::SeqCst);
    tagged.store(u64::MAX, Ordering::SeqCst);
    // A delete starts a round of the janitor.
    kb.delete(other.doc_id).await.unwrap();
    wait_until("the note is gone", async || notes(&stores).await == 0).await;
    assert_tags(&stores, &before).await;
}

//! What changes of documents and their categories promise.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use crate::common::{Ground, Scripted, document, ended, until};
use lkr::{
    DocId, Document, DocumentChange, ErrorKind, KnowledgeBase, Layer, ListFilter, NewDocument, SearchFilters,
    SearchRequest, Submission, TaskKind, TaskResult, TaskStatus,
};
use lkr_state::{Expect, FailingState, MemoryState, ScanOrder, StateStoreExt, Write};
use lkr_vectors::{Condition, FailingVectors, Filter, Include, MemoryVectors};

fn category(name: &str) -> DocumentChange {
    DocumentChange { category: Some(name.to_owned()), ..DocumentChange::default() }
}

fn metadata(key: &str, value: Option<&str>) -> DocumentChange {
    let metadata = [(key.to_owned(), value.map(str::to_owned))].into();
    DocumentChange { metadata, ..DocumentChange::default() }
}

/// The documents that a search under a filter finds.
async fn found(kb: &KnowledgeBase, filters: SearchFilters) -> BTreeSet<DocId> {
    let request = SearchRequest { filters, top_k: 100, ..SearchRequest::new("grey number") };
    let found = kb.search(&request).await.unwrap();
    found.response.results.iter().map(|result| result.doc_id).collect()
}

async fn of_category(kb: &KnowledgeBase, name: &str) -> BTreeSet<DocId> {
    found(kb, SearchFilters { category: Some(name.to_owned()), ..SearchFilters::default() }).await
}

/// Asserts that every point of a live document has the tags that its record tells.
async fn assert_tags(ground: &Ground, document: &Document) {
    let filter = Filter::only(Condition::Docs(vec![document.doc_id]));
    let expected = lkr_catalog::tags_of(document);
    let mut points = 0;
    for layer in Layer::ALL {
        let page = ground.vectors.scroll(&layer.into(), &filter, None, 1000, Include::Payload).await.unwrap();
        for point in &page.points {
            assert_eq!(point.tags, expected, "{layer} {}", point.id);
        }
        points += page.points.len() as u64;
    }
    assert_eq!(points, document.counts.total());
}

async fn tags(ground: &Ground, doc_id: DocId) -> Vec<lkr_vectors::Tags> {
    let filter = Filter::only(Condition::Docs(vec![doc_id]));
    let page =
        ground.vectors.scroll(&Layer::Chunks.into(), &filter, None, 1000, Include::Payload).await.unwrap();
    page.points.into_iter().map(|point| point.tags).collect()
}

#[tokio::test]
async fn a_document_gets_its_category_on_the_way_in() {
    let ground = Ground::default();
    ground.classifier.learn("basalt", "volcanic");
    ground.classifier.learn("granite", "plutonic");
    let kb = ground.open(Some(Scripted::free())).await;
    // Of one batch, of several, and of no category.
    let basalt = kb.add(document("basalt", 3)).await.unwrap();
    let granite = kb.add(document("granite", 11)).await.unwrap();
    let chalk = kb.add(document("chalk", 2)).await.unwrap();
    for (document, name) in [(&basalt, "volcanic"), (&granite, "plutonic"), (&chalk, "")] {
        assert_eq!((document.category.as_str(), document.category_by_hand), (name, false));
        assert_tags(&ground, document).await;
        assert_eq!(of_category(&kb, name).await, [document.doc_id].into());
    }
    let stats = kb.stats().await.unwrap();
    let counted: Vec<_> = stats.categories.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(counted, [("plutonic", 1), ("uncategorized", 1), ("volcanic", 1)]);
}

#[tokio::test]
async fn a_classifier_that_fails_leaves_a_warning_and_no_category() {
    let ground = Ground::default();
    ground.classifier.learn("basalt", "volcanic");
    ground.classifier.fails.store(true, Ordering::SeqCst);
    let kb = ground.open(Some(Scripted::free())).await;
    let task = kb.submit(document("basalt", 1), Submission::by("eva".into())).await.unwrap();
    let task = ended(&kb, task.task_id).await;
    let Some(TaskResult::Document(result)) = task.result else { panic!("{:?}", task.error) };
    assert_eq!(result.category, "");
    assert!(result.warnings.iter().any(|warning| warning.contains("category")), "{:?}", result.warnings);
}

#[tokio::test]
async fn a_change_shows_everywhere_at_once() {
    let ground = Ground::default();
    let kb = ground.open(Some(Scripted::free())).await;
    let with = NewDocument {
        source: "a".to_owned(),
        metadata: [("kind".to_owned(), "stone".to_owned()), ("old".to_owned(), "1".to_owned())].into(),
        ..document("basalt", 6)
    };
    let before = kb.add(with).await.unwrap();
    let other = kb.add(document("chalk", 2)).await.unwrap();
    // Cached answers do not outlive it.
    assert!(of_category(&kb, "volcanic").await.is_empty());
    let change = DocumentChange {
        title: Some("Basalt, a rock".to_owned()),
        source: Some("b".to_owned()),
        category: Some("volcanic".to_owned()),
        metadata: [("old".to_owned(), None), ("new".to_owned(), Some("2".to_owned()))].into(),
    };
    let after = kb.change(before.doc_id, change).await.unwrap().unwrap();
    let expected = Document {
        title: "Basalt, a rock".to_owned(),
        source: "b".to_owned(),
        category: "volcanic".to_owned(),
        category_by_hand: true,
        metadata: [("kind".to_owned(), "stone".to_owned()), ("new".to_owned(), "2".to_owned())].into(),
        updated_at: after.updated_at,
        ..before.clone()
    };
    assert_eq!(after, expected);
    assert!(after.updated_at > before.updated_at);
    assert_eq!(kb.document(before.doc_id).await.unwrap().unwrap(), after);
    assert_tags(&ground, &after).await;
    assert_eq!(of_category(&kb, "volcanic").await, [after.doc_id].into());
    assert_eq!(of_category(&kb, "").await, [other.doc_id].into());
    for (key, value, shown) in [("new", "2", true), ("kind", "stone", true), ("old", "1", false)] {
        let metadata = [(key.to_owned(), value.to_owned())].into();
        let hit = found(&kb, SearchFilters { metadata, ..SearchFilters::default() }).await;
        assert_eq!(hit.contains(&after.doc_id), shown, "{key}");
    }
    let filter = ListFilter { source: Some("b".to_owned()), ..ListFilter::default() };
    let listed = kb.list(&filter, None, 10).await.unwrap().items;
    assert_eq!(listed.iter().map(|document| document.doc_id).collect::<Vec<_>>(), [after.doc_id]);
    let hit = kb.search(&SearchRequest::new("the basalt number 3")).await.unwrap();
    assert_eq!(hit.response.results[0].title, "Basalt, a rock");
}

#[tokio::test]
async fn what_is_not_there_and_what_is_too_much() {
    let kb = Ground::default().open(None).await;
    assert_eq!(kb.change(DocId::new(), category("x")).await.unwrap(), None);
    let before = kb.add(document("chalk", 1)).await.unwrap();
    let keys = (0..65).map(|n| (n.to_string(), Some(String::new()))).collect();
    let refused =
        kb.change(before.doc_id, DocumentChange { metadata: keys, ..DocumentChange::default() }).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    let long = "x".repeat(256 * 1024);
    let refused = kb.change(before.doc_id, metadata("k", Some(&long))).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert_eq!(kb.document(before.doc_id).await.unwrap().unwrap(), before);
}

#[tokio::test]
async fn what_changes_nothing_writes_nothing() {
    let ground = Ground::default();
    let kb = ground.open(None).await;
    let before = kb.add(document("chalk", 1)).await.unwrap();
    let note = || vec![Write::put("note", Expect::Absent, "1")];
    let title = DocumentChange { title: Some(before.title.clone()), ..DocumentChange::default() };
    for change in [DocumentChange::default(), title, metadata("absent", None)] {
        assert_eq!(kb.change_and(before.doc_id, change, note()).await.unwrap().unwrap(), before);
    }
    assert!(ground.state.get("note").await.unwrap().is_none());
    kb.change_and(before.doc_id, metadata("k", Some("v")), note()).await.unwrap();
    assert!(ground.state.get("note").await.unwrap().is_some());
    // What cannot be written alongside keeps the change from being made.
    let refused = kb.change_and(before.doc_id, metadata("k", Some("w")), note()).await;
    assert!(refused.is_err());
    assert_eq!(kb.document(before.doc_id).await.unwrap().unwrap().metadata["k"], "v");
    let deleted = kb.delete_and(DocId::new(), vec![Write::put("other", Expect::Any, "1")]).await.unwrap();
    assert_eq!(deleted.total(), 0);
    assert!(ground.state.get("other").await.unwrap().is_none());
}

#[tokio::test]
async fn none_of_many_changes_at_once_is_lost() {
    // Steps that take a moment come in each other's way.
    let state = FailingState::hooked(Arc::new(MemoryState::default()), |operation| {
        let takes = Duration::from_millis(u64::from(operation == "apply"));
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            None
        })
    });
    let ground = Ground { state: Arc::new(state), ..Ground::default() };
    let kb = ground.open(None).await;
    let doc_id = kb.add(document("slate", 3)).await.unwrap().doc_id;
    for round in 0..3 {
        let changes = (0..40).map(|n| {
            let kb = kb.clone();
            tokio::spawn(async move {
                kb.change(doc_id, metadata(&n.to_string(), Some(&round.to_string()))).await
            })
        });
        for change in changes.collect::<Vec<_>>() {
            change.await.unwrap().unwrap().unwrap();
        }
        let document = kb.document(doc_id).await.unwrap().unwrap();
        assert_eq!(document.metadata.values().cloned().collect::<Vec<_>>(), vec![round.to_string(); 40]);
        assert_tags(&ground, &document).await;
    }
    assert_eq!(notes(&ground).await, 0);
}

async fn notes(ground: &Ground) -> usize {
    ground.state.scan("change/", None, ScanOrder::Ascending, 10).await.unwrap().len()
}

#[tokio::test]
async fn a_change_that_fails_is_taken_back_at_once() {
    let countdown = Arc::new(AtomicU64::new(u64::MAX));
    let counted = Arc::clone(&countdown);
    let state = FailingState::new(Arc::new(MemoryState::default()), move |operation| {
        let fails = operation == "apply" && counted.fetch_sub(1, Ordering::SeqCst) == 0;
        fails.then_some(lkr_state::ErrorKind::Internal)
    });
    let ground = Ground { state: Arc::new(state), ..Ground::default() };
    let kb = ground.open(None).await;
    let before = kb.add(document("slate", 3)).await.unwrap();
    // The note is written, the record is not.
    countdown.store(1, Ordering::SeqCst);
    assert!(kb.change(before.doc_id, category("volcanic")).await.is_err());
    assert_tags(&ground, &before).await;
    assert_eq!(
        (kb.document(before.doc_id).await.unwrap().unwrap(), notes(&ground).await),
        (before.clone(), 0)
    );
    assert_eq!(kb.change(before.doc_id, category("volcanic")).await.unwrap().unwrap().category, "volcanic");
}

/// The janitor tidies up after those who are gone, not those who are at it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_change_under_way_is_left_alone() {
    let armed = Arc::new(AtomicBool::new(false));
    let (reached, wait) = (mpsc::channel(), mpsc::channel::<()>());
    let (tell, hold) = (reached.0, std::sync::Mutex::new(wait.1));
    let seen = Arc::clone(&armed);
    let vectors = FailingVectors::new(Arc::new(MemoryVectors::default()), move |operation| {
        if operation == "set_tags" && seen.swap(false, Ordering::SeqCst) {
            tell.send(()).unwrap();
            hold.lock().unwrap().recv().unwrap();
        }
        None
    });
    let ground = Ground { vectors: Arc::new(vectors), ..Ground::default() };
    let kb = ground.open(None).await;
    let changed = kb.add(document("slate", 3)).await.unwrap();
    let other = kb.add(document("chalk", 1)).await.unwrap();
    armed.store(true, Ordering::SeqCst);
    let changing = tokio::spawn({
        let kb = kb.clone();
        async move { kb.change(changed.doc_id, category("volcanic")).await }
    });
    tokio::task::spawn_blocking(move || reached.1.recv().unwrap()).await.unwrap();
    // A delete sends the janitor on a round.
    kb.delete(other.doc_id).await.unwrap();
    until("the round is done", async || {
        ground.vectors.count(&Layer::L1.into(), &Filter::all()).await.unwrap() == 1
    })
    .await;
    assert_eq!(notes(&ground).await, 1);
    wait.0.send(()).unwrap();
    let after = changing.await.unwrap().unwrap().unwrap();
    assert_eq!((after.category.as_str(), notes(&ground).await), ("volcanic", 0));
    assert_tags(&ground, &after).await;
}

/// A hook that lets so many calls of an operation through and fails all others, until it is set anew.
fn counting<K: Copy>(operation: &'static str, kind: K) -> (Arc<AtomicU64>, impl Fn(&str) -> Option<K>) {
    let left = Arc::new(AtomicU64::new(u64::MAX));
    let counted = Arc::clone(&left);
    let hook = move |called: &str| {
        let cut = called == operation
            && counted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_err();
        cut.then_some(kind)
    };
    (left, hook)
}

/// A ground on which writes of records and of tags can be limited.
fn limited() -> (Ground, Arc<AtomicU64>, Arc<AtomicU64>) {
    let (writes, hook) = counting("apply", lkr_state::ErrorKind::Internal);
    let state = FailingState::new(Arc::new(MemoryState::default()), hook);
    let (tagged, hook) = counting("set_tags", lkr_vectors::ErrorKind::Internal);
    let vectors = FailingVectors::new(Arc::new(MemoryVectors::default()), hook);
    let ground = Ground { state: Arc::new(state), vectors: Arc::new(vectors), ..Ground::default() };
    (ground, writes, tagged)
}

/// The record decides: a change that was cut off between the points and the record is taken back by the next start.
#[tokio::test]
async fn a_change_that_is_cut_off_leaves_what_the_record_tells() {
    let (ground, writes, tagged) = limited();
    let kb = ground.open(None).await;
    let before = kb.add(document("slate", 3)).await.unwrap();
    // The note is written and the tags of all layers; from then on nothing is.
    writes.store(1, Ordering::SeqCst);
    tagged.store(4, Ordering::SeqCst);
    assert!(kb.change(before.doc_id, category("volcanic")).await.is_err());
    assert!(tags(&ground, before.doc_id).await.iter().all(|tags| tags["category"] == "volcanic"));
    assert_eq!(
        (kb.document(before.doc_id).await.unwrap().unwrap(), notes(&ground).await),
        (before.clone(), 1)
    );
    drop(kb);
    writes.store(u64::MAX, Ordering::SeqCst);
    tagged.store(u64::MAX, Ordering::SeqCst);
    let kb = ground.open(None).await;
    until("the note is gone", async || notes(&ground).await == 0).await;
    assert_tags(&ground, &kb.document(before.doc_id).await.unwrap().unwrap()).await;
}

/// The same where the process goes on and the stores come back.
#[tokio::test]
async fn a_change_that_could_not_be_taken_back_is_later() {
    let (ground, writes, tagged) = limited();
    let kb = ground.open(None).await;
    let before = kb.add(document("slate", 3)).await.unwrap();
    let other = kb.add(document("chalk", 1)).await.unwrap();
    writes.store(1, Ordering::SeqCst);
    tagged.store(4, Ordering::SeqCst);
    assert!(kb.change(before.doc_id, category("volcanic")).await.is_err());
    writes.store(u64::MAX, Ordering::SeqCst);
    tagged.store(u64::MAX, Ordering::SeqCst);
    // A delete sends the janitor on a round.
    kb.delete(other.doc_id).await.unwrap();
    until("the note is gone", async || notes(&ground).await == 0).await;
    assert_tags(&ground, &before).await;
}

#[tokio::test]
async fn a_category_chosen_by_hand_stays() {
    let ground = Ground::default();
    ground.classifier.learn("basalt", "volcanic");
    let kb = ground.open(Some(Scripted::free())).await;
    let (basalt, slate, chalk) = (
        kb.add(document("basalt", 1)).await.unwrap(),
        kb.add(document("slate", 6)).await.unwrap(),
        kb.add(document("chalk", 1)).await.unwrap(),
    );
    kb.change(slate.doc_id, category("roofing")).await.unwrap();
    kb.change(chalk.doc_id, category("")).await.unwrap();
    for name in ["slate", "chalk", "basalt"] {
        ground.classifier.learn(name, "found");
    }
    let task = kb.reclassify(&"eva".into()).await.unwrap();
    assert_eq!((task.kind, task.status), (TaskKind::Reclassify, TaskStatus::Pending));
    let task = ended(&kb, task.task_id).await;
    let Some(TaskResult::Reclassified(result)) = task.result else { panic!("{:?}", task.error) };
    assert_eq!((result.documents, result.changed, result.by_hand, result.uncategorized), (3, 1, 2, 0));
    for (document, name) in [(basalt, "found"), (slate, "roofing"), (chalk, "")] {
        let now = kb.document(document.doc_id).await.unwrap().unwrap();
        assert_eq!(now.category, name);
        assert_tags(&ground, &now).await;
    }
    assert_eq!(kb.queued().await.unwrap(), 0);
}

#[tokio::test]
async fn classifying_again_goes_on_where_the_classifier_is_back() {
    let ground = Ground::default();
    let kb = ground.open(Some(Scripted::free())).await;
    let basalt = kb.add(document("basalt", 1)).await.unwrap();
    ground.classifier.learn("basalt", "volcanic");
    ground.classifier.fails.store(true, Ordering::SeqCst);
    let task = kb.reclassify(&"eva".into()).await.unwrap();
    until("it failed once", async || kb.task(task.task_id).await.unwrap().unwrap().attempts > 0).await;
    ground.classifier.fails.store(false, Ordering::SeqCst);
    let task = ended(&kb, task.task_id).await;
    assert_eq!(task.status, TaskStatus::Done, "{:?}", task.error);
    assert_eq!(kb.document(basalt.doc_id).await.unwrap().unwrap().category, "volcanic");
}

#[tokio::test]
async fn a_task_that_was_accepted_outlives_the_process() {
    let ground = Ground::default();
    ground.classifier.learn("basalt", "volcanic");
    let kb = ground.open(None).await;
    kb.add(document("basalt", 1)).await.unwrap();
    kb.clone().close().await;
    let task = kb.reclassify(&"eva".into()).await.unwrap();
    // The queue is forgotten, the task is not.
    let kb = ground.open(Some(Scripted::free())).await;
    assert_eq!(ended(&kb, task.task_id).await.kind, TaskKind::Reclassify);
}

#[tokio::test]
async fn documents_get_their_categories_with_their_vectors() {
    let ground = Ground::default();
    ground.classifier.learn("basalt", "volcanic");
    ground.classifier.learn("slate", "found");
    let kb = ground.open(None).await;
    let (basalt, slate) =
        (kb.add(document("basalt", 6)).await.unwrap(), kb.add(document("slate", 1)).await.unwrap());
    assert_eq!(basalt.category, "");
    kb.change(slate.doc_id, category("roofing")).await.unwrap();
    kb.close().await;
    let kb = ground.open(Some(Scripted::free())).await;
    until("it has its category", async || {
        kb.document(basalt.doc_id).await.unwrap().unwrap().category == "volcanic"
    })
    .await;
    until("the collections have switched", async || {
        let live = ground.vectors.describe(&Layer::L1.into()).await.unwrap();
        live.is_some_and(|spec| spec.dense.is_some())
    })
    .await;
    for doc_id in [basalt.doc_id, slate.doc_id] {
        assert_tags(&ground, &kb.document(doc_id).await.unwrap().unwrap()).await;
    }
    assert_eq!(kb.document(slate.doc_id).await.unwrap().unwrap().category, "roofing");
}

/// Between a document's last point and what follows it the process may end.
#[tokio::test]
async fn re_embedding_that_is_cut_off_goes_on_where_it_was() {
    let (left, hook) = counting("apply", lkr_state::ErrorKind::Internal);
    let state = FailingState::new(Arc::new(MemoryState::default()), hook);
    let ground = Ground { state: Arc::new(state), ..Ground::default() };
    ground.classifier.learn("basalt", "volcanic");
    let kb = ground.open(None).await;
    let doc_id = kb.add(document("basalt", 6)).await.unwrap().doc_id;
    kb.close().await;
    let embedder = Scripted::new(0);
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    until("its points are being copied", async || notes(&ground).await == 1).await;
    // A change of now may miss the batch that is being embedded; from here on nothing is recorded any more.
    kb.change(doc_id, metadata("round", Some("1"))).await.unwrap();
    left.store(0, Ordering::SeqCst);
    embedder.permits.add_permits(1000);
    let filling = async |layer: Layer| {
        let all = ground.vectors.collections().await.unwrap();
        let spec = all.iter().find(|s| s.dense.is_some() && s.collection.name().starts_with(layer.name()));
        ground.vectors.count(&spec.unwrap().collection, &Filter::all()).await.unwrap()
    };
    until("its last point is there", async || filling(Layer::L1).await == 1).await;
    kb.close().await;
    left.store(u64::MAX, Ordering::SeqCst);
    let kb = ground.open(Some(Scripted::free())).await;
    until("it has its category", async || kb.document(doc_id).await.unwrap().unwrap().category == "volcanic")
        .await;
    until("the collections have switched", async || {
        let live = ground.vectors.describe(&Layer::L1.into()).await.unwrap();
        live.is_some_and(|spec| spec.dense.is_some())
    })
    .await;
    until("nothing is under way", async || notes(&ground).await == 0).await;
    assert_tags(&ground, &kb.document(doc_id).await.unwrap().unwrap()).await;
}

/// Whoever changes a document while all are embedded anew finds the change in the new collections too.
#[tokio::test]
async fn a_change_amid_re_embedding_is_in_the_new_collections() {
    let ground = Ground::default();
    let kb = ground.open(None).await;
    let mut documents = Vec::new();
    for n in 0..20 {
        documents.push(kb.add(document(&format!("slate{n}"), 2)).await.unwrap());
    }
    kb.close().await;
    let embedder = Scripted::new(0);
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    for (round, document) in documents.iter().enumerate() {
        embedder.permits.add_permits(1);
        kb.change(document.doc_id, metadata("round", Some(&round.to_string()))).await.unwrap();
    }
    embedder.permits.add_permits(1000);
    until("the collections have switched", async || {
        let live = ground.vectors.describe(&Layer::L1.into()).await.unwrap();
        live.is_some_and(|spec| spec.dense.is_some())
    })
    .await;
    for document in documents {
        assert_tags(&ground, &kb.document(document.doc_id).await.unwrap().unwrap()).await;
    }
}

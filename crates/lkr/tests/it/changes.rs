//! Manual changes to documents, and classification.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use lkr::{
    DocId, Document, DocumentChange, ErrorKind, KnowledgeBase, Layer, ListFilter, NewDocument, Scope,
    SearchFilters, SearchRequest, Submission, TaskKind, TaskResult, TaskStatus,
};
use lkr_state::{Expect, FailingState, MemoryState, StateStoreExt, Write};
use lkr_vectors::{Condition, Filter, Include};

use crate::{
    change_failures::{limit_calls, notes},
    common::{ScriptedEmbedder, TestStores, document, wait_for_task, wait_until},
};

pub(crate) fn category(name: &str) -> DocumentChange {
    DocumentChange { category: Some(name.to_owned()), ..DocumentChange::default() }
}

fn metadata(key: &str, value: Option<&str>) -> DocumentChange {
    let metadata = [(key.to_owned(), value.map(str::to_owned))].into();
    DocumentChange { metadata, ..DocumentChange::default() }
}

/// The documents that a search with a filter returns.
async fn search_ids(kb: &KnowledgeBase, filters: SearchFilters) -> BTreeSet<DocId> {
    let request = SearchRequest { filters, top_k: 100, ..SearchRequest::new("grey number") };
    let found = kb.search(&request).await.unwrap();
    found.response.results.iter().map(|result| result.doc_id).collect()
}

async fn search_category(kb: &KnowledgeBase, name: &str) -> BTreeSet<DocId> {
    search_ids(kb, SearchFilters { category: Some(name.to_owned()), ..SearchFilters::default() }).await
}

/// Asserts that every point of a live document has the tags of its record.
pub(crate) async fn assert_tags(stores: &TestStores, document: &Document) {
    let filter = Filter::only(Condition::Docs(vec![document.doc_id]));
    let expected = lkr_catalog::tags_of(document);
    let mut points = 0;
    for layer in Layer::ALL {
        let page = stores.vectors.scroll(&layer.into(), &filter, None, 1000, Include::Payload).await.unwrap();
        for point in &page.points {
            assert_eq!(point.tags, expected, "{layer} {}", point.id);
        }
        points += page.points.len() as u64;
    }
    assert_eq!(points, document.counts.total());
}

pub(crate) async fn tags(stores: &TestStores, doc_id: DocId) -> Vec<lkr_vectors::Tags> {
    let filter = Filter::only(Condition::Docs(vec![doc_id]));
    let page =
        stores.vectors.scroll(&Layer::Chunks.into(), &filter, None, 1000, Include::Payload).await.unwrap();
    page.points.into_iter().map(|point| point.tags).collect()
}

#[tokio::test]
async fn ingested_document_gets_a_category_and_tags() {
    let stores = TestStores::default();
    stores.classifier.learn("basalt", "volcanic");
    stores.classifier.learn("granite", "plutonic");
    let kb = stores.open(Some(ScriptedEmbedder::unlimited())).await;
    // One batch with a category, several batches with one, and no category.
    let basalt = kb.add(document("basalt", 3)).await.unwrap();
    let granite = kb.add(document("granite", 11)).await.unwrap();
    let chalk = kb.add(document("chalk", 2)).await.unwrap();
    for (document, name) in [(&basalt, "volcanic"), (&granite, "plutonic"), (&chalk, "")] {
        assert_eq!((document.category.as_str(), document.category_by_hand), (name, false));
        assert_tags(&stores, document).await;
        assert_eq!(search_category(&kb, name).await, [document.doc_id].into());
    }
    let stats = kb.stats(&Scope::All).await.unwrap();
    let counted: Vec<_> = stats.categories.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(counted, [("plutonic", 1), ("uncategorized", 1), ("volcanic", 1)]);
}

#[tokio::test]
async fn failing_classifier_leaves_a_warning_and_no_category() {
    let stores = TestStores::default();
    stores.classifier.learn("basalt", "volcanic");
    stores.classifier.fails.store(true, Ordering::SeqCst);
    let kb = stores.open(Some(ScriptedEmbedder::unlimited())).await;
    let task = kb.submit(document("basalt", 1), Submission::by("eva".into())).await.unwrap();
    let task = wait_for_task(&kb, task.task_id).await;
    let Some(TaskResult::Document(result)) = task.result else { panic!("{:?}", task.error) };
    assert_eq!(result.category, "");
    assert!(result.warnings.iter().any(|warning| warning.contains("category")), "{:?}", result.warnings);
}

#[tokio::test]
async fn change_is_visible_in_record_tags_listing_and_search_at_once() {
    let stores = TestStores::default();
    let kb = stores.open(Some(ScriptedEmbedder::unlimited())).await;
    let with = NewDocument {
        source: "a".to_owned(),
        metadata: [("kind".to_owned(), "stone".to_owned()), ("old".to_owned(), "1".to_owned())].into(),
        ..document("basalt", 6)
    };
    let before = kb.add(with).await.unwrap();
    let other = kb.add(document("chalk", 2)).await.unwrap();
    // The change invalidates cached answers.
    assert!(search_category(&kb, "volcanic").await.is_empty());
    let change = DocumentChange {
        title: Some("Basalt, a rock".to_owned()),
        source: Some("b".to_owned()),
        space: None,
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
    assert_tags(&stores, &after).await;
    assert_eq!(search_category(&kb, "volcanic").await, [after.doc_id].into());
    assert_eq!(search_category(&kb, "").await, [other.doc_id].into());
    for (key, value, shown) in [("new", "2", true), ("kind", "stone", true), ("old", "1", false)] {
        let metadata = [(key.to_owned(), value.to_owned())].into();
        let hits = search_ids(&kb, SearchFilters { metadata, ..SearchFilters::default() }).await;
        assert_eq!(hits.contains(&after.doc_id), shown, "{key}");
    }
    let filter = ListFilter { source: Some("b".to_owned()), ..ListFilter::default() };
    let listed = kb.list(&Scope::All, &filter, None, 10).await.unwrap().items;
    assert_eq!(listed.iter().map(|document| document.doc_id).collect::<Vec<_>>(), [after.doc_id]);
    let hit = kb.search(&SearchRequest::new("the basalt number 3")).await.unwrap();
    assert_eq!(hit.response.results[0].title, "Basalt, a rock");
}

#[tokio::test]
async fn change_of_unknown_document_returns_none_and_beyond_limits_is_refused() {
    let kb = TestStores::default().open(None).await;
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
async fn change_without_effect_writes_nothing() {
    let stores = TestStores::default();
    let kb = stores.open(None).await;
    let before = kb.add(document("chalk", 1)).await.unwrap();
    let note = || vec![Write::put("note", Expect::Absent, "1")];
    let title = DocumentChange { title: Some(before.title.clone()), ..DocumentChange::default() };
    for change in [DocumentChange::default(), title, metadata("absent", None)] {
        assert_eq!(kb.change_with(before.doc_id, change, note()).await.unwrap().unwrap(), before);
    }
    assert!(stores.state.get("note").await.unwrap().is_none());
    kb.change_with(before.doc_id, metadata("k", Some("v")), note()).await.unwrap();
    assert!(stores.state.get("note").await.unwrap().is_some());
    // If the write alongside fails, the change is not made.
    let refused = kb.change_with(before.doc_id, metadata("k", Some("w")), note()).await;
    assert!(refused.is_err());
    assert_eq!(kb.document(before.doc_id).await.unwrap().unwrap().metadata["k"], "v");
    let deleted = kb.delete_with(DocId::new(), vec![Write::put("other", Expect::Any, "1")]).await.unwrap();
    assert_eq!(deleted.total(), 0);
    assert!(stores.state.get("other").await.unwrap().is_none());
}

#[tokio::test]
async fn concurrent_changes_are_all_applied() {
    // Slow steps conflict with each other.
    let state = FailingState::with_async_fault(Arc::new(MemoryState::default()), |operation| {
        let takes = Duration::from_millis(u64::from(operation == "apply"));
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            None
        })
    });
    let stores = TestStores { state: Arc::new(state), ..TestStores::default() };
    let kb = stores.open(None).await;
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
        assert_tags(&stores, &document).await;
    }
    assert_eq!(notes(&stores).await, 0);
}

#[tokio::test]
async fn category_chosen_by_hand_survives_reclassification() {
    let stores = TestStores::default();
    stores.classifier.learn("basalt", "volcanic");
    let kb = stores.open(Some(ScriptedEmbedder::unlimited())).await;
    let (basalt, slate, chalk) = (
        kb.add(document("basalt", 1)).await.unwrap(),
        kb.add(document("slate", 6)).await.unwrap(),
        kb.add(document("chalk", 1)).await.unwrap(),
    );
    kb.change(slate.doc_id, category("roofing")).await.unwrap();
    kb.change(chalk.doc_id, category("")).await.unwrap();
    for name in ["slate", "chalk", "basalt"] {
        stores.classifier.learn(name, "found");
    }
    let task = kb.reclassify(None, &"eva".into()).await.unwrap();
    assert_eq!((task.kind, task.status), (TaskKind::Reclassify, TaskStatus::Pending));
    let task = wait_for_task(&kb, task.task_id).await;
    let Some(TaskResult::Reclassified(result)) = task.result else { panic!("{:?}", task.error) };
    assert_eq!((result.documents, result.changed, result.by_hand, result.uncategorized), (3, 1, 2, 0));
    for (document, name) in [(basalt, "found"), (slate, "roofing"), (chalk, "")] {
        let now = kb.document(document.doc_id).await.unwrap().unwrap();
        assert_eq!(now.category, name);
        assert_tags(&stores, &now).await;
    }
    assert_eq!(kb.queued_tasks().await.unwrap(), 0);
}

#[tokio::test]
async fn reclassification_continues_when_the_classifier_recovers() {
    let stores = TestStores::default();
    let kb = stores.open(Some(ScriptedEmbedder::unlimited())).await;
    let basalt = kb.add(document("basalt", 1)).await.unwrap();
    stores.classifier.learn("basalt", "volcanic");
    stores.classifier.fails.store(true, Ordering::SeqCst);
    let task = kb.reclassify(None, &"eva".into()).await.unwrap();
    wait_until("the first attempt failed", async || {
        kb.task(task.task_id).await.unwrap().unwrap().attempts > 0
    })
    .await;
    stores.classifier.fails.store(false, Ordering::SeqCst);
    let task = wait_for_task(&kb, task.task_id).await;
    assert_eq!(task.status, TaskStatus::Done, "{:?}", task.error);
    assert_eq!(kb.document(basalt.doc_id).await.unwrap().unwrap().category, "volcanic");
}

#[tokio::test]
async fn accepted_task_survives_a_restart_without_its_queue() {
    let stores = TestStores::default();
    stores.classifier.learn("basalt", "volcanic");
    let kb = stores.open(None).await;
    kb.add(document("basalt", 1)).await.unwrap();
    kb.clone().close().await;
    let task = kb.reclassify(None, &"eva".into()).await.unwrap();
    // The next process has an empty queue.
    let kb = stores.open(Some(ScriptedEmbedder::unlimited())).await;
    assert_eq!(wait_for_task(&kb, task.task_id).await.kind, TaskKind::Reclassify);
}

#[tokio::test]
async fn documents_without_vectors_are_classified_when_embedded() {
    let stores = TestStores::default();
    stores.classifier.learn("basalt", "volcanic");
    stores.classifier.learn("slate", "found");
    let kb = stores.open(None).await;
    let (basalt, slate) =
        (kb.add(document("basalt", 6)).await.unwrap(), kb.add(document("slate", 1)).await.unwrap());
    assert_eq!(basalt.category, "");
    kb.change(slate.doc_id, category("roofing")).await.unwrap();
    kb.close().await;
    let kb = stores.open(Some(ScriptedEmbedder::unlimited())).await;
    wait_until("the document has its category", async || {
        kb.document(basalt.doc_id).await.unwrap().unwrap().category == "volcanic"
    })
    .await;
    wait_until("the collections have switched", async || {
        let live = stores.vectors.describe(&Layer::L1.into()).await.unwrap();
        live.is_some_and(|spec| spec.dense.is_some())
    })
    .await;
    for doc_id in [basalt.doc_id, slate.doc_id] {
        assert_tags(&stores, &kb.document(doc_id).await.unwrap().unwrap()).await;
    }
    assert_eq!(kb.document(slate.doc_id).await.unwrap().unwrap().category, "roofing");
}

/// The process ends between a document's last point and the record of it.
#[tokio::test]
async fn interrupted_reembedding_continues_at_the_next_start() {
    let (left, hook) = limit_calls("apply", lkr_state::ErrorKind::Internal);
    let state = FailingState::new(Arc::new(MemoryState::default()), hook);
    let stores = TestStores { state: Arc::new(state), ..TestStores::default() };
    stores.classifier.learn("basalt", "volcanic");
    let kb = stores.open(None).await;
    let doc_id = kb.add(document("basalt", 6)).await.unwrap().doc_id;
    kb.close().await;
    let embedder = ScriptedEmbedder::new(0);
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    wait_until("its points are being copied", async || notes(&stores).await == 1).await;
    // This change may miss the batch that is being embedded. All writes of records fail from here on.
    kb.change(doc_id, metadata("round", Some("1"))).await.unwrap();
    left.store(0, Ordering::SeqCst);
    embedder.permits.add_permits(1000);
    let filling = async |layer: Layer| {
        let all = stores.vectors.collections().await.unwrap();
        let spec = all.iter().find(|s| s.dense.is_some() && s.collection.name().starts_with(layer.name()));
        stores.vectors.count(&spec.unwrap().collection, &Filter::all()).await.unwrap()
    };
    wait_until("its last point is stored", async || filling(Layer::L1).await == 1).await;
    kb.close().await;
    left.store(u64::MAX, Ordering::SeqCst);
    let kb = stores.open(Some(ScriptedEmbedder::unlimited())).await;
    wait_until("the document has its category", async || {
        kb.document(doc_id).await.unwrap().unwrap().category == "volcanic"
    })
    .await;
    wait_until("the collections have switched", async || {
        let live = stores.vectors.describe(&Layer::L1.into()).await.unwrap();
        live.is_some_and(|spec| spec.dense.is_some())
    })
    .await;
    wait_until("no note is left", async || notes(&stores).await == 0).await;
    assert_tags(&stores, &kb.document(doc_id).await.unwrap().unwrap()).await;
}

#[tokio::test]
async fn change_during_reembedding_is_in_the_new_collections() {
    let stores = TestStores::default();
    let kb = stores.open(None).await;
    let mut documents = Vec::new();
    for n in 0..20 {
        documents.push(kb.add(document(&format!("slate{n}"), 2)).await.unwrap());
    }
    kb.close().await;
    let embedder = ScriptedEmbedder::new(0);
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    for (round, document) in documents.iter().enumerate() {
        embedder.permits.add_permits(1);
        kb.change(document.doc_id, metadata("round", Some(&round.to_string()))).await.unwrap();
    }
    embedder.permits.add_permits(1000);
    wait_until("the collections have switched", async || {
        let live = stores.vectors.describe(&Layer::L1.into()).await.unwrap();
        live.is_some_and(|spec| spec.dense.is_some())
    })
    .await;
    for document in documents {
        assert_tags(&stores, &kb.document(document.doc_id).await.unwrap().unwrap()).await;
    }
}

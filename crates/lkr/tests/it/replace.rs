//! Replacing, retrying, and finding duplicates, on stores in memory and with an embedder that tests control.

use std::{
    cell::Cell,
    sync::{Arc, atomic::Ordering},
};

use futures_util::StreamExt as _;
use lkr::{
    Creator, DocId, DocumentChange, DocumentResult, ErrorKind, FailureReason, KnowledgeBase, Layer,
    ListFilter, NewDocument, Scope, SearchRequest, Submission, Task, TaskKind, TaskStatus,
};
use lkr_vectors::Filter;

use crate::common::{ScriptedEmbedder, TestStores, document, wait_for_task, wait_until};

pub(crate) fn by(name: &str) -> Submission {
    Submission::by(Creator { name: name.to_owned(), id: name.to_owned() })
}

pub(crate) fn from_source(name: &str, sections: usize, source: &str) -> NewDocument {
    NewDocument { source: source.to_owned(), ..document(name, sections) }
}

/// A document with one section for each word.
fn of_words(words: &[&str]) -> NewDocument {
    let section = |word: &&str| format!("## {word}\n\nWhat there is to say of {word} is said here.\n");
    let text = format!("# Words\n\n{}", words.iter().map(section).collect::<Vec<_>>().join("\n"));
    NewDocument { text, ..NewDocument::default() }
}

pub(crate) fn result(task: Task) -> DocumentResult {
    assert_eq!(task.status, TaskStatus::Done, "{:?}", task.error);
    task.result.unwrap().document().unwrap()
}

async fn points(stores: &TestStores) -> u64 {
    let mut sum = 0;
    for layer in Layer::ALL {
        sum += stores.vectors.count(&layer.into(), &Filter::all()).await.unwrap();
    }
    sum
}

async fn blobs(stores: &TestStores) -> usize {
    stores.stored_blobs().await
}

/// Waits until the only points and texts are those of live documents.
pub(crate) async fn wait_until_only_live_data_remains(stores: &TestStores, kb: &KnowledgeBase) {
    wait_until("only live data remains", async || {
        let stats = kb.stats(&Scope::All).await.unwrap();
        points(stores).await == stats.counts.total() && blobs(stores).await as u64 == stats.counts.l1
    })
    .await;
}

async fn search_texts(kb: &KnowledgeBase, query: &str) -> Vec<String> {
    let found = kb.search(&SearchRequest::new(query)).await.unwrap();
    found.response.results.iter().map(|result| result.text.clone()).collect()
}

pub(crate) async fn ids(kb: &KnowledgeBase) -> Vec<DocId> {
    kb.list(&Scope::All, &ListFilter::default(), None, 100)
        .await
        .unwrap()
        .items
        .iter()
        .map(|item| item.doc_id)
        .collect()
}

#[tokio::test]
async fn replacement_reuses_vectors_and_shows_only_the_new_text() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::unlimited());
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let task = kb.submit(of_words(&["basalt", "gneiss", "marble", "opal", "tuff"]), by("eva")).await.unwrap();
    let (doc_id, before) = (task.doc_id().unwrap(), wait_for_task(&kb, task.task_id).await);
    assert_eq!(result(before).embedded, 5);
    let old = kb.document(doc_id).await.unwrap().unwrap();
    embedder.texts.lock().unwrap().clear();

    let new = NewDocument {
        source: "new".to_owned(),
        ..of_words(&["basalt", "gneiss", "granite", "opal", "tuff"])
    };
    let task = kb.replace(doc_id, new, by("ann")).await.unwrap().unwrap();
    assert_eq!((task.kind, task.doc_id().unwrap()), (TaskKind::Replace, doc_id));
    let done = wait_for_task(&kb, task.task_id).await;
    assert_eq!(done.created_by.name, "ann");
    assert_eq!(result(done).embedded, 1);
    let embedded = embedder.texts.lock().unwrap().join("\n");
    assert!(embedded.contains("granite") && !embedded.contains("basalt"), "{embedded}");
    let now = kb.document(doc_id).await.unwrap().unwrap();
    assert_eq!((now.created_by, now.created_at), (old.created_by, old.created_at));
    assert!(now.revision > old.revision && now.source == "new");
    assert!(kb.text(doc_id).await.unwrap().unwrap().contains("granite"));
    let texts = search_texts(&kb, "marble granite").await.concat();
    assert!(texts.contains("granite") && !texts.contains("marble"), "{texts}");
    assert_eq!(ids(&kb).await, [doc_id]);
    wait_until_only_live_data_remains(&stores, &kb).await;
    // Reused vectors equal those that would have been computed.
    let found = kb.search(&SearchRequest::new("What there is to say of basalt")).await.unwrap();
    assert!(found.response.results[0].text.contains("basalt"));
}

#[tokio::test]
async fn replace_of_unknown_document_returns_none() {
    let kb = TestStores::default().open(None).await;
    assert!(kb.replace(DocId::new(), document("opal", 1), by("eva")).await.unwrap().is_none());
}

#[tokio::test]
async fn concurrent_replacements_last_accepted_wins() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::new(1));
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let doc_id = kb.add(document("opal", 1)).await.unwrap().doc_id;
    let mut tasks = Vec::new();
    for name in ["basalt", "gneiss", "marble"] {
        tasks.push(kb.replace(doc_id, document(name, 1), by("eva")).await.unwrap().unwrap().task_id);
        assert!(
            search_texts(&kb, "opal").await.concat().contains("opal"),
            "the old revision is found until the new one is published"
        );
    }
    embedder.permits.add_permits(1_000);
    let last = wait_for_task(&kb, tasks[2]).await;
    assert_eq!(result(last).title, "marble");
    for earlier in &tasks[..2] {
        let task = wait_for_task(&kb, *earlier).await;
        assert_eq!((task.status, task.error.unwrap().reason), (TaskStatus::Failed, FailureReason::Cancelled));
    }
    assert_eq!(kb.document(doc_id).await.unwrap().unwrap().title, "marble");
    wait_until_only_live_data_remains(&stores, &kb).await;
}

#[tokio::test]
async fn manual_change_survives_replacement_accepted_before_it() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::new(1));
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let first = NewDocument { metadata: [("a".to_owned(), "1".to_owned())].into(), ..document("opal", 1) };
    let doc_id = kb.add(first).await.unwrap().doc_id;
    let replacement =
        NewDocument { metadata: [("b".to_owned(), "2".to_owned())].into(), ..document("marble", 1) };
    let task = kb.replace(doc_id, replacement, by("eva")).await.unwrap().unwrap();
    // The second change leaves the live category as it is, but still applies to the replacement.
    for (title, category) in [("Once", "Guide"), ("Twice", "Guide")] {
        let metadata = [("c".to_owned(), Some(title.to_owned())), ("b".to_owned(), None)].into();
        let (title, category) = (Some(title.to_owned()), Some(category.to_owned()));
        let change = DocumentChange { title, category, metadata, ..DocumentChange::default() };
        kb.change(doc_id, change).await.unwrap().unwrap();
    }
    embedder.permits.add_permits(1_000);
    let done = result(wait_for_task(&kb, task.task_id).await);
    assert_eq!((done.title.as_str(), done.category.as_str()), ("Twice", "Guide"));
    let now = kb.document(doc_id).await.unwrap().unwrap();
    assert_eq!((now.title.as_str(), now.category.as_str(), now.category_by_hand), ("Twice", "Guide", true));
    assert_eq!(now.metadata, [("c".to_owned(), "Twice".to_owned())].into());
    let mut request = SearchRequest::new("marble");
    request.filters.category = Some("Guide".to_owned());
    assert_eq!(
        kb.search(&request).await.unwrap().response.results.len(),
        1,
        "its points have the tags of the change"
    );
    wait_until_only_live_data_remains(&stores, &kb).await;
}

#[tokio::test]
async fn delete_cancels_the_unfinished_replacement() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::new(1));
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let doc_id = kb.add(document("opal", 1)).await.unwrap().doc_id;
    let task = kb.replace(doc_id, document("marble", 9), by("eva")).await.unwrap().unwrap();
    assert_eq!(kb.delete(doc_id).await.unwrap().total(), 4);
    embedder.permits.add_permits(1_000);
    assert_eq!(wait_for_task(&kb, task.task_id).await.error.unwrap().message, "cancelled");
    assert!(kb.document(doc_id).await.unwrap().is_none());
    wait_until_only_live_data_remains(&stores, &kb).await;
}

#[tokio::test]
async fn cancelled_task_leaves_the_live_document_unchanged() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::new(2));
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let doc_id = kb.add(document("opal", 1)).await.unwrap().doc_id;
    let replacement = kb.replace(doc_id, document("marble", 20), by("eva")).await.unwrap().unwrap();
    let new = kb.submit(document("tuff", 20), by("eva")).await.unwrap();
    for task in [replacement.task_id, new.task_id] {
        let cancelled = kb.cancel(task).await.unwrap().unwrap();
        assert_eq!(
            (cancelled.status, cancelled.error.as_ref().unwrap().reason),
            (TaskStatus::Failed, FailureReason::Cancelled)
        );
        assert_eq!(kb.cancel(task).await.unwrap_err().kind(), ErrorKind::Conflict, "the task has ended");
        assert_eq!(
            kb.retry(task).await.unwrap_err().kind(),
            ErrorKind::Conflict,
            "a cancelled task keeps nothing"
        );
    }
    assert_eq!(kb.document(doc_id).await.unwrap().unwrap().title, "opal");
    assert_eq!(ids(&kb).await, [doc_id]);
    wait_until_only_live_data_remains(&stores, &kb).await;
}

#[tokio::test]
async fn cancelled_task_leaves_nothing_although_its_record_was_deleted() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::new(2));
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let task = kb.submit(document("tuff", 60), by("eva")).await.unwrap();
    wait_until("two batches are stored", async || points(&stores).await >= 8).await;
    kb.cancel(task.task_id).await.unwrap().unwrap();
    kb.delete_task(task.task_id).await.unwrap().unwrap();
    wait_until("its points are collected", async || points(&stores).await == 0).await;
    embedder.permits.add_permits(1);
    wait_until("the queue is empty", async || kb.queued_tasks().await.unwrap() == 0).await;
    wait_until_only_live_data_remains(&stores, &kb).await;
}

/// A task that failed after two of its batches were embedded.
async fn failed_task(kb: &KnowledgeBase, embedder: &ScriptedEmbedder) -> Task {
    let task = kb.submit(document("schist", 20), by("eva")).await.unwrap();
    wait_until("two batches are embedded", async || embedder.texts.lock().unwrap().len() == 8).await;
    embedder.retryable.store(false, Ordering::SeqCst);
    embedder.failures.store(1, Ordering::SeqCst);
    embedder.permits.add_permits(1);
    let task = wait_for_task(kb, task.task_id).await;
    assert_eq!(
        (task.status, task.error.as_ref().unwrap().reason),
        (TaskStatus::Failed, FailureReason::Internal)
    );
    task
}

#[tokio::test]
async fn lesson_03_manual_retry_continues_where_the_task_failed() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::new(2));
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let task = failed_task(&kb, &embedder).await;
    assert!(ids(&kb).await.is_empty() && search_texts(&kb, "schist").await.is_empty());
    // A failed attempt survives a restart, and nothing collects it.
    kb.close().await;
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    embedder.permits.add_permits(1_000);
    let again = kb.retry(task.task_id).await.unwrap().unwrap();
    assert_eq!((again.status, again.attempts, again.error), (TaskStatus::Pending, 0, None));
    let done = wait_for_task(&kb, task.task_id).await;
    assert_eq!(done.subject, task.subject);
    assert_eq!(result(done).embedded, 12, "the first eight chunks are not embedded again");
    assert_eq!(kb.retry(task.task_id).await.unwrap_err().kind(), ErrorKind::Conflict);
    wait_until_only_live_data_remains(&stores, &kb).await;
}

#[tokio::test]
async fn deleted_failed_task_leaves_no_data() {
    for forget in [true, false] {
        let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::new(2));
        let kb = stores.open(Some(Arc::clone(&embedder))).await;
        let task = failed_task(&kb, &embedder).await;
        match forget {
            true => assert!(kb.delete_task(task.task_id).await.unwrap().is_some()),
            false => assert_eq!(kb.delete(task.doc_id().unwrap()).await.unwrap().total(), 0),
        }
        assert_eq!(kb.task(task.task_id).await.unwrap().is_none(), forget);
        wait_until_only_live_data_remains(&stores, &kb).await;
        if !forget {
            assert_eq!(kb.retry(task.task_id).await.unwrap_err().kind(), ErrorKind::Conflict);
        }
    }
}

#[tokio::test]
async fn failed_replacement_cannot_be_retried_after_a_later_one() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::unlimited());
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let doc_id = kb.add(document("opal", 1)).await.unwrap().doc_id;
    embedder.retryable.store(false, Ordering::SeqCst);
    embedder.failures.store(1, Ordering::SeqCst);
    let first = kb.replace(doc_id, document("marble", 1), by("eva")).await.unwrap().unwrap();
    assert_eq!(wait_for_task(&kb, first.task_id).await.status, TaskStatus::Failed);
    assert_eq!(kb.document(doc_id).await.unwrap().unwrap().title, "opal");
    let second = kb.replace(doc_id, document("tuff", 1), by("eva")).await.unwrap().unwrap();
    assert_eq!(wait_for_task(&kb, second.task_id).await.status, TaskStatus::Done);
    assert_eq!(kb.retry(first.task_id).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(kb.document(doc_id).await.unwrap().unwrap().title, "tuff");
    wait_until_only_live_data_remains(&stores, &kb).await;
}

#[tokio::test]
async fn delete_of_a_running_task_is_refused() {
    let embedder = ScriptedEmbedder::new(0);
    let kb = TestStores::default().open(Some(Arc::clone(&embedder))).await;
    let task = kb.submit(document("opal", 1), by("eva")).await.unwrap();
    assert_eq!(kb.delete_task(task.task_id).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(kb.retry(task.task_id).await.unwrap_err().kind(), ErrorKind::Conflict);
    embedder.permits.add_permits(9);
    wait_for_task(&kb, task.task_id).await;
    assert!(kb.delete_task(task.task_id).await.unwrap().is_some());
    assert!(
        kb.delete_task(task.task_id).await.unwrap().is_none()
            && kb.cancel(task.task_id).await.unwrap().is_none()
    );
    assert_eq!(ids(&kb).await.len(), 1, "the document remains");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replacement_concurrent_with_delete_does_not_restore_the_document() {
    let stores = TestStores::default();
    let kb = stores.open(None).await;
    for round in 0..200 {
        let doc_id = kb.add(document(&format!("opal{round}"), 1)).await.unwrap().doc_id;
        let (replacer, other) = (kb.clone(), kb.clone());
        let replacing = tokio::spawn(async move {
            let text = format!("marble{round}");
            replacer.replace(doc_id, document(&text, 1), by("eva")).await.unwrap().map(|task| task.task_id)
        });
        let deleting = tokio::spawn(async move { other.delete(doc_id).await.unwrap().total() });
        let (replacing, deleting) = (replacing.await.unwrap(), deleting.await.unwrap());
        if let Some(task) = replacing {
            wait_for_task(&kb, task).await;
        }
        assert_eq!(deleting, 4);
        assert!(kb.document(doc_id).await.unwrap().is_none(), "round {round}");
    }
    wait_until_only_live_data_remains(&stores, &kb).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn document_is_read_with_the_text_of_its_revision() {
    let kb = TestStores::default().open(None).await;
    let version = |n: u32| NewDocument {
        title: format!("V{n}"),
        text: format!("This is version V{n}.\n"),
        ..NewDocument::default()
    };
    let doc_id = kb.add(version(0)).await.unwrap().doc_id;
    let is_replaced = Cell::new(false);
    let replacing = async {
        for n in 1..=100 {
            let task = kb.replace(doc_id, version(n), by("eva")).await.unwrap().unwrap();
            wait_for_task(&kb, task.task_id).await;
        }
        is_replaced.set(true);
    };
    let reading = async {
        while !is_replaced.get() {
            let (document, text) = kb.document_and_text(&Scope::All, doc_id).await.unwrap().unwrap();
            let text = text.map(|bytes| bytes.unwrap()).collect::<Vec<_>>().await.concat();
            assert_eq!(String::from_utf8(text).unwrap(), format!("This is version {}.\n", document.title));
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(replacing, reading);
}

#[tokio::test]
async fn change_after_a_failed_replacement_survives_its_retry() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::unlimited());
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let doc_id = kb.add(document("opal", 1)).await.unwrap().doc_id;
    embedder.retryable.store(false, Ordering::SeqCst);
    embedder.failures.store(1, Ordering::SeqCst);
    let task = kb.replace(doc_id, document("marble", 1), by("eva")).await.unwrap().unwrap();
    assert_eq!(wait_for_task(&kb, task.task_id).await.status, TaskStatus::Failed);
    let title = |title: &str| DocumentChange { title: Some(title.to_owned()), ..DocumentChange::default() };
    for name in ["Once", "Twice"] {
        kb.change(doc_id, title(name)).await.unwrap().unwrap();
    }
    kb.retry(task.task_id).await.unwrap().unwrap();
    assert_eq!(result(wait_for_task(&kb, task.task_id).await).title, "Twice");
    assert!(kb.text(doc_id).await.unwrap().unwrap().contains("marble"));
    wait_until_only_live_data_remains(&stores, &kb).await;
}

#[tokio::test]
async fn failed_task_keeps_its_owner_until_it_is_deleted() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::new(2));
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let task = failed_task(&kb, &embedder).await;
    assert_eq!(kb.owner(task.doc_id().unwrap()).await.unwrap().unwrap().id, "eva");
    kb.delete_task(task.task_id).await.unwrap().unwrap();
    assert!(kb.owner(task.doc_id().unwrap()).await.unwrap().is_none());
}

#[tokio::test]
async fn change_that_exceeds_limits_of_the_replacement_is_refused() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::new(1));
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let doc_id = kb.add(document("opal", 1)).await.unwrap().doc_id;
    let metadata = (0..64).map(|n| (n.to_string(), String::new())).collect();
    let full = NewDocument { metadata, ..document("marble", 1) };
    kb.replace(doc_id, full, by("eva")).await.unwrap().unwrap();
    let metadata = [("one more".to_owned(), Some("1".to_owned()))].into();
    let change = DocumentChange { metadata, ..DocumentChange::default() };
    let refused = kb.change(doc_id, change).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    embedder.permits.add_permits(9);
}

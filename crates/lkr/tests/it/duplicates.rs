//! Duplicates, upserts, batches and idempotency keys.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use lkr::{
    Dedup, Duplicate, ErrorKind, Idempotency, NewDocument, Submission, Task, TaskKind, TaskStatus, Upsert,
};
use object_store::{
    memory::InMemory,
    throttle::{ThrottleConfig, ThrottledStore},
};

use crate::{
    common::{ScriptedEmbedder, TestStores, document, wait_for_task, wait_until},
    replace::{by, from_source, ids, result, wait_until_only_live_data_remains},
};

#[tokio::test]
async fn equal_texts_become_one_document() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::unlimited());
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let first = kb.add(document("opal", 3)).await.unwrap();
    embedder.texts.lock().unwrap().clear();
    let text = document("opal", 3).text.replace('\n', " \r\n ");
    let again = NewDocument { text, title: "Another title".to_owned(), ..NewDocument::default() };
    let task = wait_for_task(&kb, kb.submit(again.clone(), by("eva")).await.unwrap().task_id).await;
    assert_eq!(task.doc_id().unwrap(), first.doc_id);
    let duplicate = result(task);
    assert_eq!(duplicate.duplicate_of, Some(Duplicate { doc_id: first.doc_id, distance: 0 }));
    assert_eq!(
        (duplicate.embedded, duplicate.title, duplicate.counts),
        (0, first.title.clone(), first.counts)
    );
    assert!(embedder.texts.lock().unwrap().is_empty());
    assert_eq!(ids(&kb).await, [first.doc_id]);
    wait_until_only_live_data_remains(&stores, &kb).await;
    // Without duplicate detection the text is ingested again, and a deleted document is no duplicate.
    for dedup in [Dedup::None, Dedup::Sha256] {
        kb.delete(first.doc_id).await.unwrap();
        let submission = Submission { dedup, ..by("eva") };
        let task = wait_for_task(&kb, kb.submit(again.clone(), submission).await.unwrap().task_id).await;
        let is_new = result(task).duplicate_of.is_none();
        assert_eq!(
            is_new,
            dedup == Dedup::None,
            "the document ingested without detection is the original now"
        );
    }
    assert_eq!(ids(&kb).await.len(), 1);
    wait_until_only_live_data_remains(&stores, &kb).await;
}

#[tokio::test]
async fn lesson_34_near_duplicates_are_reported_with_their_distance() {
    let kb = TestStores::default().open(None).await;
    let simhash = |threshold| Submission { dedup: Dedup::Simhash { threshold }, ..by("eva") };
    let first = kb.add(document("opal", 30)).await.unwrap();
    let near =
        NewDocument { text: document("opal", 30).text + "\nAnd one more word.\n", ..NewDocument::default() };
    let near_result = wait_for_task(&kb, kb.submit(near.clone(), simhash(12)).await.unwrap().task_id).await;
    let found = result(near_result).duplicate_of.unwrap();
    assert_eq!(found.doc_id, first.doc_id);
    assert!((1..=12).contains(&found.distance), "{found:?}");
    // Below the distance there is no duplicate; within 64 bits every text is one.
    let strict = simhash(found.distance - 1);
    let strict_result =
        wait_for_task(&kb, kb.submit(near.clone(), strict.clone()).await.unwrap().task_id).await;
    assert!(result(strict_result).duplicate_of.is_none());
    let any = NewDocument { text: "Cats sleep all day.".to_owned(), ..NewDocument::default() };
    let near_result = wait_for_task(&kb, kb.submit(any, simhash(64)).await.unwrap().task_id).await;
    assert!(result(near_result).duplicate_of.is_some());
    // Deleted documents are not found as duplicates.
    for doc_id in ids(&kb).await {
        kb.delete(doc_id).await.unwrap();
    }
    let single = wait_for_task(&kb, kb.submit(near, strict).await.unwrap().task_id).await;
    assert!(result(single).duplicate_of.is_none());
    assert_eq!(ids(&kb).await.len(), 1);
}

#[tokio::test]
async fn equal_texts_submitted_concurrently_become_one_document() {
    for dedup in [Dedup::Sha256, Dedup::Simhash { threshold: 3 }] {
        let stores = TestStores::default();
        let kb = stores.open(Some(ScriptedEmbedder::unlimited())).await;
        let submissions = (0..24).map(|n| {
            let submission = Submission { dedup, ..by("eva") };
            kb.submit(document(if n % 2 == 0 { "opal" } else { "quartzite of the north" }, 3), submission)
        });
        let submissions = futures_util::future::try_join_all(submissions).await.unwrap();
        let mut new_documents = 0;
        for task in &submissions {
            new_documents += u32::from(result(wait_for_task(&kb, task.task_id).await).duplicate_of.is_none());
        }
        assert_eq!((new_documents, ids(&kb).await.len()), (2, 2), "{dedup:?}");
        wait_until_only_live_data_remains(&stores, &kb).await;
    }
}

#[tokio::test]
async fn replacement_is_never_a_duplicate() {
    let kb = TestStores::default().open(None).await;
    let (replacer, other) =
        (kb.add(document("opal", 1)).await.unwrap(), kb.add(document("tuff", 1)).await.unwrap());
    let task = kb.replace(replacer.doc_id, document("tuff", 1), by("eva")).await.unwrap().unwrap();
    assert!(result(wait_for_task(&kb, task.task_id).await).duplicate_of.is_none());
    // The replaced document has the new text in the index, and its old text is gone from it.
    assert_eq!(kb.add(document("tuff", 1)).await.unwrap().doc_id, replacer.doc_id.min(other.doc_id));
    assert!(![replacer.doc_id, other.doc_id].contains(&kb.add(document("opal", 1)).await.unwrap().doc_id));
}

#[tokio::test]
async fn lesson_06_upsert_replaces_the_document_of_its_source() {
    let stores = TestStores::default();
    let kb = stores.open(Some(ScriptedEmbedder::unlimited())).await;
    let upsert = |name: &str, may| Submission { upsert: Some(may), ..by(name) };
    let first = kb.submit(from_source("opal", 2, "s"), by("eva")).await.unwrap();
    wait_for_task(&kb, first.task_id).await;
    for (n, name) in ["tuff", "marble", "marble"].into_iter().enumerate() {
        let task = kb.submit(from_source(name, 2, "s"), upsert("eva", Upsert::Own)).await.unwrap();
        assert_eq!((task.kind, task.doc_id().unwrap()), (TaskKind::Replace, first.doc_id().unwrap()));
        let done = result(wait_for_task(&kb, task.task_id).await);
        assert_eq!(done.embedded, if n == 2 { 0 } else { 2 }, "unchanged chunks are not embedded again");
    }
    // A document of another account is replaced only with `Upsert::Any`.
    let other_account = kb.submit(from_source("gneiss", 1, "s"), upsert("ann", Upsert::Own)).await.unwrap();
    assert_eq!(other_account.kind, TaskKind::Ingest);
    wait_for_task(&kb, other_account.task_id).await;
    let admin = kb.submit(from_source("schist", 1, "s"), upsert("admin", Upsert::Any)).await.unwrap();
    assert_eq!(admin.doc_id().unwrap(), other_account.doc_id().unwrap(), "the newest of several is replaced");
    wait_for_task(&kb, admin.task_id).await;
    // Without a source, an upsert adds a document.
    for _ in 0..2 {
        let task = kb.submit(document("basalt", 1), upsert("eva", Upsert::Own)).await.unwrap();
        assert_eq!(task.kind, TaskKind::Ingest);
        wait_for_task(&kb, task.task_id).await;
    }
    assert_eq!(ids(&kb).await.len(), 3);
    wait_until_only_live_data_remains(&stores, &kb).await;
}

#[tokio::test]
async fn concurrent_upserts_of_a_new_source_make_one_document() {
    let stores = TestStores::default();
    let kb = stores.open(Some(ScriptedEmbedder::unlimited())).await;
    let submissions = (0..20).map(|n| {
        let submission = Submission { upsert: Some(Upsert::Own), ..by("eva") };
        kb.submit(from_source(&format!("stone{n}"), 2, "new"), submission)
    });
    let submissions = futures_util::future::try_join_all(submissions).await.unwrap();
    for task in &submissions {
        assert_eq!(task.doc_id().unwrap(), submissions[0].doc_id().unwrap());
        wait_for_task(&kb, task.task_id).await;
    }
    assert_eq!(ids(&kb).await, [submissions[0].doc_id().unwrap()]);
    wait_until_only_live_data_remains(&stores, &kb).await;
    // After a delete, an upsert adds a new document.
    kb.delete(submissions[0].doc_id().unwrap()).await.unwrap();
    let submission = Submission { upsert: Some(Upsert::Own), ..by("eva") };
    let task = kb.submit(from_source("opal", 1, "new"), submission).await.unwrap();
    assert_ne!(task.doc_id().unwrap(), submissions[0].doc_id().unwrap());
    wait_for_task(&kb, task.task_id).await;
    assert_eq!(ids(&kb).await, [task.doc_id().unwrap()]);
}

/// An upsert by a manager finds the new document that an account is still adding from the same source.
#[tokio::test]
async fn upsert_by_a_manager_replaces_what_an_account_is_adding() {
    let embedder = ScriptedEmbedder::new(0);
    let kb = TestStores::default().open(Some(Arc::clone(&embedder))).await;
    let upsert = |name: &str, may| Submission { upsert: Some(may), ..by(name) };
    let own = kb.submit(from_source("opal", 1, "s"), upsert("eva", Upsert::Own)).await.unwrap();
    let any = kb.submit(from_source("tuff", 1, "s"), upsert("admin", Upsert::Any)).await.unwrap();
    assert_eq!(any.doc_id().unwrap(), own.doc_id().unwrap());
    // An account finds its own, too, if it added it as a manager.
    let any = kb.submit(from_source("gneiss", 1, "t"), upsert("eva", Upsert::Any)).await.unwrap();
    let own = kb.submit(from_source("schist", 1, "t"), upsert("eva", Upsert::Own)).await.unwrap();
    assert_eq!(any.doc_id().unwrap(), own.doc_id().unwrap());
    let other = kb.submit(from_source("marble", 1, "t"), upsert("ann", Upsert::Own)).await.unwrap();
    assert_ne!(other.doc_id().unwrap(), own.doc_id().unwrap(), "it may not replace what is not its own");
    embedder.permits.add_permits(100);
    for task in [&own, &other] {
        wait_for_task(&kb, task.task_id).await;
    }
    wait_until("all are live", async || ids(&kb).await.len() == 3).await;
}

#[tokio::test]
async fn batch_is_accepted_completely_or_not_at_all() {
    let stores = TestStores::default();
    let kb = stores.open(None).await;
    let upsert = || Submission { upsert: Some(Upsert::Own), ..by("eva") };
    let documents = vec![
        (from_source("opal", 1, "a"), upsert()),
        (document("tuff", 1), by("eva")),
        (from_source("marble", 1, "a"), upsert()),
        (from_source("gneiss", 1, "a"), by("eva")),
    ];
    let tasks = kb.submit_all(documents, None).await.unwrap();
    let mut ends = Vec::new();
    for task in &tasks {
        ends.push(wait_for_task(&kb, task.task_id).await.status);
    }
    assert_eq!(ends, [TaskStatus::Failed, TaskStatus::Done, TaskStatus::Done, TaskStatus::Done]);
    let blank = vec![(document("schist", 1), by("eva")), (NewDocument::default(), by("eva"))];
    assert_eq!(kb.submit_all(blank, None).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(ids(&kb).await.len(), 3);
    wait_until_only_live_data_remains(&stores, &kb).await;
}

/// Otherwise a batch of a hundred documents waits for the disk a hundred times.
#[tokio::test]
async fn texts_of_a_batch_are_stored_at_once() {
    let wait = Duration::from_millis(50);
    let slow = ThrottleConfig { wait_put_per_call: wait, ..ThrottleConfig::default() };
    let blobs = Arc::new(ThrottledStore::new(InMemory::new(), slow));
    let stores = TestStores { blobs, ..TestStores::default() };
    let kb = stores.open(None).await;
    let documents: Vec<_> = (0..100).map(|n| (document(&format!("stone{n}"), 1), by("eva"))).collect();
    let begun = Instant::now();
    let tasks = kb.submit_all(documents, None).await.unwrap();
    assert!(begun.elapsed() < wait * 50, "{:?}", begun.elapsed());
    assert!(tasks.is_sorted_by_key(|task| task.task_id), "the tasks are in the order of the documents");
    for (n, task) in tasks.iter().enumerate() {
        let task = wait_for_task(&kb, task.task_id).await;
        assert_eq!(result(task).title, format!("stone{n}"));
    }
}

#[tokio::test]
async fn repeated_idempotency_key_returns_the_first_tasks() {
    let stores = TestStores::default();
    let kb = stores.open(None).await;
    let key = |account: &str, endpoint, key: &str| Idempotency {
        account: account.to_owned(),
        endpoint,
        key: key.to_owned(),
    };
    let keyed = |n: usize| {
        let submission = Submission { idempotency: Some(key("eva", "documents", "k")), ..by("eva") };
        kb.submit(document(&format!("stone{n}"), 1), submission)
    };
    let tasks = futures_util::future::try_join_all((0..10).map(keyed)).await.unwrap();
    assert!(tasks.iter().all(|task| task.task_id == tasks[0].task_id));
    wait_for_task(&kb, tasks[0].task_id).await;
    let again = keyed(99).await.unwrap();
    assert_eq!((again.task_id, again.status), (tasks[0].task_id, TaskStatus::Done));
    for other in [key("ann", "documents", "k"), key("eva", "batch", "k"), key("eva", "documents", "l")] {
        assert!(kb.tasks_by_idempotency_key(&other).await.unwrap().is_none(), "{other:?}");
        let documents = vec![(document(&other.account, 1), by("eva")), (document(&other.key, 2), by("eva"))];
        let tasks = kb.submit_all(documents.clone(), Some(other.clone())).await.unwrap();
        let again = kb.submit_all(documents, Some(other)).await.unwrap();
        let ids = |tasks: &[Task]| tasks.iter().map(|task| task.task_id).collect::<Vec<_>>();
        assert_eq!(ids(&tasks), ids(&again));
    }
    wait_until("all ended", async || kb.queued_tasks().await.unwrap() == 0).await;
    wait_until_only_live_data_remains(&stores, &kb).await;
}

#[tokio::test]
async fn idempotency_key_of_a_deleted_task_is_free_again() {
    let kb = TestStores::default().open(None).await;
    let key = Idempotency { account: "eva".to_owned(), endpoint: "documents", key: "k".to_owned() };
    let submit = async |name: &str| {
        let submission = Submission { idempotency: Some(key.clone()), ..by("eva") };
        wait_for_task(&kb, kb.submit(document(name, 1), submission).await.unwrap().task_id).await.task_id
    };
    let first = submit("opal").await;
    assert_eq!(submit("tuff").await, first);
    kb.delete_task(first).await.unwrap().unwrap();
    let second = submit("tuff").await;
    assert_ne!(second, first);
    assert_eq!(submit("marble").await, second);
    assert_eq!(ids(&kb).await.len(), 2);
}

#[tokio::test]
async fn idempotency_key_of_a_batch_answers_no_task_in_the_place_of_another() {
    let kb = TestStores::default().open(None).await;
    let key = Idempotency { account: "eva".to_owned(), endpoint: "batch", key: "k".to_owned() };
    let submit = async || {
        let documents = ["opal", "tuff"].map(|name| (document(name, 1), by("eva")));
        kb.submit_all(documents.into(), Some(key.clone())).await
    };
    let tasks = submit().await.unwrap();
    for task in &tasks {
        wait_for_task(&kb, task.task_id).await;
    }
    kb.delete_task(tasks[0].task_id).await.unwrap().unwrap();
    assert_eq!(submit().await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(kb.tasks_by_idempotency_key(&key).await.unwrap_err().kind(), ErrorKind::Conflict);
    kb.delete_task(tasks[1].task_id).await.unwrap().unwrap();
    assert!(kb.tasks_by_idempotency_key(&key).await.unwrap().is_none());
    assert_eq!(ids(&kb).await.len(), 2);
}

//! What replacing, retrying and telling duplicates promise, on stores in memory and with an embedder that does as it is
//! told.

use std::sync::{Arc, atomic::Ordering};

use crate::common::{Ground, Scripted, document, ended, until};
use futures_util::StreamExt as _;
use lkr::{
    Creator, Dedup, DocId, DocumentChange, DocumentResult, Duplicate, ErrorKind, FailureReason, Idempotency,
    KnowledgeBase, Layer, ListFilter, NewDocument, SearchRequest, Submission, Task, TaskKind, TaskStatus,
    Upsert,
};
use lkr_vectors::Filter;

fn by(name: &str) -> Submission {
    Submission::by(Creator { name: name.to_owned(), id: name.to_owned() })
}

fn from_source(name: &str, sections: usize, source: &str) -> NewDocument {
    NewDocument { source: source.to_owned(), ..document(name, sections) }
}

/// A document whose sections are these words.
fn of_words(words: &[&str]) -> NewDocument {
    let section = |word: &&str| format!("## {word}\n\nWhat there is to say of {word} is said here.\n");
    let text = format!("# Words\n\n{}", words.iter().map(section).collect::<Vec<_>>().join("\n"));
    NewDocument { text, ..NewDocument::default() }
}

fn result(task: Task) -> DocumentResult {
    assert_eq!(task.status, TaskStatus::Done, "{:?}", task.error);
    task.result.unwrap().document().unwrap()
}

async fn points(ground: &Ground) -> u64 {
    let mut sum = 0;
    for layer in Layer::ALL {
        sum += ground.vectors.count(&layer.into(), &Filter::all()).await.unwrap();
    }
    sum
}

async fn blobs(ground: &Ground) -> usize {
    ground.blobs.list(None).count().await
}

/// Waits until there are the points and texts of the live documents, and no others.
async fn tidy(ground: &Ground, kb: &KnowledgeBase) {
    until("only what is live is left", async || {
        let stats = kb.stats().await.unwrap();
        points(ground).await == stats.counts.total() && blobs(ground).await as u64 == stats.counts.l1
    })
    .await;
}

async fn found(kb: &KnowledgeBase, query: &str) -> Vec<String> {
    let found = kb.search(&SearchRequest::new(query)).await.unwrap();
    found.response.results.iter().map(|result| result.text.clone()).collect()
}

async fn ids(kb: &KnowledgeBase) -> Vec<DocId> {
    kb.list(&ListFilter::default(), None, 100).await.unwrap().items.iter().map(|item| item.doc_id).collect()
}

#[tokio::test]
async fn a_replacement_is_seen_whole_and_embeds_what_is_new() {
    let (ground, embedder) = (Ground::default(), Scripted::free());
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    let task = kb.submit(of_words(&["basalt", "gneiss", "marble", "opal", "tuff"]), by("eva")).await.unwrap();
    let (doc_id, before) = (task.doc_id().unwrap(), ended(&kb, task.task_id).await);
    assert_eq!(result(before).embedded, 5);
    let old = kb.document(doc_id).await.unwrap().unwrap();
    embedder.texts.lock().unwrap().clear();

    let new = NewDocument {
        source: "new".to_owned(),
        ..of_words(&["basalt", "gneiss", "granite", "opal", "tuff"])
    };
    let task = kb.replace(doc_id, new, by("ann")).await.unwrap().unwrap();
    assert_eq!((task.kind, task.doc_id().unwrap()), (TaskKind::Replace, doc_id));
    let done = ended(&kb, task.task_id).await;
    assert_eq!(done.created_by.name, "ann");
    assert_eq!(result(done).embedded, 1);
    let embedded = embedder.texts.lock().unwrap().join("\n");
    assert!(embedded.contains("granite") && !embedded.contains("basalt"), "{embedded}");
    let now = kb.document(doc_id).await.unwrap().unwrap();
    assert_eq!((now.created_by, now.created_at), (old.created_by, old.created_at));
    assert!(now.revision > old.revision && now.source == "new");
    assert!(kb.text(doc_id).await.unwrap().unwrap().contains("granite"));
    let texts = found(&kb, "marble granite").await.concat();
    assert!(texts.contains("granite") && !texts.contains("marble"), "{texts}");
    assert_eq!(ids(&kb).await, [doc_id]);
    tidy(&ground, &kb).await;
    // Vectors that were taken over are the ones that would have been made.
    let found = kb.search(&SearchRequest::new("What there is to say of basalt")).await.unwrap();
    assert!(found.response.results[0].text.contains("basalt"));
}

#[tokio::test]
async fn what_is_not_live_cannot_be_replaced() {
    let kb = Ground::default().open(None).await;
    assert!(kb.replace(DocId::new(), document("opal", 1), by("eva")).await.unwrap().is_none());
}

#[tokio::test]
async fn of_several_replacements_the_last_stays() {
    let (ground, embedder) = (Ground::default(), Scripted::new(1));
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    let doc_id = kb.add(document("opal", 1)).await.unwrap().doc_id;
    let mut tasks = Vec::new();
    for name in ["basalt", "gneiss", "marble"] {
        tasks.push(kb.replace(doc_id, document(name, 1), by("eva")).await.unwrap().unwrap().task_id);
        assert!(
            found(&kb, "opal").await.concat().contains("opal"),
            "the old one is found until the new one is"
        );
    }
    embedder.permits.add_permits(1_000);
    let last = ended(&kb, tasks[2]).await;
    assert_eq!(result(last).title, "marble");
    for earlier in &tasks[..2] {
        let task = ended(&kb, *earlier).await;
        assert_eq!((task.status, task.error.unwrap().reason), (TaskStatus::Failed, FailureReason::Cancelled));
    }
    assert_eq!(kb.document(doc_id).await.unwrap().unwrap().title, "marble");
    tidy(&ground, &kb).await;
}

#[tokio::test]
async fn a_change_by_hand_outlasts_the_replacement_that_was_accepted_before() {
    let (ground, embedder) = (Ground::default(), Scripted::new(1));
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    let first = NewDocument { metadata: [("a".to_owned(), "1".to_owned())].into(), ..document("opal", 1) };
    let doc_id = kb.add(first).await.unwrap().doc_id;
    let replacement =
        NewDocument { metadata: [("b".to_owned(), "2".to_owned())].into(), ..document("marble", 1) };
    let task = kb.replace(doc_id, replacement, by("eva")).await.unwrap().unwrap();
    // The second says nothing new of the live document, and much of the one to come.
    for (title, category) in [("Once", "Guide"), ("Twice", "Guide")] {
        let metadata = [("c".to_owned(), Some(title.to_owned())), ("b".to_owned(), None)].into();
        let (title, category) = (Some(title.to_owned()), Some(category.to_owned()));
        let change = DocumentChange { title, category, metadata, source: None };
        kb.change(doc_id, change).await.unwrap().unwrap();
    }
    embedder.permits.add_permits(1_000);
    let done = result(ended(&kb, task.task_id).await);
    assert_eq!((done.title.as_str(), done.category.as_str()), ("Twice", "Guide"));
    let now = kb.document(doc_id).await.unwrap().unwrap();
    assert_eq!((now.title.as_str(), now.category.as_str(), now.category_by_hand), ("Twice", "Guide", true));
    assert_eq!(now.metadata, [("c".to_owned(), "Twice".to_owned())].into());
    let mut request = SearchRequest::new("marble");
    request.filters.category = Some("Guide".to_owned());
    assert_eq!(kb.search(&request).await.unwrap().response.results.len(), 1, "its points have its tags");
    tidy(&ground, &kb).await;
}

#[tokio::test]
async fn a_delete_takes_the_replacement_with_it() {
    let (ground, embedder) = (Ground::default(), Scripted::new(1));
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    let doc_id = kb.add(document("opal", 1)).await.unwrap().doc_id;
    let task = kb.replace(doc_id, document("marble", 9), by("eva")).await.unwrap().unwrap();
    assert_eq!(kb.delete(doc_id).await.unwrap().total(), 4);
    embedder.permits.add_permits(1_000);
    assert_eq!(ended(&kb, task.task_id).await.error.unwrap().message, "cancelled");
    assert!(kb.document(doc_id).await.unwrap().is_none());
    tidy(&ground, &kb).await;
}

#[tokio::test]
async fn what_is_cancelled_leaves_what_was_there() {
    let (ground, embedder) = (Ground::default(), Scripted::new(2));
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    let doc_id = kb.add(document("opal", 1)).await.unwrap().doc_id;
    let replacement = kb.replace(doc_id, document("marble", 20), by("eva")).await.unwrap().unwrap();
    let new = kb.submit(document("tuff", 20), by("eva")).await.unwrap();
    for task in [replacement.task_id, new.task_id] {
        let cancelled = kb.cancel(task).await.unwrap().unwrap();
        assert_eq!(
            (cancelled.status, cancelled.error.as_ref().unwrap().reason),
            (TaskStatus::Failed, FailureReason::Cancelled)
        );
        assert_eq!(kb.cancel(task).await.unwrap_err().kind(), ErrorKind::Conflict, "it has ended");
        assert_eq!(kb.retry(task).await.unwrap_err().kind(), ErrorKind::Conflict, "nothing of it is kept");
    }
    assert_eq!(kb.document(doc_id).await.unwrap().unwrap().title, "opal");
    assert_eq!(ids(&kb).await, [doc_id]);
    tidy(&ground, &kb).await;
}

/// A task whose embedder gives up after two of its batches.
async fn failed(kb: &KnowledgeBase, embedder: &Scripted) -> Task {
    let task = kb.submit(document("schist", 20), by("eva")).await.unwrap();
    until("two batches are embedded", async || embedder.texts.lock().unwrap().len() == 8).await;
    embedder.retryable.store(false, Ordering::SeqCst);
    embedder.failures.store(1, Ordering::SeqCst);
    embedder.permits.add_permits(1);
    let task = ended(kb, task.task_id).await;
    assert_eq!(
        (task.status, task.error.as_ref().unwrap().reason),
        (TaskStatus::Failed, FailureReason::Internal)
    );
    task
}

#[tokio::test]
async fn lesson_03_a_retry_by_hand_goes_on_where_it_failed() {
    let (ground, embedder) = (Ground::default(), Scripted::new(2));
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    let task = failed(&kb, &embedder).await;
    assert!(ids(&kb).await.is_empty() && found(&kb, "schist").await.is_empty());
    // What failed is kept over a restart, and nothing sweeps it up.
    kb.close().await;
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    embedder.permits.add_permits(1_000);
    let again = kb.retry(task.task_id).await.unwrap().unwrap();
    assert_eq!((again.status, again.attempts, again.error), (TaskStatus::Pending, 0, None));
    let done = ended(&kb, task.task_id).await;
    assert_eq!(done.subject, task.subject);
    assert_eq!(result(done).embedded, 12, "the first eight are stored");
    assert_eq!(kb.retry(task.task_id).await.unwrap_err().kind(), ErrorKind::Conflict);
    tidy(&ground, &kb).await;
}

#[tokio::test]
async fn a_failed_task_that_is_forgotten_leaves_nothing() {
    for forget in [true, false] {
        let (ground, embedder) = (Ground::default(), Scripted::new(2));
        let kb = ground.open(Some(Arc::clone(&embedder))).await;
        let task = failed(&kb, &embedder).await;
        match forget {
            true => assert!(kb.forget(task.task_id).await.unwrap().is_some()),
            false => assert_eq!(kb.delete(task.doc_id().unwrap()).await.unwrap().total(), 0),
        }
        assert_eq!(kb.task(task.task_id).await.unwrap().is_none(), forget);
        tidy(&ground, &kb).await;
        if !forget {
            assert_eq!(kb.retry(task.task_id).await.unwrap_err().kind(), ErrorKind::Conflict);
        }
    }
}

#[tokio::test]
async fn an_overtaken_replacement_cannot_be_tried_again() {
    let (ground, embedder) = (Ground::default(), Scripted::free());
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    let doc_id = kb.add(document("opal", 1)).await.unwrap().doc_id;
    embedder.retryable.store(false, Ordering::SeqCst);
    embedder.failures.store(1, Ordering::SeqCst);
    let first = kb.replace(doc_id, document("marble", 1), by("eva")).await.unwrap().unwrap();
    assert_eq!(ended(&kb, first.task_id).await.status, TaskStatus::Failed);
    assert_eq!(kb.document(doc_id).await.unwrap().unwrap().title, "opal");
    let second = kb.replace(doc_id, document("tuff", 1), by("eva")).await.unwrap().unwrap();
    assert_eq!(ended(&kb, second.task_id).await.status, TaskStatus::Done);
    assert_eq!(kb.retry(first.task_id).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(kb.document(doc_id).await.unwrap().unwrap().title, "tuff");
    tidy(&ground, &kb).await;
}

#[tokio::test]
async fn a_task_that_runs_is_not_forgotten() {
    let embedder = Scripted::new(0);
    let kb = Ground::default().open(Some(Arc::clone(&embedder))).await;
    let task = kb.submit(document("opal", 1), by("eva")).await.unwrap();
    assert_eq!(kb.forget(task.task_id).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(kb.retry(task.task_id).await.unwrap_err().kind(), ErrorKind::Conflict);
    embedder.permits.add_permits(9);
    ended(&kb, task.task_id).await;
    assert!(kb.forget(task.task_id).await.unwrap().is_some());
    assert!(
        kb.forget(task.task_id).await.unwrap().is_none() && kb.cancel(task.task_id).await.unwrap().is_none()
    );
    assert_eq!(ids(&kb).await.len(), 1, "the document stays");
}

#[tokio::test]
async fn equal_texts_are_one_document() {
    let (ground, embedder) = (Ground::default(), Scripted::free());
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    let first = kb.add(document("opal", 3)).await.unwrap();
    embedder.texts.lock().unwrap().clear();
    let text = document("opal", 3).text.replace('\n', " \r\n ");
    let again = NewDocument { text, title: "Another title".to_owned(), ..NewDocument::default() };
    let task = ended(&kb, kb.submit(again.clone(), by("eva")).await.unwrap().task_id).await;
    assert_eq!(task.doc_id().unwrap(), first.doc_id);
    let said = result(task);
    assert_eq!(said.duplicate_of, Some(Duplicate { doc_id: first.doc_id, distance: 0 }));
    assert_eq!((said.embedded, said.title, said.counts), (0, first.title.clone(), first.counts));
    assert!(embedder.texts.lock().unwrap().is_empty());
    assert_eq!(ids(&kb).await, [first.doc_id]);
    tidy(&ground, &kb).await;
    // Who means it gets it; and what is gone is no duplicate's any more.
    for dedup in [Dedup::None, Dedup::Sha256] {
        kb.delete(first.doc_id).await.unwrap();
        let submission = Submission { dedup, ..by("eva") };
        let task = ended(&kb, kb.submit(again.clone(), submission).await.unwrap().task_id).await;
        let is_new = result(task).duplicate_of.is_none();
        assert_eq!(is_new, dedup == Dedup::None, "the one that was forced is there now");
    }
    assert_eq!(ids(&kb).await.len(), 1);
    tidy(&ground, &kb).await;
}

#[tokio::test]
async fn lesson_34_near_texts_are_told_with_their_distance() {
    let kb = Ground::default().open(None).await;
    let simhash = |threshold| Submission { dedup: Dedup::Simhash { threshold }, ..by("eva") };
    let first = kb.add(document("opal", 30)).await.unwrap();
    let near =
        NewDocument { text: document("opal", 30).text + "\nAnd one more word.\n", ..NewDocument::default() };
    let told = ended(&kb, kb.submit(near.clone(), simhash(12)).await.unwrap().task_id).await;
    let found = result(told).duplicate_of.unwrap();
    assert_eq!(found.doc_id, first.doc_id);
    assert!((1..=12).contains(&found.distance), "{found:?}");
    // Nearer than they are is no duplicate; anything is one within 64 bits.
    let strict = simhash(found.distance - 1);
    let kept = ended(&kb, kb.submit(near.clone(), strict.clone()).await.unwrap().task_id).await;
    assert!(result(kept).duplicate_of.is_none());
    let any = NewDocument { text: "Cats sleep all day.".to_owned(), ..NewDocument::default() };
    let told = ended(&kb, kb.submit(any, simhash(64)).await.unwrap().task_id).await;
    assert!(result(told).duplicate_of.is_some());
    // What is deleted is found no more, and an owner can insist.
    for doc_id in ids(&kb).await {
        kb.delete(doc_id).await.unwrap();
    }
    let alone = ended(&kb, kb.submit(near, strict).await.unwrap().task_id).await;
    assert!(result(alone).duplicate_of.is_none());
    assert_eq!(ids(&kb).await.len(), 1);
}

#[tokio::test]
async fn twins_at_once_are_one_document() {
    for dedup in [Dedup::Sha256, Dedup::Simhash { threshold: 3 }] {
        let ground = Ground::default();
        let kb = ground.open(Some(Scripted::free())).await;
        let sent = (0..24).map(|n| {
            let submission = Submission { dedup, ..by("eva") };
            kb.submit(document(if n % 2 == 0 { "opal" } else { "quartzite of the north" }, 3), submission)
        });
        let sent = futures_util::future::try_join_all(sent).await.unwrap();
        let mut made = 0;
        for task in &sent {
            made += u32::from(result(ended(&kb, task.task_id).await).duplicate_of.is_none());
        }
        assert_eq!((made, ids(&kb).await.len()), (2, 2), "{dedup:?}");
        tidy(&ground, &kb).await;
    }
}

#[tokio::test]
async fn a_replacement_is_compared_with_nothing() {
    let kb = Ground::default().open(None).await;
    let (one, other) =
        (kb.add(document("opal", 1)).await.unwrap(), kb.add(document("tuff", 1)).await.unwrap());
    let task = kb.replace(one.doc_id, document("tuff", 1), by("eva")).await.unwrap().unwrap();
    assert!(result(ended(&kb, task.task_id).await).duplicate_of.is_none());
    // Both are found by that text now, and the first by its own no more.
    assert_eq!(kb.add(document("tuff", 1)).await.unwrap().doc_id, one.doc_id.min(other.doc_id));
    assert!(![one.doc_id, other.doc_id].contains(&kb.add(document("opal", 1)).await.unwrap().doc_id));
}

#[tokio::test]
async fn lesson_06_an_upsert_replaces_what_has_the_source() {
    let ground = Ground::default();
    let kb = ground.open(Some(Scripted::free())).await;
    let upsert = |name: &str, may| Submission { upsert: Some(may), ..by(name) };
    let first = kb.submit(from_source("opal", 2, "s"), by("eva")).await.unwrap();
    ended(&kb, first.task_id).await;
    for (n, name) in ["tuff", "marble", "marble"].into_iter().enumerate() {
        let task = kb.submit(from_source(name, 2, "s"), upsert("eva", Upsert::Own)).await.unwrap();
        assert_eq!((task.kind, task.doc_id().unwrap()), (TaskKind::Replace, first.doc_id().unwrap()));
        let done = result(ended(&kb, task.task_id).await);
        assert_eq!(done.embedded, if n == 2 { 0 } else { 2 }, "what is the same is not embedded again");
    }
    // Another's document is not replaced, unless by one who may do all.
    let foreign = kb.submit(from_source("gneiss", 1, "s"), upsert("ann", Upsert::Own)).await.unwrap();
    assert_eq!(foreign.kind, TaskKind::Ingest);
    ended(&kb, foreign.task_id).await;
    let admin = kb.submit(from_source("schist", 1, "s"), upsert("admin", Upsert::Any)).await.unwrap();
    assert_eq!(admin.doc_id().unwrap(), foreign.doc_id().unwrap(), "of several the newest");
    ended(&kb, admin.task_id).await;
    // Without a source there is nothing to go by.
    for _ in 0..2 {
        let task = kb.submit(document("basalt", 1), upsert("eva", Upsert::Own)).await.unwrap();
        assert_eq!(task.kind, TaskKind::Ingest);
        ended(&kb, task.task_id).await;
    }
    assert_eq!(ids(&kb).await.len(), 3);
    tidy(&ground, &kb).await;
}

#[tokio::test]
async fn upserts_of_a_new_source_at_once_make_one_document() {
    let ground = Ground::default();
    let kb = ground.open(Some(Scripted::free())).await;
    let sent = (0..20).map(|n| {
        let submission = Submission { upsert: Some(Upsert::Own), ..by("eva") };
        kb.submit(from_source(&format!("stone{n}"), 2, "new"), submission)
    });
    let sent = futures_util::future::try_join_all(sent).await.unwrap();
    for task in &sent {
        assert_eq!(task.doc_id().unwrap(), sent[0].doc_id().unwrap());
        ended(&kb, task.task_id).await;
    }
    assert_eq!(ids(&kb).await, [sent[0].doc_id().unwrap()]);
    tidy(&ground, &kb).await;
    // One that is gone is made anew.
    kb.delete(sent[0].doc_id().unwrap()).await.unwrap();
    let submission = Submission { upsert: Some(Upsert::Own), ..by("eva") };
    let task = kb.submit(from_source("opal", 1, "new"), submission).await.unwrap();
    assert_ne!(task.doc_id().unwrap(), sent[0].doc_id().unwrap());
    ended(&kb, task.task_id).await;
    assert_eq!(ids(&kb).await, [task.doc_id().unwrap()]);
}

#[tokio::test]
async fn a_batch_is_accepted_whole() {
    let ground = Ground::default();
    let kb = ground.open(None).await;
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
        ends.push(ended(&kb, task.task_id).await.status);
    }
    assert_eq!(ends, [TaskStatus::Failed, TaskStatus::Done, TaskStatus::Done, TaskStatus::Done]);
    let blank = vec![(document("schist", 1), by("eva")), (NewDocument::default(), by("eva"))];
    assert_eq!(kb.submit_all(blank, None).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(ids(&kb).await.len(), 3);
    tidy(&ground, &kb).await;
}

#[tokio::test]
async fn the_same_key_is_the_same_submission() {
    let ground = Ground::default();
    let kb = ground.open(None).await;
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
    ended(&kb, tasks[0].task_id).await;
    let again = keyed(99).await.unwrap();
    assert_eq!((again.task_id, again.status), (tasks[0].task_id, TaskStatus::Done));
    for other in [key("ann", "documents", "k"), key("eva", "batch", "k"), key("eva", "documents", "l")] {
        assert!(kb.remembered(&other).await.unwrap().is_none(), "{other:?}");
        let documents = vec![(document(&other.account, 1), by("eva")), (document(&other.key, 2), by("eva"))];
        let tasks = kb.submit_all(documents.clone(), Some(other.clone())).await.unwrap();
        let again = kb.submit_all(documents, Some(other)).await.unwrap();
        let ids = |tasks: &[Task]| tasks.iter().map(|task| task.task_id).collect::<Vec<_>>();
        assert_eq!(ids(&tasks), ids(&again));
    }
    until("all ended", async || kb.queued().await.unwrap() == 0).await;
    tidy(&ground, &kb).await;
}

/// Deletes and replacements that overtake each other: what was deleted is gone, whatever was accepted meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_replacement_brings_nothing_back_that_was_deleted() {
    let ground = Ground::default();
    let kb = ground.open(None).await;
    for round in 0..200 {
        let doc_id = kb.add(document(&format!("opal{round}"), 1)).await.unwrap().doc_id;
        let (one, other) = (kb.clone(), kb.clone());
        let put = tokio::spawn(async move {
            let text = format!("marble{round}");
            one.replace(doc_id, document(&text, 1), by("eva")).await.unwrap().map(|task| task.task_id)
        });
        let gone = tokio::spawn(async move { other.delete(doc_id).await.unwrap().total() });
        let (put, gone) = (put.await.unwrap(), gone.await.unwrap());
        if let Some(task) = put {
            ended(&kb, task).await;
        }
        assert_eq!(gone, 4);
        assert!(kb.document(doc_id).await.unwrap().is_none(), "round {round}");
    }
    tidy(&ground, &kb).await;
}

#[tokio::test]
async fn a_change_made_while_a_replacement_had_failed_outlasts_its_retry() {
    let (ground, embedder) = (Ground::default(), Scripted::free());
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    let doc_id = kb.add(document("opal", 1)).await.unwrap().doc_id;
    embedder.retryable.store(false, Ordering::SeqCst);
    embedder.failures.store(1, Ordering::SeqCst);
    let task = kb.replace(doc_id, document("marble", 1), by("eva")).await.unwrap().unwrap();
    assert_eq!(ended(&kb, task.task_id).await.status, TaskStatus::Failed);
    let title = |title: &str| DocumentChange { title: Some(title.to_owned()), ..DocumentChange::default() };
    for name in ["Once", "Twice"] {
        kb.change(doc_id, title(name)).await.unwrap().unwrap();
    }
    kb.retry(task.task_id).await.unwrap().unwrap();
    assert_eq!(result(ended(&kb, task.task_id).await).title, "Twice");
    assert!(kb.text(doc_id).await.unwrap().unwrap().contains("marble"));
    tidy(&ground, &kb).await;
}

#[tokio::test]
async fn what_failed_is_still_its_senders() {
    let (ground, embedder) = (Ground::default(), Scripted::new(2));
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
    let task = failed(&kb, &embedder).await;
    assert_eq!(kb.owner(task.doc_id().unwrap()).await.unwrap().unwrap().id, "eva");
    kb.forget(task.task_id).await.unwrap().unwrap();
    assert!(kb.owner(task.doc_id().unwrap()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_key_whose_task_was_forgotten_is_a_new_one() {
    let kb = Ground::default().open(None).await;
    let key = Idempotency { account: "eva".to_owned(), endpoint: "documents", key: "k".to_owned() };
    let submit = async |name: &str| {
        let submission = Submission { idempotency: Some(key.clone()), ..by("eva") };
        ended(&kb, kb.submit(document(name, 1), submission).await.unwrap().task_id).await.task_id
    };
    let first = submit("opal").await;
    assert_eq!(submit("tuff").await, first);
    kb.forget(first).await.unwrap().unwrap();
    let second = submit("tuff").await;
    assert_ne!(second, first);
    assert_eq!(submit("marble").await, second);
    assert_eq!(ids(&kb).await.len(), 2);
}

#[tokio::test]
async fn a_change_that_does_not_fit_the_replacement_is_refused() {
    let (ground, embedder) = (Ground::default(), Scripted::new(1));
    let kb = ground.open(Some(Arc::clone(&embedder))).await;
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

//! Re-embedding over both kinds of stores, with models whose vectors differ for the same texts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lkr::{
    Catalog, DocumentChange, KnowledgeBase, Layer, NewDocument, Scope, SearchRequest, SearchResult, Stage,
    Submission, TaskKind, TaskLists, TaskResult, TaskStatus,
};
use lkr_models::MemoryEmbedder;
use lkr_vectors::{Condition, Filter};

use crate::{
    common::{TestStores, document, text, wait_for_task, wait_until},
    salted_embedder::{
        NAMES, SaltedEmbedder, add_some, assert_embedded, live_model, memory_and_lmdb_stores, open, results,
        set_embedder,
    },
};

/// Every search during re-embedding returns the complete answer of the old model or of the new one, and never the old
/// one's after the new one's.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lesson_12_search_during_reembedding_uses_one_model_only() {
    for (stores, _folder) in memory_and_lmdb_stores() {
        let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
        let documents = add_some(&kb, &NAMES).await;
        let query = "the marl number rests, its colour";
        let before = results(&kb, query).await;
        let second = SaltedEmbedder::new("second", 2);
        let stop = Arc::new(AtomicBool::new(false));
        let searching = tokio::spawn({
            let (kb, stop) = (kb.clone(), Arc::clone(&stop));
            async move {
                let mut answers: Vec<Vec<SearchResult>> = Vec::new();
                let mut count = 0;
                while !stop.load(Ordering::SeqCst) {
                    // The varying `top_k` keeps answers out of the cache.
                    let request = SearchRequest { top_k: 10 + count % 50, ..SearchRequest::new(query) };
                    let found = kb.search(&request).await.unwrap();
                    assert_eq!(found.response.warnings, Vec::<String>::new());
                    if answers.last() != Some(&found.response.results) {
                        answers.push(found.response.results.clone());
                    }
                    count += 1;
                }
                (answers, count)
            }
        });
        let task = set_embedder(&kb, &second).await.unwrap();
        assert_eq!((task.kind, task.created_by.name.as_str()), (TaskKind::Reembed, "eva"));
        wait_until("the task is embedding", async || {
            let task = kb.task(task.task_id).await.unwrap().unwrap();
            task.progress.total == 5 && task.stage == Stage::Embed && task.status == TaskStatus::Running
        })
        .await;
        assert_eq!(live_model(&kb).await, "first");
        assert_eq!(results(&kb, query).await, before, "searches use the old vectors");
        second.permits.add_permits(1_000);
        let task = wait_for_task(&kb, task.task_id).await;
        let Some(TaskResult::Reembedded(result)) = task.result else { panic!("{task:?}") };
        assert_eq!((result.model.as_str(), result.reembedded, task.progress.done), ("second", 5, 5));
        let after = results(&kb, query).await;
        assert_ne!(after, before, "the models return different results");
        stop.store(true, Ordering::SeqCst);
        let (answers, count) = searching.await.unwrap();
        assert!(count > 10, "{count}");
        assert!(
            answers == [before.clone(), after.clone()] || answers == [before],
            "{} answers",
            answers.len()
        );
        assert_embedded(&stores, "second", &documents).await;
        kb.close().await;
    }
}

#[tokio::test]
async fn writes_during_reembedding_are_in_both_collection_sets() {
    for (stores, _folder) in memory_and_lmdb_stores() {
        let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
        let mut documents = add_some(&kb, &NAMES).await;
        // The first documents are embedded, and one is in progress.
        let second = SaltedEmbedder::new("second", 3);
        let task = set_embedder(&kb, &second).await.unwrap();
        wait_until("two batches are embedded", async || second.permits.available_permits() == 0).await;
        let added = kb.add(document("obsidian", 3)).await.unwrap();
        assert_eq!(
            results(&kb, "obsidian").await[0].doc_id,
            added.doc_id,
            "the new document is found at once"
        );
        let replaced = documents[0].doc_id;
        let other = NewDocument { text: text("pumice", 4), ..NewDocument::default() };
        let replacing = kb
            .replace(replaced, other, Submission::by("eva".into()))
            .await
            .unwrap()
            .expect("the document is live");
        assert_eq!(wait_for_task(&kb, replacing.task_id).await.status, TaskStatus::Done);
        let deleted = documents.remove(3);
        kb.delete(deleted.doc_id).await.unwrap();
        let marked = documents[1].doc_id;
        let manual = DocumentChange { category: Some("stones".to_owned()), ..DocumentChange::default() };
        kb.change(marked, manual).await.unwrap().expect("the document is live");
        second.permits.add_permits(1_000);
        assert_eq!(wait_for_task(&kb, task.task_id).await.status, TaskStatus::Done);
        documents[0] = kb.document(replaced).await.unwrap().unwrap();
        documents.push(added);
        wait_until("the deleted document is collected", async || {
            let filter = Filter::only(Condition::Docs(vec![deleted.doc_id]));
            stores.vectors.count(&Layer::Chunks.into(), &filter).await.unwrap() == 0
                && stores.vectors.count(&Layer::L1.into(), &Filter::all()).await.unwrap() == 5
        })
        .await;
        wait_until("only the live revisions remain", async || {
            let chunks = documents.iter().map(|document| document.counts.chunks).sum::<u64>();
            stores.vectors.count(&Layer::Chunks.into(), &Filter::all()).await.unwrap() == chunks
        })
        .await;
        assert_embedded(&stores, "second", &documents).await;
        let mut request = SearchRequest::new("number");
        request.filters.category = Some("stones".to_owned());
        let found = kb.search(&request).await.unwrap();
        assert!(!found.response.results.is_empty());
        assert!(found.response.results.iter().all(|result| result.doc_id == marked));
        kb.close().await;
    }
}

/// Documents arrive faster than the new model embeds them, and re-embedding still ends.
#[tokio::test]
async fn reembedding_ends_while_documents_keep_arriving() {
    let stores = TestStores::default();
    let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
    add_some(&kb, &NAMES).await;
    let second = SaltedEmbedder::new("second", 0);
    let task = set_embedder(&kb, &second).await.unwrap();
    let slowly = tokio::spawn({
        let second = Arc::clone(&second);
        async move {
            loop {
                tokio::time::sleep(Duration::from_millis(20)).await;
                second.permits.add_permits(1);
            }
        }
    });
    let mut count = 0;
    while !kb.task(task.task_id).await.unwrap().unwrap().status.has_ended() {
        kb.add(document(&format!("stone{count}"), 1)).await.unwrap();
        count += 1;
        assert!(count < 500, "re-embedding does not end");
    }
    slowly.abort();
    let listed = kb.list(&Scope::All, &Default::default(), None, 1_000).await.unwrap().items;
    assert_eq!(listed.len(), 5 + count);
    assert_embedded(&stores, "second", &listed).await;
}

#[tokio::test]
async fn cancelled_reembedding_leaves_nothing_and_starts_only_on_request() {
    for (stores, _folder) in memory_and_lmdb_stores() {
        let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
        let documents = add_some(&kb, &NAMES).await;
        let before = results(&kb, "marl").await;
        let second = SaltedEmbedder::new("second", 2);
        let task = set_embedder(&kb, &second).await.unwrap();
        wait_until("two batches are embedded", async || second.permits.available_permits() == 0).await;
        kb.cancel(task.task_id).await.unwrap();
        let cancelled = wait_for_task(&kb, task.task_id).await;
        assert!(cancelled.error.is_some_and(|error| error.is_cancelled()));
        wait_until("its collections are dropped", async || {
            stores.vectors.collections().await.unwrap().len() == 4
        })
        .await;
        assert_embedded(&stores, "first", &documents).await;
        assert_eq!(results(&kb, "marl").await, before);
        let embedding = kb.embedding().await.unwrap();
        assert_eq!((embedding.live_name.as_deref(), embedding.live_is_available), (Some("first"), true));
        assert_eq!(embedding.target.unwrap().profile().name, "second");
        kb.close().await;

        // A start does not begin it again.
        second.permits.add_permits(1_000);
        let kb = open(&stores, &second).await;
        assert_eq!(live_model(&kb).await, "first");
        let tasks = kb.tasks(&TaskLists::All, |_| true, None, 100).await.unwrap().items;
        assert_eq!(tasks.iter().filter(|task| task.kind == TaskKind::Reembed).count(), 1);
        kb.add_embedder(SaltedEmbedder::unlimited("first"));
        assert_eq!(results(&kb, "marl").await, before, "the old model is used if it is available");
        let again = set_embedder(&kb, &second).await.unwrap();
        assert_eq!(wait_for_task(&kb, again.task_id).await.status, TaskStatus::Done);
        assert_embedded(&stores, "second", &documents).await;
        kb.close().await;
    }
}

#[tokio::test]
async fn later_reembedding_replaces_the_unfinished_one() {
    let stores = TestStores::default();
    let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
    let documents = add_some(&kb, &NAMES).await;
    let second = SaltedEmbedder::new("second", 2);
    let task = set_embedder(&kb, &second).await.unwrap();
    wait_until("two batches are embedded", async || second.permits.available_permits() == 0).await;
    let same = set_embedder(&kb, &second).await.unwrap();
    assert_eq!(same.task_id, task.task_id, "the same change continues");
    let other = set_embedder(&kb, &SaltedEmbedder::unlimited("third")).await.unwrap();
    assert!(wait_for_task(&kb, task.task_id).await.error.is_some_and(|error| error.is_cancelled()));
    assert_eq!(wait_for_task(&kb, other.task_id).await.status, TaskStatus::Done);
    wait_until("only the third model's collections remain", async || {
        stores.vectors.collections().await.unwrap().len() == 4
    })
    .await;
    assert_embedded(&stores, "third", &documents).await;

    // A change back to the live model needs no task and cancels the unfinished one.
    let fourth = SaltedEmbedder::new("fourth", 0);
    let task = set_embedder(&kb, &fourth).await.unwrap();
    assert_eq!(set_embedder(&kb, &SaltedEmbedder::unlimited("third")).await, None);
    assert!(wait_for_task(&kb, task.task_id).await.error.is_some_and(|error| error.is_cancelled()));
    wait_until("only the third model's collections remain", async || {
        stores.vectors.collections().await.unwrap().len() == 4
    })
    .await;
    assert_embedded(&stores, "third", &documents).await;
    assert_eq!(
        set_embedder(&kb, &SaltedEmbedder::unlimited("third")).await,
        None,
        "a change to the live model needs no task"
    );
}

#[tokio::test]
async fn lesson_37_cosine_scale_does_not_depend_on_the_documents() {
    let scale = async |texts: &[&str]| {
        let stores = TestStores::default();
        let kb =
            open(&stores, &SaltedEmbedder::of("narrow", 1_000, MemoryEmbedder::with_dims(96), 3.0)).await;
        for text in texts {
            kb.add(document(text, 60)).await.unwrap();
        }
        let catalog = Catalog::new(Arc::clone(&stores.state));
        wait_until("the model is calibrated", async || {
            catalog.cosine_scale("narrow").await.unwrap().is_some()
        })
        .await;
        catalog.cosine_scale("narrow").await.unwrap().unwrap()
    };
    let of_nothing = scale(&[]).await;
    assert!(of_nothing > 2.0 * 30.5, "{of_nothing}");
    assert_eq!(of_nothing, scale(&["granite", "basalt"]).await);
}

#[tokio::test]
async fn model_that_refuses_the_calibration_has_the_reference_scale() {
    let stores = TestStores::default();
    let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
    kb.add(document("granite", 60)).await.unwrap();
    let narrow = SaltedEmbedder::of("narrow", 1_000, MemoryEmbedder::with_dims(96), 3.0);
    // A word of the calibration passages that is in no document of this test.
    *narrow.refused_word.lock().unwrap() = Some("Readability");
    let task = set_embedder(&kb, &narrow).await.unwrap();
    let Some(TaskResult::Reembedded(result)) = wait_for_task(&kb, task.task_id).await.result else {
        panic!()
    };
    assert_eq!((result.cosine_scale, result.left_out), (30.5, 0));
    assert_eq!(Catalog::new(Arc::clone(&stores.state)).cosine_scale("narrow").await.unwrap(), None);
    assert_eq!(results(&kb, "granite").await[0].title, "granite");
}

#[tokio::test]
async fn cosine_scale_of_a_narrow_model_is_larger_and_stored() {
    let stores = TestStores::default();
    let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
    add_some(&kb, &NAMES).await;
    kb.add(document("granite", 60)).await.unwrap();
    let (inner, common_length) = (MemoryEmbedder::with_dims(96), 3.0);
    let narrow = SaltedEmbedder::of("narrow", 1_000, inner, common_length);
    let task = set_embedder(&kb, &narrow).await.unwrap();
    let Some(TaskResult::Reembedded(result)) = wait_for_task(&kb, task.task_id).await.result else {
        panic!()
    };
    assert!(result.cosine_scale > 2.0 * 30.5, "{result:?}");
    let catalog = Catalog::new(Arc::clone(&stores.state));
    assert_eq!(catalog.cosine_scale("narrow").await.unwrap(), Some(result.cosine_scale));
    assert_eq!(results(&kb, "granite").await[0].title, "granite");
}

#[tokio::test]
async fn reclassification_after_reembedding_uses_the_new_model() {
    let stores = TestStores::default();
    let builder = || {
        KnowledgeBase::builder()
            .vectors(Arc::clone(&stores.vectors))
            .state(Arc::clone(&stores.state))
            .blobs(Arc::clone(&stores.blobs))
    };
    let kb = builder().embedder(SaltedEmbedder::unlimited("first")).build().await.unwrap();
    add_some(&kb, &NAMES).await;
    let other = SaltedEmbedder::of("wide", 1_000_000, MemoryEmbedder::with_dims(128), 0.0);
    let task = set_embedder(&kb, &other).await.unwrap();
    assert_eq!(wait_for_task(&kb, task.task_id).await.status, TaskStatus::Done);
    let task = kb.reclassify(None, &"eva".into()).await.unwrap();
    let Some(TaskResult::Reclassified(result)) = wait_for_task(&kb, task.task_id).await.result else {
        panic!()
    };
    assert_eq!((result.documents, result.warnings), (5, vec![]));
}

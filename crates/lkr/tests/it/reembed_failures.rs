//! Re-embedding while models or stores fail, and over kills.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use lkr::{
    Catalog, Document, IngestOptions, KnowledgeBase, Layer, SearchRequest, Stage, TaskLists, TaskResult,
    TaskStatus,
};
use lkr_catalog::{CollectionPhase, LiveCollections};
use lkr_state::{FailingState, StateStore};
use lkr_vectors::{
    Collection, CollectionSpec, Condition, DenseSpec, FailingVectors, Filter, Include, VectorStore,
};
use tokio::sync::Semaphore;

use crate::{
    common::{TestStores, document, wait_for_task, wait_until},
    salted_embedder::{
        NAMES, SaltedEmbedder, add_some, assert_embedded, live_model, memory_and_lmdb_stores, open, results,
        set_embedder,
    },
};

#[tokio::test]
async fn unavailable_model_delays_reembedding_without_using_attempts() {
    let stores = TestStores::default();
    let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
    let documents = add_some(&kb, &NAMES).await;
    let second = SaltedEmbedder::unlimited("second");
    second.is_unavailable.store(true, Ordering::SeqCst);
    let task = set_embedder(&kb, &second).await.unwrap();
    let used = || Semaphore::MAX_PERMITS - second.permits.available_permits();
    // More calls than a task has attempts.
    wait_until("the model was called many times", async || used() > 8).await;
    let waiting = kb.task(task.task_id).await.unwrap().unwrap();
    assert!(!waiting.status.has_ended() && waiting.attempts == 0, "{waiting:?}");
    assert!(!results(&kb, "marl").await.is_empty());
    second.is_unavailable.store(false, Ordering::SeqCst);
    assert_eq!(wait_for_task(&kb, task.task_id).await.status, TaskStatus::Done);
    assert_embedded(&stores, "second", &documents).await;
}

#[tokio::test]
async fn retried_reembedding_continues_where_it_failed() {
    let stores = TestStores::default();
    let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
    let documents = add_some(&kb, &NAMES).await;
    let second = SaltedEmbedder::new("second", 3);
    let task = set_embedder(&kb, &second).await.unwrap();
    wait_until("two batches are embedded", async || second.permits.available_permits() == 0).await;
    second.is_broken.store(true, Ordering::SeqCst);
    second.permits.add_permits(1_000);
    let failed = wait_for_task(&kb, task.task_id).await;
    let error = failed.error.expect("the task failed");
    assert!(error.message.contains("the test broke it") && !error.is_cancelled(), "{error:?}");
    assert_eq!((live_model(&kb).await.as_str(), error.stage), ("first", Stage::Embed));
    second.is_broken.store(false, Ordering::SeqCst);
    kb.retry(task.task_id).await.unwrap().expect("the task exists");
    let Some(TaskResult::Reembedded(result)) = wait_for_task(&kb, task.task_id).await.result else {
        panic!()
    };
    assert!(result.embedded < 10, "embedded documents are not embedded again: {result:?}");
    assert_embedded(&stores, "second", &documents).await;
}

/// If the provider refuses one document, the others get vectors of the new model. If it refuses many, the old model
/// stays.
#[tokio::test]
async fn lesson_12_document_refused_by_the_model_is_found_by_its_words() {
    for (stores, _folder) in memory_and_lmdb_stores() {
        let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
        let documents = add_some(&kb, &NAMES).await;
        let second = SaltedEmbedder::unlimited("second");
        let refuse = |word| *second.refused_word.lock().unwrap() = word;
        refuse(Some("number"));
        let task = set_embedder(&kb, &second).await.unwrap();
        let error = wait_for_task(&kb, task.task_id).await.error.expect("the task failed");
        assert!(error.message.contains("the test made it refuse"), "{error:?}");
        assert_eq!(live_model(&kb).await, "first");

        refuse(Some("talc"));
        kb.retry(task.task_id).await.unwrap().expect("the task exists");
        let Some(TaskResult::Reembedded(result)) = wait_for_task(&kb, task.task_id).await.result else {
            panic!()
        };
        assert_eq!((result.reembedded, result.left_out, result.warnings.len()), (4, 1, 1), "{result:?}");
        let left_out = documents[3].doc_id;
        assert!(result.warnings[0].contains(&left_out.to_string()), "{result:?}");
        assert!(result.warnings[0].contains("the test made it refuse"), "{result:?}");
        assert_eq!(live_model(&kb).await, "second");
        assert_eq!(results(&kb, "talc").await[0].doc_id, left_out, "it is found by its words");
        kb.close().await;

        refuse(None);
        let kb = open(&stores, &second).await;
        let model = results(&kb, "marl").await[0].scores.dense.is_some();
        assert!(model, "the other documents have vectors");
        wait_until("the next start embeds it", async || {
            // The vector of L1 is written last.
            let l1 = stores
                .vectors
                .scroll(&Layer::L1.into(), &Filter::all(), None, 10, Include::All)
                .await
                .unwrap();
            l1.points.iter().all(|point| point.dense.is_some())
        })
        .await;
        assert_embedded(&stores, "second", &documents).await;
        kb.close().await;
    }
}

/// With one worker, documents are ingested during re-embedding, and a shutdown does not wait for it.
#[tokio::test]
async fn reembedding_does_not_block_ingestion_or_shutdown() {
    let stores = TestStores::default();
    let open = async |embedder: Arc<SaltedEmbedder>| {
        let options = IngestOptions { workers: 1, batch: 4, ..IngestOptions::default() };
        let builder = KnowledgeBase::builder()
            .vectors(Arc::clone(&stores.vectors))
            .state(Arc::clone(&stores.state))
            .blobs(Arc::clone(&stores.blobs))
            .ingest_options(options);
        builder.embedder(embedder).build().await.unwrap()
    };
    let kb = open(SaltedEmbedder::unlimited("first")).await;
    let mut documents = add_some(&kb, &NAMES).await;
    let second = SaltedEmbedder::new("second", 2);
    let task = set_embedder(&kb, &second).await.unwrap();
    wait_until("two batches are embedded", async || second.permits.available_permits() == 0).await;
    documents.extend(add_some(&kb, &["obsidian"]).await);
    assert!(!kb.task(task.task_id).await.unwrap().unwrap().status.has_ended());
    // The task itself would wait for the model forever.
    kb.shutdown(Duration::MAX).await;
    second.permits.add_permits(1_000);
    let kb = open(second).await;
    assert_eq!(wait_for_task(&kb, task.task_id).await.status, TaskStatus::Done);
    assert_embedded(&stores, "second", &documents).await;
}

/// After a start without the model, the task waits until the model is set. Searches use the old model once it is known.
#[tokio::test]
async fn reembedding_without_its_model_waits_for_it() {
    let stores = TestStores::default();
    let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
    let documents = add_some(&kb, &NAMES).await;
    let before = results(&kb, "marl").await;
    let second = SaltedEmbedder::new("second", 2);
    let task = set_embedder(&kb, &second).await.unwrap();
    wait_until("two batches are embedded", async || second.permits.available_permits() == 0).await;
    kb.shutdown(Duration::ZERO).await;

    let builder = KnowledgeBase::builder()
        .vectors(Arc::clone(&stores.vectors))
        .state(Arc::clone(&stores.state))
        .blobs(Arc::clone(&stores.blobs))
        .ingest_options(IngestOptions { batch: 4, ..IngestOptions::default() })
        .defer_embedder(true);
    let kb = builder.build().await.unwrap();
    let found = kb.search(&SearchRequest::new("marl")).await.unwrap();
    assert!(
        !found.response.results.is_empty() && !found.response.warnings.is_empty(),
        "the search used keywords only"
    );
    kb.add_embedder(SaltedEmbedder::unlimited("first"));
    assert_eq!(results(&kb, "marl").await, before);
    assert!(!kb.task(task.task_id).await.unwrap().unwrap().status.has_ended());
    second.permits.add_permits(1_000);
    let resumed = kb.set_embedder_at_start(Some(second)).await.unwrap().expect("the task is unfinished");
    assert_eq!(resumed.task_id, task.task_id);
    let Some(TaskResult::Reembedded(result)) = wait_for_task(&kb, task.task_id).await.result else {
        panic!()
    };
    assert!(result.embedded < 10, "embedded documents are not embedded again: {result:?}");
    assert_embedded(&stores, "second", &documents).await;
}

/// The process ends while the last arrivals are embedded, and the next one has no such model: documents are ingested meanwhile.
#[tokio::test]
async fn documents_are_published_while_the_model_is_away_that_embeds_the_last_arrivals() {
    let stores = TestStores::default();
    let first = SaltedEmbedder::unlimited("first");
    let kb = open(&stores, &first).await;
    let mut documents = add_some(&kb, &NAMES).await;
    let second = SaltedEmbedder::new("second", 2);
    let task = set_embedder(&kb, &second).await.unwrap();
    wait_until("two batches are embedded", async || second.permits.available_permits() == 0).await;
    kb.shutdown(Duration::ZERO).await;
    let catalog = Catalog::new(Arc::clone(&stores.state));
    let active = catalog.active(task.subject).await.unwrap().expect("the task is active");
    let filling = catalog.collection_state().await.unwrap();
    catalog.begin_phase(filling, CollectionPhase::Draining, active).await.unwrap();

    let builder = KnowledgeBase::builder()
        .vectors(Arc::clone(&stores.vectors))
        .state(Arc::clone(&stores.state))
        .blobs(Arc::clone(&stores.blobs))
        .ingest_options(IngestOptions { batch: 4, ..IngestOptions::default() })
        .defer_embedder(true);
    let kb = builder.build().await.unwrap();
    kb.add_embedder(first);
    documents.extend(add_some(&kb, &["obsidian"]).await);
    second.permits.add_permits(1_000);
    kb.set_embedder_at_start(Some(second)).await.unwrap().expect("the task is unfinished");
    assert_eq!(wait_for_task(&kb, task.task_id).await.status, TaskStatus::Done);
    assert_embedded(&stores, "second", &documents).await;
}

/// The points are those of a time at which the collections of a model were being filled, and the records are later.
#[tokio::test]
async fn restored_points_stay_searchable_if_the_recorded_collections_are_incomplete() {
    for (stores, _folder) in memory_and_lmdb_stores() {
        let first = SaltedEmbedder::unlimited("first");
        let kb = open(&stores, &first).await;
        let documents = add_some(&kb, &NAMES).await;
        kb.close().await;
        let (suffix, model, dims) = ("0123456789ab", "second".to_owned(), first.profile.dims);
        let of_one = Filter::only(Condition::Docs(vec![documents[0].doc_id]));
        for layer in Layer::ALL {
            let collection = Collection::new(format!("{layer}.{suffix}")).unwrap();
            let dense = Some(DenseSpec { model: model.clone(), dims });
            stores.vectors.ensure(&CollectionSpec { collection: collection.clone(), dense }).await.unwrap();
            let page = stores.vectors.scroll(&layer.into(), &of_one, None, 100, Include::All).await.unwrap();
            stores.vectors.upsert(&collection, page.points).await.unwrap();
        }
        let catalog = Catalog::new(Arc::clone(&stores.state));
        let live = LiveCollections { suffix: suffix.to_owned(), model: Some((model, dims)) };
        let recorded = catalog.collection_state().await.unwrap().complete(live).unwrap();
        stores.state.apply(vec![recorded]).await.unwrap();

        let kb = open(&stores, &first).await;
        for (name, document) in NAMES.iter().zip(&documents) {
            assert_eq!(results(&kb, name).await[0].doc_id, document.doc_id);
        }
        assert_eq!(stores.vectors.collections().await.unwrap().len(), 8, "nothing is dropped");
        assert_eq!(stores.vectors.count(&Layer::L1.into(), &Filter::all()).await.unwrap(), 5);
        kb.close().await;

        // A start with another model embeds all documents again.
        let kb = open(&stores, &SaltedEmbedder::unlimited("second")).await;
        wait_until("searches use the second model", async || live_model(&kb).await == "second").await;
        assert_embedded(&stores, "second", &documents).await;
        kb.close().await;
    }
}

/// The process ends before each write to a store in turn; the next one completes the task and loses or repeats nothing.
#[tokio::test]
async fn kill_between_any_two_writes_of_reembedding_loses_nothing() {
    let mut steps = 0;
    loop {
        let stores = TestStores::default();
        let kb = open(&stores, &SaltedEmbedder::unlimited("first")).await;
        let mut documents = add_some(&kb, &["gypsum", "marl"]).await;
        documents.push(kb.add(document("loess", 9)).await.unwrap());
        kb.close().await;

        let left = Arc::new(AtomicI64::new(steps));
        let stores_failing_after = stores_failing_after(&stores, &left);
        let survived = try_change(&stores_failing_after, &documents).await;
        assert!(left.load(Ordering::SeqCst) <= 0 || survived, "{steps} steps");

        let second = SaltedEmbedder::unlimited("second");
        let kb = open(&stores, &second).await;
        wait_until("searches use the new model", async || live_model(&kb).await == "second").await;
        wait_until("every task ended", async || {
            kb.tasks(&TaskLists::All, |_| true, None, 100)
                .await
                .unwrap()
                .items
                .iter()
                .all(|task| task.status.has_ended())
        })
        .await;
        assert_eq!(results(&kb, "marl").await[0].doc_id, documents[1].doc_id);
        wait_until("the earlier collections are dropped", async || {
            stores.vectors.collections().await.unwrap().len() == 4
        })
        .await;
        assert_embedded(&stores, "second", &documents).await;
        kb.close().await;
        if survived {
            assert!(steps > 20, "{steps}");
            return;
        }
        steps += 1;
    }
}

/// The same stores, which fail after this many writes.
fn stores_failing_after(stores: &TestStores, left: &Arc<AtomicI64>) -> TestStores {
    let is_write = |operation: &str| {
        ["ensure", "switch", "drop_collection", "upsert", "delete", "set_tags", "apply"].contains(&operation)
    };
    let has_ended = move |left: &AtomicI64, operation: &str| {
        if is_write(operation) {
            left.fetch_sub(1, Ordering::SeqCst) <= 0
        } else {
            left.load(Ordering::SeqCst) < 0
        }
    };
    let (for_vectors, for_state) = (Arc::clone(left), Arc::clone(left));
    let vectors = FailingVectors::new(Arc::clone(&stores.vectors), move |operation| {
        has_ended(&for_vectors, operation).then_some(lkr_vectors::ErrorKind::Unavailable)
    });
    let state = FailingState::new(Arc::clone(&stores.state), move |operation| {
        has_ended(&for_state, operation).then_some(lkr_state::ErrorKind::Unavailable)
    });
    TestStores {
        vectors: Arc::new(vectors) as Arc<dyn VectorStore>,
        state: Arc::new(state) as Arc<dyn StateStore>,
        ..stores.clone()
    }
}

/// Opens with another model and waits until re-embedding is complete or the stores fail. Returns whether it is
/// complete.
async fn try_change(stores: &TestStores, documents: &[Document]) -> bool {
    let options = IngestOptions {
        batch: 4,
        backoff: Duration::from_millis(1),
        store_pause: Duration::from_millis(5),
        ..IngestOptions::default()
    };
    let builder = KnowledgeBase::builder()
        .vectors(Arc::clone(&stores.vectors))
        .state(Arc::clone(&stores.state))
        .blobs(Arc::clone(&stores.blobs))
        .ingest_options(options)
        .embedder(SaltedEmbedder::unlimited("second"));
    let Ok(kb) = builder.build().await else { return false };
    let survived = loop {
        let live_model = kb.embedding().await.map(|embedding| embedding.live);
        let collections = stores.vectors.collections().await;
        let catalog = Catalog::new(Arc::clone(&stores.state));
        let notes = catalog.unembedded(None, documents.len() + 1).await;
        match (live_model, collections, notes) {
            (Ok(live_model), Ok(collections), Ok(notes)) => {
                if live_model.as_deref() == Some("second") && collections.len() == 4 && notes.is_empty() {
                    break true;
                }
            }
            _ => break false,
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    kb.shutdown(Duration::ZERO).await;
    survived
}

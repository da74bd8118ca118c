//! Vectors of documents that were ingested without a model, with one and with another.

use std::{sync::Arc, time::Duration};

use lkr::{Layer, NewDocument, SearchRequest, Submission, TaskStatus};
use lkr_parsers::Parser;
use lkr_vectors::{Filter, Include};

use crate::{
    common::{ScriptedEmbedder, TestStores, document, wait_for_task, wait_until},
    ingest::points,
};

#[tokio::test]
async fn documents_ingested_without_a_model_are_embedded_once_there_is_one() {
    let stores = TestStores::default();
    let kb = stores.open(None).await;
    let early = kb.add(document("pumice", 9)).await.unwrap();
    let found = kb.search(&SearchRequest::new("pumice")).await.unwrap();
    assert!(found.response.warnings.iter().any(|w| w.contains("no embedding model")));
    kb.close().await;

    let embedder = ScriptedEmbedder::unlimited();
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let late = kb.add(document("obsidian", 3)).await.unwrap();
    wait_until("searches use vectors", async || {
        let found = kb.search(&SearchRequest::new("pumice")).await.unwrap();
        found.response.warnings.is_empty() && found.response.results[0].scores.dense.is_some()
    })
    .await;
    for document in [&early, &late] {
        let id = lkr_catalog::l1_id(document.doc_id, 1);
        let l1 = stores.vectors.get(&Layer::L1.into(), &[id], Include::All).await.unwrap();
        assert!(l1[0].as_ref().unwrap().dense.is_some());
    }
    assert_eq!(points(&stores).await, [2, 12, 12, 12]);
    let collections = stores.vectors.collections().await.unwrap();
    assert_eq!(collections.len(), 4, "the earlier collections are not dropped: {collections:?}");
}

#[tokio::test]
async fn search_never_compares_vectors_of_two_models() {
    let stores = TestStores::default();
    let kb = stores.open(Some(ScriptedEmbedder::named("first", 1000))).await;
    kb.add(document("gypsum", 3)).await.unwrap();
    kb.close().await;

    let second = ScriptedEmbedder::named("second", 0);
    let kb = stores.open(Some(Arc::clone(&second))).await;
    let found = kb.search(&SearchRequest::new("gypsum")).await.unwrap();
    assert!(found.response.results.iter().all(|result| result.scores.dense.is_none()));
    assert!(!found.response.warnings.is_empty());
    second.permits.add_permits(1000);
    wait_until("searches use the second model's vectors", async || {
        let found = kb.search(&SearchRequest::new("gypsum")).await.unwrap();
        found.response.results[0].scores.dense.is_some()
    })
    .await;
    assert_eq!(points(&stores).await, [1, 3, 3, 3]);
}

#[tokio::test]
async fn unfinished_collections_are_resumed_or_dropped_at_start() {
    let stores = TestStores::default();
    let kb = stores.open(Some(ScriptedEmbedder::named("first", 1000))).await;
    let (deleted, kept) =
        (kb.add(document("gypsum", 6)).await.unwrap(), kb.add(document("marl", 6)).await.unwrap());
    kb.close().await;
    let second = || ScriptedEmbedder::named("second", 2);
    let kb = stores.open(Some(second())).await;
    wait_until("the new collections are partly filled", async || filled(&stores).await > 0).await;
    kb.shutdown(Duration::ZERO).await;

    // With the same model, filling continues, without the documents that are deleted meanwhile.
    let again = ScriptedEmbedder::named("second", 0);
    let kb = stores.open(Some(Arc::clone(&again))).await;
    kb.delete(deleted.doc_id).await.unwrap();
    kb.delete(kept.doc_id).await.unwrap();
    wait_until("no collection has points of the deleted documents", async || {
        points(&stores).await == [0; 4] && filled(&stores).await == 0
    })
    .await;
    again.permits.add_permits(1000);
    kb.add(document("loess", 2)).await.unwrap();
    wait_until("only the second model's collections remain", async || collections(&stores).await == 4).await;
    wait_until("they contain one document", async || points(&stores).await == [1, 2, 2, 2]).await;
    kb.close().await;

    // When the model changes again, the third model's unfinished collections are dropped.
    let kb = stores.open(Some(ScriptedEmbedder::named("third", 0))).await;
    wait_until("the third model's collections exist", async || collections(&stores).await == 8).await;
    kb.shutdown(Duration::ZERO).await;
    stores.open(Some(again)).await;
    assert_eq!(collections(&stores).await, 4);
}

/// The number of chunks in collections that no alias points to.
async fn filled(stores: &TestStores) -> u64 {
    let live = stores.vectors.describe(&Layer::Chunks.into()).await.unwrap().unwrap().collection;
    let mut count = 0;
    for spec in stores.vectors.collections().await.unwrap() {
        if spec.collection != live && spec.collection.name().starts_with("chunks.") {
            count += stores.vectors.count(&spec.collection, &Filter::all()).await.unwrap();
        }
    }
    count
}

async fn collections(stores: &TestStores) -> usize {
    stores.vectors.collections().await.unwrap().len()
}

#[tokio::test]
async fn returning_model_embeds_documents_ingested_with_another() {
    let stores = TestStores::default();
    let kb = stores.open(Some(ScriptedEmbedder::named("first", 1000))).await;
    kb.add(document("gypsum", 100)).await.unwrap();
    kb.close().await;
    let second = ScriptedEmbedder::named("second", 1);
    let kb = stores.open(Some(Arc::clone(&second))).await;
    let task = kb.submit(document("marl", 1), Submission::by("eva".into())).await.unwrap();
    wait_until("the document is ingested", async || {
        second.permits.add_permits(1);
        kb.task(task.task_id).await.unwrap().unwrap().status == TaskStatus::Done
    })
    .await;
    assert_eq!(collections(&stores).await, 8, "the first model's collections are still in use");
    kb.shutdown(Duration::ZERO).await;

    let _open = stores.open(Some(ScriptedEmbedder::named("first", 1000))).await;
    let l1 = lkr_catalog::l1_id(task.doc_id().unwrap(), 1);
    wait_until("the document has the first model's vectors", async || {
        let found = stores.vectors.get(&Layer::L1.into(), &[l1], Include::All).await.unwrap();
        found[0].as_ref().unwrap().dense.is_some()
    })
    .await;
}

#[tokio::test]
async fn equal_chunks_of_a_document_are_embedded_once() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::unlimited());
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let text = "# Twins\n\n## One\n\nThe same words stand here.\n\n## One\n\nThe same words stand here.\n";
    let text = text.to_owned();
    let task = kb
        .submit(NewDocument { text, ..NewDocument::default() }, Submission::by("eva".into()))
        .await
        .unwrap();
    let result = wait_for_task(&kb, task.task_id).await.result.unwrap().document().unwrap();
    assert_eq!((result.counts.chunks, result.embedded), (2, 1));
    assert_eq!(embedder.texts.lock().unwrap().len(), 1);
}

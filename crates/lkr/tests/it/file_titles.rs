//! With which title a file is indexed whose title is only its name.

use std::sync::Arc;

use lkr::{DocId, Document, DocumentChange, KnowledgeBase, Layer, NewFile, SearchRequest, Submission};
use lkr_catalog::l1_id;
use lkr_vectors::Include;

use crate::{
    common::{ScriptedEmbedder, TestStores, markdown_file, wait_for_task, wait_until},
    replace::{by, result},
};

/// The name of a file that says nothing about its text.
const NAME: &str = "scan-0417.md";

/// The passages of [`tides`] as they are embedded.
const PASSAGES: [&str; 3] = [
    "Tides\nThe sea rises and falls.",
    "Tides\nSpring\nThe moon and the sun pull together.",
    "Tides\nNeap\nThe moon and the sun pull apart.",
];

fn tides() -> NewFile {
    markdown_file(NAME, &text("apart"))
}

fn text(how: &str) -> String {
    format!(
        "# Tides\n\nThe sea rises and falls.\n\n## Spring\n\nThe moon and the sun pull together.\n\n\
        ## Neap\n\nThe moon and the sun pull {how}."
    )
}

async fn add(kb: &KnowledgeBase, file: NewFile) -> Document {
    let task = kb.submit_file(file, Submission::default()).await.unwrap();
    live(kb, wait_for_task(kb, task.task_id).await.doc_id().unwrap()).await
}

async fn live(kb: &KnowledgeBase, doc_id: DocId) -> Document {
    kb.document(doc_id).await.unwrap().unwrap()
}

/// Replaces a document and returns how many passages were embedded.
async fn replace(kb: &KnowledgeBase, doc_id: DocId, file: NewFile) -> u64 {
    let task = kb.replace_file(doc_id, file, by("eva")).await.unwrap().unwrap();
    result(wait_for_task(kb, task.task_id).await).embedded
}

async fn found(kb: &KnowledgeBase, query: &str) -> Vec<DocId> {
    let found = kb.search(&SearchRequest::new(query)).await.unwrap();
    found.response.results.iter().map(|result| result.doc_id).collect()
}

fn taken(embedder: &ScriptedEmbedder) -> Vec<String> {
    let mut texts = std::mem::take(&mut *embedder.texts.lock().unwrap());
    let is_of =
        |passage: &str, text: &str| passage.lines().next_back().is_some_and(|line| text.ends_with(line));
    texts.sort_by_key(|text| PASSAGES.iter().position(|passage| is_of(passage, text)));
    texts
}

/// Opens a knowledge base whose documents are embedded for the first time, and returns the passages.
async fn embed_all(stores: &TestStores) -> (KnowledgeBase, Arc<ScriptedEmbedder>, Vec<String>) {
    let embedder = ScriptedEmbedder::unlimited();
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    wait_until("the collections have switched", async || {
        let live = stores.vectors.describe(&Layer::L1.into()).await.unwrap();
        live.is_some_and(|spec| spec.dense.is_some())
    })
    .await;
    let passages = taken(&embedder);
    (kb, embedder, passages)
}

/// Makes the L1 point of a document as versions without indexed titles wrote it.
async fn forget_indexed_title(stores: &TestStores, document: &Document) {
    let id = [l1_id(document.doc_id, document.revision)];
    let mut points = stores.vectors.get(&Layer::L1.into(), &id, Include::All).await.unwrap();
    let mut l1 = points.remove(0).unwrap();
    assert!(l1.payload.as_object_mut().unwrap().remove("indexed_title").is_some());
    stores.vectors.upsert(&Layer::L1.into(), vec![l1]).await.unwrap();
}

#[tokio::test]
async fn uploaded_file_is_indexed_with_its_heading_and_found_by_its_name() {
    let embedder = ScriptedEmbedder::unlimited();
    let kb = TestStores::default().open(Some(Arc::clone(&embedder))).await;
    let document = add(&kb, tides()).await;
    assert_eq!(document.title, "scan-0417", "what is shown is the name");
    assert_eq!(taken(&embedder), PASSAGES);

    let kb = TestStores::default().open(None).await;
    let document = add(&kb, tides()).await;
    let other = add(&kb, markdown_file("notes.md", "# Ebbs\n\nThe sea falls.")).await;
    for query in ["tides", "neap", "scan-0417", "scan 0417", "\"scan-0417\"", "0417 pull"] {
        assert_eq!(found(&kb, query).await.first(), Some(&document.doc_id), "{query}");
    }
    assert_eq!(found(&kb, "notes").await, [other.doc_id]);
}

#[tokio::test]
async fn given_title_of_a_file_is_indexed() {
    let embedder = ScriptedEmbedder::unlimited();
    let kb = TestStores::default().open(Some(Arc::clone(&embedder))).await;
    add(&kb, NewFile { title: "Sea levels".to_owned(), ..tides() }).await;
    let texts = taken(&embedder);
    assert_eq!(texts[1], "Sea levels\nTides > Spring\nThe moon and the sun pull together.");
}

#[tokio::test]
async fn replacing_a_file_reuses_the_vectors_of_unchanged_passages_whatever_its_name() {
    let embedder = ScriptedEmbedder::unlimited();
    let kb = TestStores::default().open(Some(Arc::clone(&embedder))).await;
    let doc_id = add(&kb, tides()).await.doc_id;
    assert_eq!(replace(&kb, doc_id, markdown_file(NAME, &text("askew"))).await, 1);
    assert_eq!(replace(&kb, doc_id, markdown_file("moved.md", &text("askew"))).await, 0);
    assert_eq!(live(&kb, doc_id).await.title, "moved");
    assert_eq!(found(&kb, "moved").await.first(), Some(&doc_id));
    let given = NewFile { title: "Sea levels".to_owned(), ..markdown_file(NAME, &text("askew")) };
    assert_eq!(replace(&kb, doc_id, given).await, 3);
}

#[tokio::test]
async fn embedding_again_keeps_the_title_that_a_file_was_indexed_with() {
    let stores = TestStores::default();
    let kb = stores.open(None).await;
    let doc_id = add(&kb, tides()).await.doc_id;
    kb.close().await;
    let (kb, _, passages) = embed_all(&stores).await;
    assert_eq!(passages, PASSAGES);
    assert_eq!(replace(&kb, doc_id, markdown_file(NAME, &text("askew"))).await, 1);
}

#[tokio::test]
async fn embedding_again_uses_a_title_that_was_given_since_and_no_other_name() {
    for (title, expected) in [
        ("Sea levels", "Sea levels\nTides > Spring\nThe moon and the sun pull together."),
        ("moved", PASSAGES[1]),
    ] {
        let stores = TestStores::default();
        let kb = stores.open(None).await;
        let doc_id = add(&kb, tides()).await.doc_id;
        let (title, source) = (Some(title.to_owned()), Some("folder:sea/moved.md".to_owned()));
        kb.change(doc_id, DocumentChange { title, source, ..DocumentChange::default() }).await.unwrap();
        kb.close().await;
        let (_kb, _, passages) = embed_all(&stores).await;
        assert_eq!(passages[1], expected);
    }
}

#[tokio::test]
async fn file_of_an_earlier_version_keeps_its_indexed_title_until_it_is_replaced() {
    let stores = TestStores::default();
    let kb = stores.open(None).await;
    let document = add(&kb, tides()).await;
    forget_indexed_title(&stores, &document).await;
    kb.close().await;
    let (kb, embedder, passages) = embed_all(&stores).await;
    assert_eq!(passages[1], "scan-0417\nTides > Spring\nThe moon and the sun pull together.");
    assert_eq!(replace(&kb, document.doc_id, tides()).await, 3);
    assert_eq!(taken(&embedder), PASSAGES);
}

/// A document needs a section. Who reads a file checks its text; a program that submits what it read itself may not have.
#[tokio::test]
async fn file_with_a_blank_text_fails() {
    let kb = TestStores::default().open(None).await;
    let task = kb.submit_file(markdown_file("blank.md", " \n\n"), Submission::default()).await.unwrap();
    let ended = wait_for_task(&kb, task.task_id).await;
    let error = ended.error.unwrap();
    assert_eq!(error.reason, lkr::FailureReason::Invalid);
    assert!(error.message.contains("text is blank"), "{}", error.message);
    assert!(!error.retryable);
    assert_eq!(kb.document(task.doc_id().unwrap()).await.unwrap(), None);
}

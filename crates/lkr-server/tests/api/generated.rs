//! Summaries by a language model of the settings, which may misbehave.

use futures_util::future::join_all;
use lkr_test_provider::{Fault, TestProvider};
use serde_json::{Value, json};

use crate::support::{Api, App, api, events};

const KEY: &str = "sk-planted-4711";

/// A text that is long enough for a summary.
fn text() -> String {
    let sentences: String = (1..14)
        .map(|n| format!("The ocean below the ice of Europa, measured {n} times, is salty. "))
        .collect();
    format!("# Europa\n\n## The ocean\n\n{sentences}\n")
}

async fn set<S: App>(api: &Api<S>, token: &str, name: &str, provider: &TestProvider, timeout_s: u32) {
    let entry = json!({
        "provider": "remote_compatible", "model": "large", "base_url": provider.base_url(), "api_key": KEY,
        "timeout_s": timeout_s,
    });
    let body = json!({ "models": { name: entry } });
    let response = api.call("PUT".parse().unwrap(), "/api/v1/settings", token, Some(body)).await;
    assert_eq!(response.status, 200, "{}", response.json());
}

/// A valid description of a document, or a summary of search results with one sentence that the results do not support.
fn well_behaved(body: &Value) -> String {
    let prompt = body["messages"][1]["content"].as_str().unwrap();
    if prompt.contains("QUESTION") {
        return "The ocean below the ice of Europa is salty [1]. It is full of fish [1].".to_owned();
    }
    json!({
        "summary": "Below the ice of Europa lies a salty ocean.",
        "parts": [{ "number": 1, "summary": "The ocean is salty." }],
        "keywords": ["salty ocean", "cheese"],
    })
    .to_string()
}

async fn ingested<S: App>(api: &Api<S>, token: &str) -> Value {
    let accepted = api.post("/api/v1/documents", token, json!({ "text": text() })).await;
    let task_id = accepted.data()["task_id"].as_str().unwrap().to_owned();
    let task = api.ended(token, &task_id).await;
    assert_eq!(task["status"], "done", "{task}");
    task
}

fn search_body() -> Value {
    json!({ "query": "is the ocean of Europa salty", "summarize": true })
}

#[actix_web::test]
async fn language_model_summarizes_documents_and_search_results() {
    let (api, provider) = (api().await, TestProvider::start());
    let admin = api.admin().await;
    provider.script(well_behaved);
    set(&api, &admin, "summarize", &provider, 20).await;
    let task = ingested(&api, &admin).await;
    let usage = &task["result"]["usage"];
    assert!(usage["calls"] == 1 && usage["tokens"].as_u64().unwrap() > 100, "{task}");
    let doc_id = task["doc_id"].as_str().unwrap();
    let detail = api.get(&format!("/api/v1/documents/{doc_id}")).await.data();
    assert_eq!(detail["l1"]["summary"], "Below the ice of Europa lies a salty ocean.");
    assert_eq!(detail["l1"]["keywords"], json!(["salty ocean"]));
    assert_eq!(detail["l3"][0]["summary"], "The ocean is salty.");

    let response = api.post("/api/v1/search/stream", "", search_body()).await;
    let events = events(&response);
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["results", "summary.delta", "summary.done"]);
    let summary = &events[2].1;
    assert_eq!(summary["text"], "The ocean below the ice of Europa is salty. [1]");
    assert_eq!((&summary["kind"], &summary["model"]), (&json!("generated"), &json!("large")));
    assert_eq!(summary["citations"][0]["chunk_id"], events[0].1["results"][0]["chunk_id"]);
    assert_eq!(
        events[0].1["warnings"].as_array().unwrap().len(),
        1,
        "the only warning is about the embedding model"
    );
    let complete_response = api.post("/api/v1/search", "", search_body()).await;
    assert_eq!(
        (complete_response.header("x-cache"), &complete_response.data()["summary"]),
        (Some("hit"), summary)
    );
    provider.assert_well_asked();
}

/// Faults of a provider, and whether a streamed summary may still have a supported sentence.
fn faults(elsewhere: &TestProvider) -> Vec<(Fault, bool)> {
    let refusal = |status| (Fault::status(status), false);
    vec![
        (Fault::status(429).header("Retry-After: 0"), false),
        refusal(500),
        refusal(503),
        refusal(401),
        (
            Fault::error(400, "this model's maximum context length is 10 tokens", "context_length_exceeded"),
            false,
        ),
        (Fault::Hang, false),
        (Fault::HangUp, false),
        (Fault::HangAfter(14), true),
        (Fault::CutAfter(14), true),
        (Fault::InvalidJson, false),
        (Fault::ErrorWithin("it fell over".to_owned()), false),
        (Fault::redirect("http://169.254.169.254/latest/meta-data/"), false),
        (Fault::redirect(&elsewhere.base_url()), false),
    ]
}

#[actix_web::test]
async fn lesson_26_misbehaving_provider_loses_no_document_and_fails_no_search() {
    let elsewhere = TestProvider::start();
    let checks = faults(&elsewhere).into_iter().map(async |(fault, in_parts)| {
        let (api, provider) = (api().await, TestProvider::start());
        let admin = api.admin().await;
        provider.script(well_behaved);
        provider.always(Some(fault.clone()));
        set(&api, &admin, "summarize", &provider, 1).await;
        let task = ingested(&api, &admin).await;
        let warnings = task["result"]["warnings"].to_string();
        assert!(warnings.contains("summaries are extractive"), "{fault:?}: {task}");
        assert!(!task.to_string().contains(KEY), "{task}");

        let response = api.post("/api/v1/search", "", search_body()).await;
        assert_eq!(response.status, 200, "{fault:?}");
        let response = response.data();
        assert_eq!(
            (&response["summary"]["kind"], &response["results"][0]["doc_id"]),
            (&json!("extractive"), &task["doc_id"])
        );
        assert!(
            response["warnings"].to_string().contains("the language model failed"),
            "{fault:?}: {response}"
        );

        let response = api.post("/api/v1/search/stream", "", search_body()).await;
        let events = events(&response);
        let (first, (last, done)) = (&events[0].0, events.last().unwrap());
        assert_eq!((first.as_str(), last.as_str()), ("results", "summary.done"), "{fault:?}");
        let deltas: String =
            events.iter().filter_map(|(_, data)| data["text"].as_str().filter(|_| true)).collect();
        assert!(deltas.starts_with(done["text"].as_str().unwrap()), "{fault:?}: {events:?}");
        assert!(
            !done["text"].as_str().unwrap().is_empty() && done["warnings"].is_array(),
            "{fault:?}: {done}"
        );
        assert!(in_parts || done["kind"] == "extractive", "{fault:?}: {done}");

        // A summary is generated again once the provider recovers.
        provider.always(None);
        set(&api, &admin, "summarize", &provider, 20).await;
        let response = api.post("/api/v1/search", "", search_body()).await.data();
        assert_eq!(response["summary"]["kind"], "generated", "{fault:?}: {response}");
        provider.assert_well_asked();
    });
    join_all(checks).await;
    assert!(elsewhere.seen().is_empty(), "a redirect was followed");
}

#[actix_web::test]
async fn category_comes_from_the_classify_model() {
    let (api, provider) = (api().await, TestProvider::start());
    let admin = api.admin().await;
    let named = api.get("/api/v1/knowledge/categories").await.data();
    let name = named["categories"][0]["name"].clone();
    let chosen = name.clone();
    provider.script(move |_| json!({ "category": chosen }).to_string());
    set(&api, &admin, "classify", &provider, 20).await;
    let task = ingested(&api, &admin).await;
    assert_eq!((&task["result"]["category"], &task["result"]["usage"]["calls"]), (&name, &json!(1)));
    provider.assert_well_asked();
}

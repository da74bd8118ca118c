//! Changes of the embedding model through the settings.

use std::time::{Duration, Instant};

use actix_web::http::Method;
use futures_util::future::join_all;
use lkr_test_provider::{Fault, TestProvider};
use serde_json::{Value, json};

use crate::support::{Api, App, api};

async fn set_model(api: &Api<impl App>, admin: &str, provider: &str, model: &str) {
    let embed = json!({ "provider": provider, "model": model, "base_url": "http://127.0.0.1:1" });
    let body = Some(json!({ "models": { "embed": embed } }));
    api.call(Method::PUT, "/api/v1/settings", admin, body).await.data();
}

/// The re-embedding tasks, newest first.
async fn changes(api: &Api<impl App>) -> Vec<Value> {
    let admin = api.admin().await;
    let tasks = api.call(Method::GET, "/api/v1/documents/tasks", &admin, None).await.data();
    let tasks = tasks["items"].as_array().unwrap().clone();
    tasks.into_iter().filter(|task| task["kind"] == "reembed").collect()
}

async fn search(api: &Api<impl App>) -> Value {
    api.post("/api/v1/search", "", json!({ "query": "volcanoes" })).await.data()
}

async fn embedding(api: &Api<impl App>) -> Value {
    api.get("/readyz").await.data()["embedding"].clone()
}

#[actix_web::test]
async fn embedding_model_change_reembeds_all_documents() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id = api.add(&admin, json!({ "text": "Io has volcanoes. They never rest." })).await;
    assert_eq!(embedding(&api).await, json!({ "in_use": null, "wanted": null }));
    for dims in [32, 48] {
        let model = format!("memory-{dims}");
        set_model(&api, &admin, "local_llm", &model).await;
        let tasks = changes(&api).await;
        let task = api.ended(&admin, tasks[0]["task_id"].as_str().unwrap()).await;
        assert_eq!((task["status"].as_str(), task["created_by"].as_str()), (Some("done"), Some("admin")));
        assert_eq!(task["doc_id"], Value::Null);
        let result = &task["result"];
        assert_eq!((&result["reembedded"], &result["embedded"]), (&json!(1), &json!(1)));
        assert_eq!(result["model"], "hashed words");
        assert_eq!(embedding(&api).await["in_use"], "hashed words");
        let found = search(&api).await;
        assert_eq!((&found["results"][0]["doc_id"], &found["warnings"]), (&json!(doc_id), &json!([])));
        assert!(found["results"][0]["scores"]["dense"].is_number());
    }
    let count = changes(&api).await.len();
    assert_eq!(count, 2);
    set_model(&api, &admin, "local_llm", "memory-48").await;
    assert_eq!(changes(&api).await.len(), count, "the same model needs no re-embedding");
}

#[actix_web::test]
async fn cancelled_model_change_is_not_begun_again_by_another_process() {
    let api = api().await;
    let admin = api.admin().await;
    api.add(&admin, json!({ "text": "Io has volcanoes. They never rest." })).await;
    let _other = api.follow_settings().await;
    set_model(&api, &admin, "local_llm", "stuck-32").await;
    let tasks = changes(&api).await;
    let path = format!("/api/v1/documents/tasks/{}/cancel", tasks[0]["task_id"].as_str().unwrap());
    api.post(&path, &admin, json!({})).await.data();
    // The other process reads the settings twice.
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(70)).await;
    tokio::time::resume();
    let after = changes(&api).await;
    assert_eq!(after.len(), 1, "{after:?}");
    assert_eq!(after[0]["status"], "failed");
    // A person who asks again gets the change.
    set_model(&api, &admin, "local_llm", "stuck-32").await;
    assert_eq!(changes(&api).await.len(), 2);
}

#[actix_web::test]
async fn unreachable_embedding_model_keeps_the_earlier_one() {
    let api = api().await;
    let admin = api.admin().await;
    api.add(&admin, json!({ "text": "Io has volcanoes." })).await;
    set_model(&api, &admin, "local_llm", "memory-32").await;
    let first = changes(&api).await;
    api.ended(&admin, first[0]["task_id"].as_str().unwrap()).await;
    set_model(&api, &admin, "remote_compatible", "nowhere").await;
    assert_eq!(changes(&api).await.len(), 1);
    let found = search(&api).await;
    assert_eq!(found["warnings"], json!([]));
    let ready = api.get("/readyz").await.data();
    assert_eq!(ready["embedding"], json!({ "in_use": "hashed words", "wanted": "nowhere" }));
    let check = &ready["checks"]["embedder"];
    assert_eq!((&check["status"], &ready["status"]), (&json!("degraded"), &json!("degraded")));
    assert!(check["reason"].as_str().unwrap().contains("the model nowhere"), "{check}");
    // Without a provider there is no model here, so searches use keywords alone.
    api.post("/api/v1/settings/reset", &admin, json!({})).await.data();
    let found = search(&api).await;
    assert_eq!(found["warnings"].as_array().unwrap().len(), 1);
    assert_eq!(changes(&api).await.len(), 1);
    assert_eq!(embedding(&api).await["wanted"], Value::Null);
}

/// A knowledge base with a document whose embedding model is `provider`'s.
async fn embedded_by(provider: &TestProvider) -> Api<impl App> {
    let api = api().await;
    let admin = api.admin().await;
    api.add(&admin, json!({ "text": "Io has volcanoes. They never rest." })).await;
    let entry =
        json!({ "provider": "remote_compatible", "model": "vectors", "base_url": provider.base_url() });
    let body = Some(json!({ "models": { "embed": entry } }));
    api.call(Method::PUT, "/api/v1/settings", &admin, body).await.data();
    for task in changes(&api).await {
        api.ended(&admin, task["task_id"].as_str().unwrap()).await;
    }
    assert_eq!(search(&api).await["warnings"], json!([]));
    api
}

/// How long a search takes whose query gets no vector.
async fn keyword_search(api: &Api<impl App>, n: u32) -> Duration {
    let begun = Instant::now();
    let found = api.post("/api/v1/search", "", json!({ "query": format!("volcanoes {n}") })).await.data();
    assert!(found["warnings"].to_string().contains("keyword search only"), "{found}");
    begun.elapsed()
}

#[actix_web::test]
async fn search_does_not_wait_for_an_embedding_provider_that_is_away() {
    let provider = TestProvider::start();
    let api = embedded_by(&provider).await;
    provider.always(Some(Fault::HangUp));
    // Each of these calls is tried again for some seconds. Then the circuit is open.
    join_all((0..5).map(|n| keyword_search(&api, n))).await;
    let asked = provider.seen().len();
    assert!(asked >= 5, "{asked}");
    let _ = keyword_search(&api, 5).await;
    assert_eq!(provider.seen().len(), asked);
}

#[actix_web::test]
async fn search_does_not_wait_for_an_embedding_provider_that_asks_for_a_long_pause() {
    let provider = TestProvider::start();
    let api = embedded_by(&provider).await;
    provider.always(Some(Fault::status(429).header("Retry-After: 20")));
    let took = keyword_search(&api, 0).await;
    assert!(took < Duration::from_secs(8), "{took:?}");
}

#[actix_web::test]
async fn misbehaving_embedding_provider_fails_tasks_and_degrades_searches_to_keywords() {
    let (api, provider) = (api().await, TestProvider::start());
    let admin = api.admin().await;
    let entry = json!({
        "provider": "remote_compatible", "model": "vectors", "base_url": provider.base_url(), "api_key": "sk-planted",
        "timeout_s": 1,
    });
    let body = Some(json!({ "models": { "embed": entry } }));
    api.call(Method::PUT, "/api/v1/settings", &admin, body).await.data();
    assert_eq!(embedding(&api).await["wanted"], "vectors");
    let doc_id = api.add(&admin, json!({ "text": "Io has volcanoes. They never rest." })).await;
    for task in changes(&api).await {
        api.ended(&admin, task["task_id"].as_str().unwrap()).await;
    }
    let found = search(&api).await;
    assert_eq!((&found["results"][0]["doc_id"], &found["warnings"]), (&json!(doc_id), &json!([])));
    assert!(found["results"][0]["scores"]["dense"].is_number());

    let faults =
        [Fault::WrongDims(3), Fault::NotFinite, Fault::MissingVector, Fault::status(401), Fault::InvalidJson];
    for (n, fault) in faults.into_iter().enumerate() {
        provider.always(Some(fault.clone()));
        let text = format!("Etna is a volcano, number {n}.");
        let accepted = api.post("/api/v1/documents", &admin, json!({ "text": text })).await.data();
        let task = api.ended(&admin, accepted["task_id"].as_str().unwrap()).await;
        assert_eq!(
            (&task["status"], &task["error"]["retryable"]),
            (&json!("failed"), &json!(false)),
            "{fault:?}"
        );
        let reason = task["error"]["message"].as_str().unwrap();
        assert!(reason.len() > 20 && !reason.contains("sk-planted"), "{fault:?}: {reason}");
        let query = json!({ "query": format!("volcanoes {n}") });
        let found = api.post("/api/v1/search", "", query).await.data();
        let results = found["results"].as_array().unwrap();
        assert!(results.iter().any(|result| result["doc_id"] == json!(doc_id)), "{fault:?}: {found}");
        assert!(found["warnings"].to_string().contains("keyword search only"), "{fault:?}: {found}");
        provider.always(None);
        let retry = format!("/api/v1/documents/tasks/{}/retry", task["task_id"].as_str().unwrap());
        assert_eq!(api.post(&retry, &admin, json!({})).await.status, 202);
        let task = api.ended(&admin, task["task_id"].as_str().unwrap()).await;
        assert_eq!(task["status"], "done", "{fault:?}: {task}");
    }
    // Transient errors are retried.
    provider.next([Fault::status(429).header("Retry-After: 1"), Fault::status(500), Fault::HangUp]);
    api.add(&admin, json!({ "text": "Stromboli has been a volcano for long." })).await;
    provider.always(Some(Fault::Hang));
    let found = api.post("/api/v1/search", "", json!({ "query": "what does a volcano do" })).await.data();
    assert!(found["warnings"].to_string().contains("keyword search only"), "{found}");
    provider.assert_well_asked();
}

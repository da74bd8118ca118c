//! Snapshots of the OpenAPI document and of the main responses. `INSTA_UPDATE=always cargo test --workspace --test api` accepts new
//! ones.

use actix_web::http::Method;
use serde_json::{Value, json};

use crate::support::{TEXT, TestResponse, api};

/// Replaces values that differ between runs: ids, times and durations.
fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match (name.as_str(), &mut *field) {
                    ("request_id", _) => *field = json!("<request id>"),
                    ("version", Value::String(_)) => *field = json!("<version>"),
                    (name, Value::Number(_)) if name.ends_with("_ms") => *field = json!("<milliseconds>"),
                    (name, Value::String(_)) if name.ends_with("_at") => *field = json!("<time>"),
                    (_, field) => redact(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::String(text) if text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            *value = json!("<id>");
        }
        Value::Number(number) if number.is_f64() => {
            let rounded = number.as_f64().map(|number| (number * 1e4).round() / 1e4);
            *value = json!(rounded);
        }
        _ => {}
    }
}

fn pretty(mut value: Value) -> String {
    redact(&mut value);
    serde_json::to_string_pretty(&value).unwrap()
}

fn snapshot(name: &str, response: &TestResponse) {
    let status = response.status;
    insta::assert_snapshot!(name, format!("{status}\n{}", pretty(response.json())));
}

#[actix_web::test]
async fn openapi_document_equals_its_snapshot() {
    let api = api().await;
    // Not redacted: the console takes its types from this file.
    let document = api.get("/api/v1/openapi.json").await.json();
    insta::assert_snapshot!("openapi", serde_json::to_string_pretty(&document).unwrap());
}

#[actix_web::test]
async fn main_responses_equal_their_snapshots() {
    let api = api().await;
    let admin = api.admin().await;
    let body = json!({ "text": TEXT, "source": "test:moons", "metadata": { "kind": "moons" } });
    let accepted = api.post("/api/v1/documents", &admin, body).await;
    snapshot("document accepted", &accepted);
    let task_id = accepted.data()["task_id"].as_str().unwrap().to_owned();
    let task = api.ended(&admin, &task_id).await;
    let doc_id = task["doc_id"].as_str().unwrap();
    let get = async |path: &str| api.call(Method::GET, &format!("/api/v1{path}"), &admin, None).await;
    snapshot("task", &get(&format!("/documents/tasks/{task_id}")).await);
    snapshot("document", &get(&format!("/documents/{doc_id}")).await);
    snapshot("documents", &get("/documents").await);
    snapshot("chunks", &get(&format!("/documents/{doc_id}/chunks?limit=1")).await);
    snapshot("me", &get("/auth/me").await);
    snapshot("settings", &get("/settings").await);
    let search = json!({ "query": "volcanoes of Io", "top_k": 2 });
    snapshot("search", &api.post("/api/v1/search", &admin, search).await);
    let context = json!({ "query": "ocean under ice", "max_tokens": 100 });
    snapshot("context", &api.post("/api/v1/context", &admin, context).await);
    let blank = json!({ "text": " " });
    snapshot("invalid document", &api.post("/api/v1/documents", &admin, blank).await);
    snapshot("unknown document", &get(&format!("/documents/{}", "0".repeat(32))).await);
    snapshot("unauthenticated", &api.call(Method::GET, "/api/v1/settings", "", None).await);
}

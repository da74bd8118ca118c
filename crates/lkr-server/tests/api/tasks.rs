//! Tasks, and documents that replace others.

use actix_web::{http::Method, test::TestRequest};
use serde_json::{Value, json};

use crate::support::{Api, App, TestResponse, api};

const UNKNOWN: &str = "00000000000000000000000000000000";

impl<S: App> Api<S> {
    async fn put(&self, path: &str, token: &str, body: Value) -> TestResponse {
        self.call(Method::PUT, path, token, Some(body)).await
    }

    /// Waits for an accepted task and returns it.
    async fn ended_result(&self, token: &str, accepted: TestResponse) -> Value {
        assert_eq!(accepted.status.as_u16(), 202, "{}", accepted.json());
        let task = self.ended(token, accepted.data()["task_id"].as_str().unwrap()).await;
        assert_eq!(task["status"], "done", "{task}");
        task
    }

    async fn post_with_key(&self, path: &str, token: &str, key: &str, body: &str) -> TestResponse {
        let request =
            TestRequest::post().uri(path).insert_header(("authorization", format!("Bearer {token}")));
        let request = request
            .insert_header(("idempotency-key", key))
            .insert_header(("content-type", "application/json"));
        self.send(request.set_payload(body.to_owned())).await
    }
}

#[actix_web::test]
async fn put_replaces_a_document() {
    let api = api().await;
    let (owner, other) = (api.user("owner").await, api.user("other").await);
    let doc_id = api.add(&owner, json!({ "text": "Basalt.", "source": "s", "metadata": { "a": "1" } })).await;
    let path = format!("/api/v1/documents/{doc_id}");
    api.put(&path, &other, json!({ "text": "Marble." })).await.expect_error(1006, 403);
    api.put(&path, &owner, json!({ "text": " " })).await.expect_error(1001, 400);
    api.put(&format!("/api/v1/documents/{UNKNOWN}"), &owner, json!({ "text": "x" }))
        .await
        .expect_error(1004, 404);
    let accepted = api.put(&path, &owner, json!({ "text": "Marble.", "title": "T" })).await;
    let task = api.ended_result(&owner, accepted).await;
    assert_eq!((task["kind"].as_str(), task["doc_id"].as_str()), (Some("replace"), Some(doc_id.as_str())));
    assert_eq!(task["result"]["duplicate_of"], Value::Null);
    let l1 = api.get(&path).await.data()["l1"].clone();
    assert_eq!((l1["title"].as_str(), l1["source"].as_str()), (Some("T"), Some("")));
    assert_eq!((&l1["metadata"], &l1["created_by"]), (&json!({}), &json!("owner")));
    assert_eq!(api.get(&format!("{path}/text")).await.data()["text"], "Marble.");
    let admin = api.admin().await;
    let audit = api.call(Method::GET, "/api/v1/audit?action=document.replace", &admin, None).await.data();
    let entries = audit["items"].as_array().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!((&entries[0]["actor"], &entries[0]["target"]), (&json!("owner"), &json!(doc_id)));
}

#[actix_web::test]
async fn duplicate_upsert_and_force_follow_the_settings() {
    let api = api().await;
    let token = api.admin().await;
    let post = async |body| {
        let accepted = api.post("/api/v1/documents", &token, body).await;
        api.ended_result(&token, accepted).await
    };
    let first = post(json!({ "text": "Opal and tuff.", "source": "s" })).await;
    let again = post(json!({ "text": " Opal  and\ntuff. " })).await;
    let duplicate = json!({ "doc_id": first["doc_id"], "distance": 0 });
    assert_eq!(
        (&again["result"]["duplicate_of"], &again["result"]["doc_id"]),
        (&duplicate, &first["doc_id"])
    );
    assert_eq!(again["result"]["embedded"], 0);
    let forced = post(json!({ "text": "Opal and tuff.", "force": true })).await;
    assert_eq!(forced["result"]["duplicate_of"], Value::Null);
    let upserted = post(json!({ "text": "Gneiss.", "source": "s", "upsert": true })).await;
    assert_eq!((&upserted["doc_id"], upserted["kind"].as_str()), (&first["doc_id"], Some("replace")));
    let near = json!({ "dedup": { "strategy": "simhash", "simhash_threshold": 64 } });
    assert!(api.put("/api/v1/settings", &token, near).await.status.is_success());
    let near = post(json!({ "text": "Quite another text." })).await;
    assert!(near["result"]["duplicate_of"]["distance"].as_u64().unwrap() > 0);
    let none = json!({ "dedup": { "strategy": "none" } });
    assert!(api.put("/api/v1/settings", &token, none).await.status.is_success());
    assert_eq!(post(json!({ "text": "Gneiss." })).await["result"]["duplicate_of"], Value::Null);
}

#[actix_web::test]
async fn batch_is_accepted_completely_or_refused_with_the_position() {
    let api = api().await;
    let token = api.admin().await;
    let batch =
        |documents: Value| api.post("/api/v1/documents/batch", &token, json!({ "documents": documents }));
    let refusal = batch(json!([{ "text": "a" }, { "text": "b" }, { "text": "c" }, { "text": "\n" }])).await;
    assert!(refusal.expect_error(1001, 400).contains("documents[3]"));
    let refusal = batch(json!([{ "text": "a" }, { "text": "b", "color": "red" }])).await;
    assert!(refusal.expect_error(1001, 400).contains("documents[1]"));
    batch(json!([])).await.expect_error(1001, 400);
    batch(json!(vec![json!({ "text": "a" }); 101])).await.expect_error(1001, 400);
    assert_eq!(api.get("/api/v1/documents/tasks").await.data()["items"], json!([]), "nothing was accepted");
    let texts: Vec<Value> = (0..100).map(|n| json!({ "text": format!("Number {n}.") })).collect();
    let accepted = batch(json!(texts)).await;
    assert_eq!(accepted.status.as_u16(), 202);
    let tasks = accepted.data()["tasks"].as_array().unwrap().clone();
    assert_eq!(tasks.len(), 100);
    for task in &tasks {
        assert_eq!(task["status"], "pending");
        assert_eq!(api.ended(&token, task["task_id"].as_str().unwrap()).await["status"], "done");
    }
    assert_eq!(api.get("/api/v1/knowledge/stats").await.data()["documents_total"], 100);
}

#[actix_web::test]
async fn repeated_idempotency_key_returns_the_first_task() {
    let api = api().await;
    let (one, other) = (api.user("one").await, api.user("other").await);
    let path = "/api/v1/documents";
    let first = api.post_with_key(path, &one, "k", r#"{"text": "Basalt."}"#).await;
    assert_eq!(first.status.as_u16(), 202);
    let task_id = first.data()["task_id"].clone();
    api.ended(&one, task_id.as_str().unwrap()).await;
    for body in [r#"{"text": "Basalt."}"#, r#"{"text": "Marble."}"#, r#"{"text": " "}"#, "{", ""] {
        let again = api.post_with_key(path, &one, "k", body).await;
        assert_eq!(
            (again.status.as_u16(), again.data()),
            (202, json!({ "task_id": task_id, "status": "done" }))
        );
    }
    for (token, path, key, body) in [
        (&one, path, "l", r#"{"text": "Tuff."}"#),
        (&other, path, "k", r#"{"text": "Opal."}"#),
        (&one, "/api/v1/documents/batch", "k", r#"{"documents": [{"text": "Gneiss."}]}"#),
    ] {
        let response = api.post_with_key(path, token, key, body).await;
        assert_eq!(response.status.as_u16(), 202, "{}", response.json());
        assert!(!response.json().to_string().contains(task_id.as_str().unwrap()), "{path} {key}");
        assert_eq!(api.post_with_key(path, token, key, "{}").await.status.as_u16(), 202);
    }
    for key in ["", &"k".repeat(129)] {
        api.post_with_key(path, &one, key, r#"{"text": "x"}"#).await.expect_error(1001, 400);
    }
    // A refused request does not use up its key.
    api.post_with_key(path, &one, "m", r#"{"text": " "}"#).await.expect_error(1001, 400);
    assert_eq!(api.post_with_key(path, &one, "m", r#"{"text": "Schist."}"#).await.status.as_u16(), 202);
}

#[actix_web::test]
async fn ended_task_can_be_deleted_but_not_cancelled_or_retried() {
    let api = api().await;
    let (owner, other) = (api.user("owner").await, api.user("other").await);
    let accepted = api.post("/api/v1/documents", &owner, json!({ "text": "Basalt." })).await;
    let task_id = api.ended_result(&owner, accepted).await["task_id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/documents/tasks/{task_id}");
    for operation in ["cancel", "retry"] {
        let path = format!("{path}/{operation}");
        api.call(Method::POST, &path, &other, None).await.expect_error(1006, 403);
        let refused = api.call(Method::POST, &path, &owner, None).await.expect_error(1003, 409);
        assert!(refused.starts_with(&format!("{operation} task: the task ")), "{refused}");
        let unknown = format!("/api/v1/documents/tasks/{UNKNOWN}/{operation}");
        api.call(Method::POST, &unknown, &owner, None).await.expect_error(1004, 404);
    }
    api.call(Method::DELETE, &path, &other, None).await.expect_error(1006, 403);
    let deleted = api.call(Method::DELETE, &path, &owner, None).await;
    assert_eq!(
        (deleted.status.as_u16(), deleted.data()),
        (200, json!({ "task_id": task_id, "deleted": true }))
    );
    api.call(Method::DELETE, &path, &owner, None).await.expect_error(1004, 404);
    api.get(&path).await.expect_error(1004, 404);
    assert_eq!(api.get("/api/v1/knowledge/stats").await.data()["documents_total"], 1, "the document stays");
}

#[actix_web::test]
async fn lesson_14_task_events_are_sent_until_the_task_ends() {
    let api = api().await;
    let token = api.admin().await;
    api.get(&format!("/api/v1/documents/tasks/{UNKNOWN}/events")).await.expect_error(1004, 404);
    let accepted = api.post("/api/v1/documents", &token, json!({ "text": "Basalt." })).await.data();
    let response =
        api.get(&format!("/api/v1/documents/tasks/{}/events", accepted["task_id"].as_str().unwrap())).await;
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    assert_eq!(response.header("x-accel-buffering"), Some("no"), "a proxy passes events on at once");
    let text = String::from_utf8(response.body.to_vec()).unwrap();
    let events: Vec<Value> = text
        .split("\n\n")
        .filter(|event| !event.is_empty() && *event != ":")
        .map(|event| serde_json::from_str(event.strip_prefix("event: task\ndata: ").unwrap()).unwrap())
        .collect();
    let last = events.last().unwrap();
    assert_eq!((&last["task_id"], last["status"].as_str()), (&accepted["task_id"], Some("done")));
    assert!(events.windows(2).all(|pair| pair[0] != pair[1]), "an event without a change: {events:?}");
    assert_eq!(events.iter().filter(|task| task["status"] == "done").count(), 1);
}

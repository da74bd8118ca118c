//! Responses when a store fails.

use actix_web::http::Method;
use serde_json::{Value, json};

use crate::support::{Api, App, PASSWORD, TEXT, TestResponse, api};

/// Operations of stores.
type Operations = &'static [(&'static str, &'static str)];

/// A request, and the store operations whose failure fails it.
type Case = (Method, String, Option<Value>, Operations);

/// Requests with the store operations that they need.
fn cases(doc_id: &str, task_id: &str) -> Vec<Case> {
    let document = format!("/api/v1/documents/{doc_id}");
    let login = json!({ "username": "admin", "password": PASSWORD });
    let get = |path: String, faults: Operations| (Method::GET, path, None, faults);
    let post = |path: &str, body, faults: Operations| (Method::POST, path.to_owned(), Some(body), faults);
    vec![
        get(document.clone(), &[("state", "get_many"), ("vectors", "get")]),
        get(format!("{document}/chunks"), &[("state", "get_many"), ("vectors", "get")]),
        get(format!("{document}/text"), &[("state", "get_many")]),
        get("/api/v1/documents".to_owned(), &[("state", "scan")]),
        get("/api/v1/documents/tasks".to_owned(), &[("state", "scan")]),
        get(format!("/api/v1/documents/tasks/{task_id}"), &[("state", "get_many")]),
        get("/api/v1/knowledge/stats".to_owned(), &[("state", "scan")]),
        get("/api/v1/auth/me".to_owned(), &[("state", "get_many")]),
        post(
            "/api/v1/search",
            json!({ "query": "ocean" }),
            &[("state", "get_many"), ("vectors", "query_batch")],
        ),
        post("/api/v1/search/stream", json!({ "query": "volcano" }), &[("vectors", "query_batch")]),
        post(
            "/api/v1/context",
            json!({ "query": "volcano" }),
            &[("state", "get_many"), ("vectors", "query_batch"), ("vectors", "get")],
        ),
        post("/api/v1/documents", json!({ "text": "x" }), &[("state", "apply")]),
        post("/api/v1/auth/login", login, &[("state", "get_many"), ("state", "apply")]),
        post("/api/v1/auth/logout", json!({}), &[("state", "apply")]),
        post(
            "/api/v1/auth/password",
            json!({ "current_password": PASSWORD, "new_password": PASSWORD }),
            &[("state", "apply")],
        ),
        (Method::DELETE, document, None, &[("state", "get_many"), ("state", "apply")]),
    ]
}

async fn task_of<S: App>(api: &Api<S>) -> String {
    api.get("/api/v1/documents/tasks").await.data()["items"][0]["task_id"].as_str().unwrap().to_owned()
}

/// Whether a request needs no credential. It is then sent without one, so that the failure is not that of the login.
fn is_public(method: &Method, path: &str) -> bool {
    (*method == Method::GET && path != "/api/v1/auth/me")
        || path.contains("/search")
        || path.ends_with("/context")
        || path.ends_with("/login")
}

async fn send<S: App>(api: &Api<S>, case: &Case, token: &str) -> TestResponse {
    let (method, path, body, _) = case;
    let token = if is_public(method, path) { "" } else { token };
    api.call(method.clone(), path, token, body.clone()).await
}

#[actix_web::test]
async fn request_whose_store_fails_is_answered_2000_with_the_reason() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id = api.add(&admin, json!({ "text": TEXT })).await;
    let task_id = task_of(&api).await;
    for case in cases(&doc_id, &task_id) {
        for &(store, operation) in case.3 {
            api.faults.set(store, operation, false);
            let response = send(&api, &case, &admin).await;
            api.faults.clear();
            let message = response.expect_error(2000, 500);
            assert!(message.contains(": "), "{} {}: the reason is missing: {message}", case.0, case.1);
            assert!(message.contains("injected fault"), "{} {}: {message}", case.0, case.1);
        }
    }
    let detail = api.get(&format!("/api/v1/documents/{doc_id}")).await;
    assert!(detail.status.is_success(), "a failed request changed the document");
}

#[actix_web::test]
async fn unavailable_store_is_2000_for_a_read_and_1010_for_a_write() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id = api.add(&admin, json!({ "text": TEXT })).await;
    let task_id = task_of(&api).await;
    for case in cases(&doc_id, &task_id) {
        let (method, path, _, faults) = &case;
        let writes = !is_public(method, path) || path.ends_with("/login") || path.ends_with("/text");
        for &(store, operation) in *faults {
            api.faults.set(store, operation, true);
            let response = send(&api, &case, &admin).await;
            api.faults.clear();
            let (code, status) = if writes { (1010, 503) } else { (2000, 500) };
            response.expect_error(code, status);
            assert_eq!(response.header("retry-after").is_some(), writes, "{method} {path}");
        }
    }
}

#[actix_web::test]
async fn document_that_cannot_be_stored_is_not_accepted() {
    let api = api().await;
    let admin = api.admin().await;
    api.faults.set("state", "apply", false);
    api.post("/api/v1/documents", &admin, json!({ "text": "x" })).await.expect_error(2000, 500);
    api.faults.clear();
    assert_eq!(api.get("/api/v1/documents/tasks").await.data()["items"], json!([]));
    assert_eq!(api.get("/api/v1/knowledge/stats").await.data()["documents_total"], 0);
}

#[actix_web::test]
async fn readiness_reports_the_store_that_is_down() {
    let api = api().await;
    api.faults.set("vectors", "health", true);
    let response = api.get("/readyz").await;
    assert_eq!(response.status.as_u16(), 503);
    assert_eq!(response.json()["code"], 1010);
    let data = response.json()["data"].clone();
    assert_eq!((&data["status"], &data["dependencies"]["vectors"]), (&json!("down"), &json!("down")));
    api.faults.set("queue", "health", true);
    let data = api.get("/readyz").await.data();
    assert_eq!((&data["status"], &data["dependencies"]["queue"]), (&json!("degraded"), &json!("down")));
}

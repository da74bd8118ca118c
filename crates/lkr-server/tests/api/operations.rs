//! The root paths, and the server while it starts and stops.

use actix_web::http::Method;
use serde_json::json;

use crate::support::{TestOptions, api, api_with};

#[actix_web::test]
async fn healthz_is_ok_and_readyz_lists_dependencies() {
    let api = api().await;
    assert_eq!(api.get("/healthz").await.data(), json!({ "status": "ok" }));
    let ready = api.get("/readyz").await.data();
    let dependencies =
        json!({ "vectors": "ok", "state": "ok", "blobs": "ok", "embedder": "degraded", "queue": "ok" });
    let embedding = json!({ "in_use": null, "wanted": null });
    let expected = json!({ "status": "degraded", "dependencies": dependencies, "embedding": embedding });
    assert_eq!(ready, expected);
}

#[actix_web::test]
async fn starting_server_is_alive_and_refuses_requests() {
    let api = api_with(TestOptions { starting: true, ..TestOptions::default() }).await;
    assert!(api.get("/healthz").await.status.is_success());
    let ready = api.get("/readyz").await;
    assert_eq!((ready.status.as_u16(), ready.json()["code"].as_u64()), (503, Some(1010)));
    assert_eq!(ready.json()["data"]["status"], "down");
    for (method, path) in [
        (Method::GET, "/api/v1/documents"),
        (Method::GET, "/api/v1/auth/me"),
        (Method::POST, "/api/v1/documents"),
        (Method::GET, "/api/v1/nope"),
    ] {
        let response = api.call(method, path, "", None).await;
        response.expect_error(1010, 503);
        assert!(response.header("retry-after").is_some());
    }
    let login = api.post("/api/v1/auth/login", "", json!({ "username": "admin", "password": "x" })).await;
    login.expect_error(1010, 503);
}

#[actix_web::test]
async fn stopping_server_refuses_requests() {
    let api = api().await;
    api.app_state.stop();
    let response = api.get("/api/v1/documents").await;
    response.expect_error(1010, 503);
    assert_eq!(response.header("connection"), Some("close"));
    assert_eq!(api.get("/readyz").await.status.as_u16(), 503);
}

#[actix_web::test]
async fn in_flight_count_returns_to_zero_after_each_request() {
    let api = api().await;
    api.get("/api/v1/documents").await;
    api.get("/nope").await;
    api.post("/api/v1/search/stream", "", json!({ "query": "x" })).await;
    assert_eq!(api.app_state.in_flight(), 0);
}

#[actix_web::test]
async fn metrics_count_requests_by_route_not_by_path() {
    let api = api().await;
    api.get("/api/v1/documents/abc").await;
    api.get("/made/up").await;
    api.post("/api/v1/search", "", json!({ "query": "x" })).await;
    let response = api.get("/metrics").await;
    assert!(response.header("content-type").unwrap().starts_with("text/plain"));
    let text = String::from_utf8(response.body).unwrap();
    for line in [
        r#"lkr_http_requests_total{method="GET",route="/api/v1/documents/{doc_id}",status="404"} 1"#,
        r#"lkr_http_requests_total{method="GET",route="unknown",status="404"} 1"#,
        r#"lkr_search_cache_total{cache="miss"} 1"#,
        "lkr_search_duration_seconds_count 1",
        "lkr_ingest_queue_tasks 0",
    ] {
        assert!(text.contains(line), "{line} is missing in {text}");
    }
    assert!(!text.contains("/made/up"));
}

#[actix_web::test]
async fn lesson_29_pages_have_a_strict_content_security_policy() {
    let api = api().await;
    for path in ["/", "/docs"] {
        let response = api.get(path).await;
        assert!(response.status.is_success());
        assert!(response.header("content-type").unwrap().starts_with("text/html"));
        let policy = response.header("content-security-policy").unwrap();
        for part in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        let html = String::from_utf8(response.body).unwrap();
        assert!(
            !html.contains("<script") && !html.contains("//"),
            "the page loads something from another origin"
        );
    }
    let docs = String::from_utf8(api.get("/docs").await.body).unwrap();
    assert!(docs.contains("/api/v1/search/stream"));
}

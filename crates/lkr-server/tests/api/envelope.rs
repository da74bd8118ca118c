//! The envelope, and requests that the framework refuses.

use actix_web::{http::Method, test::TestRequest};
use serde_json::{Value, json};

use crate::support::{PASSWORD, api};

fn raw(method: Method, path: &str, content_type: &str, body: &str) -> TestRequest {
    TestRequest::with_uri(path)
        .method(method)
        .insert_header(("content-type", content_type))
        .set_payload(body.to_owned())
}

#[actix_web::test]
async fn response_has_the_four_envelope_keys_and_the_request_id() {
    let api = api().await;
    let response = api.get("/api/v1/knowledge/stats").await;
    let json = response.json();
    assert_eq!((json["code"].as_u64(), json["message"].as_str()), (Some(0), Some("ok")));
    assert_eq!(json.as_object().unwrap().len(), 4);
    assert_eq!(json["request_id"].as_str(), response.header("x-request-id"));
    assert_eq!(response.header("content-type"), Some("application/json"));
}

#[actix_web::test]
async fn valid_request_id_is_kept_and_invalid_one_is_replaced() {
    let api = api().await;
    for (sent, kept) in [
        ("abc-1.2_Z", true),
        (&"x".repeat(64), true),
        (&"x".repeat(65), false),
        ("", false),
        ("a b", false),
        ("é", false),
        ("a\"b", false),
    ] {
        for path in ["/api/v1/knowledge/stats", "/nope"] {
            let response = api.send(TestRequest::with_uri(path).insert_header(("x-request-id", sent))).await;
            assert_eq!(response.header("x-request-id") == Some(sent), kept, "{sent:?}");
            assert_eq!(response.json()["request_id"].as_str(), response.header("x-request-id"));
        }
    }
}

#[actix_web::test]
async fn unknown_path_is_not_found() {
    let api = api().await;
    for path in [
        "/nope",
        "/api",
        "/api/v1",
        "/api/v1/",
        "/api/v1/nope",
        "/api/v1/documents/",
        "/api/v1/documents/tasks/",
        "/api/v2/documents",
        "//api/v1/documents",
        "/api/v1/search/",
        "/api/v1/%ff",
        "/%00",
        "/docs/",
        "/api/v1/auth/nothing",
        "/api/v1/documents/upload/",
        "/api/v1/setting",
        "/api/v1/users/",
    ] {
        api.get(path).await.expect_error(1004, 404);
    }
}

#[actix_web::test]
async fn wrong_method_is_answered_405_with_allow() {
    let api = api().await;
    for (method, path, allow) in [
        (Method::PATCH, "/api/v1/search", "POST"),
        (Method::GET, "/api/v1/search", "POST"),
        (Method::HEAD, "/api/v1/search", "POST"),
        (Method::PUT, "/api/v1/documents", "POST, GET, HEAD"),
        (Method::POST, "/api/v1/documents/0", "PUT, GET, PATCH, DELETE, HEAD"),
        (Method::OPTIONS, "/api/v1/documents/tasks", "GET, HEAD"),
        (Method::POST, "/healthz", "GET, HEAD"),
        (Method::from_bytes(b"BREW").unwrap(), "/", "GET, HEAD"),
    ] {
        let response = api.call(method, path, "", None).await;
        response.expect_error(1001, 405);
        assert_eq!(response.header("allow"), Some(allow), "{path}");
    }
}

#[actix_web::test]
async fn head_request_is_answered_like_get() {
    let api = api().await;
    let response = api.call(Method::HEAD, "/api/v1/knowledge/stats", "", None).await;
    assert!(response.status.is_success());
    api.call(Method::HEAD, "/nope", "", None).await.expect_error(1004, 404);
}

#[actix_web::test]
async fn body_that_is_not_a_json_object_is_refused() {
    let api = api().await;
    for (content_type, body, status) in [
        ("application/json", "{", 400),
        ("application/json", "", 400),
        ("application/json", "null", 400),
        ("application/json", "[\"query\"]", 400),
        ("application/json", "\"query\"", 400),
        ("application/json", "{\"query\":\"a\"} x", 400),
        ("application/json", "{\"query\":\"a\",\"query\":\"b\"}", 400),
        ("application/json", "{\"query\":\"\\ud800\"}", 400),
        ("application/json", "{\"query\":\"a\",\"filters\":[\"c\"]}", 400),
        ("text/plain", "{\"query\":\"a\"}", 415),
        ("application/x-www-form-urlencoded", "query=a", 415),
        ("application/jsonp", "{\"query\":\"a\"}", 415),
        ("", "{\"query\":\"a\"}", 415),
    ] {
        let response = api.send(raw(Method::POST, "/api/v1/search", content_type, body)).await;
        response.expect_error(1001, status);
    }
    let deep = format!("{{\"query\":{}1{}}}", "[".repeat(500), "]".repeat(500));
    api.send(raw(Method::POST, "/api/v1/search", "application/json", &deep)).await.expect_error(1001, 400);
    let bytes = TestRequest::post()
        .uri("/api/v1/search")
        .insert_header(("content-type", "application/json"))
        .set_payload(b"{\"query\":\"\xff\"}".to_vec());
    api.send(bytes).await.expect_error(1001, 400);
    let response =
        api.send(raw(Method::POST, "/api/v1/search", "Application/JSON; charset=utf-8", "{\"query\":\"a\"}"));
    assert!(response.await.status.is_success());
}

#[actix_web::test]
async fn compressed_body_is_refused() {
    let api = api().await;
    let request = raw(Method::POST, "/api/v1/search", "application/json", "x")
        .insert_header(("content-encoding", "gzip"));
    api.send(request).await.expect_error(1001, 415);
    let form = raw(Method::POST, "/api/v1/documents/upload", "multipart/form-data; boundary=b", "x")
        .insert_header(("authorization", format!("Bearer {}", api.admin().await)))
        .insert_header(("content-encoding", "gzip"));
    api.send(form).await.expect_error(1001, 415);
}

#[actix_web::test]
async fn unknown_key_is_named_in_the_error_at_any_level() {
    let api = api().await;
    let admin = api.admin().await;
    for (path, body) in [
        ("/api/v1/search", json!({ "query": "a", "nope": 1 })),
        ("/api/v1/search", json!({ "query": "a", "filters": { "nope": 1 } })),
        ("/api/v1/documents", json!({ "text": "a", "nope": 1 })),
        ("/api/v1/auth/login", json!({ "username": "admin", "password": PASSWORD, "nope": 1 })),
        (
            "/api/v1/auth/password",
            json!({ "current_password": PASSWORD, "new_password": PASSWORD, "nope": 1 }),
        ),
        ("/api/v1/auth/logout", json!({ "nope": 1 })),
    ] {
        let message = api.post(path, &admin, body).await.expect_error(1001, 400);
        assert!(message.contains("nope"), "{path}: {message}");
    }
    for key in ["force", "upsert"] {
        let wrong = api.post("/api/v1/documents", &admin, json!({ "text": "a", key: "yes" })).await;
        assert!(wrong.expect_error(1001, 400).contains("boolean"));
    }
}

#[actix_web::test]
async fn body_over_the_size_limit_is_refused() {
    let api = api().await;
    let large = json!({ "query": "a".repeat(2 * 1024 * 1024) });
    api.post("/api/v1/search", "", large).await.expect_error(1001, 413);
    let login = json!({ "username": "admin", "password": "p".repeat(100_000) });
    api.post("/api/v1/auth/login", "", login).await.expect_error(1001, 413);
    let admin = api.admin().await;
    let text = json!({ "text": "x".repeat(16 * 1024 * 1024 + 1) });
    api.post("/api/v1/documents", &admin, text).await.expect_error(1001, 413);
    let metadata = |key: &str, count: usize| {
        let entries = (0..count).map(|n| (format!("{key}{n}"), json!("v".repeat(4_096))));
        json!(entries.collect::<serde_json::Map<String, Value>>())
    };
    let doc_id = api.add(&admin, json!({ "text": "a text", "metadata": metadata("a", 60) })).await;
    let more = Some(json!({ "metadata": metadata("b", 4) }));
    let path = format!("/api/v1/documents/{doc_id}");
    api.call(Method::PATCH, &path, &admin, more).await.expect_error(1001, 413);
}

#[actix_web::test]
async fn invalid_query_parameter_is_refused() {
    let api = api().await;
    for (path, query) in [
        ("/api/v1/documents", "limit=0"),
        ("/api/v1/documents", "limit=101"),
        ("/api/v1/documents", "limit=abc"),
        ("/api/v1/documents", "limit=1&limit=2"),
        ("/api/v1/documents", "offset=%00zz"),
        ("/api/v1/documents", "offset="),
        ("/api/v1/documents", "offset=t00000000000000000000000000000000"),
        ("/api/v1/documents", "nope=1"),
        ("/api/v1/documents", "q=%ff"),
        ("/api/v1/documents/tasks", "status=lost"),
        ("/api/v1/documents/tasks", "limit=-1"),
        ("/api/v1/documents/tasks", "offset=d00000000000000000000000000000000"),
        ("/api/v1/knowledge/stats", "nope"),
        ("/api/v1/openapi.json", "nope=1"),
    ] {
        api.get(&format!("{path}?{query}")).await.expect_error(1001, 400);
    }
    api.post("/api/v1/search?nope=1", "", json!({ "query": "a" })).await.expect_error(1001, 400);
}

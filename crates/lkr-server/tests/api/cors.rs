//! Requests of pages of other origins.

use actix_web::{http::Method, test::TestRequest};

use crate::support::{Api, App, TestOptions, TestResponse, api, api_with};

const ORIGIN: &str = "https://app.example";

async fn preflight<S: App>(api: &Api<S>, origin: &str, method: &str, headers: &str) -> TestResponse {
    let request = TestRequest::default()
        .method(Method::OPTIONS)
        .uri("/api/v1/documents")
        .insert_header(("origin", origin))
        .insert_header(("access-control-request-method", method))
        .insert_header(("access-control-request-headers", headers));
    api.send(request).await
}

fn from_origin(method: Method, path: &str, origin: &str) -> TestRequest {
    TestRequest::default().method(method).uri(path).insert_header(("origin", origin))
}

/// The items of a header, in lower case and sorted.
fn items(response: &TestResponse, header: &str) -> Vec<String> {
    let value = response.header(header).unwrap_or_default().to_ascii_lowercase();
    let mut items: Vec<String> = value.split(',').map(|item| item.trim().to_owned()).collect();
    items.sort_unstable();
    items
}

async fn listed() -> Api<impl App> {
    api_with(TestOptions { cors_origins: &[ORIGIN, "http://localhost:3000"], ..TestOptions::default() }).await
}

#[actix_web::test]
async fn preflight_of_a_listed_origin_is_answered() {
    let api = listed().await;
    let headers = "authorization,content-type,idempotency-key,if-match,x-request-id";
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        let response = preflight(&api, ORIGIN, method, headers).await;
        assert!(response.status.is_success(), "{method}: {}", response.status);
        assert_eq!(response.header("access-control-allow-origin"), Some(ORIGIN));
        assert_eq!(
            items(&response, "access-control-allow-methods"),
            ["delete", "get", "patch", "post", "put"]
        );
        assert_eq!(items(&response, "access-control-allow-headers"), headers.split(',').collect::<Vec<_>>());
        assert_eq!(response.header("access-control-allow-credentials"), None);
        assert!(response.header("x-request-id").is_some());
        assert!(items(&response, "vary").contains(&"origin".to_owned()));
    }
}

#[actix_web::test]
async fn preflight_of_others_is_refused_in_the_envelope() {
    let api = listed().await;
    for (origin, method, header, reason) in [
        ("https://evil.example", "GET", "authorization", "evil.example"),
        ("https://app.example.evil.example", "GET", "authorization", "evil.example"),
        ("http://app.example", "GET", "authorization", "http://app.example"),
        ("null", "GET", "authorization", "null"),
        (ORIGIN, "TRACE", "authorization", "method"),
        (ORIGIN, "GET", "x-evil", "headers"),
    ] {
        let response = preflight(&api, origin, method, header).await;
        let message = response.expect_error(1001, 400);
        assert!(message.contains(reason), "{message}");
        assert_eq!(response.header("access-control-allow-origin"), None);
    }
}

#[actix_web::test]
async fn answers_may_be_read_by_pages_of_listed_origins_alone() {
    let api = listed().await;
    for (path, status) in
        [("/api/v1/documents", 200), ("/api/v1/users", 401), ("/api/v1/nowhere", 404), ("/healthz", 200)]
    {
        let response = api.send(from_origin(Method::GET, path, ORIGIN)).await;
        assert_eq!(response.status.as_u16(), status, "{path}");
        assert_eq!(response.header("access-control-allow-origin"), Some(ORIGIN), "{path}");
        let exposed = ["content-disposition", "etag", "retry-after", "x-cache", "x-request-id"];
        assert_eq!(items(&response, "access-control-expose-headers"), exposed, "{path}");
        assert_eq!(response.header("access-control-allow-credentials"), None);
        let other = api.send(from_origin(Method::GET, path, "https://evil.example")).await;
        assert_eq!(other.status.as_u16(), status, "{path}: other clients may send an origin too");
        assert_eq!(other.header("access-control-allow-origin"), None, "{path}");
    }
}

#[actix_web::test]
async fn no_origin_is_listed_by_default() {
    let api = api().await;
    let response = preflight(&api, ORIGIN, "GET", "authorization").await;
    response.expect_error(1001, 405);
    let response = api.send(from_origin(Method::GET, "/api/v1/documents", ORIGIN)).await;
    assert_eq!(response.header("access-control-allow-origin"), None);
}

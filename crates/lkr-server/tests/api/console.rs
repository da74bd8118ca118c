//! The console's page and files.

use actix_web::{
    http::{Method, StatusCode, header},
    test::TestRequest,
};
use serde_json::{Value, json};

use crate::support::{Api, App, PASSWORD, TestOptions, TestResponse, api, api_with};

async fn page<S: App>(api: &Api<S>, path: &str, cookie: &str) -> TestResponse {
    api.send(TestRequest::with_uri(path).insert_header((header::COOKIE, cookie))).await
}

fn html(response: &TestResponse) -> String {
    String::from_utf8(response.body.to_vec()).unwrap()
}

/// What the page tells the console of the server.
fn options(response: &TestResponse) -> Value {
    let html = html(response);
    let (_, rest) = html.split_once("name=\"lkr-options\" content=\"").unwrap();
    let (json, _) = rest.split_once('"').unwrap();
    serde_json::from_str(&json.replace("&quot;", "\"")).unwrap()
}

async fn logged_in<S: App>(api: &Api<S>) -> (String, String) {
    let body = json!({ "username": "admin", "password": PASSWORD, "cookie": true });
    let response = api.post("/api/v1/auth/login", "", body).await;
    let cookie = response.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    (cookie, response.data()["access_token"].as_str().unwrap().to_owned())
}

#[actix_web::test]
async fn every_address_of_the_console_answers_its_page() {
    let api = api().await;
    for path in ["/", "/documents", "/documents/0190?at=1-2", "/admin/settings", "/tasks/no-such-task"] {
        let response = page(&api, path, "").await;
        assert_eq!(response.status, StatusCode::OK, "{path}");
        assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        let policy = response.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        for part in ["frame-ancestors 'none'", "trusted-types 'none'", "form-action 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(response.header("cache-control"), Some("no-store"), "{path}");
    }
}

#[actix_web::test]
async fn unknown_path_is_a_page_for_browsers_and_a_refusal_for_programs() {
    let api = api().await;
    let get = async |path: &str, accept: &str| {
        api.send(TestRequest::with_uri(path).insert_header((header::ACCEPT, accept))).await
    };
    let browser = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8";
    let found = get("/no-such-page", browser).await;
    assert_eq!(
        (found.status.as_u16(), found.header("content-type")),
        (404, Some("text/html; charset=utf-8"))
    );
    get("/no-such-page", "*/*").await.expect_error(1004, 404);
    get("/api/v1/no-such-route", browser).await.expect_error(1004, 404);
    get("/console/no-such-file.js", browser).await.expect_error(1004, 404);
    let post = TestRequest::with_uri("/documents").method(Method::POST);
    api.send(post).await.expect_error(1004, 404);
}

#[actix_web::test]
async fn page_knows_the_options_of_the_server_and_the_theme() {
    let api = api_with(TestOptions { register_enabled: true, ..TestOptions::default() }).await;
    let response = page(&api, "/", "other=1; lkr_theme=dark").await;
    let told = options(&response);
    assert_eq!(told["register"].as_bool(), Some(true));
    assert!(html(&response).contains("data-theme=\"dark\""));
    let hostile = page(&api, "/", "lkr_theme=\"><script>").await;
    assert!(html(&hostile).contains("data-theme=\"auto\""));
}

/// A browser withholds the cookie of a session when a link of another site leads to the page, and sends it with the page's requests.
#[actix_web::test]
async fn page_that_another_site_led_to_asks_whether_there_is_a_session() {
    let api = api().await;
    for (from, may_have_session) in [
        (Some("none"), false),
        (Some("same-origin"), false),
        (Some("same-site"), false),
        (Some("cross-site"), true),
        // By HTTP from another machine, nothing tells.
        (None, true),
    ] {
        let mut request = TestRequest::with_uri("/documents").insert_header(("accept", "text/html"));
        request = match from {
            Some(from) => request.insert_header(("sec-fetch-site", from)),
            None => request,
        };
        let told = options(&api.send(request).await);
        assert_eq!(told["session"].as_bool(), Some(may_have_session), "{from:?}");
    }
}

#[actix_web::test]
async fn page_knows_a_session_and_removes_the_cookie_of_one_that_has_ended() {
    let api = api().await;
    let (cookie, token) = logged_in(&api).await;
    let valid = page(&api, "/documents", &cookie).await;
    assert_eq!((options(&valid)["session"].as_bool(), valid.header("set-cookie")), (Some(true), None));
    assert!(!html(&valid).contains(&token), "the page contains no token");
    api.call(Method::POST, "/api/v1/auth/logout", &token, None).await;
    let ended = page(&api, "/documents", &cookie).await;
    assert_eq!(options(&ended)["session"].as_bool(), Some(false));
    let removed = ended.header("set-cookie").unwrap();
    assert!(removed.starts_with("lkr_session=; Path=/; Max-Age=0"), "{removed}");
}

#[actix_web::test]
async fn files_are_compressed_and_kept_by_browsers() {
    let api = api().await;
    for file in lkr_console::files() {
        let request = || TestRequest::with_uri(&format!("/console/{}", file.name()));
        let plain = api.send(request()).await;
        let gzipped = api.send(request().insert_header((header::ACCEPT_ENCODING, "gzip"))).await;
        assert_eq!((plain.status, plain.header("content-encoding")), (StatusCode::OK, None));
        assert_eq!(gzipped.header("content-encoding"), Some("gzip"));
        assert_eq!(gzipped.header("content-type"), Some(file.content_type()));
        assert_eq!(gzipped.header("x-content-type-options"), Some("nosniff"));
        let lifetime = gzipped.header("cache-control").unwrap();
        assert_eq!(lifetime.contains("immutable"), file.is_immutable(), "{lifetime}");
        assert_eq!(plain.body.to_vec(), file.bytes().unwrap());
    }
}

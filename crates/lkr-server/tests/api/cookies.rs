//! Sessions in cookies, and their protection against requests of other sites.

use std::time::Duration;

use actix_web::{
    http::{Method, header},
    test::TestRequest,
};
use lkr_auth::{AccountChange, Actor};
use lkr_server::{Access, endpoints};
use serde_json::{Value, json};

use crate::{
    conformance,
    streams::stream,
    support::{Api, App, PASSWORD, TestOptions, TestResponse, api, api_with},
};

const OTHER: &str = "another long password";
const ME: &str = "/api/v1/auth/me";

/// A page that has logged in.
struct Page {
    /// The name and the value of the cookie.
    cookie: String,
    csrf_token: String,
    access_token: String,
}

impl Page {
    /// The page after the response of a login.
    fn of(response: &TestResponse) -> Self {
        let data = response.data();
        let text = |name: &str| data[name].as_str().unwrap().to_owned();
        let cookie = response.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        Self { cookie, csrf_token: text("csrf_token"), access_token: text("access_token") }
    }

    async fn logged_in<S: App>(api: &Api<S>, username: &str) -> Self {
        Self::of(&login(api, TestRequest::default(), username).await)
    }

    /// A request with the cookie and without the CSRF token.
    fn bare(&self, method: Method, path: &str) -> TestRequest {
        with_cookie(method, path, &self.cookie)
    }

    /// A request as the page sends it.
    fn request(&self, method: Method, path: &str) -> TestRequest {
        self.bare(method, path).insert_header(("x-lkr-csrf", self.csrf_token.as_str()))
    }
}

fn with_cookie(method: Method, path: &str, cookie: &str) -> TestRequest {
    TestRequest::with_uri(path).method(method).insert_header((header::COOKIE, cookie))
}

/// Logs in with a cookie, by a request that has what `request` has already.
async fn login<S: App>(api: &Api<S>, request: TestRequest, username: &str) -> TestResponse {
    let body = json!({ "username": username, "password": PASSWORD, "cookie": true });
    api.send(request.uri("/api/v1/auth/login").method(Method::POST).set_json(body)).await
}

/// Sends a request and checks the response against the OpenAPI document.
async fn checked<S: App>(api: &Api<S>, method: &Method, path: &str, request: TestRequest) -> TestResponse {
    let response = api.send(request).await;
    conformance::check(api.openapi().await, method, path, &response);
    response
}

/// The message of a refusal, in the form of any protocol.
fn message(response: &TestResponse) -> String {
    let json: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let messages = [&json["message"], &json["error"]["message"], &json["error_msg"]];
    messages.into_iter().find_map(Value::as_str).unwrap_or_default().to_owned()
}

#[actix_web::test]
async fn login_sets_a_cookie_only_if_it_is_asked_to() {
    let api = api_with(TestOptions { register_enabled: true, ..TestOptions::default() }).await;
    for (path, username) in [("/api/v1/auth/login", "admin"), ("/api/v1/auth/register", "eva")] {
        let body = json!({ "username": username, "password": PASSWORD, "cookie": true });
        let response = api.post(path, "", body).await;
        let token = response.data();
        let access_token = token["access_token"].as_str().unwrap();
        assert_eq!(
            response.header("set-cookie").unwrap(),
            format!("lkr_session={access_token}; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict")
        );
        assert_eq!(token["csrf_token"].as_str().unwrap().len(), 64);
        assert_ne!(token["csrf_token"], token["access_token"]);
        let page = Page::of(&response);
        let me = api.send(page.bare(Method::GET, ME)).await.data();
        assert_eq!((&me["username"], &me["csrf_token"]), (&json!(username), &token["csrf_token"]));
    }
    for cookie in [json!({}), json!({ "cookie": false }), json!({ "cookie": null })] {
        let mut body = json!({ "username": "admin", "password": PASSWORD });
        body.as_object_mut().unwrap().extend(cookie.as_object().unwrap().clone());
        let response = api.post("/api/v1/auth/login", "", body).await;
        assert_eq!((response.header("set-cookie"), response.data().get("csrf_token")), (None, None));
    }
    let wrong = json!({ "username": "admin", "password": PASSWORD, "cookie": "yes" });
    api.post("/api/v1/auth/login", "", wrong).await.expect_error(1001, 400);
}

#[actix_web::test]
async fn bearer_is_answered_without_a_csrf_token() {
    let api = api().await;
    let page = Page::logged_in(&api, "admin").await;
    let me = api.call(Method::GET, ME, &page.access_token, None).await;
    let keys: Vec<_> = me.data().as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["created_at", "disabled", "must_change_password", "role", "username"]);
    assert!(!String::from_utf8_lossy(&me.body).contains("csrf"));
}

#[actix_web::test]
async fn every_route_that_is_no_read_refuses_a_cookie_without_its_csrf_token() {
    let api = api().await;
    let other = Page::logged_in(&api, "admin").await;
    let changes = endpoints().into_iter().filter(|row| row.method != Method::GET);
    let mut refused = 0;
    for row in changes.filter(|row| row.access != Access::Public) {
        let id = "0".repeat(32);
        let path = row.path.replace("{doc_id}", &id).replace("{task_id}", &id).replace("{id}", &id);
        let path = path.replace("{username}", "nobody").replace("{space}", "default");
        let path = path.replace("{group}", "nobodies").replace("{member}", "user:nobody");
        // Each route gets its own session, because logout is one of them.
        let page = Page::logged_in(&api, "admin").await;
        let bare = || page.bare(row.method.clone(), &path);
        for request in [
            bare(),
            bare().insert_header(("x-lkr-csrf", "")),
            bare().insert_header(("x-lkr-csrf", "0".repeat(64))),
            bare().insert_header(("x-lkr-csrf", page.access_token.as_str())),
            bare().insert_header(("x-lkr-csrf", other.csrf_token.as_str())),
            page.request(row.method.clone(), &path).append_header(("x-lkr-csrf", page.csrf_token.as_str())),
        ] {
            let response = checked(&api, &row.method, &path, request).await;
            assert_eq!(response.status.as_u16(), 403, "{row:?}");
            assert!(message(&response).contains("X-Lkr-CSRF"), "{row:?}");
            if row.path.starts_with("/api/v1/")
                && !row.path.contains("/openai/")
                && !row.path.contains("/dify/")
            {
                response.expect_error(1006, 403);
            }
            refused += 1;
        }
        let response = checked(&api, &row.method, &path, page.request(row.method.clone(), &path)).await;
        assert!(!message(&response).contains("X-Lkr-CSRF"), "{row:?}");
    }
    assert!(refused > 150, "{refused}");
}

#[actix_web::test]
async fn reads_by_cookie_need_no_csrf_token() {
    let api = api_with(TestOptions { require_login_for_reads: true, ..TestOptions::default() }).await;
    let page = Page::logged_in(&api, "admin").await;
    for path in ["/api/v1/documents", "/api/v1/knowledge/stats", "/api/v1/audit", "/api/v1/openapi.json"] {
        for method in [Method::GET, Method::HEAD] {
            assert!(api.send(page.bare(method, path)).await.status.is_success(), "{path}");
        }
        api.send(page.bare(Method::TRACE, path)).await.expect_error(1006, 403);
    }
    let search = || page.bare(Method::POST, "/api/v1/search").set_json(json!({ "query": "x" }));
    api.send(search()).await.expect_error(1006, 403);
    let request = search().insert_header(("x-lkr-csrf", page.csrf_token.as_str()));
    assert!(api.send(request).await.status.is_success());
}

#[actix_web::test]
async fn cookie_is_secure_only_if_a_trusted_proxy_says_that_the_request_came_by_tls() {
    let api = api_with(TestOptions { trusted_proxies: &["10.0.0.0/8"], ..TestOptions::default() }).await;
    let from = |address: &str, scheme: &str| {
        let request = TestRequest::default().peer_addr(format!("{address}:1234").parse().unwrap());
        request.insert_header(("x-forwarded-proto", scheme))
    };
    for (address, scheme, by_tls) in [
        ("10.1.2.3", "https", true),
        ("10.1.2.3", "HTTPS", true),
        ("10.1.2.3", "https, http", true),
        ("10.1.2.3", "http", false),
        ("10.1.2.3", "http, https", false),
        ("10.1.2.3", "", false),
        ("192.0.2.1", "https", false),
    ] {
        let response = login(&api, from(address, scheme), "admin").await;
        let cookie = response.header("set-cookie").unwrap();
        assert_eq!(cookie.starts_with("__Host-lkr_session="), by_tls, "{address} {scheme}: {cookie}");
        assert_eq!(cookie.starts_with("lkr_session="), !by_tls, "{address} {scheme}: {cookie}");
        assert_eq!(cookie.ends_with("; Secure"), by_tls, "{address} {scheme}: {cookie}");
        // Each kind of connection has its own cookie, and ignores the other.
        let page = Page::of(&response);
        let request = |address, scheme| {
            from(address, scheme).uri(ME).insert_header((header::COOKIE, page.cookie.as_str()))
        };
        assert!(api.send(request(address, scheme)).await.status.is_success(), "{address} {scheme}");
        let other = if by_tls { request("192.0.2.1", "https") } else { request("10.1.2.3", "https") };
        let refusal = api.send(other).await.expect_error(1005, 401);
        assert!(refusal.contains("no credential"), "{refusal}");
    }
}

#[actix_web::test]
async fn stale_cookie_is_refused_like_a_bad_bearer_but_does_not_refuse_a_login() {
    let api = api_with(TestOptions { register_enabled: true, ..TestOptions::default() }).await;
    for stale in ["0".repeat(64), "nonsense".to_owned(), String::new()] {
        let cookie = format!("lkr_session={stale}");
        for path in ["/api/v1/documents", ME, "/api/v1/openapi.json", "/api/v1/nope"] {
            api.send(with_cookie(Method::GET, path, &cookie)).await.expect_error(1005, 401);
        }
        let search = with_cookie(Method::POST, "/api/v1/search", &cookie).set_json(json!({ "query": "x" }));
        api.send(search).await.expect_error(1005, 401);
        let response = login(&api, with_cookie(Method::POST, "/", &cookie), "admin").await;
        assert_eq!(response.status.as_u16(), 200, "{}", response.json());
        for path in ["/healthz", "/"] {
            let response = api.send(with_cookie(Method::GET, path, &cookie)).await;
            assert!(response.status.is_success(), "{path} ignores credentials");
        }
    }
    let body = json!({ "username": "eva", "password": PASSWORD, "cookie": true });
    let register = with_cookie(Method::POST, "/api/v1/auth/register", "lkr_session=x").set_json(body);
    assert_eq!(api.send(register).await.status.as_u16(), 201);
}

#[actix_web::test]
async fn cookie_has_no_api_key() {
    let api = api().await;
    let key = api.key(&api.admin().await).await;
    let request = with_cookie(Method::GET, ME, &format!("lkr_session={key}"));
    api.send(request).await.expect_error(1005, 401);
}

#[actix_web::test]
async fn cookies_of_others_are_ignored_and_a_second_session_is_refused() {
    let api = api().await;
    let Page { cookie, .. } = Page::logged_in(&api, "admin").await;
    for line in [
        format!("theme=dark; {cookie}"),
        format!("{cookie};theme=dark;;=;broken; = ;lkr_session"),
        format!("xlkr_session=1; {cookie}; __Host-lkr_session=1; LKR_SESSION=2"),
    ] {
        let response = api.send(with_cookie(Method::GET, ME, &line)).await;
        assert!(response.status.is_success(), "{line}: {}", response.json());
    }
    let lines = TestRequest::with_uri(ME).append_header((header::COOKIE, &b"a=\xff"[..]));
    let response = api.send(lines.append_header((header::COOKIE, cookie.as_str()))).await;
    assert!(response.status.is_success());
    for line in [format!("{cookie}; {cookie}"), format!("lkr_session=\"{cookie}\"")] {
        api.send(with_cookie(Method::GET, ME, &line)).await.expect_error(1005, 401);
    }
    let twice = with_cookie(Method::GET, ME, &cookie).append_header((header::COOKIE, "lkr_session=x"));
    assert!(api.send(twice).await.expect_error(1005, 401).contains("sent twice"));
    let no_text = TestRequest::with_uri(ME).insert_header((header::COOKIE, &b"lkr_session=\xff"[..]));
    api.send(no_text).await.expect_error(1005, 401);
    // Without a session, other cookies change nothing.
    assert!(api.send(with_cookie(Method::GET, "/api/v1/documents", "theme=dark")).await.status.is_success());
}

#[actix_web::test]
async fn expired_session_is_refused_in_a_cookie() {
    let options = TestOptions { session_ttl: Some(Duration::from_millis(1)), ..TestOptions::default() };
    let api = api_with(options).await;
    let page = Page::logged_in(&api, "admin").await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    for path in [ME, "/api/v1/documents"] {
        api.send(page.bare(Method::GET, path)).await.expect_error(1005, 401);
    }
    api.send(page.request(Method::POST, "/api/v1/auth/logout")).await.expect_error(1005, 401);
}

#[actix_web::test]
async fn password_change_replaces_the_cookie_of_its_caller_and_ends_all_others() {
    let api = api().await;
    let (page, other) = (Page::logged_in(&api, "admin").await, Page::logged_in(&api, "admin").await);
    let path = "/api/v1/auth/password";
    let body = json!({ "current_password": PASSWORD, "new_password": OTHER });
    let new = Page::of(&api.send(page.request(Method::POST, path).set_json(body)).await);
    assert_ne!((&new.cookie, &new.csrf_token), (&page.cookie, &page.csrf_token));
    for old in [page, other] {
        api.send(old.request(Method::GET, ME)).await.expect_error(1005, 401);
    }
    assert_eq!(api.send(new.request(Method::GET, ME)).await.data()["csrf_token"], new.csrf_token.as_str());
    // Only a caller with a cookie gets one without asking.
    let body = json!({ "current_password": OTHER, "new_password": PASSWORD });
    let response = api.post(path, &new.access_token, body).await;
    assert_eq!((response.header("set-cookie"), response.data().get("csrf_token")), (None, None));
    let token = response.data()["access_token"].as_str().unwrap().to_owned();
    let body = json!({ "current_password": PASSWORD, "new_password": OTHER, "cookie": true });
    let asked = Page::of(&api.post(path, &token, body).await);
    assert!(api.send(asked.bare(Method::GET, ME)).await.status.is_success());
}

#[actix_web::test]
async fn cookie_of_a_disabled_account_is_refused() {
    let api = api().await;
    api.user("eva").await;
    let page = Page::logged_in(&api, "eva").await;
    assert!(api.send(page.bare(Method::GET, ME)).await.status.is_success());
    let change = AccountChange { disabled: Some(true), ..AccountChange::default() };
    api.auth.change_account("eva", change, Actor::program("a test")).await.unwrap();
    api.send(page.bare(Method::GET, ME)).await.expect_error(1005, 401);
    api.send(page.bare(Method::GET, "/api/v1/documents")).await.expect_error(1005, 401);
}

#[actix_web::test]
async fn bearer_wins_over_the_cookie() {
    let api = api().await;
    let user = api.user("eva").await;
    let page = Page::logged_in(&api, "admin").await;
    let both =
        |method, path| page.bare(method, path).insert_header(("authorization", format!("Bearer {user}")));
    let me = api.send(both(Method::GET, ME)).await.data();
    assert_eq!((me["username"].as_str(), me.get("csrf_token")), (Some("eva"), None));
    let add = both(Method::POST, "/api/v1/documents").set_json(json!({ "text": "Basalt." }));
    assert_eq!(api.send(add).await.status.as_u16(), 202, "a bearer needs no CSRF token");
    let bad =
        page.bare(Method::GET, ME).insert_header(("authorization", format!("Bearer {}", "0".repeat(64))));
    api.send(bad).await.expect_error(1005, 401);
    let logout = api.send(both(Method::POST, "/api/v1/auth/logout")).await;
    assert_eq!((logout.data()["logged_out"].as_bool(), logout.header("set-cookie")), (Some(true), None));
    api.send(both(Method::GET, ME)).await.expect_error(1005, 401);
    assert!(api.send(page.bare(Method::GET, ME)).await.status.is_success());
}

#[actix_web::test]
async fn logout_ends_the_session_and_removes_the_cookie() {
    let api = api_with(TestOptions { trusted_proxies: &["10.0.0.0/8"], ..TestOptions::default() }).await;
    let by_tls = || {
        let request = TestRequest::default().peer_addr("10.0.0.1:1234".parse().unwrap());
        request.insert_header(("x-forwarded-proto", "https"))
    };
    for (by_tls, removed) in [
        (
            TestRequest::default as fn() -> TestRequest,
            "lkr_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict",
        ),
        (by_tls, "__Host-lkr_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict; Secure"),
    ] {
        let page = Page::of(&login(&api, by_tls(), "admin").await);
        let logout = by_tls().uri("/api/v1/auth/logout").method(Method::POST);
        let logout = logout.insert_header((header::COOKIE, page.cookie.as_str()));
        let logout = logout.insert_header(("x-lkr-csrf", page.csrf_token.as_str()));
        let response = api.send(logout).await;
        assert_eq!(response.data(), json!({ "logged_out": true }));
        assert_eq!(response.header("set-cookie"), Some(removed));
        let me = by_tls().uri(ME).insert_header((header::COOKIE, page.cookie.as_str()));
        api.send(me).await.expect_error(1005, 401);
        api.call(Method::GET, ME, &page.access_token, None).await.expect_error(1005, 401);
    }
}

#[actix_web::test]
async fn event_stream_by_cookie_ends_with_the_session() {
    let api = api().await;
    let page = Page::logged_in(&api, "admin").await;
    api.faults.set("queue", "push", true);
    let add = page.request(Method::POST, "/api/v1/documents").set_json(json!({ "text": "Basalt." }));
    let task_id = api.send(add).await.data()["task_id"].as_str().unwrap().to_owned();
    let events = format!("/api/v1/documents/tasks/{task_id}/events");
    let mut watched = stream(api.respond(page.bare(Method::GET, &events)).await);
    assert!(watched.next().await.unwrap().unwrap().starts_with(b"event: task\n"));
    api.send(page.request(Method::POST, "/api/v1/auth/logout")).await.data();
    assert_eq!(watched.last().await, None);
}

#[actix_web::test]
async fn pages_of_other_origins_get_no_credentials() {
    let api =
        api_with(TestOptions { cors_origins: &["https://app.example"], ..TestOptions::default() }).await;
    let request = TestRequest::default().insert_header(("origin", "https://app.example"));
    let response = login(&api, request, "admin").await;
    assert_eq!(response.header("access-control-allow-credentials"), None);
    let preflight = TestRequest::with_uri("/api/v1/documents")
        .method(Method::OPTIONS)
        .insert_header(("origin", "https://app.example"))
        .insert_header(("access-control-request-method", "POST"))
        .insert_header(("access-control-request-headers", "x-lkr-csrf"));
    api.send(preflight).await.expect_error(1001, 400);
}

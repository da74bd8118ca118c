//! Registration, account management and login throttling.

use actix_web::{http::Method, test::TestRequest};
use serde_json::{Value, json};

use crate::support::{Api, App, PASSWORD, TestOptions, api, api_with};

const OTHER: &str = "another long password";

async fn patch<S: App>(api: &Api<S>, name: &str, token: &str, body: Value) -> crate::support::TestResponse {
    api.call(Method::PATCH, &format!("/api/v1/users/{name}"), token, Some(body)).await
}

async fn delete<S: App>(api: &Api<S>, name: &str, token: &str) -> crate::support::TestResponse {
    api.call(Method::DELETE, &format!("/api/v1/users/{name}"), token, None).await
}

fn credentials(username: &str, password: &str) -> Value {
    json!({ "username": username, "password": password })
}

#[actix_web::test]
async fn lesson_23_registration_is_disabled_by_default() {
    let api = api().await;
    api.post("/api/v1/auth/register", "", credentials("eva", PASSWORD)).await.expect_error(1007, 403);
    let api = api_with(TestOptions { register_enabled: true, ..TestOptions::default() }).await;
    let response = api.post("/api/v1/auth/register", "nonsense", credentials("Eva", PASSWORD)).await;
    assert_eq!(response.status.as_u16(), 201);
    let token = response.data();
    assert_eq!(
        (token["user"]["username"].as_str(), token["user"]["role"].as_str()),
        (Some("Eva"), Some("user"))
    );
    assert_eq!(token["user"]["must_change_password"], false);
    assert_eq!(token["token_type"], "Bearer");
    api.add(token["access_token"].as_str().unwrap(), json!({ "text": "x" })).await;
    api.post("/api/v1/auth/register", "", credentials("EVA", OTHER)).await.expect_error(1003, 409);
    for (name, password) in [("ev", PASSWORD), ("e v a", PASSWORD), ("adam", "short"), ("adam", "")] {
        api.post("/api/v1/auth/register", "", credentials(name, password)).await.expect_error(1001, 400);
    }
    let more = json!({ "username": "adam", "password": PASSWORD, "role": "admin" });
    api.post("/api/v1/auth/register", "", more).await.expect_error(1001, 400);
}

#[actix_web::test]
async fn accounts_are_created_listed_changed_and_deleted() {
    let api = api().await;
    let admin = api.admin().await;
    let body = json!({ "username": "Eva@example.org", "password": PASSWORD });
    let created = api.post("/api/v1/users", &admin, body.clone()).await;
    assert_eq!(created.status.as_u16(), 201);
    let created = created.data();
    let keys: Vec<_> = created.as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["created_at", "disabled", "must_change_password", "role", "username"]);
    assert_eq!(
        (created["role"].as_str(), created["must_change_password"].as_bool()),
        (Some("user"), Some(true))
    );
    api.post("/api/v1/users", &admin, body).await.expect_error(1003, 409);
    for n in 0..5 {
        let body = json!({ "username": format!("user-{n}"), "password": PASSWORD, "role": "admin",
            "must_change_password": false });
        assert_eq!(api.post("/api/v1/users", &admin, body).await.data()["role"], "admin");
    }
    let (mut names, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/v1/users?limit=3{after}");
        let page = api.call(Method::GET, &path, &admin, None).await.data();
        let items = page["items"].as_array().unwrap();
        names.extend(items.iter().map(|user| user["username"].as_str().unwrap().to_owned()));
        match page["next_offset"].as_str() {
            Some(next) => {
                assert_eq!(items.len(), 3, "every page but the last is full");
                after = format!("&offset={next}");
            }
            None => break,
        }
    }
    assert_eq!(names, ["admin", "Eva@example.org", "user-0", "user-1", "user-2", "user-3", "user-4"]);
    for offset in ["x", "u", "u!", "d123"] {
        let path = format!("/api/v1/users?offset={offset}");
        api.call(Method::GET, &path, &admin, None).await.expect_error(1001, 400);
    }
    let changed =
        patch(&api, "EVA%40example.org", &admin, json!({ "role": "admin", "disabled": true })).await.data();
    assert_eq!((changed["role"].as_str(), changed["disabled"].as_bool()), (Some("admin"), Some(true)));
    let same = patch(&api, "eva@example.org", &admin, json!({ "role": null })).await.data();
    assert_eq!(same, changed);
    let deleted = delete(&api, "eva@example.org", &admin).await.data();
    assert_eq!(deleted, json!({ "username": "eva@example.org", "deleted": true }));
    for response in [
        delete(&api, "eva@example.org", &admin).await,
        delete(&api, "a%20b", &admin).await,
        patch(&api, "nobody", &admin, json!({ "disabled": true })).await,
        api.post("/api/v1/users/nobody/password", &admin, json!({ "new_password": PASSWORD })).await,
    ] {
        response.expect_error(1004, 404);
    }
}

#[actix_web::test]
async fn invalid_account_request_is_refused_and_names_the_field() {
    let api = api().await;
    let admin = api.admin().await;
    api.user("eva").await;
    for (path, method, body, field) in [
        ("users", Method::POST, json!({ "username": "a b c", "password": PASSWORD }), "username"),
        ("users", Method::POST, json!({ "username": "abc", "password": "1234567" }), "password"),
        ("users", Method::POST, json!({ "username": "abc", "password": PASSWORD, "role": "root" }), "role"),
        ("users", Method::POST, json!({ "username": "abc", "password": PASSWORD, "x": 1 }), "x"),
        ("users", Method::POST, json!({ "username": "abc" }), "password"),
        ("users/eva", Method::PATCH, json!({ "role": "root" }), "role"),
        ("users/eva", Method::PATCH, json!({ "disabled": "yes" }), "disabled"),
        ("users/eva", Method::PATCH, json!({ "username": "adam" }), "username"),
        ("users/eva/password", Method::POST, json!({ "new_password": "short" }), "password"),
        ("users/eva/password", Method::POST, json!({}), "new_password"),
    ] {
        let path = format!("/api/v1/{path}");
        let message = api.call(method, &path, &admin, Some(body)).await.expect_error(1001, 400);
        assert!(message.contains(field), "{message}");
    }
}

#[actix_web::test]
async fn lesson_24_disable_reset_and_delete_take_effect_at_once() {
    let api = api().await;
    let admin = api.admin().await;
    let session = api.user("eva").await;
    let key = api.key(&session).await;
    let me = async |token: &str| api.call(Method::GET, "/api/v1/auth/me", token, None).await;
    assert!(me(&session).await.status.is_success() && me(&key).await.status.is_success());
    assert_eq!(patch(&api, "eva", &admin, json!({ "disabled": true })).await.data()["disabled"], true);
    me(&session).await.expect_error(1005, 401);
    me(&key).await.expect_error(1005, 401);
    api.post("/api/v1/auth/login", "", credentials("eva", PASSWORD)).await.expect_error(1005, 401);
    patch(&api, "eva", &admin, json!({ "disabled": false })).await.data();
    me(&session).await.expect_error(1005, 401);
    assert!(me(&key).await.status.is_success(), "a key is refused only while its account is disabled");
    let session = api.login("eva").await;
    // A change of the role takes effect at the next request.
    api.call(Method::GET, "/api/v1/users", &session, None).await.expect_error(1006, 403);
    patch(&api, "eva", &admin, json!({ "role": "admin" })).await.data();
    assert!(api.call(Method::GET, "/api/v1/users", &session, None).await.status.is_success());
    patch(&api, "eva", &admin, json!({ "role": "user" })).await.data();
    api.call(Method::GET, "/api/v1/users", &key, None).await.expect_error(1006, 403);
    let reset = json!({ "new_password": OTHER });
    let user = api.post("/api/v1/users/eva/password", &admin, reset).await.data();
    assert_eq!(user["must_change_password"], true);
    me(&session).await.expect_error(1005, 401);
    me(&key).await.expect_error(1005, 401);
    let token = api.post("/api/v1/auth/login", "", credentials("eva", OTHER)).await.data();
    let session = token["access_token"].as_str().unwrap();
    api.post("/api/v1/documents", session, json!({ "text": "x" })).await.expect_error(1008, 403);
    delete(&api, "eva", &admin).await.data();
    me(session).await.expect_error(1005, 401);
    api.user("eva").await;
    me(session).await.expect_error(1005, 401);
    me(&key).await.expect_error(1005, 401);
}

#[actix_web::test]
async fn last_admin_cannot_be_demoted_disabled_or_deleted() {
    let api = api().await;
    let admin = api.admin().await;
    for body in [json!({ "disabled": true }), json!({ "role": "user" })] {
        patch(&api, "Admin", &admin, body).await.expect_error(1006, 403);
    }
    delete(&api, "ADMIN", &admin).await.expect_error(1006, 403);
    patch(&api, "admin", &admin, json!({ "role": "admin", "disabled": false })).await.data();
    // If two admins demote each other at once, one of them remains an admin.
    let body =
        json!({ "username": "eva", "password": PASSWORD, "role": "admin", "must_change_password": false });
    api.post("/api/v1/users", &admin, body).await.data();
    let eva = api.login("eva").await;
    let (one, other) =
        tokio::join!(patch(&api, "eva", &admin, json!({ "role": "user" })), delete(&api, "admin", &eva),);
    assert_eq!(u8::from(one.status.is_success()) + u8::from(other.status.is_success()), 1);
}

#[actix_web::test]
async fn lesson_32_failed_logins_are_throttled_by_account_and_address() {
    let api = api_with(TestOptions { trusted_proxies: &["10.0.0.0/8"], ..TestOptions::default() }).await;
    api.account("eva", lkr_auth::Role::User, false).await;
    let login = async |name: &str, password: &str, proxy: &str, address: &str| {
        let request = TestRequest::with_uri("/api/v1/auth/login")
            .method(Method::POST)
            .peer_addr(proxy.parse().unwrap())
            .insert_header(("x-forwarded-for", address))
            .set_json(credentials(name, password));
        api.send(request).await
    };
    let proxy = "10.1.1.1:443";
    for name in ["eva", "nobody"] {
        for _ in 0..10 {
            login(name, OTHER, proxy, "192.0.2.1").await.expect_error(1005, 401);
        }
        let throttled = login(name, PASSWORD, proxy, "192.0.2.2").await;
        throttled.expect_error(1009, 429);
        let seconds: u64 = throttled.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=900).contains(&seconds), "{seconds}");
    }
    // A success clears the account's count.
    for _ in 0..9 {
        login("admin", OTHER, proxy, "192.0.2.1").await.expect_error(1005, 401);
    }
    assert!(login("ADMIN", PASSWORD, proxy, "192.0.2.1").await.status.is_success());
    login("admin", OTHER, proxy, "192.0.2.1").await.expect_error(1005, 401);
    assert!(login("admin", PASSWORD, proxy, "192.0.2.1").await.status.is_success());
    // Thirty logins from that address have failed so far; a success does not reset the count of an address.
    for n in 0..70 {
        login(&format!("user-{n}"), OTHER, proxy, "192.0.2.1").await.expect_error(1005, 401);
    }
    login("admin", PASSWORD, proxy, "192.0.2.1").await.expect_error(1009, 429);
    assert!(
        login("admin", PASSWORD, proxy, "192.0.2.3").await.status.is_success(),
        "another address is not throttled"
    );
    // X-Forwarded-For from an untrusted peer is ignored.
    assert!(login("admin", PASSWORD, "198.51.100.7:1", "192.0.2.1").await.status.is_success());
}

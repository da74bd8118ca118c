//! Register, user management, throttling.

use actix_web::{http::Method, test::TestRequest};
use serde_json::{Value, json};

use crate::support::{Api, App, PASSWORD, Setting, api, api_with};

const OTHER: &str = "another long password";

async fn patch<S: App>(api: &Api<S>, name: &str, token: &str, body: Value) -> crate::support::Answer {
    api.call(Method::PATCH, &format!("/api/v1/users/{name}"), token, Some(body)).await
}

async fn delete<S: App>(api: &Api<S>, name: &str, token: &str) -> crate::support::Answer {
    api.call(Method::DELETE, &format!("/api/v1/users/{name}"), token, None).await
}

fn credentials(username: &str, password: &str) -> Value {
    json!({ "username": username, "password": password })
}

#[actix_web::test]
async fn lesson_23_registration_is_off_unless_it_is_on() {
    let api = api().await;
    api.post("/api/v1/auth/register", "", credentials("eva", PASSWORD)).await.refused(1007, 403);
    let api = api_with(Setting { register_enabled: true, ..Setting::default() }).await;
    let answer = api.post("/api/v1/auth/register", "nonsense", credentials("Eva", PASSWORD)).await;
    assert_eq!(answer.status.as_u16(), 201);
    let token = answer.data();
    assert_eq!(
        (token["user"]["username"].as_str(), token["user"]["role"].as_str()),
        (Some("Eva"), Some("user"))
    );
    assert_eq!(token["user"]["must_change_password"], false);
    assert_eq!(token["token_type"], "Bearer");
    api.add(token["access_token"].as_str().unwrap(), json!({ "text": "x" })).await;
    api.post("/api/v1/auth/register", "", credentials("EVA", OTHER)).await.refused(1003, 409);
    for (name, password) in [("ev", PASSWORD), ("e v a", PASSWORD), ("adam", "short"), ("adam", "")] {
        api.post("/api/v1/auth/register", "", credentials(name, password)).await.refused(1001, 400);
    }
    let more = json!({ "username": "adam", "password": PASSWORD, "role": "admin" });
    api.post("/api/v1/auth/register", "", more).await.refused(1001, 400);
}

#[actix_web::test]
async fn accounts_are_made_listed_changed_and_deleted() {
    let api = api().await;
    let admin = api.admin().await;
    let body = json!({ "username": "Eva@example.org", "password": PASSWORD });
    let made = api.post("/api/v1/users", &admin, body.clone()).await;
    assert_eq!(made.status.as_u16(), 201);
    let made = made.data();
    let keys: Vec<_> = made.as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["created_at", "disabled", "must_change_password", "role", "username"]);
    assert_eq!((made["role"].as_str(), made["must_change_password"].as_bool()), (Some("user"), Some(true)));
    api.post("/api/v1/users", &admin, body).await.refused(1003, 409);
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
        api.call(Method::GET, &path, &admin, None).await.refused(1001, 400);
    }
    let changed =
        patch(&api, "EVA%40example.org", &admin, json!({ "role": "admin", "disabled": true })).await.data();
    assert_eq!((changed["role"].as_str(), changed["disabled"].as_bool()), (Some("admin"), Some(true)));
    let same = patch(&api, "eva@example.org", &admin, json!({ "role": null })).await.data();
    assert_eq!(same, changed);
    let gone = delete(&api, "eva@example.org", &admin).await.data();
    assert_eq!(gone, json!({ "username": "eva@example.org", "deleted": true }));
    for answer in [
        delete(&api, "eva@example.org", &admin).await,
        delete(&api, "a%20b", &admin).await,
        patch(&api, "nobody", &admin, json!({ "disabled": true })).await,
        api.post("/api/v1/users/nobody/password", &admin, json!({ "new_password": PASSWORD })).await,
    ] {
        answer.refused(1004, 404);
    }
}

#[actix_web::test]
async fn what_is_wrong_is_refused_and_named() {
    let api = api().await;
    let admin = api.admin().await;
    api.user("eva").await;
    for (path, method, body, named) in [
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
        let message = api.call(method, &path, &admin, Some(body)).await.refused(1001, 400);
        assert!(message.contains(named), "{message}");
    }
}

#[actix_web::test]
async fn lesson_24_disabling_resetting_and_deleting_act_at_once() {
    let api = api().await;
    let admin = api.admin().await;
    let session = api.user("eva").await;
    let key = api.key(&session).await;
    let me = async |token: &str| api.call(Method::GET, "/api/v1/auth/me", token, None).await;
    assert!(me(&session).await.status.is_success() && me(&key).await.status.is_success());
    assert_eq!(patch(&api, "eva", &admin, json!({ "disabled": true })).await.data()["disabled"], true);
    me(&session).await.refused(1005, 401);
    me(&key).await.refused(1005, 401);
    api.post("/api/v1/auth/login", "", credentials("eva", PASSWORD)).await.refused(1005, 401);
    patch(&api, "eva", &admin, json!({ "disabled": false })).await.data();
    me(&session).await.refused(1005, 401);
    assert!(me(&key).await.status.is_success(), "keys are refused while it lasts, no longer");
    let session = api.login("eva").await;
    // A role is what it is at every request.
    api.call(Method::GET, "/api/v1/users", &session, None).await.refused(1006, 403);
    patch(&api, "eva", &admin, json!({ "role": "admin" })).await.data();
    assert!(api.call(Method::GET, "/api/v1/users", &session, None).await.status.is_success());
    patch(&api, "eva", &admin, json!({ "role": "user" })).await.data();
    api.call(Method::GET, "/api/v1/users", &key, None).await.refused(1006, 403);
    let reset = json!({ "new_password": OTHER });
    let user = api.post("/api/v1/users/eva/password", &admin, reset).await.data();
    assert_eq!(user["must_change_password"], true);
    me(&session).await.refused(1005, 401);
    me(&key).await.refused(1005, 401);
    let token = api.post("/api/v1/auth/login", "", credentials("eva", OTHER)).await.data();
    let session = token["access_token"].as_str().unwrap();
    api.post("/api/v1/documents", session, json!({ "text": "x" })).await.refused(1008, 403);
    delete(&api, "eva", &admin).await.data();
    me(session).await.refused(1005, 401);
    api.user("eva").await;
    me(session).await.refused(1005, 401);
    me(&key).await.refused(1005, 401);
}

#[actix_web::test]
async fn nobody_is_locked_out_of_administration() {
    let api = api().await;
    let admin = api.admin().await;
    for body in [json!({ "disabled": true }), json!({ "role": "user" })] {
        patch(&api, "Admin", &admin, body).await.refused(1006, 403);
    }
    delete(&api, "ADMIN", &admin).await.refused(1006, 403);
    patch(&api, "admin", &admin, json!({ "role": "admin", "disabled": false })).await.data();
    // Two who demote each other at once leave one.
    let body =
        json!({ "username": "eva", "password": PASSWORD, "role": "admin", "must_change_password": false });
    api.post("/api/v1/users", &admin, body).await.data();
    let eva = api.login("eva").await;
    let (one, other) =
        tokio::join!(patch(&api, "eva", &admin, json!({ "role": "user" })), delete(&api, "admin", &eva),);
    assert_eq!(u8::from(one.status.is_success()) + u8::from(other.status.is_success()), 1);
}

#[actix_web::test]
async fn lesson_32_too_many_failed_logins() {
    let api = api_with(Setting { trusted_proxies: &["10.0.0.0/8"], ..Setting::default() }).await;
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
            login(name, OTHER, proxy, "192.0.2.1").await.refused(1005, 401);
        }
        let refused = login(name, PASSWORD, proxy, "192.0.2.2").await;
        refused.refused(1009, 429);
        let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=900).contains(&seconds), "{seconds}");
    }
    // A success clears the account's count.
    for _ in 0..9 {
        login("admin", OTHER, proxy, "192.0.2.1").await.refused(1005, 401);
    }
    assert!(login("ADMIN", PASSWORD, proxy, "192.0.2.1").await.status.is_success());
    login("admin", OTHER, proxy, "192.0.2.1").await.refused(1005, 401);
    assert!(login("admin", PASSWORD, proxy, "192.0.2.1").await.status.is_success());
    // Thirty failed from that address so far; its count goes on.
    for n in 0..70 {
        login(&format!("user-{n}"), OTHER, proxy, "192.0.2.1").await.refused(1005, 401);
    }
    login("admin", PASSWORD, proxy, "192.0.2.1").await.refused(1009, 429);
    assert!(login("admin", PASSWORD, proxy, "192.0.2.3").await.status.is_success(), "others go on");
    // Whoever is no trusted proxy is believed nothing.
    assert!(login("admin", PASSWORD, "198.51.100.7:1", "192.0.2.1").await.status.is_success());
}

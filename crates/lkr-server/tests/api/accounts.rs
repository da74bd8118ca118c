//! Login, logout, the current account and its password.

use serde_json::json;

use crate::support::{PASSWORD, TestOptions, api, api_with};

const OTHER: &str = "another long password";

#[actix_web::test]
async fn login_returns_a_token_and_its_account() {
    let api = api().await;
    let body = json!({ "username": "Admin", "password": PASSWORD });
    let token = api.post("/api/v1/auth/login", "", body).await.data();
    assert_eq!((token["token_type"].as_str(), token["expires_in"].as_u64()), (Some("Bearer"), Some(43_200)));
    let keys: Vec<_> = token["user"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["created_at", "disabled", "must_change_password", "role", "username"]);
    let user = &token["user"];
    assert_eq!((user["username"].as_str(), user["role"].as_str()), (Some("admin"), Some("admin")));
    assert!(user["created_at"].as_str().unwrap().ends_with('Z'));
    let access = token["access_token"].as_str().unwrap();
    assert_eq!(api.call("GET".parse().unwrap(), "/api/v1/auth/me", access, None).await.data(), *user);
}

#[actix_web::test]
async fn lesson_32_login_errors_do_not_reveal_whether_the_account_exists() {
    let api = api().await;
    let mut messages = Vec::new();
    for (username, password) in [("admin", OTHER), ("nobody", PASSWORD), ("x", "y"), ("a/b", ""), ("", "")] {
        let response =
            api.post("/api/v1/auth/login", "", json!({ "username": username, "password": password })).await;
        messages.push(response.expect_error(1005, 401));
        assert_eq!(response.header("www-authenticate"), Some("Bearer"));
    }
    messages.dedup();
    assert_eq!(messages.len(), 1);
}

#[actix_web::test]
async fn login_with_a_malformed_body_is_refused_without_repeating_the_password() {
    let api = api().await;
    for body in [
        json!({}),
        json!({ "username": "admin" }),
        json!({ "password": PASSWORD }),
        json!({ "username": null, "password": PASSWORD }),
        json!({ "username": 1, "password": PASSWORD }),
    ] {
        api.post("/api/v1/auth/login", "", body).await.expect_error(1001, 400);
    }
    let body = json!({ "username": "admin", "password": 987_654_321 });
    let message = api.post("/api/v1/auth/login", "", body).await.expect_error(1001, 400);
    assert!(!message.contains("987654321"), "the password is repeated: {message}");
}

#[actix_web::test]
async fn login_with_an_invalid_credential_succeeds() {
    let api = api().await;
    let body = json!({ "username": "admin", "password": PASSWORD });
    assert!(api.post("/api/v1/auth/login", "nonsense", body).await.status.is_success());
}

#[actix_web::test]
async fn logout_ends_only_the_session_of_its_token() {
    let api = api().await;
    let (one, two) = (api.admin().await, api.admin().await);
    let logout = api.call("POST".parse().unwrap(), "/api/v1/auth/logout", &one, None).await;
    assert_eq!(logout.data(), json!({ "logged_out": true }));
    api.call("GET".parse().unwrap(), "/api/v1/auth/me", &one, None).await.expect_error(1005, 401);
    assert!(api.call("GET".parse().unwrap(), "/api/v1/auth/me", &two, None).await.status.is_success());
    assert!(api.post("/api/v1/auth/logout", &two, json!({})).await.status.is_success());
}

#[actix_web::test]
async fn lesson_24_password_change_ends_all_sessions() {
    let api = api().await;
    let (one, two) = (api.admin().await, api.admin().await);
    let body = json!({ "current_password": PASSWORD, "new_password": OTHER });
    let token = api.post("/api/v1/auth/password", &one, body).await.data();
    for old in [one, two] {
        api.call("GET".parse().unwrap(), "/api/v1/auth/me", &old, None).await.expect_error(1005, 401);
    }
    let new = token["access_token"].as_str().unwrap();
    assert!(api.call("GET".parse().unwrap(), "/api/v1/auth/me", new, None).await.status.is_success());
    let old = json!({ "username": "admin", "password": PASSWORD });
    api.post("/api/v1/auth/login", "", old).await.expect_error(1005, 401);
}

#[actix_web::test]
async fn password_change_with_a_wrong_or_invalid_password_is_refused() {
    let api = api().await;
    let admin = api.admin().await;
    for (body, code, status) in [
        (json!({ "current_password": OTHER, "new_password": OTHER }), 1005, 401),
        (json!({ "current_password": PASSWORD, "new_password": "short" }), 1001, 400),
        (json!({ "current_password": PASSWORD, "new_password": "x".repeat(129) }), 1001, 400),
        (json!({ "current_password": PASSWORD }), 1001, 400),
        (json!({ "current_password": PASSWORD, "new_password": null }), 1001, 400),
    ] {
        api.post("/api/v1/auth/password", &admin, body).await.expect_error(code, status);
    }
    assert!(api.call("GET".parse().unwrap(), "/api/v1/auth/me", &admin, None).await.status.is_success());
}

#[actix_web::test]
async fn account_that_must_change_its_password_can_do_nothing_else_first() {
    let api = api_with(TestOptions { must_change_password: true, ..TestOptions::default() }).await;
    let admin = api.admin().await;
    api.post("/api/v1/documents", &admin, json!({ "text": "x" })).await.expect_error(1008, 403);
    let me = api.call("GET".parse().unwrap(), "/api/v1/auth/me", &admin, None).await.data();
    assert_eq!(me["must_change_password"], true);
    let search = api.post("/api/v1/search", &admin, json!({ "query": "x" })).await;
    assert!(search.status.is_success(), "reads that need no login are allowed");
    let body = json!({ "current_password": PASSWORD, "new_password": OTHER });
    let token = api.post("/api/v1/auth/password", &admin, body).await.data();
    assert_eq!(token["user"]["must_change_password"], false);
    api.add(token["access_token"].as_str().unwrap(), json!({ "text": "x" })).await;
}

//! API keys and the audit log.

use actix_web::http::Method;
use serde_json::{Value, json};

use crate::support::{Api, App, PASSWORD, api};

async fn keys<S: App>(api: &Api<S>, token: &str) -> Vec<Value> {
    let page = api.call(Method::GET, "/api/v1/auth/keys?limit=100", token, None).await.data();
    page["items"].as_array().unwrap().clone()
}

#[actix_web::test]
async fn api_key_is_shown_once_and_acts_for_its_account() {
    let api = api().await;
    let eva = api.user("eva").await;
    let created = api.post("/api/v1/auth/keys", &eva, json!({ "name": "nightly", "expires_in": 3600 })).await;
    assert_eq!(created.status.as_u16(), 201);
    let created = created.data();
    let names: Vec<_> = created.as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["created_at", "expires_at", "id", "key", "name", "scope", "spaces"]);
    let key = created["key"].as_str().unwrap();
    assert!(key.starts_with("lkr_"));
    let unlimited = api.post("/api/v1/auth/keys", &eva, json!({ "name": "x" })).await.data();
    assert_eq!(unlimited["expires_at"], Value::Null);
    let listed = keys(&api, key).await;
    assert_eq!(listed.len(), 2);
    assert_eq!((&listed[0]["id"], &listed[1]["id"]), (&unlimited["id"], &created["id"]), "newest first");
    assert!(listed.iter().all(|item| item.get("key").is_none()));
    let me = api.call(Method::GET, "/api/v1/auth/me", key, None).await.data();
    assert_eq!(me["username"], "eva");
    let doc_id = api.add(key, json!({ "text": "by a program" })).await;
    let path = format!("/api/v1/documents/{doc_id}");
    assert_eq!(api.call(Method::DELETE, &path, &eva, None).await.data()["deleted"]["l1"], 1);
    let logout = api.call(Method::POST, "/api/v1/auth/logout", key, None).await.data();
    assert_eq!(logout, json!({ "logged_out": false }), "a key is not a session");
    let path = format!("/api/v1/auth/keys/{}", created["id"].as_str().unwrap());
    let other = api.user("adam").await;
    api.call(Method::DELETE, &path, &other, None).await.expect_error(1004, 404);
    let deleted = api.call(Method::DELETE, &path, &eva, None).await.data();
    assert_eq!(deleted, json!({ "id": created["id"], "deleted": true }));
    api.call(Method::GET, "/api/v1/auth/me", key, None).await.expect_error(1005, 401);
    api.call(Method::DELETE, &path, &eva, None).await.expect_error(1004, 404);
    api.call(Method::DELETE, "/api/v1/auth/keys/x", &eva, None).await.expect_error(1004, 404);
}

#[actix_web::test]
async fn api_key_with_an_invalid_name_or_expiry_is_refused() {
    let api = api().await;
    let eva = api.user("eva").await;
    for body in [
        json!({}),
        json!({ "name": "" }),
        json!({ "name": "  " }),
        json!({ "name": "x".repeat(101) }),
        json!({ "name": "x", "expires_in": 0 }),
        json!({ "name": "x", "expires_in": -1 }),
        json!({ "name": "x", "expires_in": 1e30 }),
        json!({ "name": "x", "expires_in": u64::MAX }),
        json!({ "name": "x", "more": 1 }),
    ] {
        api.post("/api/v1/auth/keys", &eva, body).await.expect_error(1001, 400);
    }
    assert!(keys(&api, &eva).await.is_empty());
}

#[actix_web::test]
async fn password_change_keeps_api_keys() {
    let api = api().await;
    let eva = api.user("eva").await;
    let key = api.key(&eva).await;
    let body = json!({ "current_password": PASSWORD, "new_password": "another long password" });
    api.post("/api/v1/auth/password", &key, body).await.data();
    api.call(Method::GET, "/api/v1/auth/me", &eva, None).await.expect_error(1005, 401);
    assert!(api.call(Method::GET, "/api/v1/auth/me", &key, None).await.status.is_success());
}

#[actix_web::test]
async fn each_change_is_logged_once_with_actor_and_request_id() {
    let api = api().await;
    let admin = api.admin().await;
    let before = api.call(Method::GET, "/api/v1/audit?limit=100", &admin, None).await.data();
    let before = before["items"].as_array().unwrap().len();
    let request = |method: Method, path: &str, body: Value| {
        actix_web::test::TestRequest::with_uri(&format!("/api/v1/{path}"))
            .method(method)
            .insert_header(("authorization", format!("Bearer {admin}")))
            .insert_header(("x-request-id", "request-7"))
            .set_json(body)
    };
    let doc_id = api.add(&admin, json!({ "text": "x" })).await;
    let document = format!("documents/{doc_id}");
    let mut key_id = String::new();
    for (method, path, body) in [
        (Method::POST, "users", json!({ "username": "eva", "password": PASSWORD })),
        (Method::PATCH, "users/eva", json!({ "role": "admin" })),
        (Method::PATCH, "users/eva", json!({ "role": "admin" })),
        (Method::POST, "users/eva/password", json!({ "new_password": PASSWORD })),
        (Method::DELETE, "users/eva", json!({})),
        (Method::POST, "auth/keys", json!({ "name": "k" })),
        (Method::PUT, "settings", json!({ "dedup": { "simhash_threshold": 4 } })),
        (Method::PUT, "settings", json!({ "dedup": { "simhash_threshold": 99 } })),
        (Method::POST, "settings/reset", json!({})),
        (Method::PATCH, &document, json!({ "title": "T" })),
        (Method::DELETE, &document, json!({})),
        (Method::DELETE, &document, json!({})),
    ] {
        let response = api.send(request(method, path, body)).await;
        if path == "auth/keys" {
            key_id = response.data()["id"].as_str().unwrap().to_owned();
        }
    }
    api.send(request(Method::DELETE, &format!("auth/keys/{key_id}"), json!({}))).await.data();
    let page = api.call(Method::GET, "/api/v1/audit?limit=100", &admin, None).await.data();
    let items = page["items"].as_array().unwrap();
    let new = &items[..items.len() - before];
    let seen: Vec<_> =
        new.iter().rev().map(|e| (e["action"].as_str().unwrap(), e["target"].as_str().unwrap())).collect();
    let expected = [
        ("account.create", "eva"),
        ("account.change", "eva"),
        ("account.password", "eva"),
        ("account.delete", "eva"),
        ("key.create", &*key_id),
        ("settings.change", "settings"),
        ("settings.reset", "settings"),
        ("document.change", &*doc_id),
        ("document.delete", &*doc_id),
        ("key.delete", &*key_id),
    ];
    assert_eq!(seen, expected, "a request that changed nothing is not logged");
    for entry in new {
        let keys: Vec<_> = entry.as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, ["action", "actor", "at", "detail", "request_id", "target"]);
        assert_eq!(
            (entry["actor"].as_str(), entry["request_id"].as_str()),
            (Some("admin"), Some("request-7"))
        );
    }
    let changed = |path: &str| json!({ "changed": [path] });
    assert_eq!(new[4]["detail"], changed("dedup.simhash_threshold"), "{new:?}");
    assert_eq!(new[2]["detail"], changed("title"));
    for (query, count) in [
        ("actor=ADMIN&limit=100", items.len() - before),
        ("actor=eva", 0),
        ("action=settings.change", 1),
        ("actor=admin&action=document.delete", 1),
    ] {
        let page = api.call(Method::GET, &format!("/api/v1/audit?{query}"), &admin, None).await.data();
        let found: Vec<_> = page["items"].as_array().unwrap().iter().filter(|e| new.contains(e)).collect();
        assert_eq!(found.len(), count, "{query}");
    }
    for query in ["action=nonsense", "limit=0", "offset=x", "more=1"] {
        api.call(Method::GET, &format!("/api/v1/audit?{query}"), &admin, None).await.expect_error(1001, 400);
    }
}

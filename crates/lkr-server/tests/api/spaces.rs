//! Spaces, their members, groups and restricted API keys.

use actix_web::http::Method;
use lkr_auth::Role;
use serde_json::{Value, json};

use crate::support::{Api, App, TestOptions, TestResponse, api, api_with};

async fn get<S: App>(api: &Api<S>, path: &str, token: &str) -> TestResponse {
    api.call(Method::GET, &format!("/api/v1{path}"), token, None).await
}

async fn post<S: App>(api: &Api<S>, path: &str, token: &str, body: Value) -> TestResponse {
    api.post(&format!("/api/v1{path}"), token, body).await
}

async fn patch<S: App>(api: &Api<S>, path: &str, token: &str, body: Value) -> TestResponse {
    api.call(Method::PATCH, &format!("/api/v1{path}"), token, Some(body)).await
}

async fn put<S: App>(api: &Api<S>, path: &str, token: &str, body: Value) -> TestResponse {
    api.call(Method::PUT, &format!("/api/v1{path}"), token, Some(body)).await
}

async fn delete<S: App>(api: &Api<S>, path: &str, token: &str) -> TestResponse {
    api.call(Method::DELETE, &format!("/api/v1{path}"), token, None).await
}

/// The values of a key in the items of a listing.
fn listed(response: &TestResponse, key: &str) -> Vec<String> {
    let data = response.data();
    let items = data["items"].as_array().unwrap();
    items.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

#[actix_web::test]
async fn default_space_is_always_there_and_cannot_be_deleted() {
    let api = api().await;
    let (admin, eva) = (api.admin().await, api.user("eva").await);
    api.add(&eva, json!({ "text": "a document" })).await;
    let space = get(&api, "/spaces/default", "").await.data();
    let keys: Vec<_> = space.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "created_at",
        "created_by",
        "description",
        "documents",
        "read",
        "space",
        "title",
        "updated_at",
        "write",
        "your_role",
    ];
    assert_eq!(keys, expected);
    assert_eq!((&space["read"], &space["write"]), (&json!("everyone"), &json!("accounts")));
    assert_eq!((&space["documents"], &space["your_role"]), (&json!(1), &Value::Null));
    assert_eq!(get(&api, "/spaces/default", &eva).await.data()["your_role"], "writer");
    assert_eq!(get(&api, "/spaces/default", &admin).await.data()["your_role"], "manager");
    assert_eq!(listed(&get(&api, "/spaces", "").await, "space"), ["default"]);
    delete(&api, "/spaces/default", &admin).await.expect_error(1003, 409);

    let closed = json!({ "read": "members", "write": "members", "title": "Home" });
    let changed = patch(&api, "/spaces/default", &admin, closed).await.data();
    assert_eq!((&changed["read"], &changed["title"]), (&json!("members"), &json!("Home")));
    assert_eq!(listed(&get(&api, "/spaces", &eva).await, "space"), Vec::<String>::new());
    get(&api, "/spaces/default", &eva).await.expect_error(1004, 404);
}

#[actix_web::test]
async fn space_is_created_once_and_its_name_is_never_used_again() {
    let api = api().await;
    let admin = api.admin().await;
    let created = post(&api, "/spaces", &admin, json!({ "space": "legal", "title": "Contracts" })).await;
    assert_eq!(created.status.as_u16(), 201);
    let created = created.data();
    assert_eq!((&created["read"], &created["write"]), (&json!("members"), &json!("members")));
    assert_eq!((&created["created_by"], &created["your_role"]), (&json!("admin"), &json!("manager")));
    assert_eq!(get(&api, "/spaces/legal/members", &admin).await.data()["items"], json!([]));
    post(&api, "/spaces", &admin, json!({ "space": "legal" })).await.expect_error(1003, 409);
    assert_eq!(
        delete(&api, "/spaces/legal", &admin).await.data(),
        json!({ "space": "legal", "deleted": true })
    );
    get(&api, "/spaces/legal", &admin).await.expect_error(1004, 404);
    delete(&api, "/spaces/legal", &admin).await.expect_error(1004, 404);
    post(&api, "/spaces", &admin, json!({ "space": "legal" })).await.expect_error(1003, 409);
}

#[actix_web::test]
async fn invalid_space_is_refused() {
    let api = api().await;
    let admin = api.admin().await;
    for body in [
        json!({}),
        json!({ "space": "Legal" }),
        json!({ "space": "" }),
        json!({ "space": "-a" }),
        json!({ "space": "a", "read": "nobody" }),
        json!({ "space": "a", "write": "accounts" }),
        json!({ "space": "a", "read": "members", "write": "accounts" }),
        json!({ "space": "a", "title": "x".repeat(201) }),
        json!({ "space": "a", "more": 1 }),
    ] {
        post(&api, "/spaces", &admin, body.clone()).await.expect_error(1001, 400);
    }
    for body in [json!({ "read": "members" }), json!({ "more": 1 }), json!({ "space": "b" })] {
        patch(&api, "/spaces/default", &admin, body.clone()).await.expect_error(1001, 400);
    }
    for path in ["/spaces?limit=0", "/spaces?offset=x", "/spaces?more=1", "/groups?limit=101"] {
        get(&api, path, &admin).await.expect_error(1001, 400);
    }
}

#[actix_web::test]
async fn spaces_groups_and_members_are_paged() {
    let api = api().await;
    let admin = api.admin().await;
    for name in ["c", "a", "b"] {
        post(&api, "/spaces", &admin, json!({ "space": name })).await.data();
        post(&api, "/groups", &admin, json!({ "group": name })).await.data();
        api.account(&format!("user-{name}"), Role::User, false).await;
        put(&api, &format!("/groups/a/members/user-{name}"), &admin, json!({})).await;
    }
    for name in ["c", "a", "b"] {
        put(&api, &format!("/groups/a/members/user-{name}"), &admin, json!({})).await.data();
        put(&api, &format!("/spaces/a/members/group:{name}"), &admin, json!({ "role": "reader" }))
            .await
            .data();
    }
    for (path, key, expected) in [
        ("/spaces", "space", vec!["a", "b", "c", "default"]),
        ("/groups", "group", vec!["a", "b", "c"]),
        ("/spaces/a/members", "member", vec!["group:a", "group:b", "group:c"]),
        ("/groups/a/members", "username", vec!["user-a", "user-b", "user-c"]),
    ] {
        let (mut found, mut offset) = (Vec::new(), String::new());
        loop {
            let page = get(&api, &format!("{path}?limit=2{offset}"), &admin).await;
            found.extend(listed(&page, key));
            match page.data()["next_offset"].as_str() {
                Some(next) => offset = format!("&offset={next}"),
                None => break,
            }
        }
        assert_eq!(found, expected, "{path}");
    }
}

#[actix_web::test]
async fn lesson_36_space_exists_only_for_its_members() {
    let api = api().await;
    let (admin, eva, bob) = (api.admin().await, api.user("eva").await, api.user("bob").await);
    post(&api, "/spaces", &admin, json!({ "space": "legal" })).await.data();
    for token in ["", &eva, &bob] {
        get(&api, "/spaces/legal", token).await.expect_error(1004, 404);
        assert_eq!(listed(&get(&api, "/spaces", token).await, "space"), ["default"]);
    }
    // What does not exist and what may not be read are answered alike.
    let messages = [
        get(&api, "/spaces/legal", &eva).await.expect_error(1004, 404),
        get(&api, "/spaces/nope", &eva).await.expect_error(1004, 404),
        patch(&api, "/spaces/legal", &eva, json!({})).await.expect_error(1004, 404),
        delete(&api, "/spaces/legal", &eva).await.expect_error(1004, 404),
    ];
    assert!(messages.iter().all(|message| *message == messages[0]), "{messages:?}");

    let member =
        put(&api, "/spaces/legal/members/user:EVA", &admin, json!({ "role": "reader" })).await.data();
    assert_eq!(member, json!({ "member": "user:eva", "role": "reader" }));
    assert_eq!(get(&api, "/spaces/legal", &eva).await.data()["your_role"], "reader");
    patch(&api, "/spaces/legal", &eva, json!({ "title": "x" })).await.expect_error(1006, 403);
    get(&api, "/spaces/legal/members", &eva).await.expect_error(1006, 403);
    get(&api, "/groups", &eva).await.expect_error(1006, 403);

    put(&api, "/spaces/legal/members/user%3Aeva", &admin, json!({ "role": "manager" })).await.data();
    patch(&api, "/spaces/legal", &eva, json!({ "title": "x" })).await.data();
    assert_eq!(listed(&get(&api, "/spaces/legal/members", &eva).await, "member"), ["user:eva"]);
    get(&api, "/groups", &eva).await.data();
    put(&api, "/spaces/legal/members/user:bob", &eva, json!({ "role": "writer" })).await.data();
    assert_eq!(get(&api, "/spaces/legal", &bob).await.data()["your_role"], "writer");

    // A right that is taken away is gone at the next request.
    let removed = delete(&api, "/spaces/legal/members/user:bob", &eva).await.data();
    assert_eq!(removed, json!({ "member": "user:bob", "deleted": true }));
    get(&api, "/spaces/legal", &bob).await.expect_error(1004, 404);
    assert_eq!(delete(&api, "/spaces/legal/members/user:bob", &eva).await.data()["deleted"], false);
    assert_eq!(delete(&api, "/spaces/legal/members/group:nope", &eva).await.data()["deleted"], false);
    for member in ["user:nobody", "group:nope", "eva", "other:eva", "user:"] {
        let body = json!({ "role": "reader" });
        put(&api, &format!("/spaces/legal/members/{member}"), &eva, body).await.expect_error(1001, 400);
    }
    put(&api, "/spaces/legal/members/user:bob", &eva, json!({ "role": "owner" }))
        .await
        .expect_error(1001, 400);
}

#[actix_web::test]
async fn lesson_36_later_account_or_group_of_the_same_name_has_no_rights() {
    let api = api().await;
    let (admin, eva) = (api.admin().await, api.user("eva").await);
    post(&api, "/spaces", &admin, json!({ "space": "legal" })).await.data();
    let group = post(&api, "/groups", &admin, json!({ "group": "lawyers", "title": "Lawyers" })).await;
    assert_eq!(group.status.as_u16(), 201);
    assert_eq!((&group.data()["group"], &group.data()["title"]), (&json!("lawyers"), &json!("Lawyers")));
    post(&api, "/groups", &admin, json!({ "group": "lawyers" })).await.expect_error(1003, 409);
    put(&api, "/spaces/legal/members/group:lawyers", &admin, json!({ "role": "writer" })).await.data();
    api.call(Method::PUT, "/api/v1/groups/lawyers/members/eva", &admin, None).await.data();
    assert_eq!(get(&api, "/spaces/legal", &eva).await.data()["your_role"], "writer");

    delete(&api, "/groups/lawyers", &admin).await.data();
    get(&api, "/spaces/legal", &eva).await.expect_error(1004, 404);
    post(&api, "/groups", &admin, json!({ "group": "lawyers" })).await.data();
    api.call(Method::PUT, "/api/v1/groups/lawyers/members/eva", &admin, None).await.data();
    get(&api, "/spaces/legal", &eva).await.expect_error(1004, 404);
    assert_eq!(get(&api, "/spaces/legal/members", &admin).await.data()["items"], json!([]));

    put(&api, "/spaces/legal/members/user:eva", &admin, json!({ "role": "writer" })).await.data();
    delete(&api, "/users/eva", &admin).await.data();
    let again = api.user("eva").await;
    get(&api, "/spaces/legal", &again).await.expect_error(1004, 404);
    assert_eq!(get(&api, "/spaces/legal/members", &admin).await.data()["items"], json!([]));
    assert_eq!(get(&api, "/groups/lawyers/members", &admin).await.data()["items"], json!([]));
    put(&api, "/groups/lawyers/members/nobody", &admin, json!({})).await.expect_error(1001, 400);
    put(&api, "/groups/nope/members/eva", &admin, json!({})).await.expect_error(1004, 404);
    get(&api, "/groups/nope/members", &admin).await.expect_error(1004, 404);
    delete(&api, "/groups/nope", &admin).await.expect_error(1004, 404);
    assert_eq!(delete(&api, "/groups/lawyers/members/eva", &admin).await.data()["deleted"], false);
}

#[actix_web::test]
async fn lesson_36_restricted_key_sees_and_does_no_more_than_its_scope() {
    let api = api().await;
    let admin = api.admin().await;
    for space in ["legal", "sales"] {
        post(&api, "/spaces", &admin, json!({ "space": space })).await.data();
    }
    let body = json!({ "name": "k", "spaces": ["legal"], "scope": "read" });
    let created = post(&api, "/auth/keys", &admin, body).await.data();
    assert_eq!((&created["spaces"], &created["scope"]), (&json!(["legal"]), &json!("read")));
    let key = created["key"].as_str().unwrap();
    let items = get(&api, "/auth/keys", &admin).await.data();
    assert_eq!(
        (&items["items"][0]["spaces"], &items["items"][0]["scope"]),
        (&json!(["legal"]), &json!("read"))
    );
    assert_eq!(listed(&get(&api, "/spaces", key).await, "space"), ["legal"]);
    assert_eq!(get(&api, "/spaces/legal", key).await.data()["your_role"], "reader");
    for space in ["default", "sales"] {
        get(&api, &format!("/spaces/{space}"), key).await.expect_error(1004, 404);
    }
    assert_eq!(get(&api, "/auth/me", key).await.data()["username"], "admin");
    for path in [
        "/users",
        "/auth/keys",
        "/settings",
        "/settings/schema",
        "/spaces/legal/members",
        "/groups",
        "/audit",
        "/webhooks",
        "/backup",
    ] {
        get(&api, path, key).await.expect_error(1006, 403);
    }
    for path in ["/documents", "/spaces", "/auth/keys", "/auth/password", "/eval", "/knowledge/reclassify"] {
        post(&api, path, key, json!({})).await.expect_error(1006, 403);
    }
    delete(&api, "/spaces/legal", &admin).await.data();
    assert_eq!(listed(&get(&api, "/spaces", key).await, "space"), Vec::<String>::new());
}

#[actix_web::test]
async fn key_can_be_restricted_only_to_readable_spaces() {
    let api = api().await;
    let (admin, eva) = (api.admin().await, api.user("eva").await);
    post(&api, "/spaces", &admin, json!({ "space": "legal" })).await.data();
    for space in ["legal", "nope", "No"] {
        let body = json!({ "name": "k", "spaces": ["default", space] });
        let message = post(&api, "/auth/keys", &eva, body).await.expect_error(1004, 404);
        assert!(message.contains(space), "{message}");
    }
    for body in [
        json!({ "name": "k", "spaces": [] }),
        json!({ "name": "k", "spaces": "default" }),
        json!({ "name": "k", "scope": "admin" }),
    ] {
        post(&api, "/auth/keys", &eva, body).await.expect_error(1001, 400);
    }
    let plain = post(&api, "/auth/keys", &eva, json!({ "name": "k" })).await.data();
    assert_eq!((&plain["spaces"], &plain["scope"]), (&Value::Null, &json!("write")));
}

#[actix_web::test]
async fn account_that_must_change_its_password_is_served_like_anybody() {
    let api = api().await;
    let admin = api.admin().await;
    post(&api, "/spaces", &admin, json!({ "space": "legal" })).await.data();
    api.account("flagged", Role::Admin, true).await;
    let flagged = api.login("flagged").await;
    assert_eq!(listed(&get(&api, "/spaces", &flagged).await, "space"), ["default"]);
    get(&api, "/spaces/legal", &flagged).await.expect_error(1004, 404);
    patch(&api, "/spaces/legal", &flagged, json!({})).await.expect_error(1008, 403);
}

#[actix_web::test]
async fn spaces_need_a_login_if_reads_do() {
    let api = api_with(TestOptions { require_login_for_reads: true, ..TestOptions::default() }).await;
    for path in ["/spaces", "/spaces/default", "/spaces/nope"] {
        get(&api, path, "").await.expect_error(1005, 401);
    }
}

#[actix_web::test]
async fn changes_of_spaces_and_groups_are_logged_once() {
    let api = api().await;
    let admin = api.admin().await;
    api.account("eva", Role::User, false).await;
    post(&api, "/spaces", &admin, json!({ "space": "legal" })).await.data();
    for _ in 0..2 {
        patch(&api, "/spaces/legal", &admin, json!({ "title": "T" })).await.data();
    }
    post(&api, "/groups", &admin, json!({ "group": "g" })).await.data();
    for _ in 0..2 {
        put(&api, "/groups/g/members/eva", &admin, json!({})).await.data();
        put(&api, "/spaces/legal/members/group:g", &admin, json!({ "role": "reader" })).await.data();
    }
    delete(&api, "/groups/g/members/eva", &admin).await.data();
    delete(&api, "/groups/g/members/eva", &admin).await.data();
    delete(&api, "/spaces/legal/members/group:g", &admin).await.data();
    put(&api, "/spaces/legal/members/user:EVA", &admin, json!({ "role": "writer" })).await.data();
    let removed = delete(&api, "/spaces/legal/members/user:Eva", &admin).await.data();
    assert_eq!(removed, json!({ "member": "user:eva", "deleted": true }));
    delete(&api, "/groups/g", &admin).await.data();
    delete(&api, "/spaces/legal", &admin).await.data();
    let page = get(&api, "/audit?limit=100", &admin).await.data();
    let mut seen: Vec<_> = page["items"].as_array().unwrap().iter().rev().collect();
    seen.retain(|entry| {
        let action = entry["action"].as_str().unwrap();
        action.starts_with("space.") || action.starts_with("group.")
    });
    let names: Vec<_> =
        seen.iter().map(|e| (e["action"].as_str().unwrap(), e["target"].as_str().unwrap())).collect();
    let expected = [
        ("space.create", "legal"),
        ("space.change", "legal"),
        ("group.create", "g"),
        ("group.member", "g"),
        ("space.member", "legal"),
        ("group.member", "g"),
        ("space.member", "legal"),
        ("space.member", "legal"),
        ("space.member", "legal"),
        ("group.delete", "g"),
        ("space.delete", "legal"),
    ];
    assert_eq!(names, expected, "a request that changed nothing is not logged");
    assert_eq!(seen[4]["detail"], json!({ "member": "group:g", "role": "reader" }));
    assert_eq!(seen[6]["detail"], json!({ "member": "group:g", "role": null }));
    // An account is logged by its own name, whatever the case of the letters in the request.
    assert_eq!(seen[7]["detail"], json!({ "member": "user:eva", "role": "writer" }));
    assert_eq!(seen[8]["detail"], json!({ "member": "user:eva", "role": null }));
}

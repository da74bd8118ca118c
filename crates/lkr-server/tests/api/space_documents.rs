//! Documents, tasks and searches of spaces, as callers with different rights see them.

use actix_web::http::Method;
use lkr::DocId;
use serde_json::{Value, json};

use crate::support::{Api, App, TestResponse, api};

const TIDES: &str = "# Tides\n\nThe moon pulls the sea, and the basalt coast drowns twice a day.\n";

/// The service with the closed spaces `legal` and `secret`, and the accounts rita (reader of legal), wim and wanda
/// (writers of legal), max (manager of legal) and bob (no member).
struct World<S> {
    api: Api<S>,
    admin: String,
    rita: String,
    wim: String,
    wanda: String,
    max: String,
    bob: String,
}

impl<S: App> World<S> {
    async fn call(&self, method: Method, path: &str, token: &str, body: Option<Value>) -> TestResponse {
        self.api.call(method, &format!("/api/v1{path}"), token, body).await
    }

    async fn get(&self, path: &str, token: &str) -> TestResponse {
        self.call(Method::GET, path, token, None).await
    }

    async fn post(&self, path: &str, token: &str, body: Value) -> TestResponse {
        self.call(Method::POST, path, token, Some(body)).await
    }

    async fn patch(&self, path: &str, token: &str, body: Value) -> TestResponse {
        self.call(Method::PATCH, path, token, Some(body)).await
    }

    async fn delete(&self, path: &str, token: &str) -> TestResponse {
        self.call(Method::DELETE, path, token, None).await
    }

    async fn add(&self, token: &str, space: &str, text: &str) -> String {
        self.api.add(token, json!({ "text": text, "space": space })).await
    }

    async fn search(&self, token: &str, query: &str) -> Value {
        self.post("/search", token, json!({ "query": query })).await.data()
    }

    async fn grant(&self, space: &str, member: &str, role: &str) {
        let path = format!("/spaces/{space}/members/user:{member}");
        self.call(Method::PUT, &path, &self.admin, Some(json!({ "role": role }))).await.data();
    }

    /// The id of the newest task that the caller sees.
    async fn newest_task(&self, token: &str) -> String {
        let tasks = self.get("/documents/tasks?limit=1", token).await.data();
        tasks["items"][0]["task_id"].as_str().unwrap().to_owned()
    }
}

async fn world() -> World<impl App> {
    let api = api().await;
    let admin = api.admin().await;
    let [rita, wim, wanda, max, bob] = [
        api.user("rita").await,
        api.user("wim").await,
        api.user("wanda").await,
        api.user("max").await,
        api.user("bob").await,
    ];
    let world = World { api, admin, rita, wim, wanda, max, bob };
    for space in ["legal", "secret"] {
        world.post("/spaces", &world.admin, json!({ "space": space })).await.data();
    }
    for (member, role) in [("rita", "reader"), ("wim", "writer"), ("wanda", "writer"), ("max", "manager")] {
        world.grant("legal", member, role).await;
    }
    world
}

fn doc_ids(items: &Value) -> Vec<&str> {
    items.as_array().unwrap().iter().map(|item| item["doc_id"].as_str().unwrap()).collect()
}

#[actix_web::test]
async fn unreadable_document_is_answered_as_one_that_does_not_exist() {
    let w = world().await;
    let doc_id = w.add(&w.wim, "legal", TIDES).await;
    let task_id = w.newest_task(&w.wim).await;
    let unknown = "0".repeat(32);
    let detail = w.get(&format!("/documents/{doc_id}"), &w.rita).await.data();
    assert_eq!(detail["l1"]["space"], "legal");
    let message =
        |response: &TestResponse, id: &str| response.json()["message"].as_str().unwrap().replace(id, "ID");
    for token in ["", w.bob.as_str()] {
        for tail in ["", "/chunks", "/text", "/file"] {
            let hidden = w.get(&format!("/documents/{doc_id}{tail}"), token).await;
            hidden.expect_error(1004, 404);
            let absent = w.get(&format!("/documents/{unknown}{tail}"), token).await;
            assert_eq!(message(&hidden, &doc_id), message(&absent, &unknown), "{tail}");
        }
        for tail in ["", "/events"] {
            w.get(&format!("/documents/tasks/{task_id}{tail}"), token).await.expect_error(1004, 404);
        }
        for path in ["/documents?space=legal", "/documents/tasks?space=legal", "/knowledge/stats?space=legal"]
        {
            assert!(w.get(path, token).await.expect_error(1004, 404).contains("legal"), "{path}");
        }
        let named = json!({ "query": "basalt", "spaces": ["default", "legal"] });
        assert!(w.post("/search", token, named).await.expect_error(1004, 404).contains("legal"));
        assert_eq!(w.get("/documents", token).await.data()["items"], json!([]));
        assert_eq!(w.get("/documents/tasks", token).await.data()["items"], json!([]));
        assert_eq!(w.get("/knowledge/stats", token).await.data()["documents_total"], json!(0));
        assert_eq!(w.search(token, "basalt").await["results"], json!([]));
        let filtered = json!({ "query": "basalt", "filters": { "doc_ids": [doc_id] } });
        assert_eq!(w.post("/search", token, filtered).await.data()["results"], json!([]));
        let of_space = json!({ "query": "basalt", "where": { "field": "space", "eq": "legal" } });
        assert_eq!(w.post("/search", token, of_space).await.data()["results"], json!([]));
    }
    let path = format!("/documents/{doc_id}");
    w.patch(&path, &w.bob, json!({ "title": "Mine" })).await.expect_error(1004, 404);
    w.call(Method::PUT, &path, &w.bob, Some(json!({ "text": "Mine." }))).await.expect_error(1004, 404);
    let deleted = w.delete(&path, &w.bob).await.data();
    assert_eq!(
        deleted["deleted"],
        w.delete(&format!("/documents/{unknown}"), &w.bob).await.data()["deleted"]
    );
    for action in ["cancel", "retry"] {
        w.post(&format!("/documents/tasks/{task_id}/{action}"), &w.bob, json!({}))
            .await
            .expect_error(1004, 404);
    }
    w.delete(&format!("/documents/tasks/{task_id}"), &w.bob).await.expect_error(1004, 404);
    // Nothing has happened to it.
    assert_eq!(doc_ids(&w.get("/documents?space=legal", &w.rita).await.data()["items"]), [doc_id.as_str()]);
    assert_eq!(w.search(&w.rita, "basalt").await["results"][0]["space"], "legal");
}

#[actix_web::test]
async fn roles_decide_who_adds_changes_and_deletes() {
    let w = world().await;
    let input = |space: &str| json!({ "text": TIDES, "space": space, "force": true });
    w.post("/documents", &w.rita, input("legal")).await.expect_error(1006, 403);
    for unreadable in ["secret", "nowhere"] {
        w.post("/documents", &w.wim, input(unreadable)).await.expect_error(1004, 404);
    }
    let batch = json!({ "documents": [input("legal"), input("secret")] });
    let refused = w.post("/documents/batch", &w.wim, batch).await;
    assert_eq!(refused.json()["code"], 1004, "{}", refused.json());
    let doc_id = w.add(&w.wim, "legal", TIDES).await;
    let path = format!("/documents/{doc_id}");
    let title = |title: &str| json!({ "title": title });
    for other in [&w.rita, &w.wanda] {
        w.patch(&path, other, title("Mine")).await.expect_error(1006, 403);
        w.delete(&path, other).await.expect_error(1006, 403);
    }
    for allowed in [&w.wim, &w.max, &w.admin] {
        assert_eq!(w.patch(&path, allowed, title("T")).await.data()["title"], "T");
    }
    // A creator who is no writer any more may not change it.
    w.grant("legal", "wim", "reader").await;
    w.patch(&path, &w.wim, title("Mine")).await.expect_error(1006, 403);
    w.delete("/spaces/legal/members/user:wim", &w.admin).await.data();
    w.patch(&path, &w.wim, title("Mine")).await.expect_error(1004, 404);
    // Its task is still shown to its creator.
    let tasks = w.get("/documents/tasks", &w.wim).await.data();
    assert_eq!(doc_ids(&tasks["items"]), [doc_id.as_str()]);
    assert_eq!(w.delete(&path, &w.max).await.data()["deleted"]["l1"], 1);
}

#[actix_web::test]
async fn creator_that_lost_the_role_of_a_writer_is_told_what_is_missing() {
    let w = world().await;
    let doc_id = w.add(&w.wim, "legal", TIDES).await;
    let task_id = w.newest_task(&w.wim).await;
    w.grant("legal", "wim", "reader").await;
    let (document, task) = (format!("/documents/{doc_id}"), format!("/documents/tasks/{task_id}"));
    for path in [&document, &task] {
        let refused = w.delete(path, &w.wim).await.expect_error(1006, 403);
        assert_eq!(refused, "this needs a writer of the space legal");
        let refused = w.delete(path, &w.wanda).await.expect_error(1006, 403);
        assert!(refused.ends_with("belongs to another account"), "{refused}");
    }
}

#[actix_web::test]
async fn document_moves_with_the_rights_of_both_spaces() {
    let w = world().await;
    let doc_id = w.add(&w.wim, "legal", TIDES).await;
    let path = format!("/documents/{doc_id}");
    let to = |space: &str| json!({ "space": space });
    w.patch(&path, &w.wim, to("secret")).await.expect_error(1004, 404);
    w.patch(&path, &w.wanda, to("default")).await.expect_error(1006, 403);
    // A manager of the first space alone moves no document of others.
    w.patch(&path, &w.max, to("default")).await.expect_error(1006, 403);
    assert_eq!(w.patch(&path, &w.wim, to("default")).await.data()["space"], "default");
    let found = w.search("", "basalt").await;
    assert_eq!(
        (&found["results"][0]["doc_id"], &found["results"][0]["space"]),
        (&json!(doc_id), &json!("default"))
    );
    assert_eq!(w.get("/documents?space=legal", &w.rita).await.data()["items"], json!([]));
    w.patch(&path, &w.admin, to("secret")).await.data();
    w.get(&path, &w.wim).await.expect_error(1004, 404);
    assert_eq!(w.search("", "basalt").await["results"], json!([]));
    let counts = |token: String| {
        let w = &w;
        async move { w.get("/knowledge/stats", &token).await.data()["documents_total"].clone() }
    };
    assert_eq!((counts(w.admin.clone()).await, counts(w.wim.clone()).await), (json!(1), json!(0)));
}

#[actix_web::test]
async fn failed_task_of_a_deleted_space_keeps_nothing_and_is_not_retried() {
    let w = world().await;
    w.api.faults.set("vectors", "upsert", false);
    let accepted =
        w.post("/documents", &w.admin, json!({ "text": "basalt", "space": "secret" })).await.data();
    let task_id = accepted["task_id"].as_str().unwrap();
    let task = w.api.ended(&w.admin, task_id).await;
    assert_eq!(task["status"], "failed", "{task}");
    w.api.faults.clear();
    let doc_id: DocId = task["doc_id"].as_str().unwrap().parse().unwrap();
    assert!(w.api.kb.owner(doc_id).await.unwrap().is_some());
    w.delete("/spaces/secret", &w.admin).await.data();
    assert!(w.api.kb.owner(doc_id).await.unwrap().is_none(), "nothing is kept for a retry");
    let path = format!("/documents/tasks/{task_id}/retry");
    let refused = w.call(Method::POST, &path, &w.admin, None).await;
    assert!(refused.expect_error(1003, 409).contains("the space secret was deleted"));
}

#[actix_web::test]
async fn deleting_a_space_with_documents_ends_as_its_task() {
    let w = world().await;
    for text in ["# A\n\nbasalt one\n", "# B\n\nbasalt two\n", "# C\n\nbasalt three\n"] {
        w.add(&w.wim, "legal", text).await;
    }
    let kept = w.add(&w.bob, "default", "# D\n\nbasalt four\n").await;
    w.delete("/spaces/legal", &w.wim).await.expect_error(1006, 403);
    w.delete("/spaces/legal", &w.bob).await.expect_error(1004, 404);
    w.delete("/spaces/legal?documents=keep", &w.max).await.expect_error(1001, 400);
    w.delete("/spaces/legal", &w.max).await.expect_error(1003, 409);
    assert_eq!(w.get("/spaces/legal", &w.max).await.data()["documents"], 3);
    let accepted = w.delete("/spaces/legal?documents=delete", &w.max).await;
    assert_eq!(accepted.status.as_u16(), 202);
    let task_id = accepted.data()["task_id"].as_str().unwrap().to_owned();
    w.get("/spaces/legal", &w.max).await.expect_error(1004, 404);
    assert_eq!(doc_ids(&w.search(&w.wim, "basalt").await["results"]), [kept.as_str()]);
    let input = json!({ "text": "more", "space": "legal" });
    let code = w.post("/documents", &w.wim, input.clone()).await.json()["code"].clone();
    assert!(code == 1003 || code == 1004, "{code}");
    w.post("/documents", &w.bob, input.clone()).await.expect_error(1004, 404);
    let task = w.api.ended(&w.max, &task_id).await;
    assert_eq!((&task["kind"], &task["status"]), (&json!("delete_space"), &json!("done")), "{task}");
    assert_eq!((&task["result"]["deleted"]["l1"], &task["doc_id"]), (&json!(3), &Value::Null), "{task}");
    w.get(&format!("/documents/tasks/{task_id}"), &w.bob).await.expect_error(1004, 404);
    w.post("/documents", &w.wim, input).await.expect_error(1004, 404);
    w.post("/spaces", &w.admin, json!({ "space": "legal" })).await.expect_error(1003, 409);
    assert_eq!(doc_ids(&w.get("/documents", &w.admin).await.data()["items"]), [kept.as_str()]);
}

#[actix_web::test]
async fn bulk_delete_looks_rights_up_again() {
    let w = world().await;
    let own = w.add(&w.wim, "legal", "# A\n\nbasalt one\n").await;
    let of_wanda = w.add(&w.wanda, "legal", "# B\n\nbasalt two\n").await;
    let secret = w.add(&w.admin, "secret", "# C\n\nbasalt three\n").await;
    let all = json!({ "field": "title", "exists": true });
    let dry = |token: String| {
        let (w, all) = (&w, all.clone());
        async move {
            w.post("/documents/delete", &token, json!({ "where": all })).await.data()["documents"].clone()
        }
    };
    let counts = (dry(w.wim.clone()).await, dry(w.max.clone()).await, dry(w.bob.clone()).await);
    assert_eq!(counts, (json!(1), json!(2), json!(0)));
    w.post("/documents/delete", "", json!({ "where": all })).await.expect_error(1005, 401);
    let body = json!({ "where": all, "dry_run": false });
    let accepted = w.post("/documents/delete", &w.wim, body.clone()).await;
    assert_eq!(accepted.status.as_u16(), 202);
    let task = w.api.ended(&w.wim, accepted.data()["task_id"].as_str().unwrap()).await;
    assert_eq!(
        (&task["kind"], &task["result"]["deleted"]["l1"]),
        (&json!("delete_where"), &json!(1)),
        "{task}"
    );
    let left = w.get("/documents", &w.admin).await.data();
    let mut left = doc_ids(&left["items"]);
    left.sort_unstable();
    let mut expected = [of_wanda.as_str(), secret.as_str()];
    expected.sort_unstable();
    assert_eq!(left, expected);
    let audit = w.get("/audit?limit=100", &w.admin).await.data().to_string();
    assert!(audit.contains(&own), "each deleted document has its audit entry");
    // A key that is limited to a space deletes what its owner added, even if the owner is an admin.
    let key = json!({ "name": "k", "spaces": ["legal"] });
    let key = w.api.key_with(&w.admin, key).await;
    let accepted = w.post("/documents/delete", &key, body).await.data();
    let task_id = accepted["task_id"].as_str().unwrap();
    w.api.ended(&w.admin, task_id).await;
    assert_eq!(w.get("/documents", &w.admin).await.data()["items"].as_array().unwrap().len(), 2);
    // It sees the task that it asked for, and no other of its owner's tasks about several documents.
    let of_owner = w.post(
        "/documents/delete",
        &w.admin,
        json!({ "where": { "field": "title", "eq": "none" }, "dry_run": false }),
    );
    let of_owner = of_owner.await.data()["task_id"].as_str().unwrap().to_owned();
    assert_eq!(w.api.ended(&key, task_id).await["status"], "done");
    w.get(&format!("/documents/tasks/{of_owner}"), &key).await.expect_error(1004, 404);
    let seen = w.get("/documents/tasks?limit=100", &key).await.data();
    let of_kind = |task: &&Value| task["kind"] == "delete_where";
    let seen: Vec<&Value> = seen["items"].as_array().unwrap().iter().filter(of_kind).collect();
    assert_eq!(seen.iter().map(|task| &task["task_id"]).collect::<Vec<_>>(), [task_id]);
    let other = w.api.key_with(&w.admin, json!({ "name": "other", "spaces": ["legal"] })).await;
    w.get(&format!("/documents/tasks/{task_id}"), &other).await.expect_error(1004, 404);
}

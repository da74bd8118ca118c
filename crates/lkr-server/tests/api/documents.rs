//! Documents and their tasks.

use actix_web::http::Method;
use serde_json::{Value, json};

use crate::support::{Api, App, TEXT, TestResponse, api};

const NOBODY: &str = "00000000000000000000000000000000";

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn cut(text: &str, item: &Value) -> String {
    let (start, end) = (item["char_start"].as_u64().unwrap(), item["char_end"].as_u64().unwrap());
    text.chars().skip(start as usize).take((end - start) as usize).collect()
}

async fn delete<S: App>(api: &Api<S>, token: &str, doc_id: &str) -> TestResponse {
    api.call(Method::DELETE, &format!("/api/v1/documents/{doc_id}"), token, None).await
}

#[actix_web::test]
async fn document_is_accepted_ingested_read_and_deleted() {
    let api = api().await;
    let admin = api.admin().await;
    let body = json!({ "text": TEXT, "source": "test:moons", "metadata": { "kind": "moons" } });
    let accepted = api.post("/api/v1/documents", &admin, body).await;
    assert_eq!(accepted.status.as_u16(), 202);
    let accepted = accepted.data();
    assert_eq!((keys(&accepted), accepted["status"].as_str()), (vec!["status", "task_id"], Some("pending")));

    let task = api.ended("", accepted["task_id"].as_str().unwrap()).await;
    assert_eq!(
        keys(&task),
        [
            "attempts",
            "created_at",
            "created_by",
            "doc_id",
            "kind",
            "progress",
            "result",
            "space",
            "stage",
            "status",
            "task_id",
            "title",
            "updated_at"
        ]
    );
    assert_eq!((task["status"].as_str(), task["kind"].as_str()), (Some("done"), Some("ingest")));
    assert_eq!((task["created_by"].as_str(), task["attempts"].as_u64()), (Some("admin"), Some(1)));
    assert_eq!(keys(&task["progress"]), ["done", "total"]);
    let result = &task["result"];
    assert_eq!(
        keys(result),
        [
            "category",
            "counts",
            "doc_id",
            "duplicate_of",
            "elapsed_ms",
            "embedded",
            "language",
            "title",
            "usage",
            "warnings"
        ]
    );
    assert_eq!((result["title"].as_str(), &result["duplicate_of"]), (Some("Moons"), &Value::Null));
    assert_eq!(result["usage"], json!({ "calls": 0, "tokens": 0 }));

    let doc_id = task["doc_id"].as_str().unwrap();
    let path = format!("/api/v1/documents/{doc_id}");
    let detail = api.get(&path).await.data();
    assert_eq!(keys(&detail), ["chunk_count", "file", "l1", "l2", "l3", "page_images", "pages"]);
    assert_eq!(
        keys(&detail["l1"]),
        [
            "category",
            "char_count",
            "chunk_count",
            "content_sha256",
            "created_at",
            "created_by",
            "doc_id",
            "keywords",
            "language",
            "metadata",
            "source",
            "space",
            "summary",
            "title",
            "updated_at"
        ]
    );
    assert_eq!(detail["l1"]["metadata"], json!({ "kind": "moons" }));
    assert_eq!(
        keys(&detail["l2"][0]),
        [
            "char_end",
            "char_start",
            "doc_id",
            "layer",
            "node_id",
            "ordinal",
            "page_end",
            "page_start",
            "parent_id",
            "path",
            "summary",
            "title"
        ]
    );
    assert_eq!(
        (detail["l2"][0]["layer"].as_str(), detail["l3"][0]["layer"].as_str()),
        (Some("l2"), Some("l3"))
    );
    assert_eq!(detail["l3"][0]["parent_id"], detail["l2"][0]["node_id"]);

    let text = api.get(&format!("{path}/text")).await.data();
    assert_eq!(text, json!({ "doc_id": doc_id, "text": TEXT }));
    let chunks = api.get(&format!("{path}/chunks")).await.data();
    assert_eq!(chunks["next_offset"], Value::Null);
    let items = chunks["items"].as_array().unwrap();
    assert_eq!(items.len() as u64, detail["chunk_count"].as_u64().unwrap());
    for chunk in items {
        assert_eq!(
            keys(chunk),
            [
                "char_end",
                "char_start",
                "chunk_id",
                "ordinal",
                "page_end",
                "page_start",
                "parent_id",
                "path",
                "text"
            ]
        );
        assert_eq!(cut(TEXT, chunk), chunk["text"].as_str().unwrap());
    }

    let deleted = delete(&api, &admin, doc_id).await.data();
    assert_eq!(keys(&deleted), ["deleted", "deleted_total", "doc_id"]);
    assert_eq!(deleted["deleted"], result["counts"]);
    let sum: u64 = deleted["deleted"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(deleted["deleted_total"].as_u64(), Some(sum));
    for path in [path.clone(), format!("{path}/text"), format!("{path}/chunks")] {
        api.get(&path).await.expect_error(1004, 404);
    }
    assert_eq!(delete(&api, &admin, doc_id).await.data()["deleted_total"], 0);
}

#[actix_web::test]
async fn document_with_invalid_fields_is_refused() {
    let api = api().await;
    let admin = api.admin().await;
    let many: serde_json::Map<_, _> = (0..65).map(|n| (n.to_string(), json!(""))).collect();
    for body in [
        json!({}),
        json!({ "text": " \n\t\u{3000}" }),
        json!({ "text": "" }),
        json!({ "text": 5 }),
        json!({ "text": null }),
        json!({ "text": ["x"] }),
        json!({ "text": "x", "title": 1 }),
        json!({ "text": "x", "source": {} }),
        json!({ "text": "x", "metadata": { "a": 1 } }),
        json!({ "text": "x", "metadata": { "a": null } }),
        json!({ "text": "x", "metadata": [] }),
        json!({ "text": "x", "metadata": "{}" }),
        json!({ "text": "x", "metadata": many }),
    ] {
        api.post("/api/v1/documents", &admin, body).await.expect_error(1001, 400);
    }
    assert_eq!(api.get("/api/v1/documents/tasks").await.data()["items"], json!([]), "nothing was accepted");
}

#[actix_web::test]
async fn null_field_is_treated_as_absent() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id =
        api.add(&admin, json!({ "text": "A line.", "title": null, "source": null, "metadata": null })).await;
    let l1 = api.get(&format!("/api/v1/documents/{doc_id}")).await.data()["l1"].clone();
    assert_eq!((l1["source"].as_str(), &l1["metadata"]), (Some(""), &json!({})));
    assert_eq!((l1["title"].as_str(), l1["category"].as_str()), (Some("A line."), Some("")));
}

#[actix_web::test]
async fn lesson_22_reserved_metadata_is_dropped_with_a_warning() {
    let api = api().await;
    let admin = api.admin().await;
    let metadata = json!({
        "raw_file_path": "/etc/passwd", "original_filename": "x", "original_size_bytes": "1", "mine": "kept",
    });
    let accepted =
        api.post("/api/v1/documents", &admin, json!({ "text": "x", "metadata": metadata })).await.data();
    let task = api.ended("", accepted["task_id"].as_str().unwrap()).await;
    let warnings = task["result"]["warnings"].as_array().unwrap();
    let reserved = |warning: &&Value| warning.as_str().unwrap().ends_with("is reserved and was dropped");
    assert_eq!(warnings.iter().filter(reserved).count(), 3, "{task}");
    let doc_id = task["doc_id"].as_str().unwrap();
    let l1 = api.get(&format!("/api/v1/documents/{doc_id}")).await.data()["l1"].clone();
    assert_eq!(l1["metadata"], json!({ "mine": "kept" }));
}

#[actix_web::test]
async fn unknown_or_malformed_id_is_not_found_and_its_delete_counts_zero() {
    let api = api().await;
    let upper = "A".repeat(32);
    for id in [NOBODY, "0", "x", &upper, "%ff", "..%2f..", "%20"] {
        for path in ["", "/chunks", "/text"] {
            api.get(&format!("/api/v1/documents/{id}{path}")).await.expect_error(1004, 404);
        }
        api.get(&format!("/api/v1/documents/tasks/{id}")).await.expect_error(1004, 404);
    }
    let admin = api.admin().await;
    let zeros = delete(&api, &admin, NOBODY).await.data();
    let none = json!({ "l1": 0, "l2": 0, "l3": 0, "chunks": 0 });
    assert_eq!(zeros, json!({ "doc_id": NOBODY, "deleted": none, "deleted_total": 0 }));
    let zeros = delete(&api, &admin, "x").await.data();
    assert_eq!((zeros["doc_id"].as_str(), &zeros["deleted_total"]), (Some("x"), &json!(0)));
    let body = Some(json!({ "force": true }));
    let path = format!("/api/v1/documents/{NOBODY}");
    api.call(Method::DELETE, &path, &admin, body).await.expect_error(1001, 400);
}

/// All items of a listing, read in pages of `limit`.
async fn all<S: App>(api: &Api<S>, path: &str, limit: usize) -> Vec<Value> {
    let (mut items, mut offset) = (Vec::new(), String::new());
    loop {
        let joint = if path.contains('?') { '&' } else { '?' };
        let page = api.get(&format!("{path}{joint}limit={limit}{offset}")).await.data();
        assert_eq!(keys(&page), ["items", "next_offset"]);
        let shown = page["items"].as_array().unwrap();
        items.extend(shown.iter().cloned());
        match page["next_offset"].as_str() {
            Some(next) => {
                assert_eq!(shown.len(), limit, "every page but the last is full");
                offset = format!("&offset={next}");
            }
            None => return items,
        }
    }
}

#[actix_web::test]
async fn documents_and_tasks_are_listed_page_by_page_with_filters() {
    let api = api().await;
    let admin = api.admin().await;
    let mut ids = Vec::new();
    for n in 0..7 {
        let body = json!({ "text": format!("Note {n}"), "title": format!("T{}", n % 2), "source": format!("s{}", n % 3) });
        ids.push(api.add(&admin, body).await);
    }
    ids.reverse();
    for limit in [1, 3, 7, 100] {
        let shown = all(&api, "/api/v1/documents", limit).await;
        let shown: Vec<_> = shown.iter().map(|item| item["doc_id"].as_str().unwrap()).collect();
        assert_eq!(shown, ids, "newest first, with limit {limit}");
        assert_eq!(all(&api, "/api/v1/documents/tasks", limit).await.len(), 7);
    }
    assert_eq!(all(&api, "/api/v1/documents?source=s0", 2).await.len(), 3);
    assert_eq!(all(&api, "/api/v1/documents?q=t1", 1).await.len(), 3);
    assert_eq!(all(&api, "/api/v1/documents?category=", 5).await.len(), 7);
    assert_eq!(all(&api, "/api/v1/documents?category=none", 5).await.len(), 0);
    assert_eq!(all(&api, "/api/v1/documents/tasks?status=done", 3).await.len(), 7);
    assert_eq!(all(&api, "/api/v1/documents/tasks?status=failed", 3).await.len(), 0);
}

#[actix_web::test]
async fn chunks_are_listed_page_by_page() {
    let api = api().await;
    let admin = api.admin().await;
    let text: String = (0..300)
        .map(|n| format!("Sentence number {n} says a little about comets and their tails. "))
        .collect();
    let doc_id = api.add(&admin, json!({ "text": text })).await;
    let path = format!("/api/v1/documents/{doc_id}/chunks");
    let chunks = all(&api, &path, 2).await;
    assert!(chunks.len() > 4);
    assert!(chunks.iter().zip(0..).all(|(chunk, n)| chunk["ordinal"] == n));
    assert_eq!(all(&api, &path, 100).await, chunks);
    api.get(&format!("{path}?limit=0")).await.expect_error(1001, 400);
    api.get(&format!("{path}?offset=d0")).await.expect_error(1001, 400);
}

#[actix_web::test]
async fn lesson_21_delete_by_another_user_is_forbidden() {
    let api = api().await;
    let (bob, eve) = (api.user("bob").await, api.user("eve").await);
    let doc_id = api.add(&bob, json!({ "text": "Bob's." })).await;
    delete(&api, &eve, &doc_id).await.expect_error(1006, 403);
    delete(&api, "", &doc_id).await.expect_error(1005, 401);
    assert!(api.get(&format!("/api/v1/documents/{doc_id}")).await.status.is_success());
    assert_eq!(delete(&api, &bob, &doc_id).await.data()["deleted"]["l1"], 1);
    let doc_id = api.add(&bob, json!({ "text": "Bob's." })).await;
    let admin = api.admin().await;
    assert_eq!(delete(&api, &admin, &doc_id).await.data()["deleted"]["l1"], 1);
}

#[actix_web::test]
async fn stats_count_all_documents_and_chunks() {
    let api = api().await;
    let empty = api.get("/api/v1/knowledge/stats").await.data();
    let none = json!({ "l1": 0, "l2": 0, "l3": 0, "chunks": 0 });
    assert_eq!(
        empty,
        json!({ "collections": none, "categories": {}, "uncategorized_count": 0, "documents_total": 0 })
    );
    let admin = api.admin().await;
    let mut chunks = 0;
    for text in [TEXT, "A note.", "Another note."] {
        let doc_id = api.add(&admin, json!({ "text": text })).await;
        chunks +=
            api.get(&format!("/api/v1/documents/{doc_id}")).await.data()["chunk_count"].as_u64().unwrap();
    }
    let stats = api.get("/api/v1/knowledge/stats").await.data();
    assert_eq!((stats["documents_total"].as_u64(), stats["collections"]["l1"].as_u64()), (Some(3), Some(3)));
    assert_eq!(stats["collections"]["chunks"].as_u64(), Some(chunks));
    assert_eq!(
        (&stats["categories"], &stats["uncategorized_count"]),
        (&json!({ "uncategorized": 3 }), &json!(3))
    );
}

//! Categories, document changes and reclassification.

use actix_web::http::Method;
use serde_json::{Value, json};

use crate::support::{Api, App, TEXT, TestResponse, api};

async fn patch<S: App>(api: &Api<S>, token: &str, doc_id: &str, body: Value) -> TestResponse {
    api.call(Method::PATCH, &format!("/api/v1/documents/{doc_id}"), token, Some(body)).await
}

#[actix_web::test]
async fn categories_are_listed_with_their_parents() {
    let api = api().await;
    let data = api.get("/api/v1/knowledge/categories").await.data();
    let categories = data["categories"].as_array().unwrap();
    assert_eq!(data["count"].as_u64(), Some(categories.len() as u64));
    assert!(categories.len() > 10);
    for category in categories {
        let keys: Vec<_> = category.as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, ["description", "id", "keywords", "name", "parent"]);
        let parent = &category["parent"];
        assert!(parent.is_null() || categories.iter().any(|other| other["id"] == *parent));
    }
}

#[actix_web::test]
async fn document_change_is_returned_and_searchable_at_once() {
    let api = api().await;
    let eva = api.user("eva").await;
    let body = json!({ "text": TEXT, "source": "a", "metadata": { "kind": "moon", "old": "1" } });
    let doc_id = api.add(&eva, body).await;
    let categories = api.get("/api/v1/knowledge/categories").await.data();
    let name = categories["categories"][0]["name"].as_str().unwrap();
    let change = json!({ "title": "Moons, again", "source": null, "category": name,
        "metadata": { "old": null, "new": "2" } });
    let item = patch(&api, &eva, &doc_id, change).await.data();
    assert_eq!((item["title"].as_str(), item["source"].as_str()), (Some("Moons, again"), Some("a")));
    assert_eq!(item["category"], name);
    assert_eq!(item["metadata"], json!({ "kind": "moon", "new": "2" }));
    let detail = api.get(&format!("/api/v1/documents/{doc_id}")).await.data();
    assert_eq!(detail["l1"], item);
    let filtered =
        json!({ "query": "volcanoes", "filters": { "category": name, "metadata": { "new": "2" } } });
    let found = api.post("/api/v1/search", "", filtered).await.data();
    assert_eq!(
        (&found["results"][0]["title"], &found["results"][0]["category"]),
        (&item["title"], &item["category"])
    );
    let stats = api.get("/api/v1/knowledge/stats").await.data();
    assert_eq!((&stats["categories"][name], &stats["uncategorized_count"]), (&json!(1), &json!(0)));
    assert_eq!(
        patch(&api, &eva, &doc_id, json!({})).await.data(),
        item,
        "an empty change changed the document"
    );
    assert_eq!(patch(&api, &eva, &doc_id, json!({ "category": "" })).await.data()["category"], "");
}

#[actix_web::test]
async fn invalid_document_change_is_refused_and_changes_nothing() {
    let api = api().await;
    let eva = api.user("eva").await;
    let doc_id = api.add(&eva, json!({ "text": TEXT, "metadata": { "kind": "moon" } })).await;
    let before = api.get(&format!("/api/v1/documents/{doc_id}")).await.data();
    let keys: serde_json::Map<_, _> = (0..64).map(|n| (n.to_string(), json!(""))).collect();
    for (body, expected) in [
        (json!({ "title": " " }), "title"),
        (json!({ "title": "x".repeat(4_097) }), "title"),
        (json!({ "source": "x".repeat(4_097) }), "source"),
        (json!({ "category": "no such thing" }), "no such thing"),
        (json!({ "metadata": { "kind": 1 } }), "kind"),
        (json!({ "metadata": [] }), "metadata"),
        (json!({ "metadata": keys }), "65 keys"),
        (json!({ "text": "another" }), "text"),
        (json!({ "title": "good", "category": "no such thing" }), "no such thing"),
    ] {
        let message = patch(&api, &eva, &doc_id, body.clone()).await.expect_error(1001, 400);
        assert!(message.contains(expected), "{body}: {message}");
    }
    assert_eq!(api.get(&format!("/api/v1/documents/{doc_id}")).await.data(), before);
    for id in [&*"0".repeat(32), "x"] {
        patch(&api, &eva, id, json!({ "title": "x" })).await.expect_error(1004, 404);
    }
    let adam = api.user("adam").await;
    patch(&api, &adam, &doc_id, json!({ "title": "x" })).await.expect_error(1006, 403);
    let admin = api.admin().await;
    assert_eq!(patch(&api, &admin, &doc_id, json!({ "title": "x" })).await.data()["title"], "x");
}

#[actix_web::test]
async fn reclassify_runs_as_a_task() {
    let api = api().await;
    let admin = api.admin().await;
    api.add(&admin, json!({ "text": TEXT })).await;
    let accepted = api.post("/api/v1/knowledge/reclassify", &admin, json!({})).await;
    assert_eq!((accepted.status.as_u16(), accepted.data()["status"].as_str()), (202, Some("pending")));
    let task = api.ended(&admin, accepted.data()["task_id"].as_str().unwrap()).await;
    assert_eq!((task["kind"].as_str(), task["status"].as_str()), (Some("reclassify"), Some("done")));
    assert_eq!((&task["doc_id"], task["created_by"].as_str()), (&Value::Null, Some("admin")));
    let result = &task["result"];
    assert_eq!((result["documents"].as_u64(), result["uncategorized"].as_u64()), (Some(1), Some(1)));
    assert!(result["warnings"][0].as_str().unwrap().contains("no embedding model"), "{result}");
}

#[actix_web::test]
async fn lesson_22_document_change_cannot_forge_a_stored_file() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id = api.add(&admin, json!({ "text": TEXT })).await;
    for key in ["raw_file_path", "original_filename", "original_size_bytes"] {
        for value in [json!("/etc/passwd"), Value::Null] {
            let body = json!({ "metadata": { "kind": "moon", key: value } });
            let message = patch(&api, &admin, &doc_id, body).await.expect_error(1001, 400);
            assert!(message.contains(key), "{message}");
        }
    }
    let detail = api.get(&format!("/api/v1/documents/{doc_id}")).await.data();
    assert_eq!(detail["l1"]["metadata"], json!({}));
}

#[actix_web::test]
async fn stats_count_documents_by_day_month_and_size_of_what_the_caller_reads() {
    const PATH: &str = "/api/v1/knowledge/stats?histograms=true";
    let api = api().await;
    let admin = api.admin().await;
    let empty = api.get(PATH).await.data();
    assert_eq!(
        (&empty["added_by_day"], &empty["added_by_month"], &empty["sizes"]),
        (&json!({}), &json!({}), &json!([]))
    );
    api.post("/api/v1/spaces", &admin, json!({ "space": "legal" })).await.data();
    api.add(&admin, json!({ "text": "Basalt." })).await;
    let long = "Granite and basalt and marble lie in layers. ".repeat(400);
    api.add(&admin, json!({ "text": long })).await;
    api.add(&admin, json!({ "text": "Hidden.", "space": "legal" })).await;
    for (token, documents) in [("", 2), (admin.as_str(), 3)] {
        let stats = api.call(Method::GET, PATH, token, None).await.data();
        let sum = |of: &str| stats[of].as_object().unwrap().values().filter_map(Value::as_u64).sum::<u64>();
        assert_eq!((sum("added_by_day"), sum("added_by_month")), (documents, documents), "{stats}");
        let day = stats["added_by_day"].as_object().unwrap().keys().next_back().unwrap().clone();
        let detail = api.get("/api/v1/documents").await.data()["items"][0].clone();
        assert!(detail["created_at"].as_str().unwrap().starts_with(&day), "{day} {detail}");
        assert!(stats["added_by_month"].as_object().unwrap().keys().all(|month| day.starts_with(month)));
        let sizes = stats["sizes"].as_array().unwrap();
        assert_eq!(sizes[0], json!({ "max_chunks": 1, "documents": documents - 1 }));
        assert!(sizes[1]["max_chunks"].as_u64().unwrap() > 1 && sizes[1]["documents"] == 1, "{stats}");
    }
    for without in ["/api/v1/knowledge/stats", "/api/v1/knowledge/stats?histograms=false"] {
        let stats = api.get(without).await.data();
        let keys: Vec<_> = stats.as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, ["categories", "collections", "documents_total", "uncategorized_count"]);
    }
    api.get("/api/v1/knowledge/stats?histograms=yes").await.expect_error(1001, 400);
}

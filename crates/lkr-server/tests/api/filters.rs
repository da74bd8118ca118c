//! Filter expressions on searches, listings and bulk deletes.

use lkr::{FilterExpr, ListFilter, Scope};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::support::{Api, App, api};

const DELETE: &str = "/api/v1/documents/delete";

fn listing(expr: &str) -> String {
    format!("/api/v1/documents?limit=100&where={}", utf8_percent_encode(expr, NON_ALPHANUMERIC))
}

fn ids(items: &Value) -> Vec<String> {
    let mut ids: Vec<String> =
        items.as_array().unwrap().iter().map(|item| item["doc_id"].as_str().unwrap().to_owned()).collect();
    ids.sort_unstable();
    ids
}

/// Twelve documents that all contain the word ocean, with numbers, dates, texts and nothing as metadata.
async fn add_documents<S: App>(api: &Api<S>, token: &str) {
    let long = "x".repeat(300);
    for n in 0..12 {
        let metadata = match n % 4 {
            0 => json!({ "price": format!("{n}.50"), "due": format!("2026-03-{:02}", n + 1) }),
            1 => json!({ "price": format!("{n}e0"), "due": format!("2026-03-{:02}T12:00:00+02:00", n + 1) }),
            2 => json!({ "price": "on request", "path": format!("{long}{n}") }),
            _ => json!({ "price": "" }),
        };
        let input = json!({
            "text": format!("# Report {n}\n\nThe ocean number {n} is {} deep.\n", "very ".repeat(n as usize)),
            "title": format!("{} {n}", ["Report", "report", "Übersicht"][n as usize % 3]),
            "source": format!("/reports/{}/{n}.md", n % 3),
            "metadata": metadata,
        });
        api.add(token, input).await;
    }
}

fn expressions() -> Vec<Value> {
    let long = "x".repeat(300);
    let price = |op: &str, value: Value| json!({ "field": "metadata.price", op: value });
    vec![
        price("gte", json!(5)),
        price("lt", json!("5")),
        price("eq", json!(4.5)),
        price("in", json!([1, "on request", 8.5])),
        price("exists", json!(false)),
        json!({ "not": price("exists", json!(true)) }),
        json!({ "field": "metadata.due", "gte": "2026-03-02", "lt": "2026-03-09" }),
        json!({ "field": "metadata.due", "prefix": "2026-03-0" }),
        json!({ "field": "metadata.path", "gt": format!("{long}2") }),
        json!({ "field": "metadata.path", "prefix": format!("{long}1") }),
        json!({ "field": "title", "prefix": "Über" }),
        json!({ "field": "title", "gte": "a" }),
        json!({ "field": "source", "in": ["/reports/0/3.md", "/reports/1/4.md"] }),
        json!({ "field": "created_by", "eq": "admin" }),
        json!({ "field": "created_at", "lt": "2000-01-01" }),
        json!({ "field": "updated_at", "gt": "2000-01-01T00:00:00Z" }),
        json!({ "field": "content_type", "exists": true }),
        json!({ "and": [price("gt", json!(0)), { "not": { "field": "title", "prefix": "R" } }] }),
        json!({ "or": [price("eq", json!("on request")), { "field": "source", "prefix": "/reports/2/" }] }),
    ]
}

/// Lesson 39: filters work on one path and not on another. One expression selects the same documents everywhere.
#[actix_web::test]
async fn lesson_39_expression_selects_the_same_documents_everywhere() {
    let api = api().await;
    let admin = api.admin().await;
    add_documents(&api, &admin).await;
    let all = api.kb.list(&Scope::All, &ListFilter::default(), None, 100).await.unwrap().items;
    assert_eq!(all.len(), 12);
    let mut selective = 0;
    for json in expressions() {
        let expr = FilterExpr::parse("where", &json).unwrap();
        let matching = all.iter().filter(|document| expr.matches(document));
        let mut expected: Vec<String> = matching.map(|document| document.doc_id.to_string()).collect();
        expected.sort_unstable();
        selective += usize::from(!expected.is_empty() && expected.len() < all.len());

        let listed = api.get(&listing(&json.to_string())).await.data();
        assert_eq!(ids(&listed["items"]), expected, "listing: {json}");
        let search = json!({ "query": "ocean", "group_by": "document", "top_k": 100, "where": json });
        let found = api.post("/api/v1/search", "", search).await.data();
        assert_eq!(ids(&found["results"]), expected, "search: {json}");
        let context = json!({ "query": "ocean", "max_tokens": 32_000, "where": json });
        let context = api.post("/api/v1/context", "", context).await.data();
        assert_eq!(ids(&context["passages"]), expected, "context: {json}");
        let counted = api.post(DELETE, &admin, json!({ "where": json })).await.data();
        assert_eq!(counted, json!({ "documents": expected.len() }), "delete: {json}");
    }
    assert!(selective >= 12, "{selective}");
}

#[actix_web::test]
async fn where_and_filters_must_both_hold() {
    let api = api().await;
    let admin = api.admin().await;
    add_documents(&api, &admin).await;
    let body = json!({
        "query": "ocean", "group_by": "document", "where": { "field": "source", "prefix": "/reports/1/" },
        "filters": { "metadata": { "price": "on request" } },
    });
    let found = api.post("/api/v1/search", "", body).await.data();
    assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["results"][0]["source"], "/reports/1/10.md");
}

#[actix_web::test]
async fn bulk_delete_counts_only_what_the_caller_may_delete() {
    let api = api().await;
    let admin = api.admin().await;
    let alice = api.user("alice").await;
    api.add(&admin, json!({ "text": "The ocean of an admin." })).await;
    api.add(&alice, json!({ "text": "The ocean of Alice." })).await;
    let every = json!({ "where": { "field": "title", "exists": true }, "dry_run": true });
    assert_eq!(api.post(DELETE, &alice, every.clone()).await.data(), json!({ "documents": 1 }));
    assert_eq!(api.post(DELETE, &admin, every.clone()).await.data(), json!({ "documents": 2 }));
    api.post(DELETE, "", every).await.expect_error(1005, 401);
}

#[actix_web::test]
async fn wrong_expression_is_refused_with_its_place() {
    let api = api().await;
    let admin = api.admin().await;
    let wrong = json!({ "and": [{ "field": "title", "eq": "x" }, { "field": "created_at", "gte": 5 }] });
    for response in [
        api.get(&listing(&wrong.to_string())).await,
        api.post("/api/v1/search", "", json!({ "query": "q", "where": wrong })).await,
        api.post(DELETE, &admin, json!({ "where": wrong })).await,
    ] {
        let message = response.expect_error(1001, 400);
        assert!(message.contains("where.and[1].gte"), "{message}");
    }
    api.get(&listing("{")).await.expect_error(1001, 400);
    api.get(&listing("")).await.expect_error(1001, 400);
    let long = format!(r#"{{"field": "title", "eq": "{}"}}"#, "x".repeat(16 * 1024));
    api.get(&listing(&long)).await.expect_error(1001, 400);
    api.post(DELETE, &admin, json!({})).await.expect_error(1001, 400);
}

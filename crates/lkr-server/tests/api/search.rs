//! Searches.

use serde_json::{Value, json};

use crate::support::{Api, App, TEXT, TestResponse, api, events};

const SEARCH: &str = "/api/v1/search";

async fn search<S: App>(api: &Api<S>, body: Value) -> TestResponse {
    api.post(SEARCH, "", body).await
}

#[actix_web::test]
async fn search_results_have_all_keys_and_correct_offsets() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id = api.add(&admin, json!({ "text": TEXT, "source": "s" })).await;
    let response =
        search(&api, json!({ "query": " ocean under the ice ", "top_k": 2, "explain": true })).await.data();
    let keys: Vec<_> = response.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["explain", "layers", "query", "results", "summary", "took_ms", "warnings"]);
    assert_eq!(
        (response["query"].as_str(), &response["summary"]),
        (Some("ocean under the ice"), &Value::Null)
    );
    let first = &response["results"][0];
    let keys: Vec<_> = first.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "category",
            "char_end",
            "char_start",
            "chunk_id",
            "doc_id",
            "highlights",
            "page_end",
            "page_start",
            "path",
            "score",
            "scores",
            "source",
            "space",
            "text",
            "title"
        ]
    );
    assert_eq!(first["doc_id"], doc_id);
    let (start, end) = (first["char_start"].as_u64().unwrap(), first["char_end"].as_u64().unwrap());
    let cut: String = TEXT.chars().skip(start as usize).take((end - start) as usize).collect();
    assert_eq!(first["text"].as_str(), Some(cut.as_str()));
    let keys: Vec<_> = first["scores"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["dense", "l1", "l2", "l3", "sparse"]);
    assert_eq!(response["layers"].as_object().unwrap().len(), 3);
    assert_eq!(response["explain"]["results"][0]["chunk_id"], first["chunk_id"]);
    let explained = &response["explain"]["results"][0];
    assert_eq!(explained["ranks"].as_object().unwrap().len(), 8);
    assert_eq!(explained["scores"].as_object().unwrap().len(), 8);
    assert_eq!(explained["scores"]["chunks_sparse"], first["scores"]["sparse"]);
    assert_eq!((&explained["fused"], &explained["exact"]), (&first["score"], &json!(false)));
    assert_eq!((&explained["reranked"], &response["explain"]["rerank"]), (&Value::Null, &Value::Null));
    let plain = search(&api, json!({ "query": "ocean" })).await.data();
    assert!(plain.get("explain").is_none());
}

#[actix_web::test]
async fn cache_header_is_hit_for_the_same_search_and_miss_after_a_change() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id = api.add(&admin, json!({ "text": TEXT })).await;
    let request = json!({ "query": "volcanoes" });
    let first = search(&api, request.clone()).await;
    assert_eq!(first.header("x-cache"), Some("miss"));
    let second = search(&api, request.clone()).await;
    assert_eq!(second.header("x-cache"), Some("hit"));
    // The JSON of the second response is kept for the third.
    let third = search(&api, request.clone()).await;
    assert_eq!(third.header("x-cache"), Some("hit"));
    assert_eq!((first.data(), first.data()), (second.data(), third.data()));
    assert_ne!(second.json()["request_id"], third.json()["request_id"]);
    for (key, value) in [
        ("top_k", json!(3)),
        ("summarize", json!(true)),
        ("filters", json!({ "language": "en" })),
        ("mode", json!("flat")),
        ("group_by", json!("document")),
        ("explain", json!(true)),
        ("fusion", json!("rrf")),
        ("rerank", json!(true)),
    ] {
        let mut other = request.clone();
        other[key] = value;
        let other = search(&api, other).await;
        assert_eq!(other.header("x-cache"), Some("miss"), "{key} is part of the cache key");
    }
    api.call("DELETE".parse().unwrap(), &format!("/api/v1/documents/{doc_id}"), &admin, None).await.data();
    let after = search(&api, request).await;
    assert_eq!((after.header("x-cache"), &after.data()["results"]), (Some("miss"), &json!([])));
}

#[actix_web::test]
async fn invalid_search_request_is_refused() {
    let api = api().await;
    let metadata: serde_json::Map<_, _> = (0..65).map(|n| (n.to_string(), json!(""))).collect();
    for body in [
        json!({}),
        json!({ "query": "  " }),
        json!({ "query": 1 }),
        json!({ "query": null }),
        json!({ "query": "x".repeat(2001) }),
        json!({ "query": "a", "top_k": 0 }),
        json!({ "query": "a", "top_k": 101 }),
        json!({ "query": "a", "top_k": -1 }),
        json!({ "query": "a", "top_k": "5" }),
        json!({ "query": "a", "top_k": 5.0 }),
        json!({ "query": "a", "top_k": 99_999_999_999_u64 }),
        json!({ "query": "a", "summarize": "yes" }),
        json!({ "query": "a", "summarize": 1 }),
        json!({ "query": "a", "mode": "deep" }),
        json!({ "query": "a", "mode": { "flat": null } }),
        json!({ "query": "a", "group_by": "page" }),
        json!({ "query": "a", "fusion": "none" }),
        json!({ "query": "a", "fusion": { "rrf": null } }),
        json!({ "query": "a", "explain": "no" }),
        json!({ "query": "a", "rerank": "no" }),
        json!({ "query": "a", "filters": "x" }),
        json!({ "query": "a", "filters": { "doc_ids": ["x"] } }),
        json!({ "query": "a", "filters": { "doc_ids": "x" } }),
        json!({ "query": "a", "filters": { "metadata": { "k": 1 } } }),
        json!({ "query": "a", "filters": { "metadata": metadata } }),
    ] {
        search(&api, body.clone()).await.expect_error(1001, 400);
        api.post("/api/v1/search/stream", "", body).await.expect_error(1001, 400);
    }
}

#[actix_web::test]
async fn every_search_option_is_accepted() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id = api.add(&admin, json!({ "text": TEXT, "source": "s", "metadata": { "k": "v" } })).await;
    for body in [
        json!({ "query": "ocean", "top_k": null, "summarize": null, "filters": null, "mode": null }),
        json!({ "query": "ocean", "mode": "flat", "fusion": "rrf", "group_by": "document" }),
        json!({ "query": "ocean", "mode": "layered", "fusion": "graded", "group_by": "chunk", "rerank": false }),
        json!({ "query": "ocean", "filters": { "source": "s", "metadata": { "k": "v" }, "doc_ids": [doc_id] } }),
        json!({ "query": "ocean", "filters": {} }),
    ] {
        let response = search(&api, body.clone()).await.data();
        assert_eq!(response["results"][0]["doc_id"], doc_id, "{body}");
    }
    let none = search(&api, json!({ "query": "ocean", "filters": { "source": "other" } })).await.data();
    assert_eq!(none["results"], json!([]));
    let reranked = search(&api, json!({ "query": "ocean", "rerank": true })).await.data();
    assert!(reranked["warnings"].to_string().contains("reranker"));
}

#[actix_web::test]
async fn search_without_an_embedding_model_warns() {
    let api = api().await;
    let response = search(&api, json!({ "query": "anything" })).await.data();
    assert!(response["warnings"].to_string().contains("embedding model"), "{response}");
}

#[actix_web::test]
async fn search_stream_sends_results_then_the_summary() {
    let api = api().await;
    let admin = api.admin().await;
    api.add(&admin, json!({ "text": TEXT })).await;
    let request = json!({ "query": "ocean", "summarize": true });
    let complete = search(&api, request.clone()).await.data();
    let response = api.post("/api/v1/search/stream", "", request).await;
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    assert!(response.header("x-request-id").is_some());
    let events = events(&response);
    let (first, last) = (events.first().unwrap(), events.last().unwrap());
    assert_eq!((first.0.as_str(), last.0.as_str()), ("results", "summary.done"));
    assert_eq!((&first.1["results"], &first.1["summary"]), (&complete["results"], &Value::Null));
    assert_eq!(last.1, complete["summary"]);
    let deltas: Vec<_> = events.iter().filter(|(name, _)| name == "summary.delta").collect();
    assert_eq!(deltas.len(), events.len() - 2);
    assert!(!deltas.is_empty());
    let text: String = deltas.iter().map(|(_, data)| data["text"].as_str().unwrap()).collect();
    assert_eq!(Some(text.as_str()), last.1["text"].as_str());
    assert_eq!((&last.1["kind"], &last.1["model"]), (&json!("extractive"), &Value::Null));
}

#[actix_web::test]
async fn search_stream_without_a_summary_sends_one_event() {
    let api = api().await;
    let response = api.post("/api/v1/search/stream", "", json!({ "query": "ocean" })).await;
    let events = events(&response);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].0, "results");
}

//! Context for language models.

use serde_json::{Value, json};

use crate::support::{Api, App, TEXT, api};

async fn context<S: App>(api: &Api<S>, body: Value) -> Value {
    api.post("/api/v1/context", "", body).await.data()
}

#[actix_web::test]
async fn context_has_all_keys_and_passages_are_cut_from_the_text() {
    let api = api().await;
    let admin = api.admin().await;
    let doc_id = api.add(&admin, json!({ "text": TEXT, "source": "s" })).await;
    let response = context(&api, json!({ "query": " moons with volcanoes or an ocean " })).await;
    let keys: Vec<_> = response.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["passages", "query", "text", "tokens", "took_ms", "warnings"]);
    assert_eq!(response["query"], "moons with volcanoes or an ocean");
    let passages = response["passages"].as_array().unwrap();
    let keys: Vec<_> = passages[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "char_end",
            "char_start",
            "chunk_ids",
            "doc_id",
            "marker",
            "page_end",
            "page_start",
            "path",
            "score",
            "source",
            "text",
            "title"
        ]
    );
    let text = response["text"].as_str().unwrap();
    assert!(text.starts_with("# Moons\n\n[1]"), "{text}");
    for (passage, number) in passages.iter().zip(1..) {
        assert_eq!(
            (passage["marker"].as_str().unwrap(), &passage["doc_id"]),
            (format!("[{number}]").as_str(), &json!(doc_id))
        );
        assert_eq!((&passage["title"], &passage["source"]), (&json!("Moons"), &json!("s")));
        let (start, end) = (passage["char_start"].as_u64().unwrap(), passage["char_end"].as_u64().unwrap());
        let cut: String = TEXT.chars().skip(start as usize).take((end - start) as usize).collect();
        assert_eq!(passage["text"].as_str(), Some(cut.as_str()));
        assert!(text.contains(&cut));
    }
    let chunks = api.get(&format!("/api/v1/documents/{doc_id}/chunks")).await.data();
    let ids: Vec<&Value> =
        chunks["items"].as_array().unwrap().iter().map(|chunk| &chunk["chunk_id"]).collect();
    let cited: Vec<&Value> = passages.iter().flat_map(|it| it["chunk_ids"].as_array().unwrap()).collect();
    assert_eq!(cited, ids, "the text is short, so all of it is in the context, in its order");
    let tokens = response["tokens"].as_u64().unwrap();
    assert!((20..80).contains(&tokens), "{tokens}");
}

#[actix_web::test]
async fn context_stays_within_max_tokens_and_is_empty_if_nothing_fits() {
    let api = api().await;
    let admin = api.admin().await;
    let sentences: String = (0..400).map(|n| format!("Volcano number {n} sleeps. ")).collect();
    api.add(&admin, json!({ "text": format!("# Volcanoes\n\n{sentences}") })).await;
    for max_tokens in [50, 100, 1_000] {
        let response = context(&api, json!({ "query": "volcano 7", "max_tokens": max_tokens })).await;
        let tokens = response["tokens"].as_u64().unwrap();
        assert!((1..=max_tokens).contains(&tokens), "{tokens} of {max_tokens}");
        let passages = response["passages"].as_array().unwrap();
        assert!(
            passages.iter().all(|it| it["text"].as_str().unwrap().ends_with('.')),
            "whole sentences: {passages:?}"
        );
    }
    let word = "volcano".repeat(100);
    api.add(&admin, json!({ "text": format!("# Lava\n\nlava {word}") })).await;
    let response = context(&api, json!({ "query": "lava", "max_tokens": 50 })).await;
    assert_eq!(
        (&response["text"], &response["tokens"], &response["passages"]),
        (&json!(""), &json!(0), &json!([]))
    );
    assert!(response["warnings"].to_string().contains("max_tokens"), "{response}");
    let response = context(&api, json!({ "query": "glacier", "filters": { "source": "none" } })).await;
    assert_eq!((&response["text"], &response["passages"]), (&json!(""), &json!([])));
}

#[actix_web::test]
async fn context_refuses_what_it_does_not_know() {
    let api = api().await;
    for max_tokens in [json!(49), json!(32_001), json!(-1), json!("many")] {
        let body = json!({ "query": "a", "max_tokens": max_tokens });
        let message = api.post("/api/v1/context", "", body).await.expect_error(1001, 400);
        assert!(message.contains("max_tokens"), "{message}");
    }
    for key in ["top_k", "summarize", "group_by", "explain", "nope"] {
        let message =
            api.post("/api/v1/context", "", json!({ "query": "a", key: 1 })).await.expect_error(1001, 400);
        assert!(message.contains(key), "{message}");
    }
    api.post("/api/v1/context", "", json!({ "query": " " })).await.expect_error(1001, 400);
    api.post("/api/v1/context", "", json!({ "query": "a", "spaces": ["nope"] }))
        .await
        .expect_error(1004, 404);
}

#[actix_web::test]
async fn context_takes_the_filters_of_a_search() {
    let api = api().await;
    let admin = api.admin().await;
    for source in ["a", "b"] {
        let text = format!("{TEXT}\n\nThis is the copy of {source}.");
        api.add(&admin, json!({ "text": text, "source": source, "metadata": { "from": source } })).await;
    }
    let sources = async |body: Value| {
        let passages = context(&api, body).await["passages"].clone();
        let sources = passages.as_array().unwrap().iter().map(|it| it["source"].as_str().unwrap().to_owned());
        sources.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(sources(json!({ "query": "volcanoes" })).await, ["a", "b"]);
    assert_eq!(sources(json!({ "query": "volcanoes", "filters": { "source": "b" } })).await, ["b"]);
    let condition = json!({ "field": "metadata.from", "eq": "a" });
    assert_eq!(
        sources(json!({ "query": "volcanoes", "where": condition, "mode": "flat", "fusion": "rrf" })).await,
        ["a"]
    );
    let response = context(&api, json!({ "query": "volcanoes", "rerank": true })).await;
    assert!(response["warnings"].to_string().contains("reranker"), "{response}");
}

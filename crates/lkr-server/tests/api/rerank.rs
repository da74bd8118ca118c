//! Rerankers of the settings.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

use crate::support::{Api, App, TestResponse, api};

const KEY: &str = "sk-planted-4711";

/// A provider that ranks the last passage first, or answers with the configured status. It records its requests.
#[derive(Clone)]
struct Provider {
    port: u16,
    response: Arc<Mutex<Option<&'static str>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let provider = Self {
            port: listener.local_addr().unwrap().port(),
            response: Arc::default(),
            seen: Arc::default(),
        };
        let serving = provider.clone();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut bytes = Vec::new();
                let (head, body) = loop {
                    let mut part = [0; 4096];
                    let count = stream.read(&mut part).unwrap();
                    bytes.extend_from_slice(&part[..count]);
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    if let Ok(body) = serde_json::from_str::<Value>(body) {
                        break (head.to_owned(), body);
                    }
                };
                serving.seen.lock().unwrap().push(format!("{head}\n{body}"));
                let response = serving.response(&body);
                let _ = stream.write_all(response.as_bytes());
            }
        });
        provider
    }

    fn response(&self, body: &Value) -> String {
        let configured = *self.response.lock().unwrap();
        let rows: Vec<_> = (0..body["documents"].as_array().unwrap().len())
            .map(|n| json!({ "index": n, "relevance_score": n }))
            .collect();
        let body = json!({ "results": rows }).to_string();
        let status = configured.unwrap_or("200 OK");
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
    }

    fn set_status(&self, response: Option<&'static str>) {
        *self.response.lock().unwrap() = response;
    }

    fn calls(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    fn entry(&self) -> Value {
        let base_url = format!("http://127.0.0.1:{}/v1", self.port);
        json!({ "provider": "remote_compatible", "model": "judge", "base_url": base_url, "api_key": KEY })
    }
}

async fn set<S: App>(api: &Api<S>, token: &str, rerank: Value) -> Value {
    let body = json!({ "models": { "rerank": rerank } });
    api.call("PUT".parse().unwrap(), "/api/v1/settings", token, Some(body)).await.data()
}

async fn search<S: App>(api: &Api<S>, rerank: Value) -> TestResponse {
    let body = json!({ "query": "whales", "explain": true, "rerank": rerank });
    api.post("/api/v1/search", "", body).await
}

fn titles(data: &Value) -> Vec<&str> {
    data["results"].as_array().unwrap().iter().map(|result| result["title"].as_str().unwrap()).collect()
}

async fn with_documents<S: App>(api: &Api<S>) -> String {
    let admin = api.admin().await;
    for n in 1..=3 {
        let text = format!("A tale of whales{}.", " and of ships".repeat(n));
        api.add(&admin, json!({ "title": format!("doc {n}"), "text": text })).await;
    }
    admin
}

const UNRANKED: [&str; 3] = ["doc 1", "doc 2", "doc 3"];
const REVERSED: [&str; 3] = ["doc 3", "doc 2", "doc 1"];

#[actix_web::test]
async fn reranker_change_takes_effect_from_the_next_search() {
    let (api, provider) = (api().await, Provider::start());
    let admin = with_documents(&api).await;
    assert_eq!(titles(&search(&api, Value::Null).await.data()), UNRANKED);
    let shown = set(&api, &admin, provider.entry()).await;
    assert_eq!(shown["models"]["rerank"]["api_key"], "********");
    let first = search(&api, Value::Null).await;
    assert_eq!(first.header("x-cache"), Some("miss"));
    let data = first.data();
    assert_eq!(titles(&data), REVERSED);
    assert_eq!(
        data["warnings"].as_array().unwrap().len(),
        1,
        "the only warning is about the embedding model: {data}"
    );
    let rerank = &data["explain"]["rerank"];
    assert_eq!((&rerank["model"], &rerank["candidates"]), (&json!("judge"), &json!(3)));
    assert!(rerank["ms"].is_number());
    assert_eq!(
        (&data["explain"]["results"][0]["reranked"], &data["results"][0]["score"]),
        (&json!(2.0), &json!(2.0))
    );
    let sent = provider.seen.lock().unwrap()[0].clone();
    assert!(sent.starts_with("POST /v1/rerank ") && sent.contains(&format!("Bearer {KEY}")), "{sent}");
    assert_eq!(search(&api, Value::Null).await.header("x-cache"), Some("hit"));
    assert_eq!(titles(&search(&api, json!(false)).await.data()), UNRANKED);
    assert_eq!(provider.calls(), 1);
    set(&api, &admin, json!({ "provider": "none" })).await;
    let off = search(&api, json!(true)).await.data();
    assert_eq!(titles(&off), UNRANKED);
    assert!(off["warnings"].to_string().contains("no reranker is configured"), "{off}");
}

#[actix_web::test]
async fn failing_reranker_adds_a_warning_without_the_key() {
    let (api, provider) = (api().await, Provider::start());
    let admin = with_documents(&api).await;
    set(&api, &admin, provider.entry()).await;
    for response in ["500 Internal Server Error", "401 Unauthorized", "404 Not Found", "nonsense"] {
        provider.set_status(Some(response));
        let response = search(&api, Value::Null).await;
        assert_eq!(response.header("x-cache"), Some("miss"), "a degraded response was cached");
        let data = response.data();
        assert_eq!(titles(&data), UNRANKED);
        assert!(data["warnings"].to_string().contains("not reranked"), "{data}");
        assert!(!data.to_string().contains(KEY));
    }
    provider.set_status(Some("429 Too Many Requests\r\nRetry-After: 60"));
    let before = provider.calls();
    for _ in 0..3 {
        assert_eq!(titles(&search(&api, Value::Null).await.data()), UNRANKED);
    }
    assert_eq!(provider.calls(), before + 1, "no call before Retry-After has passed");
    // A URL that may not be called is reported like any other failure.
    provider.set_status(None);
    set(&api, &admin, json!({ "base_url": "" })).await;
    assert!(search(&api, Value::Null).await.data()["warnings"].to_string().contains("not reranked"));
}

#[actix_web::test]
async fn settings_test_of_a_reranker_reports_scores_or_error_without_the_key() {
    let (api, provider) = (api().await, Provider::start());
    let admin = api.admin().await;
    let test = async |entry: Value| {
        let body = json!({ "models": { "rerank": entry } });
        api.post("/api/v1/settings/test", &admin, body).await.data()
    };
    let tested = test(provider.entry()).await;
    assert_eq!(tested["ok"], true);
    let detail = tested["detail"].as_str().unwrap();
    assert!(detail.contains("judge") && detail.contains("[0.0, 1.0]"), "{detail}");
    provider.set_status(Some("401 Unauthorized"));
    let tested = test(provider.entry()).await;
    assert_eq!(tested["ok"], false);
    assert!(tested["detail"].as_str().unwrap().contains("rejected the key"), "{tested}");
    assert!(!tested.to_string().contains(KEY));
}

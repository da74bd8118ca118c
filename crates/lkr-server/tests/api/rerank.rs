//! Rerankers that the settings name.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

use crate::support::{Answer, Api, App, api};

const KEY: &str = "sk-planted-4711";

/// A provider that finds the last of the passages the best, or answers as it is told, and what it was sent.
#[derive(Clone)]
struct Provider {
    port: u16,
    answer: Arc<Mutex<Option<&'static str>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let provider = Self {
            port: listener.local_addr().unwrap().port(),
            answer: Arc::default(),
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
                let answer = serving.answer(&body);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        provider
    }

    fn answer(&self, body: &Value) -> String {
        let told = *self.answer.lock().unwrap();
        let rows: Vec<_> = (0..body["documents"].as_array().unwrap().len())
            .map(|n| json!({ "index": n, "relevance_score": n }))
            .collect();
        let body = json!({ "results": rows }).to_string();
        let status = told.unwrap_or("200 OK");
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
    }

    fn tell(&self, answer: Option<&'static str>) {
        *self.answer.lock().unwrap() = answer;
    }

    fn asked(&self) -> usize {
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

async fn search<S: App>(api: &Api<S>, rerank: Value) -> Answer {
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

const PLAIN: [&str; 3] = ["doc 1", "doc 2", "doc 3"];
const TURNED: [&str; 3] = ["doc 3", "doc 2", "doc 1"];

#[actix_web::test]
async fn a_change_of_the_settings_counts_from_the_next_search_on() {
    let (api, provider) = (api().await, Provider::start());
    let admin = with_documents(&api).await;
    assert_eq!(titles(&search(&api, Value::Null).await.data()), PLAIN);
    let shown = set(&api, &admin, provider.entry()).await;
    assert_eq!(shown["models"]["rerank"]["api_key"], "********");
    let first = search(&api, Value::Null).await;
    assert_eq!(first.header("x-cache"), Some("miss"));
    let data = first.data();
    assert_eq!(titles(&data), TURNED);
    assert_eq!(data["warnings"].as_array().unwrap().len(), 1, "no embedding model, and nothing else: {data}");
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
    assert_eq!(titles(&search(&api, json!(false)).await.data()), PLAIN);
    assert_eq!(provider.asked(), 1);
    set(&api, &admin, json!({ "provider": "none" })).await;
    let off = search(&api, json!(true)).await.data();
    assert_eq!(titles(&off), PLAIN);
    assert!(off["warnings"].to_string().contains("no reranker is configured"), "{off}");
}

#[actix_web::test]
async fn a_provider_that_fails_makes_a_warning_and_shows_no_key() {
    let (api, provider) = (api().await, Provider::start());
    let admin = with_documents(&api).await;
    set(&api, &admin, provider.entry()).await;
    for answer in ["500 Internal Server Error", "401 Unauthorized", "404 Not Found", "nonsense"] {
        provider.tell(Some(answer));
        let answer = search(&api, Value::Null).await;
        assert_eq!(answer.header("x-cache"), Some("miss"), "a poorer answer is not kept");
        let data = answer.data();
        assert_eq!(titles(&data), PLAIN);
        assert!(data["warnings"].to_string().contains("not reranked"), "{data}");
        assert!(!data.to_string().contains(KEY));
    }
    provider.tell(Some("429 Too Many Requests\r\nRetry-After: 60"));
    let before = provider.asked();
    for _ in 0..3 {
        assert_eq!(titles(&search(&api, Value::Null).await.data()), PLAIN);
    }
    assert_eq!(provider.asked(), before + 1, "it is left alone for as long as it asks");
    // One that may not be called is told as any other.
    provider.tell(None);
    set(&api, &admin, json!({ "base_url": "" })).await;
    assert!(search(&api, Value::Null).await.data()["warnings"].to_string().contains("not reranked"));
}

#[actix_web::test]
async fn an_entry_is_tried_out() {
    let (api, provider) = (api().await, Provider::start());
    let admin = api.admin().await;
    let test = async |entry: Value| {
        let body = json!({ "models": { "rerank": entry } });
        api.post("/api/v1/settings/test", &admin, body).await.data()
    };
    let tried = test(provider.entry()).await;
    assert_eq!(tried["ok"], true);
    let detail = tried["detail"].as_str().unwrap();
    assert!(detail.contains("judge") && detail.contains("[0.0, 1.0]"), "{detail}");
    provider.tell(Some("401 Unauthorized"));
    let tried = test(provider.entry()).await;
    assert_eq!(tried["ok"], false);
    assert!(tried["detail"].as_str().unwrap().contains("refuses the key"), "{tried}");
    assert!(!tried.to_string().contains(KEY));
}

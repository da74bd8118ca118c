//! Tests of the rerank API against a local HTTP server.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "the helpers of tests may fail as the tests do"
)]

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use lkr_models::{ErrorKind, MemoryReranker, Reranker};
use lkr_models_remote::{HttpReranker, RemoteOptions};
use lkr_outgoing::{Outgoing, Policy, Resolve, Roots, SystemResolver};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

const KEY: &str = "sk-planted-4711";

/// Computes the response to a request body: status line with headers, and body. Without a status there is no response.
type Handler = dyn Fn(&Value) -> (String, String) + Send + Sync;

/// A local provider that records the head and the body of each request.
#[derive(Clone)]
struct RerankServer {
    port: u16,
    handler: Arc<Handler>,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl RerankServer {
    async fn start(handler: impl Fn(&Value) -> (String, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let provider = Self { port, handler: Arc::new(handler), requests: Arc::default() };
        let server = provider.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let server = server.clone();
                tokio::spawn(async move { server.serve(stream).await });
            }
        });
        provider
    }

    /// A provider whose response is always the same.
    async fn responding(status: &str, body: &str) -> Self {
        let answer = (status.to_owned(), body.to_owned());
        Self::start(move |_| answer.clone()).await
    }

    async fn serve(&self, mut stream: TcpStream) {
        let Some((head, body)) = read(&mut stream).await else { return };
        let (status, answer) = (self.handler)(&body);
        self.requests.lock().unwrap().push((head, body));
        if status.is_empty() {
            // Waits until the client closes the connection.
            let _ = stream.read(&mut [0; 64]).await;
            return;
        }
        let length = answer.len();
        let text =
            format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}");
        let _ = stream.write_all(text.as_bytes()).await;
    }

    fn requests(&self) -> Vec<(String, Value)> {
        self.requests.lock().unwrap().clone()
    }

    fn options(&self) -> RemoteOptions {
        RemoteOptions {
            base_url: format!("http://127.0.0.1:{}/v1/", self.port),
            model: "cross-encoder".to_owned(),
            api_key: Some(KEY.into()),
            timeout: Duration::from_secs(20),
        }
    }

    fn reranker(&self) -> HttpReranker {
        HttpReranker::new(outgoing(), self.options()).unwrap()
    }
}

fn outgoing() -> Outgoing {
    // The tests use plain HTTP. A small certificate file avoids reading the system's certificates, which is slow.
    let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver);
    let roots = Roots::Pem(include_bytes!("../../lkr-outgoing/tests/tls/authority.pem").to_vec());
    Outgoing::with(Policy::any(), resolver, &roots).unwrap()
}

async fn read(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(end) = bytes.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
        let body = &bytes[end + 4..];
        if body.len() >= length.parse().ok()? {
            return Some((head.clone(), serde_json::from_slice(body).ok()?));
        }
    }
}

fn passages(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("passage {n}")).collect()
}

fn ok(body: &Value) -> (String, String) {
    ("200 OK".to_owned(), body.to_string())
}

fn texts_of<'a>(body: &'a Value, key: &str) -> Option<Vec<&'a str>> {
    Some(body[key].as_array()?.iter().map(|text| text.as_str().unwrap()).collect())
}

/// A response like those of Jina and vLLM: in another order than the documents, with the documents and the usage.
fn jina(body: &Value) -> (String, String) {
    let Some(documents) = texts_of(body, "documents") else {
        return ("422 Unprocessable Entity".to_owned(), "{}".to_owned());
    };
    let result = |(n, text): (usize, &&str)| {
        let score = 0.5 + text.len() as f32 / 1e3;
        json!({ "index": n, "relevance_score": score, "document": { "text": text } })
    };
    let mut results: Vec<Value> = documents.iter().enumerate().map(result).collect();
    results.reverse();
    ok(&json!({ "model": "cross-encoder", "usage": { "total_tokens": 9 }, "results": results }))
}

/// A response like that of TEI, which refuses batches of more than `max_texts` texts.
fn tei(body: &Value, max_texts: usize) -> (String, String) {
    let Some(texts) = texts_of(body, "texts") else {
        return ("422 Unprocessable Entity".to_owned(), "missing field `texts`".to_owned());
    };
    if texts.len() > max_texts {
        return ("413 Payload Too Large".to_owned(), json!({ "error_type": "Validation" }).to_string());
    }
    let result = |(n, text): (usize, &&str)| json!({ "index": n, "score": 0.5 + text.len() as f32 / 1e3 });
    ok(&texts.iter().enumerate().rev().map(result).collect())
}

const SCORES: [f32; 3] = [0.502, 0.505, 0.501];

fn three_passages() -> Vec<String> {
    ["ab", "abcde", "a"].map(str::to_owned).to_vec()
}

#[tokio::test]
async fn request_and_response_have_the_format_of_vllm_and_jina() {
    let provider = RerankServer::start(jina).await;
    let reranker = provider.reranker();
    assert_eq!(reranker.rerank("what", &three_passages()).await.unwrap(), SCORES);
    let (head, body) = &provider.requests()[0];
    assert!(head.starts_with("post /v1/rerank http/1.1"), "{head}");
    assert!(
        head.contains(&format!("authorization: bearer {KEY}"))
            && head.contains("content-type: application/json")
    );
    let expected = json!({
        "model": "cross-encoder", "query": "what", "documents": three_passages(), "top_n": 3, "return_documents": false,
    });
    assert_eq!(body, &expected);
    assert_eq!(reranker.profile().name, "cross-encoder");
}

#[tokio::test]
async fn format_and_batch_size_of_tei_are_learned() {
    let provider = RerankServer::start(|body| tei(body, 4)).await;
    let reranker = provider.reranker();
    assert_eq!(reranker.rerank("what", &three_passages()).await.unwrap(), SCORES);
    assert_eq!(provider.requests().len(), 2);
    let scores = reranker.rerank("what", &passages(10)).await.unwrap();
    assert_eq!(scores.len(), 10);
    assert!(scores.iter().all(|score| (*score - 0.509).abs() < 1e-6), "{scores:?}");
    let sizes = |from: usize| -> Vec<usize> {
        provider.requests()[from..].iter().map(|(_, body)| texts_of(body, "texts").unwrap().len()).collect()
    };
    assert_eq!(sizes(2), [10, 5, 2, 2, 2, 2, 2], "the request format was not remembered");
    reranker.rerank("what", &passages(3)).await.unwrap();
    assert_eq!(sizes(9), [2, 1], "the batch size was not remembered");
}

#[tokio::test]
async fn passage_that_is_refused_alone_lowers_no_batch_size() {
    let provider = RerankServer::start(|body| {
        let is_too_long = texts_of(body, "texts").unwrap_or_default().iter().any(|text| text.len() > 1_000);
        tei(body, if is_too_long { 0 } else { usize::MAX })
    })
    .await;
    let reranker = provider.reranker();
    assert_eq!(reranker.rerank("what", &three_passages()).await.unwrap(), SCORES);
    let long = [passages(7), vec!["long ".repeat(1_000)]].concat();
    assert_eq!(reranker.rerank("what", &long).await.unwrap_err().kind(), ErrorKind::TooLarge);
    let sent = provider.requests().len();
    reranker.rerank("what", &passages(8)).await.unwrap();
    assert_eq!(provider.requests().len(), sent + 1, "the batch size was lowered");
}

#[tokio::test]
async fn no_request_is_sent_without_passages() {
    let provider = RerankServer::start(jina).await;
    assert_eq!(provider.reranker().rerank("what", &[]).await.unwrap(), [0.0; 0]);
    assert!(provider.requests().is_empty());
}

#[tokio::test]
async fn invalid_rerank_responses_are_errors() {
    let result = |index: i64, score: Value| json!({ "index": index, "relevance_score": score });
    let answers = [
        json!({ "results": [result(0, json!(0.5)), result(1, json!(0.5))] }),
        json!({ "results": [result(0, json!(0.5)), result(1, json!(0.5)), result(1, json!(0.5))] }),
        json!({ "results": [result(0, json!(0.5)), result(1, json!(0.5)), result(3, json!(0.5))] }),
        json!({ "results": [result(0, json!(0.5)), result(1, json!(0.5)), result(-1, json!(0.5))] }),
        json!({ "results": [result(0, json!(0.5)), result(1, json!(0.5)), result(2, json!("high"))] }),
        json!({ "results": [result(0, json!(0.5)), result(1, json!(0.5)), result(2, json!(1e300))] }),
        json!({ "results": "none" }),
        json!({ "error": KEY }),
        json!([]),
        json!(null),
    ];
    for answer in answers.iter().map(Value::to_string).chain(["<html>".to_owned(), String::new()]) {
        let provider = RerankServer::responding("200 OK", &answer).await;
        let error = provider.reranker().rerank("what", &three_passages()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal, "{answer}: {error}");
        assert!(!error.is_retryable() && !error.to_string().contains(KEY), "{error}");
    }
}

#[tokio::test]
async fn statuses_have_the_right_error_kind_and_never_show_the_key() {
    for (status, kind) in [
        ("401 Unauthorized", ErrorKind::Config),
        ("403 Forbidden", ErrorKind::Config),
        ("404 Not Found", ErrorKind::Config),
        ("400 Bad Request", ErrorKind::Input),
        ("307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/", ErrorKind::Config),
        ("500 Internal Server Error", ErrorKind::Unavailable),
        ("503 Service Unavailable", ErrorKind::Unavailable),
        ("429 Too Many Requests", ErrorKind::Throttled { retry_after: None }),
    ] {
        let provider = RerankServer::responding(status, &format!("no such key: {KEY}")).await;
        let reranker = provider.reranker();
        let error = reranker.rerank("what", &three_passages()).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{status}");
        for shown in [error.to_string(), format!("{error:?}"), format!("{reranker:?}")] {
            assert!(!shown.contains(KEY), "{shown}");
        }
    }
}

#[tokio::test]
async fn lesson_04_calls_fail_at_once_until_retry_after_is_over() {
    for status in ["429 Too Many Requests\r\nRetry-After: 120", "503 Service Unavailable\r\nRetry-After: 120"]
    {
        let provider = RerankServer::responding(status, "{}").await;
        let reranker = provider.reranker();
        for _ in 0..3 {
            let error = reranker.rerank("what", &three_passages()).await.unwrap_err();
            let ErrorKind::Throttled { retry_after: Some(wait) } = error.kind() else { panic!("{error}") };
            assert!(wait > Duration::from_secs(100) && wait <= Duration::from_secs(120), "{wait:?}");
            assert!(error.is_retryable());
        }
        assert_eq!(provider.requests().len(), 1, "a request was sent before Retry-After was over");
    }
    // A very long time is shortened to ten minutes.
    let provider = RerankServer::responding("429 Too Many Requests\r\nRetry-After: 99999999", "{}").await;
    let error = provider.reranker().rerank("what", &three_passages()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Throttled { retry_after: Some(Duration::from_secs(600)) });
}

#[tokio::test]
async fn provider_without_response_is_unavailable_after_the_timeout() {
    let provider = RerankServer::responding("", "").await;
    let options = RemoteOptions { timeout: Duration::from_millis(100), ..provider.options() };
    let reranker = HttpReranker::new(outgoing(), options).unwrap();
    let started = Instant::now();
    let error = reranker.rerank("what", &three_passages()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(started.elapsed() < Duration::from_secs(15));
    let unreachable = RemoteOptions { base_url: "http://127.0.0.1:1".to_owned(), ..provider.options() };
    let error = HttpReranker::new(outgoing(), unreachable)
        .unwrap()
        .rerank("what", &three_passages())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[test]
fn lesson_26_forbidden_addresses_and_invalid_keys_are_refused() {
    let options = |base_url: &str, key: &str| RemoteOptions {
        base_url: base_url.to_owned(),
        model: String::new(),
        api_key: Some(key.into()),
        timeout: Duration::from_secs(1),
    };
    for (base_url, key) in
        [("http://169.254.169.254/", KEY), ("", KEY), ("ftp://h", KEY), ("http://h", "sk-planted\n4711")]
    {
        let error = HttpReranker::new(outgoing(), options(base_url, key)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(!error.to_string().contains("planted"), "{error}");
    }
    let complete = options("http://127.0.0.1:1/v1/rerank", KEY);
    assert_eq!(HttpReranker::new(outgoing(), complete).unwrap().profile().name, "reranker");
}

mod conformance {
    use super::*;

    /// A remote reranker whose provider scores with a [`MemoryReranker`].
    async fn reranker() -> (Arc<dyn Reranker>, ()) {
        let provider = RerankServer::start(|body| {
            let documents: Vec<String> =
                texts_of(body, "documents").unwrap().into_iter().map(str::to_owned).collect();
            let query = body["query"].as_str().unwrap().to_owned();
            let scores = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(MemoryReranker::new().rerank(&query, &documents)).unwrap()
            });
            let scores = scores.join().unwrap();
            let results =
                scores.iter().enumerate().map(|(n, score)| json!({ "index": n, "relevance_score": score }));
            ok(&json!({ "results": results.collect::<Vec<_>>() }))
        });
        (Arc::new(provider.await.reranker()), ())
    }

    lkr_models::reranker_suite!(reranker());
}

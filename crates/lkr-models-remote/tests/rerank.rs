//! The rerank API against a real server on this machine.
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

/// How a provider answers what it is sent: a status line with headers, and a body.
type Rule = dyn Fn(&Value) -> (String, String) + Send + Sync;

/// A provider on this machine, and what it was sent.
#[derive(Clone)]
struct Provider {
    port: u16,
    rule: Arc<Rule>,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Provider {
    async fn start(rule: impl Fn(&Value) -> (String, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let provider = Self { port, rule: Arc::new(rule), seen: Arc::default() };
        let serving = provider.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let serving = serving.clone();
                tokio::spawn(async move { serving.serve(stream).await });
            }
        });
        provider
    }

    /// One that always answers the same.
    async fn answering(status: &str, body: &str) -> Self {
        let answer = (status.to_owned(), body.to_owned());
        Self::start(move |_| answer.clone()).await
    }

    async fn serve(&self, mut stream: TcpStream) {
        let Some((head, body)) = read(&mut stream).await else { return };
        let (status, answer) = (self.rule)(&body);
        self.seen.lock().unwrap().push((head, body));
        if status.is_empty() {
            // It never answers.
            let _ = stream.read(&mut [0; 64]).await;
            return;
        }
        let length = answer.len();
        let text =
            format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}");
        let _ = stream.write_all(text.as_bytes()).await;
    }

    fn seen(&self) -> Vec<(String, Value)> {
        self.seen.lock().unwrap().clone()
    }

    fn options(&self) -> RemoteOptions {
        RemoteOptions {
            base_url: format!("http://127.0.0.1:{}/v1/", self.port),
            model: "judge".to_owned(),
            api_key: Some(KEY.into()),
            timeout: Duration::from_secs(20),
        }
    }

    fn reranker(&self) -> HttpReranker {
        HttpReranker::new(outgoing(), self.options()).unwrap()
    }
}

fn outgoing() -> Outgoing {
    // No certificates are needed here, and reading the system's takes its time.
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

/// As Jina and vLLM answer: the best first, with the documents and what it cost.
fn jina(body: &Value) -> (String, String) {
    let Some(documents) = texts_of(body, "documents") else {
        return ("422 Unprocessable Entity".to_owned(), "{}".to_owned());
    };
    let row = |(n, text): (usize, &&str)| json!({ "index": n, "relevance_score": 0.5 + text.len() as f32 / 1e3, "document": { "text": text } });
    let mut results: Vec<Value> = documents.iter().enumerate().map(row).collect();
    results.reverse();
    ok(&json!({ "model": "judge", "usage": { "total_tokens": 9 }, "results": results }))
}

/// As TEI answers, with at most `most` at a time.
fn tei(body: &Value, most: usize) -> (String, String) {
    let Some(texts) = texts_of(body, "texts") else {
        return ("422 Unprocessable Entity".to_owned(), "missing field `texts`".to_owned());
    };
    if texts.len() > most {
        return ("413 Payload Too Large".to_owned(), json!({ "error_type": "Validation" }).to_string());
    }
    let row = |(n, text): (usize, &&str)| json!({ "index": n, "score": 0.5 + text.len() as f32 / 1e3 });
    ok(&texts.iter().enumerate().rev().map(row).collect())
}

const SCORES: [f32; 3] = [0.502, 0.505, 0.501];

fn three() -> Vec<String> {
    ["ab", "abcde", "a"].map(str::to_owned).to_vec()
}

#[tokio::test]
async fn the_api_of_vllm_and_jina() {
    let provider = Provider::start(jina).await;
    let reranker = provider.reranker();
    assert_eq!(reranker.rerank("what", &three()).await.unwrap(), SCORES);
    let (head, body) = &provider.seen()[0];
    assert!(head.starts_with("post /v1/rerank http/1.1"), "{head}");
    assert!(
        head.contains(&format!("authorization: bearer {KEY}"))
            && head.contains("content-type: application/json")
    );
    let expected = json!({
        "model": "judge", "query": "what", "documents": three(), "top_n": 3, "return_documents": false,
    });
    assert_eq!(body, &expected);
    assert_eq!(reranker.profile().name, "judge");
}

#[tokio::test]
async fn the_api_of_tei_is_found_out_and_what_is_too_much_is_halved() {
    let provider = Provider::start(|body| tei(body, 4)).await;
    let reranker = provider.reranker();
    assert_eq!(reranker.rerank("what", &three()).await.unwrap(), SCORES);
    assert_eq!(provider.seen().len(), 2);
    let scores = reranker.rerank("what", &passages(10)).await.unwrap();
    assert_eq!(scores.len(), 10);
    assert!(scores.iter().all(|score| (*score - 0.509).abs() < 1e-6), "{scores:?}");
    let sizes = |from: usize| -> Vec<usize> {
        provider.seen()[from..].iter().map(|(_, body)| texts_of(body, "texts").unwrap().len()).collect()
    };
    assert_eq!(sizes(2), [10, 5, 2, 2, 2, 2, 2], "it was remembered in which form it wants them");
    reranker.rerank("what", &passages(3)).await.unwrap();
    assert_eq!(sizes(9), [2, 1], "and how many");
}

#[tokio::test]
async fn nothing_is_sent_for_nothing() {
    let provider = Provider::start(jina).await;
    assert_eq!(provider.reranker().rerank("what", &[]).await.unwrap(), [0.0; 0]);
    assert!(provider.seen().is_empty());
}

#[tokio::test]
async fn answers_that_do_not_fit_are_errors() {
    let row = |index: i64, score: Value| json!({ "index": index, "relevance_score": score });
    let answers = [
        json!({ "results": [row(0, json!(0.5)), row(1, json!(0.5))] }),
        json!({ "results": [row(0, json!(0.5)), row(1, json!(0.5)), row(1, json!(0.5))] }),
        json!({ "results": [row(0, json!(0.5)), row(1, json!(0.5)), row(3, json!(0.5))] }),
        json!({ "results": [row(0, json!(0.5)), row(1, json!(0.5)), row(-1, json!(0.5))] }),
        json!({ "results": [row(0, json!(0.5)), row(1, json!(0.5)), row(2, json!("high"))] }),
        json!({ "results": [row(0, json!(0.5)), row(1, json!(0.5)), row(2, json!(1e300))] }),
        json!({ "results": "none" }),
        json!({ "error": KEY }),
        json!([]),
        json!(null),
    ];
    for answer in answers.iter().map(Value::to_string).chain(["<html>".to_owned(), String::new()]) {
        let provider = Provider::answering("200 OK", &answer).await;
        let error = provider.reranker().rerank("what", &three()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal, "{answer}: {error}");
        assert!(!error.is_retryable() && !error.to_string().contains(KEY), "{error}");
    }
}

#[tokio::test]
async fn what_statuses_mean_and_no_key_in_any_of_it() {
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
        let provider = Provider::answering(status, &format!("no such key: {KEY}")).await;
        let reranker = provider.reranker();
        let error = reranker.rerank("what", &three()).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{status}");
        for shown in [error.to_string(), format!("{error:?}"), format!("{reranker:?}")] {
            assert!(!shown.contains(KEY), "{shown}");
        }
    }
}

#[tokio::test]
async fn lesson_04_a_time_to_wait_is_honoured() {
    for status in ["429 Too Many Requests\r\nRetry-After: 120", "503 Service Unavailable\r\nRetry-After: 120"]
    {
        let provider = Provider::answering(status, "{}").await;
        let reranker = provider.reranker();
        for _ in 0..3 {
            let error = reranker.rerank("what", &three()).await.unwrap_err();
            let ErrorKind::Throttled { retry_after: Some(left) } = error.kind() else { panic!("{error}") };
            assert!(left > Duration::from_secs(100) && left <= Duration::from_secs(120), "{left:?}");
            assert!(error.is_retryable());
        }
        assert_eq!(provider.seen().len(), 1, "it is left alone");
    }
    // Nobody is left alone for ever.
    let provider = Provider::answering("429 Too Many Requests\r\nRetry-After: 99999999", "{}").await;
    let error = provider.reranker().rerank("what", &three()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Throttled { retry_after: Some(Duration::from_secs(600)) });
}

#[tokio::test]
async fn who_does_not_answer_is_not_waited_for() {
    let provider = Provider::answering("", "").await;
    let options = RemoteOptions { timeout: Duration::from_millis(100), ..provider.options() };
    let reranker = HttpReranker::new(outgoing(), options).unwrap();
    let started = Instant::now();
    let error = reranker.rerank("what", &three()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(started.elapsed() < Duration::from_secs(15));
    let nobody = RemoteOptions { base_url: "http://127.0.0.1:1".to_owned(), ..provider.options() };
    let error = HttpReranker::new(outgoing(), nobody).unwrap().rerank("what", &three()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[test]
fn lesson_26_what_may_not_be_called_is_refused_at_once() {
    let provider = |base_url: &str, key: &str| RemoteOptions {
        base_url: base_url.to_owned(),
        model: String::new(),
        api_key: Some(key.into()),
        timeout: Duration::from_secs(1),
    };
    for (base_url, key) in
        [("http://169.254.169.254/", KEY), ("", KEY), ("ftp://h", KEY), ("http://h", "sk-planted\n4711")]
    {
        let error = HttpReranker::new(outgoing(), provider(base_url, key)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(!error.to_string().contains("planted"), "{error}");
    }
    let whole = provider("http://127.0.0.1:1/v1/rerank", KEY);
    assert_eq!(HttpReranker::new(outgoing(), whole).unwrap().profile().name, "reranker");
}

mod conformance {
    use super::*;

    /// A provider that knows shared words, and the reranker that asks it.
    async fn reranker() -> (Arc<dyn Reranker>, ()) {
        let provider = Provider::start(|body| {
            let documents: Vec<String> =
                texts_of(body, "documents").unwrap().into_iter().map(str::to_owned).collect();
            let query = body["query"].as_str().unwrap().to_owned();
            let scores = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(MemoryReranker::new().rerank(&query, &documents)).unwrap()
            });
            let scores = scores.join().unwrap();
            let rows =
                scores.iter().enumerate().map(|(n, score)| json!({ "index": n, "relevance_score": score }));
            ok(&json!({ "results": rows.collect::<Vec<_>>() }))
        });
        (Arc::new(provider.await.reranker()), ())
    }

    lkr_models::reranker_suite!(reranker());
}

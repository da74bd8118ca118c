//! Traces, as an OpenTelemetry collector receives them.

use std::{
    iter::successors,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use lkr_domain::hex;
use lkr_tests::{ADMIN_PASSWORD, Response, Server, WebhookReceiver, workspace};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::any_value::Value as Attribute,
    trace::v1::{Span, span::SpanKind},
};
use prost::Message;
use serde_json::json;

/// A word that occurs in queries and documents, and must occur in no trace.
const SECRET: &str = "xylophone";

/// A server with an embedding model that sends its traces to a receiver.
fn traced_server(collector: &WebhookReceiver) -> Server {
    let model = workspace().join("crates/lkr-models-local/tests/fixtures/tiny-bert-mean");
    Server::start_with(&[
        ("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD),
        ("LKR_MODEL_DIR", &model.display().to_string()),
        ("LKR_OTLP_ENDPOINT", &collector.url()),
    ])
}

/// The spans that a collector has received.
fn received(collector: &WebhookReceiver) -> Vec<Span> {
    let spans = |request: ExportTraceServiceRequest| {
        let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect::<Vec<_>>()
    };
    let requests = collector.deliveries().into_iter();
    let decoded = requests.map(|request| ExportTraceServiceRequest::decode(&*request.bytes).unwrap());
    decoded.flat_map(spans).collect()
}

/// The spans of a trace, once its root has arrived. The root ends last.
fn trace(server: &Server, collector: &WebhookReceiver, trace_id: &str) -> Vec<Span> {
    server.wait_until(|| {
        let all = received(collector).into_iter();
        let spans: Vec<Span> = all.filter(|span| hex(&span.trace_id) == trace_id).collect();
        spans.iter().any(|span| matches!(span.name.as_str(), name if is_root(name))).then_some(spans)
    })
}

fn is_root(name: &str) -> bool {
    name == "task" || name.contains(' ')
}

/// Asserts that there is a span with this name, the first one, within one with the second, and so on.
fn assert_path(spans: &[Span], path: &[&str]) {
    let parent = |span: &&Span| spans.iter().find(|other| other.span_id == span.parent_span_id);
    let path_of = |span| successors(Some(span), parent).map(|span| &*span.name).collect::<Vec<_>>();
    let named = spans.iter().filter(|span| Some(&*span.name) == path.first().copied());
    let paths: Vec<_> = named.map(path_of).collect();
    assert!(paths.iter().any(|found| found == path), "{path:?} is not in {paths:?}: {}", names(spans));
}

fn names(spans: &[Span]) -> String {
    spans.iter().map(|span| span.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The value of an attribute as text; empty if it is absent.
fn attribute(span: &Span, key: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key == key);
    match found.and_then(|attribute| attribute.value.as_ref()?.value.as_ref()) {
        Some(Attribute::StringValue(text)) => text.clone(),
        Some(Attribute::IntValue(number)) => number.to_string(),
        Some(Attribute::BoolValue(truth)) => truth.to_string(),
        _ => String::new(),
    }
}

fn search(server: &Server, headers: &[(&str, &str)]) -> Response {
    // Most words are in the vocabulary of the model; otherwise it would not be asked.
    let query = format!("the dog and the new dog and few dog {SECRET} {}", next_number());
    let body = json!({"query": query}).to_string();
    let mut all = vec![("Content-Type", "application/json".to_owned())];
    all.extend(headers.iter().map(|(name, value)| (*name, (*value).to_owned())));
    let response = server.try_send("POST", "/api/v1/search", &all, Some(body.into_bytes())).unwrap();
    assert_eq!(response.status, 200);
    response
}

/// A number that differs in each call.
fn next_number() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

fn request_id(response: &Response) -> &str {
    response.header("x-request-id").unwrap()
}

#[test]
fn search_is_one_trace_from_the_request_to_the_stores_and_the_model() {
    let collector = WebhookReceiver::start();
    let server = traced_server(&collector);
    let _ = server.add(&json!({"text": format!("The {SECRET} is an instrument. It has bars.")}));
    let response = search(&server, &[]);
    let spans = trace(&server, &collector, request_id(&response));
    for expected in [
        &["vectors.query_batch", "legs", "search", "POST /api/v1/search"][..],
        &["model.embed", "encode", "search", "POST /api/v1/search"],
        &["vectors.get", "read", "search", "POST /api/v1/search"],
        &["fuse", "search", "POST /api/v1/search"],
        &["assemble", "search", "POST /api/v1/search"],
    ] {
        assert_path(&spans, expected);
    }
    let roots: Vec<&Span> = spans.iter().filter(|span| span.parent_span_id.is_empty()).collect();
    let [root] = &*roots else { panic!("{}", names(&spans)) };
    assert_eq!(root.kind, SpanKind::Server as i32);
    assert_eq!(attribute(root, "http.route"), "/api/v1/search");
    assert_eq!(attribute(root, "http.response.status_code"), "200");
    assert_eq!(attribute(root, "request_id"), request_id(&response));
    assert!(spans.iter().any(|span| span.name.starts_with("state.")), "{}", names(&spans));
    for span in &spans {
        assert!(root.start_time_unix_nano <= span.start_time_unix_nano, "{}", span.name);
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{}", span.name);
        assert!(span.events.is_empty(), "log lines are no part of a trace: {:?}", span.events);
    }
    assert!(!format!("{:?}", received(&collector)).contains(SECRET), "a text is in a trace");
}

#[test]
fn callers_trace_is_continued_and_its_sampling_is_followed() {
    let collector = WebhookReceiver::start();
    let server = traced_server(&collector);
    let (trace_id, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let unsampled = "5bf92f3577b34da6a3ce929d0e0e4736";
    search(&server, &[("traceparent", &format!("00-{unsampled}-{parent}-00"))]);
    let own = format!("00-{trace_id}-{parent}-01");
    let response = search(&server, &[("traceparent", &own), ("X-Request-Id", "order-17")]);
    assert_eq!(request_id(&response), "order-17");
    let spans = trace(&server, &collector, trace_id);
    let root = spans.iter().find(|span| is_root(&span.name)).unwrap();
    assert_eq!(hex(&root.parent_span_id), parent);
    assert_eq!(attribute(root, "request_id"), "order-17");
    assert_path(&spans, &["model.embed", "encode", "search", "POST /api/v1/search"]);
    assert!(received(&collector).iter().all(|span| hex(&span.trace_id) != unsampled));
}

#[test]
fn task_is_a_trace_of_its_own_that_links_to_its_request() {
    let collector = WebhookReceiver::start();
    let server = traced_server(&collector);
    let body = json!({"text": format!("The {SECRET} is an instrument.")});
    let accepted = server.call("POST", "/documents", Some(&body), Some(server.admin()));
    let task_id = accepted.data()["task_id"].as_str().unwrap().to_owned();
    assert_eq!(server.wait_for_task(&task_id)["status"], "done");
    let spans = trace(&server, &collector, &task_id);
    let root = spans.iter().find(|span| span.name == "task").unwrap();
    assert_eq!((attribute(root, "kind"), attribute(root, "task_id")), ("ingest".to_owned(), task_id));
    for expected in [
        &["parse", "task"][..],
        &["layer", "task"],
        &["model.embed", "embed", "task"],
        &["vectors.upsert_all", "embed", "task"],
        &["publish", "task"],
    ] {
        assert_path(&spans, expected);
    }
    let request = trace(&server, &collector, request_id(&accepted));
    let request_root = request.iter().find(|span| is_root(&span.name)).unwrap();
    let [link] = &*root.links else { panic!("{:?}", root.links) };
    assert_eq!((&link.trace_id, &link.span_id), (&request_root.trace_id, &request_root.span_id));
    assert!(!format!("{:?}", received(&collector)).contains(SECRET), "a text is in a trace");
}

#[test]
fn stop_sends_the_last_spans() {
    let collector = WebhookReceiver::start();
    let server = traced_server(&collector);
    let response = search(&server, &[]);
    let id = request_id(&response).to_owned();
    server.stop();
    let spans = received(&collector);
    assert!(spans.iter().any(|span| hex(&span.trace_id) == id && is_root(&span.name)), "{}", names(&spans));
}

#[test]
fn collector_that_hangs_or_refuses_delays_neither_requests_nor_the_stop() {
    let collector = WebhookReceiver::start();
    let server = traced_server(&collector);
    collector.set_response("400 Bad Request");
    search(&server, &[]);
    let failed = server.wait_until(|| {
        let metrics = server.try_call("GET", "/metrics", None, None).ok()?;
        let text = String::from_utf8_lossy(&metrics.body).into_owned();
        let failed =
            text.lines().find_map(|line| line.strip_prefix(r#"lkr_trace_spans_total{outcome="failed"} "#))?;
        failed.parse::<u64>().ok()
    });
    assert!(failed > 5, "{failed}");
    assert!(server.log().contains("the trace collector did not accept spans"), "{}", server.log());
    collector.set_response("");
    for _ in 0..50 {
        search(&server, &[]);
    }
    let slowest = (0..20).map(|_| {
        let started = Instant::now();
        search(&server, &[]);
        started.elapsed()
    });
    assert!(slowest.max().unwrap() < Duration::from_secs(2));
    let started = Instant::now();
    server.stop();
    assert!(started.elapsed() < Duration::from_secs(12), "{:?}", started.elapsed());
}

#[test]
fn server_without_a_collector_makes_no_spans() {
    let server = Server::start();
    search(&server, &[("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")]);
    let metrics = server.try_call("GET", "/metrics", None, None).unwrap();
    assert!(!String::from_utf8_lossy(&metrics.body).contains("lkr_trace_spans_total"));
}

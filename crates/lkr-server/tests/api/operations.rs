//! The root paths, and the server while it starts and stops.

use std::{collections::BTreeSet, time::Duration};

use actix_web::{
    http::{Method, StatusCode},
    test,
};
use serde_json::json;

use crate::support::{Api, App, PASSWORD, TEXT, TestOptions, api, api_with};

#[actix_web::test]
async fn healthz_is_ok_and_readyz_lists_dependencies() {
    let api = api().await;
    assert_eq!(api.get("/healthz").await.data(), json!({ "status": "ok" }));
    let ready = api.get("/readyz").await.data();
    let dependencies =
        json!({ "vectors": "ok", "state": "ok", "blobs": "ok", "embedder": "degraded", "queue": "ok" });
    assert_eq!((&ready["status"], &ready["dependencies"]), (&json!("degraded"), &dependencies));
    assert_eq!(ready["embedding"], json!({ "in_use": null, "wanted": null }));
}

#[actix_web::test]
async fn readyz_tells_reasons_latencies_queue_workers_and_version() {
    let api = api().await;
    let ready = api.get("/readyz").await.data();
    for (name, status) in ready["dependencies"].as_object().unwrap() {
        let check = &ready["checks"][name];
        assert_eq!(&check["status"], status);
        assert_eq!(check["reason"].is_null(), status == "ok", "{check}");
        assert!(check["latency_ms"].as_f64().unwrap() >= 0.0);
    }
    let reason = ready["checks"]["embedder"]["reason"].as_str().unwrap();
    assert!(reason.contains("no embedding model"), "{reason}");
    assert_eq!(ready["queue"], json!({ "tasks": 0, "oldest_age_s": null }));
    assert_eq!(ready["workers"], json!({ "count": 8, "running_tasks": 0 }));
    assert_eq!(ready["version"], env!("CARGO_PKG_VERSION"));
    api.faults.set("queue", "health", true);
    let check = api.get("/readyz").await.data()["checks"]["queue"].clone();
    assert_eq!((&check["status"], check["reason"].is_string()), (&json!("down"), true), "{check}");
    api.faults.set("queue", "len", true);
    let ready = api.get("/readyz").await.data();
    assert_eq!((&ready["queue"], &ready["status"]), (&json!(null), &json!("degraded")));
}

#[actix_web::test]
async fn starting_server_is_alive_and_refuses_requests() {
    let api = api_with(TestOptions { starting: true, ..TestOptions::default() }).await;
    assert!(api.get("/healthz").await.status.is_success());
    let ready = api.get("/readyz").await;
    assert_eq!((ready.status.as_u16(), ready.json()["code"].as_u64()), (503, Some(1010)));
    assert_eq!(ready.json()["data"]["status"], "down");
    for (method, path) in [
        (Method::GET, "/api/v1/documents"),
        (Method::GET, "/api/v1/auth/me"),
        (Method::POST, "/api/v1/documents"),
        (Method::GET, "/api/v1/nope"),
    ] {
        let response = api.call(method, path, "", None).await;
        response.expect_error(1010, 503);
        assert!(response.header("retry-after").is_some());
    }
    let login = api.post("/api/v1/auth/login", "", json!({ "username": "admin", "password": "x" })).await;
    login.expect_error(1010, 503);
}

#[actix_web::test]
async fn stopping_server_refuses_requests() {
    let api = api().await;
    api.app_state.stop();
    let response = api.get("/api/v1/documents").await;
    response.expect_error(1010, 503);
    assert_eq!(response.header("connection"), Some("close"));
    assert_eq!(api.get("/readyz").await.status.as_u16(), 503);
}

#[actix_web::test]
async fn in_flight_count_returns_to_zero_after_each_request() {
    let api = api().await;
    api.get("/api/v1/documents").await;
    api.get("/nope").await;
    api.post("/api/v1/search/stream", "", json!({ "query": "x" })).await;
    assert_eq!(api.app_state.in_flight(), 0);
}

#[actix_web::test]
async fn metrics_count_requests_by_route_not_by_path() {
    let api = api().await;
    api.get("/api/v1/documents/abc").await;
    api.get("/made/up").await;
    api.post("/api/v1/search", "", json!({ "query": "x" })).await;
    let response = api.get("/metrics").await;
    assert!(response.header("content-type").unwrap().starts_with("text/plain"));
    let text = String::from_utf8(response.body).unwrap();
    for line in [
        r#"lkr_http_requests_total{method="GET",route="/api/v1/documents/{doc_id}",status="404"} 1"#,
        r#"lkr_http_requests_total{method="GET",route="unknown",status="404"} 1"#,
        r#"lkr_search_cache_total{cache="miss"} 1"#,
        "lkr_search_duration_seconds_count 1",
        "lkr_ingest_queue_tasks 0",
    ] {
        assert!(text.contains(line), "{line} is missing in {text}");
    }
    assert!(!text.contains("/made/up"));
}

/// The series that the server exposes.
async fn series(api: &Api<impl App>) -> BTreeSet<String> {
    let text = String::from_utf8(api.get("/metrics").await.body).unwrap();
    let names = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    names.map(|(name, _)| name.to_owned()).collect()
}

/// Sends requests whose paths, ids, accounts, queries, spaces, methods and headers nobody sent before.
async fn send_unheard_of(api: &Api<impl App>, n: usize) {
    let id = format!("{n:032x}");
    let login = json!({ "username": format!("user-{n}"), "password": PASSWORD });
    let space = format!("space-{n}");
    match n % 6 {
        0 => drop(api.get(&format!("/made/up/{n}?q={n}")).await),
        1 => drop(api.get(&format!("/api/v1/documents/{id}")).await),
        2 => drop(api.post("/api/v1/auth/login", "", login).await),
        3 => drop(api.post("/api/v1/search", "", json!({ "query": format!("word{n}") })).await),
        4 => drop(api.post("/api/v1/search", "", json!({ "query": "x", "spaces": [space] })).await),
        _ => {
            let method = Method::from_bytes(format!("METHOD{n}").as_bytes()).unwrap();
            drop(api.call(method, "/api/v1/documents", &format!("token-{n}"), None).await);
        }
    }
}

#[actix_web::test]
async fn ten_thousand_different_requests_make_few_series() {
    let api = api().await;
    let token = api.admin().await;
    api.add(&token, json!({ "text": TEXT })).await;
    // The request for the series makes some of its own.
    series(&api).await;
    for n in 0..120 {
        send_unheard_of(&api, n).await;
    }
    let after_some = series(&api).await;
    for n in 120..10_000 {
        send_unheard_of(&api, n).await;
    }
    let after_all = series(&api).await;
    let new: Vec<_> = after_all.difference(&after_some).collect();
    assert!(new.is_empty(), "a client can make series: {new:?}");
    assert!(after_all.len() < 400, "{}", after_all.len());
}

#[actix_web::test]
async fn metrics_follow_a_document_from_the_request_to_the_search() {
    let api = api().await;
    let token = api.admin().await;
    api.add(&token, json!({ "text": TEXT })).await;
    api.post("/api/v1/search", "", json!({ "query": "volcanoes" })).await;
    api.post("/api/v1/context", "", json!({ "query": "volcanoes" })).await;
    let text = String::from_utf8(api.get("/metrics").await.body).unwrap();
    for line in [
        r#"lkr_ingest_attempts_total{kind="ingest",outcome="done"} 1"#,
        r#"lkr_ingest_completion_seconds_count{kind="ingest"} 1"#,
        r#"lkr_ingest_stage_duration_seconds_count{stage="parse"} 1"#,
        r#"lkr_ingest_stage_duration_seconds_count{stage="publish"} 1"#,
        r#"lkr_search_stage_duration_seconds_count{stage="encode"} 2"#,
        r#"lkr_search_stage_duration_seconds_count{stage="legs"} 2"#,
        "lkr_search_cache_entries 1",
        "lkr_ingest_workers 8",
        "lkr_ingest_oldest_task_age_seconds 0",
        "lkr_slow_searches_total 0",
    ] {
        assert!(text.contains(line), "{line} is missing in {text}");
    }
    assert!(text.contains(r#"lkr_search_leg_candidates_total{kind="sparse",layer="chunks"}"#), "{text}");
}

#[actix_web::test]
async fn slow_searches_are_counted() {
    let api =
        api_with(TestOptions { slow_search: Some(Duration::from_nanos(1)), ..TestOptions::default() }).await;
    for path in ["/api/v1/search", "/api/v1/search/stream", "/api/v1/context"] {
        api.post(path, "", json!({ "query": format!("slow {path}") })).await;
    }
    // A search that the cache answers is not slow.
    api.post("/api/v1/search", "", json!({ "query": "slow /api/v1/search" })).await;
    let text = String::from_utf8(api.get("/metrics").await.body).unwrap();
    assert!(text.contains("lkr_slow_searches_total 3\n"), "{text}");
}

#[actix_web::test]
async fn lesson_29_pages_have_a_strict_content_security_policy() {
    let api = api().await;
    for path in ["/", "/docs"] {
        let response = api.get(path).await;
        assert!(response.status.is_success());
        assert!(response.header("content-type").unwrap().starts_with("text/html"));
        let policy = response.header("content-security-policy").unwrap();
        for part in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        let html = String::from_utf8(response.body.clone()).unwrap();
        let scripts: Vec<_> = html.split("<script").skip(1).collect();
        if path == "/" {
            let is_file = |element: &&str| element.starts_with(" type=\"module\" src=\"/console/app-");
            assert!(scripts.len() == 1 && scripts.iter().all(is_file), "a script in the page: {scripts:?}");
            assert!(policy.contains("script-src 'self'") && !html.contains("<style"), "{policy}");
        } else {
            let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
            let has_nonce = |element: &&str| element.starts_with(&format!(" nonce=\"{nonce}\""));
            assert!(scripts.len() == 2 && scripts.iter().all(has_nonce), "a script without a nonce");
        }
        for loaded in ["src=\"", "href=\""] {
            for target in html.split(loaded).skip(1) {
                let is_local = target.starts_with('/') && !target.starts_with("//");
                let target: String = target.chars().take(60).collect();
                assert!(is_local, "{path} loads something from another origin: {target}");
            }
        }
    }
    let docs = String::from_utf8(api.get("/docs").await.body).unwrap();
    assert!(docs.contains("/api/v1/search/stream"));
}

/// The script and the style of the page /docs come compressed to clients that accept that, and once for each version.
#[actix_web::test]
async fn docs_files_are_compressed_and_revalidated() {
    let api = api().await;
    for (file, content_type) in [
        ("swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
        ("swagger-ui.css", "text/css; charset=utf-8"),
    ] {
        let get = async |headers: &[(&'static str, &str)]| {
            let request = test::TestRequest::with_uri(&format!("/docs/{file}"));
            api.send(headers.iter().fold(request, |request, header| request.insert_header(*header))).await
        };
        let (plain, gzipped) = (get(&[]).await, get(&[("accept-encoding", "br;q=1, gzip;q=0.5")]).await);
        for response in [&plain, &gzipped] {
            assert_eq!(
                (response.status, response.header("content-type")),
                (StatusCode::OK, Some(content_type))
            );
            assert_eq!(response.header("vary"), Some("Accept-Encoding"));
            assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
        }
        assert_eq!(
            (plain.header("content-encoding"), gzipped.header("content-encoding")),
            (None, Some("gzip"))
        );
        assert!(gzipped.body.len() * 2 < plain.body.len(), "{file}");
        assert_eq!(get(&[("accept-encoding", "gzip;q=0")]).await.body, plain.body);
        assert_ne!(plain.header("etag"), gzipped.header("etag"));
        let etag = gzipped.header("etag").unwrap();
        let current = get(&[("accept-encoding", "gzip"), ("if-none-match", etag)]).await;
        assert_eq!(
            (current.status.as_u16(), current.body.len(), current.header("etag")),
            (304, 0, Some(etag))
        );
        assert_eq!(get(&[("if-none-match", "\"other\"")]).await.status, StatusCode::OK);
    }
    let unknown = api.get("/docs/index.html").await;
    unknown.expect_error(1004, 404);
}

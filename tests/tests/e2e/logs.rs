//! Log lines as JSON, the log of slow searches, and `lkr top`.

use std::{
    io::{Read as _, pipe},
    process::Command,
    thread,
    time::Duration,
};

use lkr_tests::{ADMIN_PASSWORD, Server, cli_binary};
use serde_json::{Value, json};

/// A word that occurs in queries, and must not occur in the log.
const SECRET: &str = "xylophone";

/// Searches until one was slow enough to be logged.
fn log_slow_search(server: &Server) -> String {
    let _ = server.add(
        &json!({"text": format!("The {SECRET} is an instrument. {}", "It has many bars. ".repeat(500))}),
    );
    let slow = (0..1_000).find_map(|n| {
        let found = server.post("/search", &json!({"query": format!("{SECRET} bars {n}"), "top_k": 50}));
        assert_eq!(found.status, 200);
        server.log().lines().find(|line| line.contains("slow search")).map(str::to_owned)
    });
    assert!(slow.is_some(), "no search took longer than a millisecond:\n{}", server.log());
    slow.unwrap()
}

#[test]
fn json_log_has_one_object_a_line_with_the_request_id() {
    let server = Server::start_with(&[
        ("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD),
        ("LKR_LOG_FORMAT", "json"),
        ("LKR_SLOW_SEARCH_MS", "1"),
    ]);
    let slow: Value = serde_json::from_str(&log_slow_search(&server)).unwrap();
    assert_eq!((&slow["level"], &slow["message"]), (&json!("WARN"), &json!("slow search")), "{slow}");
    assert_eq!(slow["request_id"].as_str().unwrap().len(), 32, "{slow}");
    assert!(slow["fields"]["took_ms"].as_u64().unwrap() >= 1, "{slow}");
    assert!(slow["fields"]["query_chars"].as_u64().unwrap() > 10, "{slow}");
    assert!(slow["fields"]["stages"].as_str().unwrap().contains("legs "), "{slow}");
    assert!(slow["fields"]["legs"].as_str().unwrap().contains("chunks sparse "), "{slow}");
    server.stop();
    let log = server.log();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        for key in ["timestamp", "level", "target", "message", "request_id", "fields"] {
            assert!(line.get(key).is_some(), "no {key} in {line}");
        }
    }
    assert!(log.contains("\"ready at http://") && !log.contains(SECRET), "{log}");
}

#[test]
fn slow_search_is_logged_as_text_and_not_if_that_is_off() {
    let mut server =
        Server::start_with(&[("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD), ("LKR_SLOW_SEARCH_MS", "1")]);
    let line = log_slow_search(&server);
    for part in ["WARN", "request_id=", "took_ms=", "query_chars=", "encode ", "chunks sparse "] {
        assert!(line.contains(part), "{part} is missing in {line}");
    }
    assert!(!server.log().contains(SECRET), "{line}");
    server.stop();
    let before = server.log().len();
    server.set("LKR_SLOW_SEARCH_MS", "0");
    server.restart();
    for n in 0..50 {
        let _ = server.search(&json!({"query": format!("bars {n}")}));
    }
    assert!(!server.log().get(before..).unwrap().contains("slow search"));
}

#[test]
fn lkr_top_prints_one_frame_of_a_server_and_names_one_that_does_not_answer() {
    let server = Server::start();
    let _ = server.add(&json!({"text": "A tale of whales."}));
    let url = format!("http://127.0.0.1:{}", server.port());
    let top =
        |url: &str| Command::new(cli_binary()).args(["top", "--once", "--server", url]).output().unwrap();
    let output = top(&url);
    let frame = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{frame}");
    for part in [
        &url,
        "degraded",
        "embedder is degraded: no embedding model",
        "requests",
        "searches",
        "of 8 workers",
        "memory ",
    ] {
        assert!(frame.contains(part), "{part} is missing in\n{frame}");
    }
    assert!(!frame.contains('\x1b'), "{frame}");
    server.stop();
    let output = top(&url);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(6), "{error}");
    assert!(error.contains(&url) && error.contains("hint: "), "{error}");
}

/// Nobody reads stderr, as while a terminal is paused or the program behind a pipe hangs.
#[test]
fn reader_of_the_log_that_stalls_stops_neither_requests_nor_the_end() {
    const REQUESTS: usize = 1_500;
    let server = Server::start();
    server.stop();
    let (mut reader, writer) = pipe().unwrap();
    let mut process = server.command().env("RUST_LOG", "info").stderr(writer).spawn().unwrap();
    assert!(server.becomes_ready());
    // More than a pipe holds.
    for _ in 0..REQUESTS {
        assert_eq!(server.get("/documents").status, 200);
    }
    let stop = format!("kill -TERM {}", process.id());
    assert!(Command::new("sh").args(["-c", &stop]).status().unwrap().success());
    let status = (0..4_000).find_map(|_| {
        thread::sleep(Duration::from_millis(10));
        process.try_wait().unwrap()
    });
    if status.is_none() {
        process.kill().unwrap();
    }
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
    let mut log = String::new();
    reader.read_to_string(&mut log).unwrap();
    let lines = log.lines().filter(|line| line.contains("/documents")).count();
    assert!(lines > 0 && lines < REQUESTS, "the pipe was full: {lines}");
}

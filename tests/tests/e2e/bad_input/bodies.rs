//! Bodies that are not JSON, or contain invalid values.

use lkr_tests::{Response, Server};
use serde_json::{Value, json};

use super::{UNKNOWN, assert_server_survives};

#[test]
fn invalid_documents_are_rejected() {
    assert_server_survives(|server| {
        let token = server.admin();
        let invalid: Vec<Value> = vec![
            json!({}),
            json!({"text": ""}),
            json!({"text": " \n\t\u{3000}\u{a0}"}),
            json!({"text": 5}),
            json!({"text": null}),
            json!({"text": ["a"]}),
            json!({"text": "x", "title": 5}),
            json!({"text": "x", "source": []}),
            json!({"text": "x", "metadata": []}),
            json!({"text": "x", "metadata": {"a": 1}}),
            json!({"text": "x", "metadata": {"a": null}}),
            json!({"text": "x", "metadata": {"a": {"b": "c"}}}),
            json!({"text": "x", "unknown": 1}),
            json!({"text": "x", "doc_id": UNKNOWN}),
            json!([]),
            json!("text"),
            json!(null),
            json!({"text": "x", "metadata": (0..65).map(|n| (n.to_string(), json!("v"))).collect::<serde_json::Map<_, _>>()}),
        ];
        for body in invalid {
            let response = server.call("POST", "/documents", Some(&body), Some(token));
            assert_eq!((response.code(), response.status), (1001, 400), "{body}: {}", response.json);
        }
        let metadata: serde_json::Map<_, _> = (0..64).map(|n| (n.to_string(), json!("v"))).collect();
        let _ = server.add(&json!({"text": "the largest number of metadata entries", "metadata": metadata}));
    });
}

#[test]
fn malformed_json_is_rejected() {
    assert_server_survives(|server| {
        let nested = |depth: usize| format!("{{\"text\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
        let deep_key =
            format!("{{\"query\":\"q\",\"filters\":{}{}}}", "{\"a\":".repeat(5_000), "}".repeat(5_000));
        let invalid: Vec<Vec<u8>> = vec![
            b"".to_vec(),
            b"{".to_vec(),
            b"{\"text\": \"x\"} trailing".to_vec(),
            b"{\"text\": \"x\", \"text\": \"y\"}".to_vec(),
            b"{'text': 'x'}".to_vec(),
            b"{\"text\": \"\xff\xfe\"}".to_vec(),
            b"{\"text\": \"\xed\xa0\x80\"}".to_vec(),
            br#"{"text": "\ud800"}"#.to_vec(),
            br#"{"text": "\udc00\ud800"}"#.to_vec(),
            br#"{"text": "\u00"}"#.to_vec(),
            b"{\"text\": \"a\nb\"}".to_vec(),
            b"\x00".to_vec(),
            nested(100).into_bytes(),
            nested(100_000).into_bytes(),
            deep_key.into_bytes(),
        ];
        for body in invalid {
            for path in ["/documents", "/search", "/search/stream", "/auth/login"] {
                let response = json_bytes(server, path, &body);
                let shown = String::from_utf8_lossy(body.get(..60).unwrap_or(&body)).into_owned();
                // A login has a smaller limit than a document.
                let status = if path == "/auth/login" && body.len() > 64 << 10 { 413 } else { 400 };
                assert_eq!(
                    (response.code(), response.status),
                    (1001, status),
                    "{path} {shown:?}: {}",
                    response.json
                );
            }
        }
    });
}

#[test]
fn control_characters_are_accepted_in_texts() {
    assert_server_survives(|server| {
        let text = "harbour\u{0}light \u{1}\u{1f} and \u{fffe} a \u{10ffff}";
        let doc_id = server.add(&json!({"text": text, "title": "a\u{0}b", "metadata": {"k\u{0}": "v\u{0}"}}));
        assert_eq!(server.get(&format!("/documents/{doc_id}/text")).data()["text"], text);
        let found = server.search(&json!({"query": "harbour\u{0}light"}));
        assert_eq!(found["results"][0]["doc_id"], doc_id);
    });
}

#[test]
fn oversized_bodies_and_texts_are_rejected() {
    assert_server_survives(|server| {
        let token = server.admin();
        let limit = 16 << 20;
        let sized = |bytes: usize| json!({"text": "word ".repeat(bytes.div_ceil(5)).get(..bytes).unwrap()});
        let response = server.call("POST", "/documents", Some(&sized(limit + 1)), Some(token));
        assert_eq!((response.code(), response.status), (1001, 413), "{}", response.json);
        let huge = server.call("POST", "/documents", Some(&sized(80 << 20)), Some(token));
        assert_eq!((huge.code(), huge.status), (1001, 413), "{}", huge.json);
        let query = server.post("/search", &json!({"query": "x".repeat(32 << 20)}));
        assert_eq!((query.code(), query.status), (1001, 413), "{}", query.json);
        // A text of exactly the limit is accepted; JSON escapes do not count.
        let text = "\"\n".repeat(limit / 2);
        let task = server.submit(&json!({"text": text}));
        let doc_id = server.task(task["task_id"].as_str().unwrap())["doc_id"].as_str().unwrap().to_owned();
        let _ = server.call("DELETE", &format!("/documents/{doc_id}"), None, Some(token)).data();
    });
}

#[test]
fn invalid_searches_are_rejected() {
    assert_server_survives(|server| {
        let invalid = vec![
            json!({}),
            json!({"query": ""}),
            json!({"query": " \n\u{3000}"}),
            json!({"query": 5}),
            json!({"query": null}),
            json!({"query": "x".repeat(2_001)}),
            json!({"query": "語".repeat(2_001)}),
            json!({"query": "q", "top_k": 0}),
            json!({"query": "q", "top_k": 101}),
            json!({"query": "q", "top_k": -1}),
            json!({"query": "q", "top_k": 1.5}),
            json!({"query": "q", "top_k": "10"}),
            json!({"query": "q", "top_k": 18446744073709551615_u64}),
            json!({"query": "q", "summarize": "yes"}),
            json!({"query": "q", "mode": "deep"}),
            json!({"query": "q", "mode": "Layered"}),
            json!({"query": "q", "fusion": "borda"}),
            json!({"query": "q", "group_by": "section"}),
            json!({"query": "q", "explain": 1}),
            json!({"query": "q", "nope": 1}),
            json!({"query": "q", "filters": []}),
            json!({"query": "q", "filters": {"nope": "x"}}),
            json!({"query": "q", "filters": {"doc_ids": "x"}}),
            json!({"query": "q", "filters": {"doc_ids": ["x"]}}),
            json!({"query": "q", "filters": {"doc_ids": [UNKNOWN.to_uppercase().replace('0', "A")]}}),
            json!({"query": "q", "filters": {"metadata": {"a": 1}}}),
            json!({"query": "q", "filters": {"category": 5}}),
        ];
        for body in invalid {
            for path in ["/search", "/search/stream"] {
                let response = server.post(path, &body);
                let shown: String = body.to_string().chars().take(80).collect();
                assert_eq!(
                    (response.code(), response.status),
                    (1001, 400),
                    "{path} {shown}: {}",
                    response.json
                );
            }
        }
        for query in
            ["x".repeat(2_000), "語".repeat(2_000), format!("  {}  ", "y".repeat(2_000)), "?!".to_owned()]
        {
            assert_eq!(server.post("/search", &json!({"query": query})).status, 200);
        }
    });
}

fn json_bytes(server: &Server, path: &str, body: &[u8]) -> Response {
    let headers = [
        ("Content-Type", "application/json".to_owned()),
        ("Authorization", format!("Bearer {}", server.admin())),
    ];
    server.try_send("POST", &format!("/api/v1{path}"), &headers, Some(body.to_vec())).unwrap()
}

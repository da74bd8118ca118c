//! Parameters, identifiers, paths, methods, content types and credentials.

use lkr_tests::send_raw;
use serde_json::{Value, json};

use super::{UNKNOWN, assert_server_survives};

#[test]
fn invalid_parameters_are_rejected() {
    assert_server_survives(|server| {
        for path in ["/documents", "/documents/tasks", &format!("/documents/{UNKNOWN}/chunks")] {
            for query in [
                "limit=0",
                "limit=101",
                "limit=abc",
                "limit=-1",
                "limit=",
                "limit=1.0",
                "limit=99999999999999999999",
                "limit=10&limit=20",
                "offset=%00zz",
                "offset=garbage",
                "offset=",
                "nope=1",
                "limit=%ff",
            ] {
                let response = server.get(&format!("{path}?{query}"));
                assert_eq!(
                    (response.code(), response.status),
                    (1001, 400),
                    "{path}?{query}: {}",
                    response.json
                );
            }
        }
        server.get("/documents/tasks?status=lost").assert_error(1001, 400);
        server.get("/documents/tasks?status=Done").assert_error(1001, 400);
        server.get("/knowledge/stats?nope=1").assert_error(1001, 400);
        server.get(&format!("/documents/{UNKNOWN}?nope=1")).assert_error(1001, 400);
    });
}

#[test]
fn invalid_identifiers_are_rejected() {
    assert_server_survives(|server| {
        let doc_id = server.add(&json!({"text": "An id in capitals is another id."}));
        let task_id = server.list_all("/documents/tasks")[0]["task_id"].as_str().unwrap().to_owned();
        let upper_case = doc_id.to_uppercase();
        for id in [
            UNKNOWN,
            "x",
            "..%2f..%2fetc%2fpasswd",
            "%00",
            "%ff",
            &upper_case,
            &task_id,
            &format!("{doc_id}0"),
        ] {
            for rest in ["", "/text", "/chunks"] {
                let response = server.get(&format!("/documents/{id}{rest}"));
                assert_eq!((response.code(), response.status), (1004, 404), "{id}{rest}: {}", response.json);
            }
        }
        for id in [UNKNOWN, "x", "%00", &task_id.to_uppercase(), &doc_id] {
            let response = server.get(&format!("/documents/tasks/{id}"));
            assert_eq!((response.code(), response.status), (1004, 404), "{id}: {}", response.json);
        }
        // Deleting an absent document is not an error.
        let response = server.call("DELETE", &format!("/documents/{UNKNOWN}"), None, Some(server.admin()));
        assert_eq!(response.data()["deleted_total"], 0);
        assert_eq!(server.get(&format!("/documents/{doc_id}")).status, 200);
    });
}

#[test]
fn unknown_paths_methods_and_content_types_are_rejected() {
    assert_server_survives(|server| {
        for path in ["/nope", "/", "", "/documents/", "/search/stream/x", "/auth"] {
            server.get(path).assert_error(1004, 404);
        }
        for path in ["/nope", "/api", "/api/v2/documents", "/api/v1"] {
            server.try_call("GET", path, None, None).unwrap().assert_error(1004, 404);
        }
        for (method, path) in [
            ("GET", "/search"),
            ("PATCH", "/search"),
            ("DELETE", "/search"),
            ("PUT", "/documents"),
            ("DELETE", "/documents"),
            ("POST", "/knowledge/stats"),
            ("GET", "/auth/login"),
            ("DELETE", "/auth/me"),
        ] {
            let response = server.call(method, path, None, None);
            assert_eq!((response.code(), response.status), (1001, 405), "{method} {path}: {}", response.json);
        }
        let send = |kind: Option<&str>, body: &str| {
            let headers: Vec<_> = kind.map(|kind| ("Content-Type", kind.to_owned())).into_iter().collect();
            server.try_send("POST", "/api/v1/search", &headers, Some(body.into())).unwrap()
        };
        for kind in [
            None,
            Some("text/plain"),
            Some("application/x-www-form-urlencoded"),
            Some("application/xml"),
            Some("nonsense"),
        ] {
            let response = send(kind, "{\"query\": \"q\"}");
            assert_eq!((response.code(), response.status), (1001, 415), "{kind:?}: {}", response.json);
        }
        for kind in ["application/json", "application/json; charset=utf-8", "Application/JSON"] {
            assert_eq!(send(Some(kind), "{\"query\": \"q\"}").status, 200, "{kind}");
        }
    });
}

#[test]
fn invalid_credentials_are_rejected() {
    assert_server_survives(|server| {
        for (method, path, body) in [
            ("POST", "/documents", Some(json!({"text": "x"}))),
            ("DELETE", &*format!("/documents/{UNKNOWN}"), None),
            ("GET", "/auth/me", None),
            ("POST", "/auth/logout", None),
            ("POST", "/auth/password", Some(json!({"current_password": "a", "new_password": "b"}))),
        ] {
            for token in [None, Some("x"), Some("lkr_x"), Some(UNKNOWN)] {
                let response = server.call(method, path, body.as_ref(), token);
                response.assert_error(1005, 401);
                assert_eq!(response.header("www-authenticate"), Some("Bearer"), "{method} {path}");
            }
        }
        // An invalid credential is rejected on public routes too, and ignored by login and root paths.
        server.call("GET", "/documents", None, Some("x")).assert_error(1005, 401);
        server.call("POST", "/search", Some(&json!({"query": "q"})), Some("x")).assert_error(1005, 401);
        assert_eq!(server.try_call("GET", "/healthz", None, Some("x")).unwrap().status, 200);
        for value in ["Basic YWRtaW46eA==", "Bearer", "Bearer ", "bearer  x y", "x"] {
            let headers = [("Authorization", value.to_owned())];
            server.try_send("GET", "/api/v1/auth/me", &headers, None).unwrap().assert_error(1005, 401);
        }
        let wrong = [("admin", "wrong password"), ("nobody", "wrong password"), ("admin", ""), ("", "")];
        let messages: Vec<String> = wrong
            .iter()
            .map(|(username, password)| {
                let response =
                    server.post("/auth/login", &json!({"username": username, "password": password}));
                response.assert_error(1005, 401);
                response.message().to_owned()
            })
            .collect();
        assert!(
            messages.windows(2).all(|two| two[0] == two[1]),
            "the message must not depend on the cause: {messages:?}"
        );
        for body in [
            json!({"username": "admin"}),
            json!({"username": 5, "password": "x"}),
            json!({"username": "a", "password": "b", "c": 1}),
        ] {
            server.post("/auth/login", &body).assert_error(1001, 400);
        }
        let change = |body: Value| server.call("POST", "/auth/password", Some(&body), Some(server.admin()));
        change(json!({"current_password": "wrong", "new_password": "long enough"})).assert_error(1005, 401);
        change(json!({"current_password": lkr_tests::ADMIN_PASSWORD, "new_password": "short"}))
            .assert_error(1001, 400);
        change(json!({"current_password": lkr_tests::ADMIN_PASSWORD, "new_password": "x".repeat(129)}))
            .assert_error(1001, 400);
    });
}

#[test]
fn request_ids_are_kept_or_replaced() {
    assert_server_survives(|server| {
        let id_of = |id: &str| {
            let headers = [("X-Request-Id", id.to_owned())];
            let response = server.try_send("GET", "/api/v1/knowledge/stats", &headers, None).unwrap();
            let _ = response.data();
            response.header("x-request-id").unwrap().to_owned()
        };
        for good in ["a", "abc-123_X.y", &"x".repeat(64)] {
            assert_eq!(id_of(good), good);
        }
        for bad in ["", "a b", "a/b", "ü", &"x".repeat(65)] {
            let id = id_of(bad);
            assert!(id != bad && !id.is_empty(), "invalid id {bad:?} was used");
        }
        let missing = server.get("/nope");
        assert!(missing.header("x-request-id").is_some());
    });
}

#[test]
fn non_http_bytes_do_not_harm_the_server() {
    assert_server_survives(|server| {
        let port = server.port();
        for request in [
            "GET /api/v1/documents HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n".to_owned(),
            "NONSENSE\r\n\r\n".to_owned(),
            format!("GET /{} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "a".repeat(100_000)),
            format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "b".repeat(1 << 20)),
            "POST /api/v1/search HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n".to_owned(),
        ] {
            let status = send_raw(port, request.as_bytes()).status;
            assert!((400..500).contains(&status), "{status} to {request:.40}");
        }
        // A client that disconnects without a request does no harm either.
        drop(std::net::TcpStream::connect(("127.0.0.1", port)).unwrap());
    });
}

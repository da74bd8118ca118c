//! Responses that the server gives before a request reaches the application.

use std::{io::Write, net::TcpStream, time::Duration};

use lkr_tests::{Response, Server, send_raw, send_raw_on};

/// Asserts that a response is an error in the envelope.
#[track_caller]
fn assert_refused(response: &Response, status: u16, message: &str) {
    response.assert_error(1001, status);
    assert_eq!(response.message(), message);
    assert_eq!(response.header("connection"), Some("close"));
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert!(response.header("x-request-id").is_some_and(|id| id.len() == 32));
}

#[test]
fn malformed_large_and_late_heads_are_answered_in_the_envelope() {
    let server = Server::start();
    for malformed in
        ["no request\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /healthz HTTP/1.1\r\nbad header\r\n\r\n"]
    {
        assert_refused(
            &send_raw(server.port(), malformed.as_bytes()),
            400,
            "the head of the request is malformed",
        );
    }
    let large = format!("GET /healthz HTTP/1.1\r\nHost: x\r\nx: {}\r\n\r\n", "y".repeat(200_000));
    assert_refused(&send_raw(server.port(), large.as_bytes()), 431, "the head of the request is too large");
    for length in [70_000, 100_000, 200_000] {
        let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "y".repeat(length));
        assert_refused(
            &send_raw(server.port(), long.as_bytes()),
            431,
            "the head of the request is too large",
        );
    }
    // The rest of the head never arrives.
    let late = send_raw(server.port(), b"GET /healthz HTTP/1.1\r\nHost: x\r\n");
    assert_refused(&late, 408, "the head of the request did not arrive in time");
}

#[test]
fn malformed_head_after_other_requests_of_a_connection_is_answered_in_the_envelope() {
    let server = Server::start();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    for (method, path, status) in [
        ("GET", "/healthz", 200),
        ("GET", "/api/v1/openapi.json", 200),
        ("POST", "/api/v1/search", 415),
        ("GET", "/api/v1/nothing", 404),
    ] {
        let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(send_raw_on(&mut stream, request.as_bytes()).unwrap().status, status, "{path}");
    }
    let refused = send_raw_on(&mut stream, b"malformed\r\n\r\n").unwrap();
    assert_refused(&refused, 400, "the head of the request is malformed");
}

#[test]
fn malformed_head_behind_a_head_request_is_answered_in_the_envelope() {
    let server = Server::start();
    // A response to HEAD names the length of a body that it does not have.
    let requests = b"HEAD /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\nmalformed\r\n\r\n";
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(requests).unwrap();
    let text = std::io::read_to_string(stream).unwrap();
    let (first, second) = text.split_once("\r\n\r\n").unwrap();
    assert!(first.starts_with("HTTP/1.1 200"), "{text}");
    assert!(
        second.starts_with("HTTP/1.1 400") && second.contains("the head of the request is malformed"),
        "{text}"
    );
}

#[test]
fn refused_requests_do_not_fill_the_log() {
    let server = Server::start();
    for _ in 0..200 {
        drop(send_raw(server.port(), b"malformed\r\n\r\n"));
    }
    let log = server.log();
    let loud = log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).count();
    assert!(loud <= 40, "{loud} warnings and errors for 200 refused requests:\n{log}");
}

//! Requests that are rejected before their bodies are read. A client that sends the whole body first still gets the
//! response, and a kept connection can be reused.

use std::{
    io::Write,
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use lkr_tests::{Server, send_raw_on};

/// The code and status of a rejected request, and its head without the header that frames the body.
type RejectedRequest = (u64, u16, String);

fn rejected_requests(server: &Server) -> Vec<RejectedRequest> {
    let token = server.admin();
    let head = |request: &str, fields: &str| format!("{request} HTTP/1.1\r\nHost: x\r\n{fields}");
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let (json, text) = ("Content-Type: application/json\r\n", "Content-Type: text/plain\r\n");
    vec![
        (1004, 404, head("POST /api/v1/nope", json)),
        (1004, 404, head("POST /nope", text)),
        (1001, 405, head("PATCH /api/v1/search", json)),
        (1001, 415, head("POST /api/v1/documents", &format!("{bearer}{text}"))),
        (1001, 415, head("POST /api/v1/documents/upload", &format!("{bearer}{json}"))),
        (1005, 401, head("POST /api/v1/documents", json)),
        (1005, 401, head("POST /api/v1/search", "Authorization: Bearer x\r\n")),
    ]
}

fn chunked(length: usize) -> Vec<u8> {
    let mut body = Vec::with_capacity(length + length / 1024 + 64);
    let zeros = vec![b'0'; 64 * 1024];
    let mut left = length;
    while left > 0 {
        let part = left.min(zeros.len());
        body.extend_from_slice(format!("{part:x}\r\n").as_bytes());
        body.extend_from_slice(&zeros[..part]);
        body.extend_from_slice(b"\r\n");
        left -= part;
    }
    body.extend_from_slice(b"0\r\n\r\n");
    body
}

/// The request with a body of this many zeros.
fn request(head: &str, length: usize, in_chunks: bool) -> Vec<u8> {
    let (field, body) = match in_chunks {
        true => ("Transfer-Encoding: chunked".to_owned(), chunked(length)),
        false => (format!("Content-Length: {length}"), vec![b'0'; length]),
    };
    [format!("{head}{field}\r\n\r\n").as_bytes(), &body].concat()
}

/// Sends a request that is rejected, and a second one if the connection is kept. Returns whether it was kept.
fn send_rejected(
    server: &Server,
    (code, status, head): &RejectedRequest,
    length: usize,
    in_chunks: bool,
) -> bool {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    let response = send_raw_on(&mut stream, &request(head, length, in_chunks));
    assert!(response.is_some(), "no response to {head} with {length} bytes, chunked: {in_chunks}");
    let response = response.unwrap();
    response.assert_error(*code, *status);
    let is_kept = response.header("connection") != Some("close");
    if is_kept {
        let next = send_raw_on(&mut stream, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(next.map(|next| next.status), Some(200), "{head}");
    }
    is_kept
}

#[test]
fn error_response_arrives_with_any_request_body() {
    let server = Server::start();
    for rejected in rejected_requests(&server) {
        for length in [1, 40_000, 1 << 20, 10 << 20] {
            for in_chunks in [true, false] {
                for _ in 0..3 {
                    let is_kept = send_rejected(&server, &rejected, length, in_chunks);
                    assert!(is_kept || length > 1 << 20, "{rejected:?} with {length} bytes");
                }
            }
        }
    }
}

#[test]
fn oversized_body_is_drained() {
    let server = Server::start();
    let json = "Content-Type: application/json\r\n";
    let login = (1001, 413, format!("POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\n{json}"));
    for length in [100_000, 10 << 20, 100 << 20] {
        for in_chunks in [true, false] {
            send_rejected(&server, &login, length, in_chunks);
        }
    }
}

/// The response does not wait for the body, and the body is still read.
#[test]
fn slow_body_is_drained_after_the_response() {
    let server = Server::start();
    let (code, status, head) = rejected_requests(&server).remove(0);
    for field in ["Transfer-Encoding: chunked", "Content-Length: 10485760"] {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        let part = vec![b'0'; 1 << 20];
        let framed = |part: &[u8]| match field.starts_with('T') {
            true => [format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat(),
            false => part.to_vec(),
        };
        stream.write_all(format!("{head}{field}\r\n\r\n").as_bytes()).unwrap();
        for _ in 0..9 {
            stream.write_all(&framed(&part)).unwrap();
            thread::sleep(Duration::from_millis(1_200));
        }
        let response = send_raw_on(&mut stream, &framed(&part)).expect("a response");
        response.assert_error(code, status);
        assert_eq!(
            response.header("connection"),
            Some("close"),
            "the response was sent before the end of the body"
        );
    }
}

#[test]
fn missing_body_does_not_block_the_response() {
    let server = Server::start();
    for rejected in rejected_requests(&server) {
        for field in ["Transfer-Encoding: chunked", "Content-Length: 9000", "Content-Length: 9000000000"] {
            let started = Instant::now();
            let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
            let head = format!("{}{field}\r\n\r\n", rejected.2);
            let response = send_raw_on(&mut stream, head.as_bytes()).expect("a response");
            response.assert_error(rejected.0, rejected.1);
            assert!(started.elapsed() < Duration::from_secs(10), "{field}: {:?}", started.elapsed());
        }
    }
}

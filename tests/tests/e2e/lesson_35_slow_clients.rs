//! Lesson 35 for requests with JSON bodies: slow clients and huge bodies.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use lkr_tests::{ADMIN_PASSWORD, Server};
use serde_json::json;

/// More than the size of any thread or connection pool of the server.
const SLOW_CLIENTS: usize = 200;

/// The longest a request may take on a busy machine. Slow clients would delay it for much longer.
const MAX_LATENCY: Duration = Duration::from_secs(10);

#[test]
fn lesson_35_slow_clients_do_not_delay_other_requests() {
    let server = Server::start();
    let doc_id = server.add(&json!({"text": "The tortoise arrives in the end."}));
    let mut slow: Vec<TcpStream> = (0..SLOW_CLIENTS)
        .map(|n| {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
            // Half of them stop within the headers, half within the body.
            let start = match n % 2 {
                0 => "POST /api/v1/search HTTP/1.1\r\nHost: x\r\nContent-",
                _ => "POST /api/v1/search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{",
            };
            stream.write_all(start.as_bytes()).unwrap();
            stream
        })
        .collect();
    for n in 0..20 {
        let started = Instant::now();
        let found = server.search(&json!({"query": format!("tortoise {n}")}));
        assert_eq!(found["results"][0]["doc_id"], doc_id);
        assert!(started.elapsed() < MAX_LATENCY, "request {n} took {:?}", started.elapsed());
    }
    let waiting = &mut slow[0];
    waiting.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut response = Vec::new();
    waiting.read_to_end(&mut response).expect("the server closes a connection whose headers never end");
}

/// The bodies of anonymous clients have a bound by address, and accounts have memory of their own.
#[test]
fn lesson_35_slow_anonymous_bodies_do_not_refuse_the_documents_of_accounts() {
    const BODY_BYTES: usize = 60_000;
    let server = Server::start();
    server.admin();
    let head = format!(
        "POST /api/v1/search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        BODY_BYTES + 1
    );
    let request = [head.as_bytes(), &b" ".repeat(BODY_BYTES)].concat();
    let mut slow: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
            stream.write_all(&request).unwrap();
            stream
        })
        .collect();
    let text = "granite basalt marble ".repeat(500_000);
    let accepted = server.call("POST", "/documents", Some(&json!({ "text": text })), Some(server.admin()));
    assert_eq!(accepted.status, 202, "{}", accepted.message());
    // Beyond the bound, an anonymous body is refused at once, although it is not complete.
    let mut response = [0; 12];
    let last = slow.last_mut().unwrap();
    last.set_read_timeout(Some(Duration::from_secs(15))).unwrap();
    last.read_exact(&mut response).expect("a response before the time limit of a body");
    assert_eq!(&response, b"HTTP/1.1 503");
}

/// What an account uploads counts until it is stored or its client is gone.
#[test]
fn lesson_35_unfinished_uploads_of_an_account_do_not_fill_the_disk() {
    let server = Server::start_with(&[
        ("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD),
        ("LKR_UPLOAD_MAX_SIZE_MB", "1"),
        ("LKR_UPLOAD_SPOOL_MB", "1"),
    ]);
    let head = format!(
        "POST /api/v1/documents/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000000\r\n\r\n\
         --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"slow.txt\"\r\n\r\n",
        server.admin()
    );
    let text = "granite ".repeat(50_000);
    let upload = |name: &str| server.upload(name, text.as_bytes());
    // Either may be refused, the one whose bytes come last.
    let unfinished = server.wait_until(|| {
        let mut unfinished = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        unfinished.write_all(&[head.as_bytes(), &b"slate ".repeat(150_000)].concat()).unwrap();
        thread::sleep(Duration::from_millis(200));
        (upload("early.txt").status == 503).then_some(unfinished)
    });
    upload("refused.txt").assert_error(1010, 503);
    drop(unfinished);
    server.wait_until(|| (upload("late.txt").status == 202).then_some(()));
}

#[test]
fn lesson_35_oversized_body_is_refused_before_it_is_read() {
    let server = Server::start();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let (token, length) = (server.admin(), 10_u64 << 30);
    let head = format!(
        "POST /api/v1/documents HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut response = [0; 12];
    stream.read_exact(&mut response).expect("a response although the body never arrives");
    assert_eq!(&response, b"HTTP/1.1 413");
    assert_eq!(server.get("/knowledge/stats").data()["documents_total"], 0);
}

/// Sending single bytes does not keep a request open forever.
#[test]
fn lesson_35_trickling_body_is_aborted() {
    let server = Server::start();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let head = "POST /api/v1/search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n{";
    stream.write_all(head.as_bytes()).unwrap();
    let started = Instant::now();
    let mut response = [0; 64];
    loop {
        match stream.read(&mut response) {
            Ok(0) => break,
            Ok(read) => {
                let text = String::from_utf8_lossy(&response[..read]).into_owned();
                assert!(text.starts_with("HTTP/1.1 400"), "{text}");
                break;
            }
            Err(_) => drop(stream.write_all(b" ")),
        }
        assert!(
            started.elapsed() < 9 * MAX_LATENCY,
            "the body is still being read after {:?}",
            started.elapsed()
        );
    }
}

//! Rights that are taken away while a client sends the body of its request.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::Duration,
};

use lkr_tests::Server;
use serde_json::{Value, json};

const PASSWORD: &str = "correct horse battery";

/// A request whose body has begun to arrive.
struct Begun {
    stream: TcpStream,
    rest: Vec<u8>,
}

impl Begun {
    fn new(server: &Server, method: &str, path: &str, token: &str, body: &Value) -> Self {
        let body = body.to_string();
        let head = format!(
            "{method} /api/v1{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{{",
            body.len()
        );
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        Self { stream, rest: body.as_bytes()[1..].to_vec() }
    }

    /// The status of the response, once the rest of the body was sent.
    fn end(mut self) -> u16 {
        self.stream.write_all(&self.rest).unwrap();
        let mut response = String::new();
        self.stream.read_to_string(&mut response).unwrap();
        response.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

#[test]
fn rights_that_end_while_a_body_arrives_do_not_count() {
    let server = Server::start();
    let admin = |method: &str, path: &str, body: Value| {
        let response = server.call(method, path, Some(&body), Some(server.admin()));
        assert!(response.status < 300, "{path}: {}", response.message());
    };
    let account = json!({"username": "wim", "password": PASSWORD, "must_change_password": false});
    admin("POST", "/users", account);
    admin("POST", "/spaces", json!({"space": "legal"}));
    admin("PUT", "/spaces/legal/members/user:wim", json!({"role": "writer"}));
    let login = server.post("/auth/login", &json!({"username": "wim", "password": PASSWORD}));
    let token = login.data()["access_token"].as_str().unwrap().to_owned();
    let document = json!({"text": "The tide is a secret.", "space": "legal"});
    let accepted = server.call("POST", "/documents", Some(&document), Some(&token));
    let task = server.wait_for_task(accepted.data()["task_id"].as_str().unwrap());
    let doc_id = task["doc_id"].as_str().unwrap().to_owned();

    let path = format!("/documents/{doc_id}");
    let begin = |method: &str, path: &str, body: &Value| Begun::new(&server, method, path, &token, body);
    let replacement = begin("PUT", &path, &json!({"text": "Nothing."}));
    let change = begin("PATCH", &path, &json!({"title": "Mine", "space": "default"}));
    let searches = [json!({"query": "tide"}), json!({"query": "secret"})];
    let [search, later] = searches.map(|body| begin("POST", "/search", &body));
    // Time for the requests to be admitted. If one is not, it is refused all the same.
    thread::sleep(Duration::from_millis(500));
    admin("DELETE", "/spaces/legal/members/user:wim", json!({}));
    assert_eq!([replacement.end(), change.end(), search.end()], [404, 404, 200]);
    admin("PATCH", "/users/wim", json!({"disabled": true}));
    assert_eq!(later.end(), 401);
    let kept = server.call("GET", &format!("{path}/text"), None, Some(server.admin()));
    assert_eq!(kept.data()["text"], "The tide is a secret.");
    let detail = server.call("GET", &path, None, Some(server.admin()));
    assert_eq!(detail.data()["l1"]["space"], "legal");
}

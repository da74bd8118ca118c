//! Clients that do not read large responses: the server's memory does not grow, and others are served.

use std::{io::Write, net::TcpStream, thread, time::Duration};

use lkr_tests::Server;
use serde_json::{Value, json};

const MIB: u64 = 1024 * 1024;

/// The number of clients that do not read.
const READERS: usize = 40;

#[test]
fn clients_that_do_not_read_use_no_server_memory() {
    let server = Server::start();
    let line = "The level of the \"river\" is steady;\tnobody knows\\why, 水位は一定。\n";
    let text = line.repeat(12 * MIB as usize / line.len());
    let detail = server.upload_and_wait("river.txt", text.as_bytes());
    let path = format!("/documents/{}", detail["l1"]["doc_id"].as_str().unwrap());
    assert_eq!(server.get(&format!("{path}/text")).data()["text"], text, "the text is complete");
    let before = server.memory();
    for path in [format!("{path}/text"), path] {
        let mut readers = Vec::new();
        for _ in 0..READERS {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
            write!(stream, "GET /api/v1{path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            readers.push(stream);
        }
        thread::sleep(Duration::from_secs(4));
        let now = server.memory();
        assert!(now < before + 400 * MIB, "{path}: {before} bytes before, {now} now");
        let found: Value = server.search(&json!({"query": "river"}));
        assert_eq!(found["results"].as_array().unwrap().len(), 10);
        let large = server.call("GET", &path, None, Some(server.admin()));
        assert_eq!(large.status, 200, "the memory of an account is taken");
        drop(readers);
    }
}

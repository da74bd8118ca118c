//! Rights that are taken away during a stream of searches and during a download.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use lkr_tests::{Response, Server};
use serde_json::{Value, json};

/// The number of clients that search at once.
const CLIENTS: usize = 4;

/// The searches that find the document before the right is taken away, and those that follow.
const SEARCHES: usize = 40;

fn admin(server: &Server, method: &str, path: &str, body: &Value) {
    let response = server.call(method, path, Some(body), Some(server.admin()));
    assert!(response.status < 300, "{method} {path}: {}", response.json);
}

fn log_in(server: &Server, username: &str) -> String {
    let credentials = json!({"username": username, "password": "correct horse battery"});
    let mut account = credentials.clone();
    account["must_change_password"] = json!(false);
    admin(server, "POST", "/users", &account);
    server.post("/auth/login", &credentials).data()["access_token"].as_str().unwrap().to_owned()
}

/// Searches with several clients until each has searched often enough after `revoke` returned. No search that begins from
/// then on may find the document.
fn search_during(server: &Server, token: &str, revoke: impl Fn() -> Response) {
    let (is_revoked, found) = (AtomicBool::new(false), AtomicUsize::new(0));
    let search = || {
        let mut after = 0;
        for n in 0.. {
            let began_after = is_revoked.load(Ordering::SeqCst);
            // Every other query is new, so that answers come from the cache and from the index.
            let query = if n % 2 == 0 { "basalt coast".to_owned() } else { format!("basalt coast {n}") };
            let body = json!({ "query": query });
            let response = server.call("POST", "/search", Some(&body), Some(token));
            let results = response.data()["results"].as_array().unwrap().len();
            assert!(!began_after || results == 0, "found after the right was taken away: {}", response.json);
            found.fetch_add(usize::from(results > 0), Ordering::SeqCst);
            after += usize::from(began_after);
            if after == SEARCHES {
                return;
            }
        }
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(search)).collect();
        server.wait_until(|| (found.load(Ordering::SeqCst) >= SEARCHES).then_some(()));
        assert_eq!(revoke().status, 200);
        is_revoked.store(true, Ordering::SeqCst);
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
}

#[test]
fn removed_member_finds_nothing_from_the_next_search_on() {
    let server = Server::start();
    let token = log_in(&server, "rita");
    admin(&server, "POST", "/spaces", &json!({"space": "legal"}));
    admin(&server, "POST", "/groups", &json!({"group": "lawyers"}));
    let reader = json!({"role": "reader"});
    let _ = server.add(&json!({"text": "The basalt coast drowns twice a day.", "space": "legal"}));
    let token_of_admin = Some(server.admin());
    admin(&server, "PUT", "/spaces/legal/members/user:rita", &reader);
    search_during(&server, &token, || {
        server.call("DELETE", "/spaces/legal/members/user:rita", None, token_of_admin)
    });
    admin(&server, "PUT", "/spaces/legal/members/group:lawyers", &reader);
    admin(&server, "PUT", "/groups/lawyers/members/rita", &json!({}));
    search_during(&server, &token, || server.call("DELETE", "/groups/lawyers", None, token_of_admin));
    admin(&server, "PATCH", "/spaces/legal", &json!({"read": "everyone"}));
    search_during(&server, &token, || {
        server.call("PATCH", "/spaces/legal", Some(&json!({"read": "members"})), token_of_admin)
    });
}

/// The size of a file that no buffer of the connection holds.
const FILE_BYTES: usize = 14 << 20;

/// More than the longest time until a download notices that its right ended.
const NOTICED_AFTER: Duration = Duration::from_secs(7);

#[test]
fn file_download_of_a_removed_member_is_cut_off() {
    let server = Server::start();
    let token = log_in(&server, "rita");
    admin(&server, "POST", "/spaces", &json!({"space": "legal"}));
    admin(&server, "PUT", "/spaces/legal/members/user:rita", &json!({"role": "reader"}));
    let line = "The basalt coast drowns twice a day.\n";
    // The text of a file may have 16 MiB, and markup does not count.
    let markup = format!("<!--{}-->", "x".repeat(FILE_BYTES));
    let page = format!("<html><body><h1>Coast</h1><p>{line}</p>{markup}</body></html>");
    let uploaded =
        server.try_upload("a.html", page.as_bytes(), &[("space", "legal")], server.admin()).unwrap();
    let doc_id = server.wait_until(|| {
        let path = format!("/documents/tasks/{}", id(&uploaded));
        let task = server.call("GET", &path, None, Some(&token)).data().clone();
        (task["status"] == "done").then(|| task["doc_id"].as_str().unwrap().to_owned())
    });
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    let head =
        format!("GET /api/v1/documents/{doc_id}/file HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}");
    write!(stream, "{head}\r\n\r\n").unwrap();
    let mut first = vec![0; 4096];
    stream.read_exact(&mut first).unwrap();
    assert!(String::from_utf8_lossy(&first).starts_with("HTTP/1.1 200"));
    let removed = server.call("DELETE", "/spaces/legal/members/user:rita", None, Some(server.admin()));
    assert_eq!(removed.status, 200);
    thread::sleep(NOTICED_AFTER);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.len() < FILE_BYTES, "the download is complete");
}

fn id(accepted: &Response) -> String {
    accepted.data()["task_id"].as_str().unwrap().to_owned()
}

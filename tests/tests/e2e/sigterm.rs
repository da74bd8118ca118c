//! SIGTERM during ingestion.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use lkr_tests::{ADMIN_PASSWORD, Server, assert_consistent, model_dir};
use serde_json::json;

/// Requests in flight have 30 seconds to finish.
const EXIT_TIMEOUT: Duration = Duration::from_secs(40);

fn text(n: usize) -> String {
    (0..120).map(|s| format!("Entry {s} of log {n} says that valve {} was turned. ", (s * n) % 61)).collect()
}

#[test]
fn sigterm_during_ingestion_exits_cleanly_and_loses_nothing() {
    let model = model_dir().map(|dir| dir.display().to_string());
    let mut environment = vec![("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD)];
    environment.extend(model.as_deref().map(|dir| ("LKR_MODEL_DIR", dir)));
    let server = Server::start_with(&environment);
    let submit = |n| server.submit(&json!({"text": text(n)}))["task_id"].as_str().unwrap().to_owned();
    let tasks: Vec<String> = (0..12).map(submit).collect();
    let started = Instant::now();
    server.terminate();
    let status = server.wait();
    assert_eq!(status.code(), Some(0), "{}", server.log());
    assert!(started.elapsed() < EXIT_TIMEOUT, "the server took {:?} to exit", started.elapsed());
    server.restart();
    for task_id in &tasks {
        let task = server.wait_for_task(task_id);
        assert_eq!((&task["status"], &task["attempts"]), (&json!("done"), &json!(1)), "{task}");
    }
    assert_eq!(assert_consistent(&server)["l1"], 12);
}

#[test]
fn sigterm_when_idle_exits_at_once() {
    let server = Server::start();
    let doc_id = server.add(&json!({"text": "All is quiet."}));
    let started = Instant::now();
    server.stop();
    assert!(started.elapsed() < EXIT_TIMEOUT / 2, "the server took {:?} to exit", started.elapsed());
    server.restart();
    assert_eq!(server.get(&format!("/documents/{doc_id}")).data()["l1"]["title"], "All is quiet.");
    assert_eq!(server.call("GET", "/auth/me", None, Some(server.admin())).data()["username"], "admin");
}

/// The pages of a store that was not closed are checked at the next start, which reads all of them.
#[test]
fn sigterm_beside_idle_connections_closes_the_store() {
    let server = Server::start();
    let _ = server.add(&json!({"text": "All is quiet."}));
    for _ in 0..5 {
        let mut idle = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: lkr\r\n\r\n").unwrap();
        assert!(idle.read(&mut [0; 1024]).unwrap() > 0);
        let started = Instant::now();
        server.stop();
        assert!(started.elapsed() < EXIT_TIMEOUT / 2, "the server took {:?} to exit", started.elapsed());
        assert!(!server.data_dir().join("store/opened").exists(), "{}", server.log());
        server.restart();
    }
}

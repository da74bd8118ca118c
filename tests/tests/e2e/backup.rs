//! Backups of a running server, and restoring them elsewhere.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use lkr_tests::{
    ADMIN_PASSWORD, Load, Role, Seed, Server, SharedStores, WatchedDocuments, assert_consistent,
    assert_garbage_collected, cli_binary,
};
use serde_json::{Value, json};

use crate::doctor::assert_healthy;

const ENVIRONMENT: &[(&str, &str)] = &[("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD)];

fn lkr(arguments: &[&str]) -> Output {
    Command::new(cli_binary()).args(arguments).output().unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Makes a backup of a running server.
fn back_up(server: &Server, name: &str, more: &[&str]) -> PathBuf {
    let archive = server.folder().join(name);
    let url = format!("http://127.0.0.1:{}", server.port());
    let path = archive.to_str().unwrap();
    let arguments = ["backup", "--server", &url, "--token", server.admin(), "--output", path];
    let output = lkr(&[&arguments, more].concat());
    assert!(output.status.success(), "{}", printed(&output));
    assert!(!printed(&output).contains("missing"), "{}", printed(&output));
    archive
}

fn restore(archive: &Path, data: &Path) -> Output {
    lkr(&["restore", archive.to_str().unwrap(), "--data-dir", data.to_str().unwrap()])
}

/// A server on a restored data folder.
fn restored(archive: &Path) -> Server {
    let server = Server::with_data_dir(ENVIRONMENT, |data| {
        let output = restore(archive, data);
        assert!(output.status.success(), "{}", printed(&output));
    });
    server.restart();
    server
}

fn wait_until_idle(server: &Server) {
    server.wait_until(|| {
        let is_empty = |status| {
            let tasks = server.get(&format!("/documents/tasks?status={status}")).data()["items"].clone();
            tasks.as_array().is_some_and(Vec::is_empty)
        };
        (is_empty("pending") && is_empty("running")).then_some(())
    });
}

/// Asserts that a server on the restored data is consistent, and has the documents that were watched.
fn assert_complete(archive: &Path) {
    let server = restored(archive);
    wait_until_idle(&server);
    assert!(server.list_all("/documents").iter().any(|item| item["source"] == "watched:0"));
    let counts = assert_consistent(&server);
    assert!(counts["chunks"] > 0);
    assert_garbage_collected(&server, &counts);
    assert_healthy(&server);
}

fn search_without_time(server: &Server, query: &str) -> Value {
    let mut found = server.search(&json!({"query": query, "top_k": 20}));
    found.as_object_mut().unwrap().remove("took_ms");
    found
}

#[test]
fn backup_under_load_is_complete() {
    let server = Server::start();
    let mut seed = Seed::announce("backup_under_load_is_complete");
    let (load, watch) = (Load::default(), WatchedDocuments::ingest(&server));
    let mut archives = Vec::new();
    load.run_while(&server, &watch, &mut seed, || {
        for n in 0..3 {
            archives.push(back_up(&server, &format!("{n}.tar"), &[]));
        }
    });
    archives.iter().for_each(|archive| assert_complete(archive));
    wait_until_idle(&server);
    let other = restored(&back_up(&server, "last.tar", &[]));
    for path in ["/knowledge/stats", "/documents?limit=100", "/documents/tasks?limit=100"] {
        assert_eq!(other.get(path).data(), server.get(path).data(), "{path}");
    }
    for number in load.ledger().keys().take(30) {
        let query = Load::word(*number);
        assert_eq!(search_without_time(&other, &query), search_without_time(&server, &query));
    }
    assert!(watch.searches() > 0);
}

/// A backup of Redis, Qdrant and an object store is of one moment too, and one machine is enough to restore it.
#[test]
fn backup_of_shared_stores_under_load_of_another_server_is_complete() {
    let Some(stores) = SharedStores::start() else { return };
    let (one, other) = (stores.server(Role::All), stores.server(Role::All));
    let mut seed = Seed::announce("backup_of_shared_stores_under_load_of_another_server_is_complete");
    let (load, watch) = (Load::default(), WatchedDocuments::ingest(&one));
    let mut archives = Vec::new();
    load.run_while(&one, &watch, &mut seed, || archives.push(back_up(&other, "under load.tar", &[])));
    wait_until_idle(&one);
    archives.push(back_up(&other, "idle.tar", &[]));
    archives.iter().for_each(|archive| assert_complete(archive));
    let alone = restored(&archives[1]);
    for path in ["/knowledge/stats", "/documents?limit=100"] {
        assert_eq!(alone.get(path).data(), other.get(path).data(), "{path}");
    }
    for number in load.ledger().keys().take(30) {
        let query = Load::word(*number);
        assert_eq!(documents_found(&alone, &query), documents_found(&other, &query));
    }
    assert!(!other.data_dir().join("backup.tmp").exists());
}

/// The documents that a search finds and its best passage of each, without scores: rounding differs between stores.
fn documents_found(server: &Server, query: &str) -> Vec<(Value, Value)> {
    let found = server.search(&json!({"query": query, "top_k": 20}));
    let results = found["results"].as_array().unwrap();
    results.iter().map(|result| (result["doc_id"].clone(), result["text"].clone())).collect()
}

/// Accounts and settings are always restored; sealed keys are usable only with the sealing key.
#[test]
fn backup_contains_secret_key_only_on_request() {
    let server = Server::start();
    let _ = server.add(&json!({"text": "Io has volcanoes."}));
    let entry = json!({"provider": "remote_compatible", "base_url": "https://llm.example/v1", "model": "m", "api_key": "sk-planted"});
    let change = json!({"models": {"summarize": entry}});
    assert_eq!(server.call("PUT", "/settings", Some(&change), Some(server.admin())).status, 200);
    let plain = back_up(&server, "plain.tar", &[]);
    let data = server.data_dir();
    let with_key = back_up(&server, "key.tar", &["--with-secret-key", "--data-dir", data.to_str().unwrap()]);
    // The key of whatever folder the command would find by itself may be another one.
    let url = format!("http://127.0.0.1:{}", server.port());
    let refused =
        lkr(&["backup", "--server", &url, "--token", server.admin(), "--output", "-", "--with-secret-key"]);
    assert!(
        refused.status.code() == Some(2) && printed(&refused).contains("--data-dir"),
        "{}",
        printed(&refused)
    );
    let secret = fs::read(data.join("secret.key")).unwrap();
    let secret = secret.trim_ascii_end();
    let contains_secret =
        |archive: &Path| fs::read(archive).unwrap().windows(secret.len()).any(|window| window == secret);
    assert!(!contains_secret(&plain) && contains_secret(&with_key));
    let audit = server.call("GET", "/audit?action=backup.create", None, Some(server.admin()));
    assert_eq!(audit.data()["items"].as_array().unwrap().len(), 2);
    for (archive, has_key) in [(&plain, false), (&with_key, true)] {
        let other = restored(archive);
        assert_eq!(
            fs::read(other.data_dir().join("secret.key")).unwrap().trim_ascii_end() == secret,
            has_key
        );
        let settings = other.call("GET", "/settings", None, Some(other.admin()));
        assert_eq!(settings.status, 200, "{}", settings.json);
        assert_eq!(settings.data()["models"]["summarize"]["model"], "m");
        assert_eq!(other.search(&json!({"query": "volcanoes"}))["results"].as_array().unwrap().len(), 1);
    }
    // `lkr backup --data-dir` requires that no server uses the folder.
    let archive = server.folder().join("closed.tar");
    let arguments = ["backup", "--output", archive.to_str().unwrap(), "--data-dir", data.to_str().unwrap()];
    let rejected = lkr(&arguments);
    assert!(
        !rejected.status.success() && printed(&rejected).contains("in use by another process"),
        "{}",
        printed(&rejected)
    );
    server.stop();
    let output = lkr(&arguments);
    assert!(output.status.success(), "{}", printed(&output));
    let again = lkr(&arguments);
    assert!(!again.status.success() && printed(&again).contains("exists already"), "{}", printed(&again));
    let rejected = restore(&archive, &data);
    assert!(!rejected.status.success() && printed(&rejected).contains("already"), "{}", printed(&rejected));
    // What a killed restore leaves is no knowledge base, and becomes none.
    let (halfway, staged) =
        (server.folder().join("halfway"), server.folder().join("halfway/store/.restoring"));
    fs::create_dir_all(&staged).unwrap();
    fs::write(staged.join("part"), "of an archive").unwrap();
    for command in [["ls"].as_slice(), &["doctor"], &["serve", "--listen", "127.0.0.1:0"]] {
        let refused = lkr(&[command, &["--data-dir", halfway.to_str().unwrap()]].concat());
        let shown = printed(&refused);
        assert!(!refused.status.success() && shown.contains("was interrupted"), "{command:?}: {shown}");
    }
    let output = restore(&archive, &halfway);
    assert!(output.status.success(), "{}", printed(&output));
    assert_eq!(restored(&archive).list_all("/documents").len(), 1);
}

/// A client that disconnects during a backup leaves nothing behind and does not block the next backup.
#[test]
fn abandoned_backup_leaves_nothing_and_does_not_block_the_next() {
    let server = Server::start();
    for n in 0..20 {
        let _ =
            server.add(&json!({"text": format!("Report {n}. {}", "The river is steady. ".repeat(5_000))}));
    }
    let head =
        format!("GET /api/v1/backup HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n", server.admin());
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    let copy = server.data_dir().join("backup.tmp");
    server.wait_until(|| copy.exists().then_some(()));
    server.call("GET", "/backup", None, Some(server.admin())).assert_error(1010, 503);
    drop(stream);
    server.wait_until(|| (!copy.exists()).then_some(()));
    let _ = back_up(&server, "after.tar", &[]);
    // A backup that a kill interrupts leaves nothing behind either.
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    server.wait_until(|| copy.exists().then_some(()));
    server.restart();
    assert!(!copy.exists());
}

//! Stores of earlier versions are opened; stores of later versions are rejected.

use std::{fs, path::Path, process::Command};

use lkr_state::{Expect, StateStore, Write};
use lkr_tests::{ADMIN_PASSWORD, Server, assert_consistent, assert_garbage_collected, workspace};
use serde_json::{Value, json};

use crate::doctor::assert_healthy;

pub(crate) const ENVIRONMENT: &[(&str, &str)] = &[("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD)];

/// Unpacks a store. Version 1: the server was killed with an unfinished task; four documents (one from a file, one edited
/// manually), an account, a setting.
pub(crate) fn unpack(store: &str, to: &Path) {
    let archive = workspace().join(format!("tests/fixtures/store-v{store}.tar.gz"));
    let status = Command::new("tar").arg("xzf").arg(archive).arg("-C").arg(to).status();
    assert!(status.unwrap().success());
}

#[test]
fn store_of_version_1_is_opened() {
    let server = Server::with_data_dir(ENVIRONMENT, |data| unpack("1", data));
    server.restart();
    let login = |username| {
        let body = json!({"username": username, "password": "fixture-password"});
        let token = server.call("POST", "/auth/login", Some(&body), None).data()["access_token"].clone();
        token.as_str().unwrap().to_owned()
    };
    let (admin, user) = (login("admin"), login("fixture-user"));
    server.wait_until(|| (server.list_all("/documents").len() == 4).then_some(()));
    let by_source =
        |source: &str| server.get(&format!("/documents?source={source}")).data()["items"][0].clone();
    let basalt = by_source("fixture:basalt");
    assert_eq!((&basalt["category"], &basalt["metadata"]), (&json!("Company"), &json!({"kind": "geology"})));
    let marble = by_source("fixture:marble");
    let file = server.get(&format!("/documents/{}/file", marble["doc_id"].as_str().unwrap()));
    assert!(file.body.starts_with(b"# Uploaded"));
    let found = server.search(&json!({"query": "volcanoes", "filters": {"metadata": {"kind": "astronomy"}}}));
    assert_eq!(found["results"][0]["path"], json!(["Io"]));
    let settings = server.call("GET", "/settings", None, Some(&user));
    assert_eq!(settings.data()["dedup"]["simhash_threshold"], 5);
    // Documents without a fingerprint, from earlier versions, get one.
    let again = server.wait_until(|| {
        let body = json!({"text": "Basalt is  a volcanic rock. "});
        let accepted = server.call("POST", "/documents", Some(&body), Some(&admin));
        let task = server.wait_for_task(accepted.data()["task_id"].as_str().unwrap());
        let found = task["result"]["duplicate_of"]["doc_id"].clone();
        if found.is_null() {
            let path = format!("/documents/{}", task["doc_id"].as_str().unwrap());
            assert_eq!(server.call("DELETE", &path, None, Some(&admin)).status, 200);
            return None;
        }
        Some(found)
    });
    assert_eq!(again, basalt["doc_id"]);
    let body = json!({"text": "Marble is pressed limestone."});
    let path = format!("/documents/{}", marble["doc_id"].as_str().unwrap());
    let replaced = server.call("PUT", &path, Some(&body), Some(&admin));
    assert_eq!(server.wait_for_task(replaced.data()["task_id"].as_str().unwrap())["status"], "done");
    let counts = assert_consistent(&server);
    assert_garbage_collected(&server, &counts);
    assert_healthy(&server);
}

/// The server of this store was killed during a replacement. The store has a replaced file, an API key, a webhook with an
/// unavailable receiver, and a sealed setting.
#[test]
fn store_of_version_2_is_opened() {
    let server = Server::with_data_dir(ENVIRONMENT, |data| unpack("2", data));
    server.restart();
    let body = json!({"username": "admin", "password": "fixture-password"});
    let token = server.call("POST", "/auth/login", Some(&body), None).data()["access_token"].clone();
    let admin = token.as_str().unwrap();
    let by_source =
        |source: &str| server.get(&format!("/documents?source={source}")).data()["items"][0].clone();
    let path = |item: &Value| format!("/documents/{}", item["doc_id"].as_str().unwrap());
    let marble = by_source("fixture:marble");
    let file = server.get(&format!("{}/file", path(&marble)));
    assert!(file.body.starts_with(b"# Uploaded again"));
    let text = || server.get(&format!("{}/text", path(&by_source("fixture:basalt")))).data()["text"].clone();
    server.wait_until(|| (text() == "Basalt is a volcanic rock, dark and fine.").then_some(()));
    assert_eq!(by_source("fixture:moons")["metadata"], json!({"kind": "astronomy"}));
    let hooks = server.call("GET", "/webhooks", None, Some(admin));
    assert_eq!(hooks.data()["items"][0]["url"], "http://127.0.0.1:9/hook");
    let settings = server.call("GET", "/settings", None, Some(admin));
    assert_eq!(settings.data()["models"]["summarize"]["api_key"], "********");
    assert_eq!(settings.data()["dedup"]["simhash_threshold"], 5);
    let audit = server.call("GET", "/audit?action=webhook.create", None, Some(admin));
    assert_eq!(audit.data()["items"].as_array().unwrap().len(), 1);
    let counts = assert_consistent(&server);
    assert_eq!(counts["l1"], 3);
    assert_garbage_collected(&server, &counts);
    assert_healthy(&server);
}

#[test]
fn store_of_a_later_version_is_rejected_with_one_line() {
    let server = Server::with_data_dir(ENVIRONMENT, |data| {
        fs::create_dir_all(data).unwrap();
        let store = lkr_tests::open_store(&data.join("store"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let later = vec![Write::put("version", Expect::Any, "99")];
        runtime.block_on(store.state().apply(later)).unwrap();
    });
    let output = server.command().env("RUST_LOG", "off").output().unwrap();
    assert!(!output.status.success());
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(printed.contains("version 99") && printed.lines().count() == 1, "{printed}");
}

//! Folders that are moved, removed or not mounted.

use std::fs;

use lkr_tests::{ADMIN_PASSWORD, Server};
use serde_json::{Value, json};

const WHY: &str = "was moved, removed or replaced while it was in use";

/// The status of `/readyz`, and why each part is down.
fn readiness(server: &Server) -> (u16, String) {
    let response = server.try_call("GET", "/readyz", None, None).unwrap();
    (response.status, response.json.to_string())
}

fn finds(server: &Server, word: &str) -> bool {
    let found = server.search(&json!({ "query": word }));
    found["results"].as_array().unwrap().iter().any(|result| result["text"].as_str().unwrap().contains(word))
}

fn submit(server: &Server, text: &str) -> (u16, Value) {
    let response = server.call("POST", "/documents", Some(&json!({ "text": text })), Some(server.admin()));
    (response.status, response.json)
}

#[test]
fn server_whose_data_folder_is_moved_accepts_nothing_until_it_is_back() {
    let server = Server::start();
    let _ = server.add(&json!({ "text": "The basalt is black." }));
    let elsewhere = server.folder().join("elsewhere");
    fs::rename(server.data_dir(), &elsewhere).unwrap();
    let (status, parts) = readiness(&server);
    assert_eq!(status, 503);
    assert_eq!(parts.matches(WHY).count(), 4, "vectors, state, blobs and queue: {parts}");
    let (status, refusal) = submit(&server, "The gneiss is grey.");
    assert_eq!((status, &refusal["code"]), (503, &json!(1010)), "{refusal}");
    assert!(!server.data_dir().exists(), "no folder is made in its place");
    assert!(finds(&server, "basalt"), "what is known can still be found");
    fs::rename(&elsewhere, server.data_dir()).unwrap();
    assert_eq!(readiness(&server).0, 200);
    let _ = server.add(&json!({ "text": "The marble is white." }));
    server.stop();
    server.restart();
    for (word, is_there) in [("basalt", true), ("gneiss", false), ("marble", true)] {
        assert_eq!(finds(&server, word), is_there, "{word}");
    }
}

#[test]
fn texts_that_are_not_mounted_stop_a_start_and_the_work_of_a_running_server() {
    let mut server = Server::start();
    server.stop();
    let folder = server.folder().to_owned();
    let [texts, elsewhere] = ["texts", "elsewhere"].map(|name| folder.join(name));
    server.set("LKR_BLOBS", texts.to_str().unwrap());
    server.restart();
    let doc_id = server.add(&json!({ "text": "The basalt is black." }));
    // As after `umount`, the empty folder is left. A running server waits.
    fs::rename(&texts, &elsewhere).unwrap();
    fs::create_dir(&texts).unwrap();
    let (status, parts) = readiness(&server);
    assert_eq!((status, parts.matches(WHY).count()), (200, 1), "searches need no texts: {parts}");
    assert!(parts.contains(r#""blobs":"down""#), "{parts}");
    assert_eq!(submit(&server, "The gneiss is grey.").0, 503);
    let text = |server: &Server| {
        server.call("GET", &format!("/documents/{doc_id}/text"), None, Some(server.admin())).status
    };
    assert_ne!(text(&server), 404, "nothing tells that the text does not exist");
    assert_eq!(fs::read_dir(&texts).unwrap().count(), 0);
    server.stop();
    // A start that finds the folder empty says so, instead of using it.
    let output = server.command().output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    let place = format!("no texts at all where they should be ({})", texts.display());
    assert!(error.contains(&place), "{error}");
    assert_eq!(fs::read_dir(&texts).unwrap().count(), 0);
    fs::remove_dir(&texts).unwrap();
    fs::rename(&elsewhere, &texts).unwrap();
    server.restart();
    assert_eq!(text(&server), 200);
    let _ = server.add(&json!({ "text": "The marble is white." }));
    // Somebody whose texts are lost can go on.
    server.stop();
    fs::remove_dir_all(&texts).unwrap();
    fs::create_dir(&texts).unwrap();
    fs::write(texts.join("knowledge-base"), "").unwrap();
    server.set("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD);
    server.restart();
    assert!(finds(&server, "basalt"));
}

//! A local reranker.

use std::{fs, path::PathBuf};

use lkr_tests::{ADMIN_PASSWORD, Server, workspace};
use serde_json::json;

/// A tiny model with fixed random weights.
fn model() -> PathBuf {
    workspace().join("crates/lkr-models-local/tests/fixtures/tiny-bert-reranker")
}

fn check(server: &Server) {
    for n in 1..=4 {
        let _ = server.add(&json!({"title": format!("doc {n}"), "text": format!("A tale of whales{}.", " and ships".repeat(n))}));
    }
    let found = server.search(&json!({"query": "whales", "explain": true, "rerank": true}));
    assert_eq!(found["explain"]["rerank"]["model"], "tiny-bert-reranker", "{found}");
    assert_eq!(found["explain"]["rerank"]["candidates"], 4);
    assert!(!found["warnings"].to_string().contains("rerank"), "{found}");
    let scores: Vec<f64> =
        found["results"].as_array().unwrap().iter().map(|result| result["score"].as_f64().unwrap()).collect();
    assert!(scores.len() == 4 && scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    let body = json!({"models": {"rerank": {}}});
    let tested = server.call("POST", "/settings/test", Some(&body), Some(server.admin()));
    assert_eq!(tested.data()["ok"], true, "{:?}", tested.data());
    assert!(tested.data()["detail"].as_str().unwrap().contains("in this process"));
    // The reranker in the settings takes precedence. If it fails, the order is unchanged.
    let entry = json!({"models": {"rerank": {"provider": "local_llm", "base_url": "http://127.0.0.1:1"}}});
    assert_eq!(server.call("PUT", "/settings", Some(&entry), Some(server.admin())).status, 200);
    let found = server.search(&json!({"query": "whales", "explain": true}));
    assert!(found["warnings"].to_string().contains("not reranked"), "{found}");
    let plain = server.search(&json!({"query": "whales", "explain": true, "rerank": false}));
    assert_eq!(plain["results"], found["results"]);
    assert!(plain["explain"]["rerank"].is_null());
}

#[test]
fn reranker_folder_in_configuration_reranks() {
    let dir = model().display().to_string();
    check(&Server::start_with(&[("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD), ("LKR_RERANK_MODEL_DIR", &dir)]));
}

#[test]
fn reranker_folder_in_data_dir_reranks() {
    let server = Server::with_data_dir(&[("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD)], |data| {
        let folder = data.join("models/reranker");
        fs::create_dir_all(&folder).unwrap();
        for file in ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"] {
            fs::copy(model().join(file), folder.join(file)).unwrap();
        }
    });
    server.restart();
    let _ = server.add(&json!({"text": "A tale of whales."}));
    let found = server.search(&json!({"query": "whales", "explain": true}));
    assert_eq!(found["explain"]["rerank"]["model"], "reranker", "{found}");
}

#[test]
fn unusable_reranker_folder_stops_start_with_one_line() {
    let server = Server::start();
    server.stop();
    let broken = server.folder().join("broken");
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join("config.json"), "{").unwrap();
    for (folder, named) in [(server.folder().join("none"), "rerank_model_dir"), (broken, "config.json")] {
        let output = server.command().env("LKR_RERANK_MODEL_DIR", &folder).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && printed.contains(named), "{printed}");
    }
}

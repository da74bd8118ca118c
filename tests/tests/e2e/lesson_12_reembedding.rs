//! Lesson 12: the embedding model changes during searches and kills.

use std::time::Duration;

use lkr_tests::{Seed, Server, assert_consistent, assert_garbage_collected, workspace};
use serde_json::{Value, json};

use crate::doctor::assert_healthy;

/// The number of documents.
const DOCUMENTS: usize = 600;

/// The size of a batch.
const BATCH: usize = 100;

/// How often the server is killed during re-embedding.
const KILLS: u64 = 4;

fn model(name: &str) -> String {
    let folder = workspace().join("crates/lkr-models-local/tests/fixtures").join(name);
    folder.display().to_string()
}

fn document(n: usize) -> Value {
    json!({"text": format!("# Stone {n}\n\nThe stone number {n} lies in the river. It is grey.\n")})
}

fn add_all(server: &Server) {
    for first in (0..DOCUMENTS).step_by(BATCH) {
        let documents: Vec<Value> = (first..first + BATCH).map(document).collect();
        let body = json!({"documents": documents});
        let accepted = server.call("POST", "/documents/batch", Some(&body), Some(server.admin()));
        for task in accepted.data()["tasks"].as_array().unwrap() {
            assert_eq!(server.wait_for_task(task["task_id"].as_str().unwrap())["status"], "done");
        }
    }
}

/// The one re-embedding task.
fn reembedding_task(server: &Server) -> Option<Value> {
    // It is shown to admins, and among the newest tasks.
    let tasks = server.call("GET", "/documents/tasks?limit=100", None, Some(server.admin()));
    let mut reembeddings =
        tasks.data()["items"].as_array().unwrap().iter().filter(|task| task["kind"] == "reembed").cloned();
    let task = reembeddings.next();
    assert!(reembeddings.next().is_none(), "more than one re-embedding task");
    task
}

/// Runs a search. It must find results without warnings, whichever model is in use.
fn search(server: &Server, n: usize) {
    let found =
        server.search(&json!({"query": format!("stone number {n} in the river"), "top_k": 3 + n % 20}));
    assert_eq!(found["warnings"], json!([]), "{found}");
    assert!(!found["results"].as_array().unwrap().is_empty());
}

fn embedding(server: &Server) -> Value {
    server.try_call("GET", "/readyz", None, None).unwrap().data()["embedding"].clone()
}

/// Restarts the server with a variable that makes `name` its model, and searches until all documents have its vectors. Until
/// then, the earlier model answers.
fn restart_with_another_model(server: &mut Server, (variable, value): (&str, &str), name: &str) {
    server.stop();
    server.set(variable, value);
    server.restart();
    assert_eq!(embedding(server)["wanted"], name);
    let after = server.wait_until(|| {
        search(server, 1);
        Some(embedding(server)).filter(|embedding| embedding["in_use"] == name)
    });
    assert_eq!(after["in_use"], after["wanted"]);
}

#[test]
fn lesson_12_kills_during_reembedding_lose_nothing_and_fail_no_search() {
    let mut server = Server::start_with(&[
        ("LKR_ADMIN_PASSWORD", lkr_tests::ADMIN_PASSWORD),
        ("LKR_MODEL_DIR", &model("tiny-bert-mean")),
    ]);
    // The first model on an empty knowledge base creates no task.
    assert_eq!(reembedding_task(&server), None);
    add_all(&server);
    let before = embedding(&server);
    assert_eq!(before["in_use"], before["wanted"]);
    server.stop();

    server.set("LKR_MODEL_DIR", &model("tiny-xlm-roberta-mean"));
    let mut seed = Seed::announce("lesson_12_kills_during_reembedding_lose_nothing_and_fail_no_search");
    let (mut searches, mut kills_during) = (0, 0);
    let mut late = String::new();
    for kill in 0..KILLS {
        server.restart();
        let started = std::time::Instant::now();
        if kill == 0 {
            late = server.add(&json!({"text": "# Late\n\nA pebble came late to the river.\n"}));
            assert_ne!(
                reembedding_task(&server).unwrap()["status"],
                "done",
                "the document was added during re-embedding"
            );
        }
        let lifetime = Duration::from_millis(300 + seed.below(700));
        while started.elapsed() < lifetime {
            search(&server, searches);
            searches += 1;
        }
        kills_during += usize::from(reembedding_task(&server).is_some_and(|task| task["status"] != "done"));
        server.kill();
        // Unfinished re-embedding is not damage.
        assert_healthy(&server);
    }
    server.restart();
    let found = server.search(&json!({"query": "a pebble came late"}));
    assert_eq!(found["results"][0]["doc_id"], late, "{found}");
    let done = server.wait_until(|| {
        search(&server, searches);
        reembedding_task(&server).filter(|task| task["status"] == "done")
    });
    eprintln!("{kills_during} of {KILLS} kills during re-embedding, {searches} searches: {}", done["result"]);
    assert!(kills_during > 0, "re-embedding was done before the first kill");
    assert_eq!(done["result"]["reembedded"], DOCUMENTS + 1);
    let after = embedding(&server);
    assert_eq!(after["in_use"], after["wanted"]);
    search(&server, 1);
    let counts = assert_consistent(&server);
    assert_garbage_collected(&server, &counts);
    assert_healthy(&server);
}

#[test]
fn lesson_12_cancelled_reembedding_keeps_the_earlier_model() {
    let mut server = Server::start_with(&[
        ("LKR_ADMIN_PASSWORD", lkr_tests::ADMIN_PASSWORD),
        ("LKR_MODEL_DIR", &model("tiny-bert-mean")),
    ]);
    add_all(&server);
    let before = embedding(&server);
    server.stop();
    server.set("LKR_MODEL_DIR", &model("tiny-xlm-roberta-mean"));
    server.restart();
    let task = server.wait_until(|| reembedding_task(&server));
    let path = format!("/documents/tasks/{}", task["task_id"].as_str().unwrap());
    let cancelled = server.call("POST", &format!("{path}/cancel"), None, Some(server.admin()));
    assert_eq!(cancelled.status, 202, "{:?}", cancelled.data());
    assert_eq!(server.wait_for_task(task["task_id"].as_str().unwrap())["error"]["message"], "cancelled");
    for _ in 0..2 {
        let now = embedding(&server);
        assert_eq!(now["in_use"], before["in_use"]);
        assert_ne!(now["wanted"], before["wanted"]);
        search(&server, 7);
        server.stop();
        server.restart();
    }
    assert_eq!(
        reembedding_task(&server).unwrap()["status"],
        "failed",
        "a cancelled re-embedding is not started again"
    );
}

#[test]
fn lesson_12_another_precision_is_another_model() {
    let mut server = Server::start_with(&[
        ("LKR_ADMIN_PASSWORD", lkr_tests::ADMIN_PASSWORD),
        ("LKR_MODEL_DIR", &model("tiny-bert-mean")),
    ]);
    add_all(&server);
    for (precision, name) in
        [("int8", "tiny-bert-mean (int8)"), ("bf16", "tiny-bert-mean (bf16)"), ("float32", "tiny-bert-mean")]
    {
        restart_with_another_model(&mut server, ("LKR_MODEL_PRECISION", precision), name);
    }
}

#[test]
fn lesson_12_other_dimensions_are_another_model() {
    let mut server = Server::start_with(&[
        ("LKR_ADMIN_PASSWORD", lkr_tests::ADMIN_PASSWORD),
        ("LKR_MODEL_DIR", &model("tiny-bert-mean")),
        ("LKR_MODEL_DIMS", "24"),
    ]);
    add_all(&server);
    assert_eq!(embedding(&server)["in_use"], "tiny-bert-mean (24 of 32 dimensions)");
    for (dims, name) in [("16", "tiny-bert-mean (16 of 32 dimensions)"), ("", "tiny-bert-mean")] {
        restart_with_another_model(&mut server, ("LKR_MODEL_DIMS", dims), name);
    }
}

//! Lesson 1: the status of a task is correct and never stuck.

use lkr_tests::{Load, Server};
use serde_json::json;

/// Long enough to be processed for a while.
fn long_text() -> String {
    (0..30_000)
        .map(|n| format!("Observation {n}: the gauge at pier {} reads {} metres. ", n % 97, n % 13))
        .collect()
}

#[test]
fn lesson_01_done_means_searchable() {
    let server = Server::start();
    for n in 0..40 {
        let word = Load::word(n);
        let doc_id = server.add(&json!({"text": format!("The quokka {word} lives on an island.")}));
        // Immediately after the task reported done.
        let found = server.search(&json!({"query": word}));
        assert_eq!(found["results"][0]["doc_id"], doc_id, "{word}: {found}");
        assert_eq!(server.get(&format!("/documents/{doc_id}")).data()["l1"]["doc_id"], doc_id);
        assert_eq!(server.get("/knowledge/stats").data()["documents_total"], n + 1);
    }
}

#[test]
fn lesson_01_no_task_stays_running_after_restart() {
    let server = Server::start();
    let tasks: Vec<String> = (0..6)
        .map(|_| server.submit(&json!({"text": long_text()}))["task_id"].as_str().unwrap().to_owned())
        .collect();
    // Twice, during processing.
    for _ in 0..2 {
        server.wait_until(|| (0..6).any(|n| server.task(&tasks[n])["status"] == "running").then_some(()));
        server.kill();
        server.restart();
    }
    for task_id in &tasks {
        let task = server.wait_for_task(task_id);
        assert_eq!(task["status"], "done", "{task}");
        assert_eq!(task["attempts"], 1, "an attempt that a kill interrupted does not count: {task}");
    }
    for status in ["pending", "running", "failed"] {
        let listed = server.get(&format!("/documents/tasks?status={status}"));
        assert_eq!(listed.data()["items"], json!([]), "{status}");
    }
    assert_eq!(server.get("/documents/tasks?status=done").data()["items"].as_array().unwrap().len(), 6);
}

#[test]
fn lesson_01_task_is_done_only_once_its_document_exists() {
    let server = Server::start();
    let task = server.submit(&json!({"text": long_text()}));
    assert_eq!(task["status"], "pending");
    let task_id = task["task_id"].as_str().unwrap();
    let doc_id = server.task(task_id)["doc_id"].as_str().unwrap().to_owned();
    server.wait_until(|| {
        // The task is read first: if it reports done, the document must exist.
        let task = server.task(task_id);
        let exists = server.get(&format!("/documents/{doc_id}")).status == 200;
        let done = task["status"] == "done";
        assert!(!done || exists, "{task}");
        assert_eq!(done, task.get("result").is_some(), "{task}");
        assert!(task.get("error").is_none(), "{task}");
        done.then_some(())
    });
}

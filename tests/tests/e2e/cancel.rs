//! Cancelling tasks.

use lkr_tests::{Server, assert_consistent, assert_garbage_collected};
use serde_json::{Value, json};

/// A document whose layering takes seconds.
fn long_text() -> String {
    let sentence =
        |n: u64| format!("Kestrel {} circles above field {} at noon on day {n}. ", n % 101, n % 89);
    (0..120_000).map(sentence).collect()
}

#[test]
fn deleting_a_document_cancels_its_running_task() {
    let server = Server::start();
    let task_id = server.submit(&json!({"text": long_text()}))["task_id"].as_str().unwrap().to_owned();
    let running = server.wait_until(|| {
        let task = server.task(&task_id);
        assert_ne!(
            task["status"], "done",
            "the text is too short: the task was done before it was seen running"
        );
        (task["status"] == "running").then_some(task)
    });
    check_cancelled(&server, &running);
}

#[test]
fn deleting_a_document_cancels_its_pending_task() {
    let server = Server::start();
    // One text of this length is processed at a time, and one more is claimed.
    for _ in 0..4 {
        let _ = server.submit(&json!({"text": long_text()}));
    }
    let last = server.submit(&json!({"text": long_text() + "Kestrel of the last hour."}));
    let waiting = server.task(last["task_id"].as_str().unwrap());
    assert_eq!(waiting["status"], "pending", "{waiting}");
    let tasks = server.list_all("/documents/tasks");
    check_cancelled(&server, &waiting);
    for task in tasks {
        let doc_id = task["doc_id"].as_str().unwrap();
        let _ = server.call("DELETE", &format!("/documents/{doc_id}"), None, Some(server.admin())).data();
    }
    let counts = assert_consistent(&server);
    assert_eq!(counts["l1"], 0);
    assert_garbage_collected(&server, &counts);
}

fn check_cancelled(server: &Server, task: &Value) {
    let (task_id, doc_id) = (task["task_id"].as_str().unwrap(), task["doc_id"].as_str().unwrap());
    let response = server.call("DELETE", &format!("/documents/{doc_id}"), None, Some(server.admin()));
    let zeros = json!({"l1": 0, "l2": 0, "l3": 0, "chunks": 0});
    assert_eq!(response.data()["deleted"], zeros);
    assert_eq!(response.data()["deleted_total"], 0);
    // The task has ended when the delete returns.
    let ended = server.task(task_id);
    assert_eq!(ended["status"], "failed", "{ended}");
    assert_eq!(ended["error"]["code"], 1003, "{ended}");
    assert_eq!(ended["error"]["message"], "cancelled", "{ended}");
    assert_eq!(ended["error"]["retryable"], false, "{ended}");
    server.get(&format!("/documents/{doc_id}")).assert_error(1004, 404);
    server.get(&format!("/documents/{doc_id}/text")).assert_error(1004, 404);
    let found = server.search(&json!({"query": "kestrel", "filters": {"doc_ids": [doc_id]}}));
    assert_eq!(found["results"], json!([]));
    // A second delete reports zero points.
    let again = server.call("DELETE", &format!("/documents/{doc_id}"), None, Some(server.admin()));
    assert_eq!(again.data()["deleted"], zeros);
    assert_eq!(server.task(task_id), ended, "an ended task does not change");
}

/// A long document reports progress, does not block short ones, and can be cancelled.
#[test]
fn lesson_13_long_task_reports_progress_and_can_be_cancelled() {
    let server = Server::start();
    let task_id = server.submit(&json!({"text": long_text()}))["task_id"].as_str().unwrap().to_owned();
    let running_task = || {
        let task = server.task(&task_id);
        assert_ne!(
            task["status"], "done",
            "the text is too short: the task was done before it was seen running"
        );
        (task["status"] == "running").then_some(task)
    };
    let _ = server.wait_until(running_task);
    let _ = server.add(&json!({"text": "Kestrel of the last hour."}));
    server.wait_until(|| {
        let task = running_task()?;
        let number = |key: &str| task["progress"][key].as_u64().unwrap();
        assert!(number("done") <= number("total"), "{task}");
        (number("done") > 0).then_some(())
    });

    let path = format!("/documents/tasks/{task_id}/cancel");
    let cancelled = server.call("POST", &path, None, Some(server.admin()));
    assert_eq!(cancelled.status, 202, "{}", cancelled.json);
    let ended = server.wait_for_task(&task_id);
    assert_eq!((&ended["status"], &ended["error"]["code"]), (&json!("failed"), &json!(1003)), "{ended}");
    let counts = assert_consistent(&server);
    assert_eq!(counts["l1"], 1);
    assert_garbage_collected(&server, &counts);
}

#[test]
fn cancelled_task_leaves_nothing() {
    let server = Server::start();
    let kept = server.add(&json!({"text": "Kestrel that stays."}));
    let task_id = server.submit(&json!({"text": long_text()}))["task_id"].as_str().unwrap().to_owned();
    let running =
        server.wait_until(|| Some(server.task(&task_id)).filter(|task| task["status"] != "pending"));
    check_cancelled(&server, &running);
    let counts = assert_consistent(&server);
    assert_eq!(server.list_all("/documents")[0]["doc_id"], kept);
    assert_garbage_collected(&server, &counts);
}

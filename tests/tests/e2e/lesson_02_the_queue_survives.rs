//! Lesson 2: a document is on disk when the server responds with 202.

use lkr_tests::Server;
use serde_json::json;

#[test]
fn lesson_02_a_kill_right_after_the_202_loses_nothing() {
    let server = Server::start();
    let _ = server.admin();
    let mut accepted = Vec::new();
    for round in 0..6 {
        for n in 0..round * 3 {
            let text = format!("Round {round}, note {n}: the lantern 🏮 hangs at gate {n}.\r\n\tIt burns.\n");
            accepted.push((server.submit(&json!({"text": text, "title": "Note"})), text));
        }
        let text = format!("The last note of round {round} before the lights go out.");
        accepted
            .push((server.submit(&json!({"text": text, "metadata": {"round": round.to_string()}})), text));
        server.kill();
        server.restart();
    }
    let count = accepted.len();
    for (task, text) in accepted {
        let task = server.wait_for_task(task["task_id"].as_str().unwrap());
        assert_eq!(task["status"], "done", "{task}");
        let doc_id = task["result"]["doc_id"].as_str().unwrap();
        assert_eq!(server.get(&format!("/documents/{doc_id}/text")).data()["text"], text);
    }
    assert_eq!(server.list_all("/documents").len(), count);
}

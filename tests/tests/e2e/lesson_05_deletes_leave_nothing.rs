//! One delete removes all data of a document, even if the process is killed. `lkr doctor` confirms it.

use std::{process::Output, time::Duration};

use lkr_tests::{Load, Seed, Server, Termination, WatchedDocuments};

use crate::doctor::{doctor, printed};

/// How often the server is killed.
const KILLS: usize = 6;

#[test]
fn lesson_05_delete_leaves_nothing_after_kills() {
    let name = "lesson_05_deletes_leave_nothing";
    let (server, mut seed) = (Server::start(), Seed::announce(name));
    let (load, watch) = (Load::default(), WatchedDocuments::ingest(&server));
    for _ in 0..KILLS {
        let termination = Termination::After(Duration::from_millis(20 + seed.below(1000)));
        load.until_terminated(&server, &watch, termination, &mut seed);
        server.restart();
    }
    let ledger = load.ledger().clone();
    assert!(ledger.values().any(|entry| entry.delete_sent), "nothing was deleted");
    // This includes deletes whose response was lost.
    for task in server.list_all("/documents/tasks") {
        let _ = server.wait_for_task(task["task_id"].as_str().unwrap());
    }
    // The rest of the load is deleted too, and collected in the background.
    for item in server.list_all("/documents") {
        let path = format!("/documents/{}", item["doc_id"].as_str().unwrap());
        assert_eq!(server.call("DELETE", &path, None, Some(server.admin())).status, 200);
    }
    lkr_tests::assert_garbage_collected(&server, &lkr_tests::assert_consistent(&server));
    if server.has_own_stores() {
        // The doctor has compared the stores.
        return;
    }
    let Output { status, stdout, .. } = doctor(&server, &[]);
    assert!(status.success(), "{}", printed(&stdout));
    assert!(printed(&stdout).ends_with("0 documents, 0 points; nothing is wrong\n"), "{}", printed(&stdout));
}

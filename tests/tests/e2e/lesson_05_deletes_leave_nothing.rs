//! One delete removes everything of a document, whenever the process is killed amid it; `lkr doctor` says so.

use std::{process::Output, time::Duration};

use lkr_tests::{Death, Load, Seed, Server, Watch};

use crate::doctor::{doctor, said};

/// How often the server is killed.
const KILLS: usize = 6;

#[test]
fn lesson_05_deletes_leave_nothing() {
    let name = "lesson_05_deletes_leave_nothing";
    let (server, mut seed) = (Server::start(), Seed::announce(name));
    let (load, watch) = (Load::default(), Watch::begin(&server));
    for _ in 0..KILLS {
        let death = Death::After(Duration::from_millis(20 + seed.below(1000)));
        load.until_dead(&server, &watch, death, &mut seed);
        server.restart();
    }
    let ledger = load.ledger().clone();
    assert!(ledger.values().any(|outcome| outcome.delete_sent), "nothing was deleted");
    // Those included whose sender did not live to hear of them.
    for task in server.all("/documents/tasks") {
        let _ = server.ended(task["task_id"].as_str().unwrap());
    }
    // What is left of the last load is deleted too, and what is deleted is collected by and by.
    for item in server.all("/documents") {
        let path = format!("/documents/{}", item["doc_id"].as_str().unwrap());
        assert_eq!(server.call("DELETE", &path, None, Some(server.admin())).status, 200);
    }
    lkr_tests::assert_nothing_left(&server, &lkr_tests::assert_consistent(&server));
    let Output { status, stdout, .. } = doctor(&server, &[]);
    assert!(status.success(), "{}", said(&stdout));
    assert!(said(&stdout).ends_with("0 documents, 0 points; nothing is wrong\n"), "{}", said(&stdout));
}

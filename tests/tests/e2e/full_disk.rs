//! A full disk: writes are rejected, reads work, and no accepted document is lost.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    time::{Duration, Instant},
};

use lkr_tests::{ADMIN_PASSWORD, Load, Server, SmallDisk, assert_consistent, assert_garbage_collected};
use serde_json::{Value, json};

use crate::doctor::assert_healthy;

const MEGABYTES: u32 = 64;

/// The size of a file that takes space and is removed later.
const BALLAST: usize = 24 << 20;

/// After this time the test stops waiting for a document.
const TASK_TIMEOUT: Duration = Duration::from_secs(4);

#[test]
fn full_disk_rejects_writes_and_loses_nothing() {
    let mut disk = None;
    let server = Server::with_data_dir(&[("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD)], |data| {
        disk = SmallDisk::mount(data, MEGABYTES);
    });
    let Some(_disk) = disk else { return };
    fs::write(server.data_dir().join("ballast"), vec![1; BALLAST]).unwrap();
    server.restart();
    let mut accepted: BTreeMap<u64, String> = (0..3).map(|n| (n, send(&server, n).unwrap())).collect();
    for task_id in accepted.values() {
        assert_eq!(server.wait_for_task(task_id)["status"], "done");
    }
    let rejected = (3..2_000).find(|&n| match send(&server, n) {
        Ok(task_id) => {
            // One after another, so that the waiting documents fit once there is space.
            let deadline = Instant::now() + TASK_TIMEOUT;
            while Instant::now() < deadline && !has_ended(&server.task(&task_id)) {}
            accepted.insert(n, task_id);
            false
        }
        Err(error) => {
            assert_eq!((error["code"].as_u64(), error["data"].as_str()), (Some(2000), None), "{error}");
            true
        }
    });
    let rejected = rejected.expect("the disk never became full");
    eprintln!("{} documents were accepted before one was rejected", accepted.len());
    let uploaded = server.try_upload("late.md", body(rejected).as_bytes(), &[], server.admin()).unwrap();
    let uploaded = &uploaded.json;
    assert!(uploaded["code"] == 2000 || uploaded["data"]["saved_path"] == "", "{uploaded}");
    assert_reads_work(&server);

    // The server also starts without a free byte.
    let mut rest = fs::File::create(server.data_dir().join("rest")).unwrap();
    while rest.write_all(&[1; 512]).is_ok() {}
    server.restart();
    assert_reads_work(&server);
    let queue = || {
        let ready = server.try_call("GET", "/readyz", None, None).ok()?;
        Some(ready.data()["checks"]["queue"].clone())
    };
    let all_ended = || accepted.values().all(|task_id| has_ended(&server.task(task_id)));
    // Those that are left may fit all the same.
    let reason = server.wait_until(|| match queue()?["reason"].as_str() {
        Some(reason) => Some(Some(reason.to_owned())),
        None => all_ended().then_some(None),
    });
    assert!(
        matches!(reason.as_deref(), None | Some("ingestion waits: there is no room on the disk")),
        "{reason:?}"
    );

    for file in ["ballast", "rest"] {
        fs::remove_file(server.data_dir().join(file)).unwrap();
    }
    for (n, task_id) in &accepted {
        let task = server.wait_for_task(task_id);
        assert_eq!(task["status"], "done", "{n}: {task}");
    }
    assert_eq!(found(&server, rejected), None);
    let late = server.wait_until(|| send(&server, rejected).ok());
    assert_eq!(server.wait_for_task(&late)["status"], "done");
    for &n in accepted.keys().chain([&rejected]) {
        assert_eq!(found(&server, n), Some(Load::source(n)), "{n}");
    }
    assert_eq!(queue().unwrap()["status"], "ok");
    let counts = assert_consistent(&server);
    assert_garbage_collected(&server, &counts);
    assert_healthy(&server);
}

fn body(n: u64) -> String {
    let section = |s: u64| {
        let sentence =
            |i: u64| format!("Station {i} reports the level of river {} as steady. ", (n * 31 + i * s) % 997);
        format!("## Part {s}\n\n{}\n", (0..60).map(sentence).collect::<String>())
    };
    format!("# Report {n}\n\nIt is about {}.\n\n{}", Load::word(n), (0..20).map(section).collect::<String>())
}

/// Sends a document and returns its task, or the error.
fn send(server: &Server, n: u64) -> Result<String, Value> {
    let document = json!({"text": body(n), "source": Load::source(n)});
    let response = server.call("POST", "/documents", Some(&document), Some(server.admin()));
    match response.status {
        202 => Ok(response.data()["task_id"].as_str().unwrap().to_owned()),
        _ => Err(response.json),
    }
}

fn has_ended(task: &Value) -> bool {
    matches!(task["status"].as_str(), Some("done" | "failed"))
}

/// The source of the first result for a document's word; `None` if it is another document.
fn found(server: &Server, n: u64) -> Option<String> {
    let found = server.search(&json!({"query": Load::word(n)}));
    let first = found["results"][0]["source"].as_str()?;
    (first == Load::source(n)).then(|| first.to_owned())
}

fn assert_reads_work(server: &Server) {
    for n in 0..3 {
        assert_eq!(found(server, n), Some(Load::source(n)));
    }
    let listed = server.list_all("/documents");
    let path = format!("/documents/{}", listed[0]["doc_id"].as_str().unwrap());
    assert_eq!(server.get(&path).status, 200);
    assert!(server.get(&format!("{path}/text")).data()["text"].as_str().unwrap().starts_with("# Report"));
}

//! `lkr bench load` and `lkr bench start`.

use std::fs;

use lkr_tests::{CommandLine, Server, assert_consistent, printed};
use serde_json::Value;

const QUESTIONS: &str =
    "what moves the sea at noon\nhow often does the moon pull the sea\n\nwhen does the sun help\n";

/// The steps that a run of so many seconds a step writes.
fn steps(lkr: &CommandLine, seconds: &str, arguments: &[&str]) -> Vec<Value> {
    let load = ["bench", "load", "--queries", "questions", "--seconds", seconds, "--json", "results"];
    let _ = lkr.print(&[&load, arguments].concat());
    let results: Value = serde_json::from_slice(&fs::read(lkr.path("results")).unwrap()).unwrap();
    results["steps"].as_array().unwrap().clone()
}

fn requests(step: &Value, kind: &str) -> u64 {
    step["kinds"][kind]["requests"].as_u64().unwrap_or_default()
}

#[test]
fn load_in_closed_and_open_loop_is_measured_and_leaves_no_document() {
    let server = Server::start();
    let lkr = CommandLine::on(&server);
    fs::write(lkr.path("tides.md"), "# Tides\n\nThe moon pulls the sea twice a day.\n").unwrap();
    fs::write(lkr.path("questions"), QUESTIONS).unwrap();
    let _ = lkr.print(&["add", "tides.md"]);

    let kinds = ["search", "cached", "filtered", "space", "context", "summary", "add", "delete"];
    let mix = kinds.join(",");
    let small = ["--stock", "20", "--document-bytes", "300", "--warm-up", "0"];
    let arguments = [&small, ["--clients", "1,3", "--kind", &mix].as_slice()].concat();
    let sent_all =
        |steps: &[Value]| steps.iter().all(|step| kinds.iter().all(|kind| requests(step, kind) > 0));
    // On a busy machine, two seconds may be too few for each kind to be sent.
    let mut runs = ["2", "8", "32"].iter().map(|seconds| steps(&lkr, seconds, &arguments));
    let closed = runs.find(|steps| sent_all(steps)).expect("each kind is sent");
    assert_eq!(closed.len(), 2);
    for step in &closed {
        for kind in kinds {
            let results = &step["kinds"][kind];
            assert!(results["p50_ms"].as_f64() > Some(0.0), "{kind}: {results}");
            assert!(results["p50_ms"].as_f64() <= results["max_ms"].as_f64(), "{kind}: {results}");
        }
        assert_eq!(step["kinds"]["search"]["hits"], 0, "the cache answered searches that differ: {step}");
        assert!(step["cpu_ms_per_request"].as_f64() > Some(0.0), "{step}");
        assert!(step["ingestion"]["done"].as_u64() > Some(0), "{step}");
    }

    let open = steps(&lkr, "2", &["--rate", "20", "--clients", "4", "--kind", "cached"]);
    let all = &open[0]["all"];
    assert_eq!(all["requests"], 40, "each request of 2 s at 20 a second was sent: {all}");
    assert_eq!(all["hits"], 40, "{all}");

    let documents = server.list_all("/documents");
    assert_eq!(documents.len(), 1, "{documents:?}");
    assert_eq!(documents[0]["source"], "file:tides.md");
    assert_eq!(assert_consistent(&server)["l1"], 1);

    let load = ["bench", "load", "--queries", "questions", "--seconds", "1", "--warm-up", "0"];
    let failed = lkr.run(&[&load, ["--kind", "space", "--space", "nowhere"].as_slice()].concat());
    assert_eq!(failed.status.code(), Some(1), "{}", printed(&failed));
    let shown = printed(&failed);
    assert!(
        shown.contains("error space 1004: ") && shown.contains("requests failed, more than 0"),
        "{shown}"
    );
    assert!(shown.lines().any(|line| line.contains(", first: ") && line.contains("nowhere")), "{shown}");
}

#[test]
fn start_is_measured_on_a_folder_and_leaves_it_free() {
    let server = Server::start();
    server.stop();
    let folder = server.data_dir().display().to_string();
    let shown = CommandLine::alone().print(&["bench", "start", "--data-dir", &folder, "--runs", "2"]);
    assert!(shown.starts_with("ready after ") && shown.contains("of 2 starts"), "{shown}");
    server.restart();
    let missing = CommandLine::alone().run(&["bench", "start", "--data-dir", "nowhere"]);
    assert_eq!(missing.status.code(), Some(4), "{}", printed(&missing));
}

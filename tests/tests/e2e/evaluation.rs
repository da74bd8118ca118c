//! Evaluation as a task of the server, and by the command line without a server.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use lkr_tests::{Server, cli_binary};
use serde_json::{Value, json};

#[test]
fn lesson_02_evaluation_survives_kill_9() {
    let server = Server::start();
    let doc_id = server.add(&json!({ "text": "Basalt comes from volcanoes.", "source": "basalt" }));
    let query = json!({ "text": "volcanoes", "relevant": [{ "doc_id": doc_id }] });
    let gold = json!({ "queries": vec![query; 2_000] });
    let accepted = server.call("POST", "/eval", Some(&gold), Some(server.admin()));
    assert_eq!(accepted.status, 202);
    let task_id = accepted.data()["task_id"].as_str().unwrap().to_owned();
    // Killed during the evaluation.
    server.wait_until(|| (server.task(&task_id)["status"] != "pending").then_some(()));
    server.restart();
    let task = server.wait_for_task(&task_id);
    assert_eq!((&task["kind"], &task["status"]), (&json!("evaluate"), &json!("done")), "{task}");
    for mode in ["flat", "layered"] {
        let figures = &task["result"][mode];
        assert_eq!((&figures["queries"], &figures["ndcg_at_10"]), (&json!(2_000), &json!(1.0)), "{task}");
    }
}

fn lkr(arguments: &[&str]) -> Output {
    Command::new(cli_binary()).args(arguments).output().unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Two documents of two sections each; one is judged by document, section and span.
fn collection(folder: &Path) -> String {
    let dir = folder.join("moons");
    fs::create_dir(&dir).unwrap();
    let row = |doc: &str, order: u32, title: &str, text: &str| {
        json!({ "_id": format!("{doc}{order}"), "doc_id": doc, "order": order, "title": title, "text": text })
            .to_string()
    };
    let rows = [
        row("io", 1, "Volcanoes of Io", "Tidal heat melts the rock below its surface."),
        row("io", 0, "Orbit of Io", "It goes round Jupiter in two days."),
        row("triton", 0, "Orbit of Triton", "It goes round Neptune the wrong way."),
        row("triton", 1, "Geysers of Triton", "Nitrogen rises from below its surface."),
    ];
    let queries =
        [json!({ "_id": "q", "text": "tidal heat" }), json!({ "_id": "r", "text": "round Neptune" })];
    for (name, text) in [
        ("corpus.jsonl", rows.join("\n")),
        ("queries.jsonl", queries.map(|query| query.to_string()).join("\n")),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\nq\tio1\t1\nr\ttriton0\t1\n".to_owned()),
        ("spans.jsonl", json!({ "query_id": "r", "doc_id": "triton", "start": 0, "end": 30 }).to_string()),
    ] {
        fs::write(dir.join(name), text).unwrap();
    }
    dir.display().to_string()
}

#[test]
fn lkr_eval_runs_in_process_and_reuses_its_data_dir() {
    let folder = tempfile::tempdir().unwrap();
    let dir = collection(folder.path());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (data_dir, json, per_query) = (path("kept"), path("figures.json"), path("queries.jsonl"));
    let arguments = ["eval", "--data-dir", &data_dir, "--json", &json, "--per-query", &per_query, &dir];
    for _ in 0..2 {
        // The second run ingests nothing: the number of documents stays the same.
        let output = lkr(&arguments);
        assert!(output.status.success(), "{}", printed(&output));
        let figures: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
        assert_eq!((&figures["documents"], &figures["chunks"]), (&json!(2), &json!(4)), "{figures}");
        let result = |target: &str, system: &str| {
            let results = figures["results"].as_array().unwrap();
            let found = results.iter().find(|row| row["target"] == target && row["system"] == system);
            (found.unwrap()["queries"].clone(), found.unwrap()["ndcg_at_10"].clone())
        };
        for system in ["sparse", "flat-graded", "flat-rrf", "layered-graded", "layered-rrf"] {
            assert_eq!(result("documents", system), (json!(2), json!(1.0)), "{figures}");
            assert_eq!(result("passages", system), (json!(2), json!(1.0)), "{figures}");
            assert_eq!(result("spans", system), (json!(1), json!(1.0)), "{figures}");
        }
        assert_eq!(figures["significance"][0]["p"], 1.0);
        let l1 = &figures["recall_by_layer"][0];
        assert_eq!((&l1["target"], &l1["layer"]), (&json!("documents"), &json!("l1")));
        assert_eq!((&l1["recall_at_10"], &l1["recall_at_100"]), (&json!(1.0), &json!(1.0)));
        assert_eq!(l1["sparse_ndcg_at_10"], 1.0);
        assert_eq!(figures["citations"]["mismatches"], 0);
        assert!(printed(&output).contains("layered-graded − flat-graded: +0.0000"), "{}", printed(&output));
    }
    let same = lkr(&["compare", &per_query, &per_query]);
    assert!(
        printed(&same).contains("passages, layered-graded, 2 queries: nDCG@10 1.0000 to 1.0000"),
        "{}",
        printed(&same)
    );

    // Real collections contain blank queries; they find nothing.
    fs::write(Path::new(&dir).join("queries.jsonl"), json!({ "_id": "q", "text": " " }).to_string()).unwrap();
    let blank = lkr(&["eval", "--data-dir", &data_dir, "--json", &json, &dir]);
    assert!(blank.status.success(), "{}", printed(&blank));
    let figures: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let first = &figures["results"][0];
    assert_eq!((&first["queries"], &first["ndcg_at_10"]), (&json!(1), &json!(0.0)), "{figures}");

    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    let other = collection(&other);
    let put = |name: &str, text: &str| fs::write(Path::new(&other).join(name), text).unwrap();
    let refused = |arguments: &[&str], reason: &str| {
        let output = lkr(arguments);
        assert!(!output.status.success() && printed(&output).contains(reason), "{}", printed(&output));
    };
    put("corpus.jsonl", &json!({ "_id": "x", "text": "else" }).to_string());
    refused(&["eval", "--data-dir", &data_dir, &other], "no judged document is in the collection: io1");
    put("qrels.tsv", "q\tx\t1\nr\ty\t1\n");
    refused(&["eval", "--data-dir", &data_dir, &other], "which is not in this collection");
    let incomplete = lkr(&["eval", &other]);
    let warning = "warning: 1 of 2 judged documents are not in the collection, such as y";
    assert!(
        incomplete.status.success() && printed(&incomplete).contains(warning),
        "{}",
        printed(&incomplete)
    );

    refused(&["eval", "--data-dir", &data_dir, "--as-files", &dir], "as a text, not as a file");
    refused(&["eval", "--json", &path("nowhere/figures"), &dir], "nowhere/figures");
    refused(&["eval", "--mode", "flat", &dir], "--server");
}

//! The commands of `lkr` that use a server.

use std::{fs, path::Path, process::Output};

use lkr_tests::{ADMIN_PASSWORD, CommandLine, Server, assert_consistent, printed};
use serde_json::{Value, json};

/// Runs a command with the address and the account in flags.
fn lkr(server: &Server, arguments: &[&str]) -> Output {
    let password = server.folder().join("password");
    fs::write(&password, format!("{ADMIN_PASSWORD}\n")).unwrap();
    let (command, rest) = arguments.split_first().unwrap();
    let login = [*command, "--server", &server.url(), "--password-file", password.to_str().unwrap()];
    CommandLine::alone().run(&[&login, rest].concat())
}

/// A collection `pets` of two documents and three judged queries; the last query ranks its document second.
fn collection(folder: &Path) -> String {
    let dir = folder.join("pets");
    fs::create_dir(&dir).unwrap();
    for (name, text) in [
        (
            "corpus.jsonl",
            concat!(
                "{\"_id\": \"cats\", \"title\": \"Cats\", \"text\": \"Cats purr. Cats sleep all day.\"}\n",
                "{\"_id\": \"dogs\", \"title\": \"Dogs\", \"text\": \"Dogs bark at the postman. One dog saw a cat.\"}\n",
            ),
        ),
        (
            "queries.jsonl",
            concat!(
                "{\"_id\": \"1\", \"text\": \"who purrs\"}\n{\"_id\": \"2\", \"text\": \"barking at the postman\"}\n",
                "{\"_id\": \"3\", \"text\": \"cats\"}\n{\"_id\": \"4\", \"text\": \"not judged\"}\n",
            ),
        ),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\n1\tcats\t1\n2\tdogs\t1\n3\tdogs\t1\n"),
    ] {
        fs::write(dir.join(name), text).unwrap();
    }
    dir.display().to_string()
}

#[test]
fn lkr_ingests_and_evaluates_a_collection() {
    let server = Server::start();
    let dir = collection(server.folder());
    let json = server.folder().join("figures.json").display().to_string();
    let output = lkr(&server, &["eval", "--ingest", "--json", &json, &dir]);
    assert!(output.status.success(), "{}", printed(&output));
    let figures: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    assert_eq!((&figures["queries"], &figures["ingested"]["documents"]), (&3.into(), &2.into()), "{figures}");
    // Ranks 1, 1 and 2: (1 + 1 + 1/log2(3)) / 3 and (1 + 1 + 1/2) / 3.
    let near = |key: &str, value: f64| (figures[key].as_f64().unwrap() - value).abs() < 1e-9;
    assert!(near("ndcg_at_10", (2.0 + 1.0 / 3.0_f64.log2()) / 3.0), "{figures}");
    assert!(near("mrr_at_10", 2.5 / 3.0) && near("recall_at_10", 1.0), "{figures}");
    assert_eq!(
        (&figures["citations"]["checked"], &figures["citations"]["mismatches"]),
        (&2.into(), &0.into())
    );
    let documents = server.list_all("/documents");
    let mut sources: Vec<&str> = documents.iter().map(|item| item["source"].as_str().unwrap()).collect();
    sources.sort_unstable();
    assert_eq!(sources, ["pets:cats", "pets:dogs"]);
}

#[test]
fn lkr_eval_tells_a_server_without_the_collection_from_one_that_finds_nothing() {
    let server = Server::start();
    let dir = collection(server.folder());
    let _ = server.add(&json!({ "text": "Cats purr at the postman.", "source": "elsewhere" }));
    let absent = lkr(&server, &["eval", &dir]);
    assert!(!absent.status.success(), "{}", printed(&absent));
    assert!(
        printed(&absent).contains("sources begin with pets:; --ingest sends them"),
        "{}",
        printed(&absent)
    );

    // A blank query finds nothing, as in an evaluation without a server.
    let queries = Path::new(&dir).join("queries.jsonl");
    fs::write(&queries, "{\"_id\": \"1\", \"text\": \"who purrs\"}\n{\"_id\": \"2\", \"text\": \" \"}\n")
        .unwrap();
    let json = server.folder().join("figures.json").display().to_string();
    let output = lkr(&server, &["eval", "--ingest", "--json", &json, &dir]);
    assert!(output.status.success(), "{}", printed(&output));
    let figures: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    assert_eq!((&figures["queries"], &figures["recall_at_10"]), (&2.into(), &0.5.into()), "{figures}");
    assert!(lkr(&server, &["eval", &dir]).status.success(), "the collection is there now");
}

#[test]
fn lkr_ingests_files_and_folders() {
    let server = Server::start();
    let notes = server.folder().join("notes");
    fs::create_dir_all(notes.join("old")).unwrap();
    fs::write(notes.join("a.md"), "# Alpha\n\nFirst letter.\n").unwrap();
    fs::write(notes.join("old/b.txt"), "Second letter.\n").unwrap();
    let output = lkr(&server, &["ingest", notes.to_str().unwrap()]);
    assert!(output.status.success(), "{}", printed(&output));
    assert!(printed(&output).starts_with("2 documents added, 2 chunks in "), "{}", printed(&output));
    let mut items: Vec<(String, String)> = server
        .list_all("/documents")
        .iter()
        .map(|item| (item["source"].as_str().unwrap().to_owned(), item["title"].as_str().unwrap().to_owned()))
        .collect();
    items.sort();
    let source = |path: &str| format!("file:{}", notes.join(path).display());
    let expected = [(source("a.md"), "a"), (source("old/b.txt"), "b")];
    assert_eq!(items, expected.map(|(source, title)| (source, title.to_owned())));
}

#[test]
fn lkr_failures_print_one_line() {
    let server = Server::start();
    let blank = server.folder().join("blank.txt");
    fs::write(&blank, " \n").unwrap();
    for (arguments, named) in
        [(["ingest", "/nowhere.txt"], "/nowhere.txt"), (["eval", "/nowhere"], "/nowhere/queries.jsonl")]
    {
        let output = lkr(&server, &arguments);
        let printed = printed(&output);
        assert!(
            !output.status.success() && printed.contains(named) && printed.lines().count() == 1,
            "{arguments:?}: {printed}"
        );
    }
    let output = lkr(&server, &["ingest", blank.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    assert!(printed(&output).contains("blank.txt: "), "{}", printed(&output));
    assert!(server.list_all("/documents").is_empty());
}

#[test]
fn real_documents_are_found_by_keyword_and_cited_exactly() {
    let Some(dir) = lkr_test_support::real_data("data/product_docs") else { return };
    let server = Server::start();
    let json = server.folder().join("figures.json").display().to_string();
    let output = lkr(&server, &["eval", "--ingest", "--json", &json, dir.to_str().unwrap()]);
    assert!(output.status.success(), "{}", printed(&output));
    let figures: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    assert_eq!(figures["ingested"]["documents"], 45);
    // The baseline, BM25 over sections, reaches 0.847.
    assert!(figures["ndcg_at_10"].as_f64().unwrap() >= 0.83, "{}", printed(&output));
    assert_eq!(assert_consistent(&server)["l1"], 45);
}

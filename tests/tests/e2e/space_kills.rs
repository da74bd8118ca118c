//! kill -9 during moves between spaces, and during the tasks that delete a space or the documents of a filter.

use std::{collections::BTreeSet, time::Instant};

use lkr_tests::{ADMIN_PASSWORD, Seed, Server, assert_consistent, assert_garbage_collected, workspace};
use serde_json::{Value, json};

use crate::{doctor::assert_healthy, kill9::FAIL_POINTS};

/// The number of sections of a document. Each has one chunk.
const SECTIONS: usize = 5;

/// The number of documents that a task deletes.
const DOCUMENTS: usize = 40;

/// The most kills during one task, so that it ends.
const MAX_KILLS: usize = 8;

/// A server with dense vectors.
fn start() -> Server {
    let model = workspace().join("crates/lkr-models-local/tests/fixtures/tiny-bert-mean");
    let model = model.display().to_string();
    Server::start_with(&[("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD), ("LKR_MODEL_DIR", &model)])
}

fn create_space(server: &Server, name: &str) -> lkr_tests::Response {
    let body = json!({"space": name, "read": "everyone"});
    server.call("POST", "/spaces", Some(&body), Some(server.admin()))
}

fn text(word: &str) -> String {
    let section = |n| format!("## Part {n}\n\nThe {word} of part {n} is grey and heavy.\n");
    format!("# The {word}\n\n{}", (0..SECTIONS).map(section).collect::<Vec<_>>().join("\n"))
}

/// The chunks that a search in a space finds, by document and place.
fn found(server: &Server, space: &str, word: &str) -> Vec<(String, u64)> {
    let request = json!({"query": word, "mode": "flat", "top_k": 100, "spaces": [space]});
    let results = server.search(&request)["results"].as_array().unwrap().clone();
    let results = results.iter().filter(|result| result["text"].as_str().unwrap().contains(word));
    let place =
        |item: &Value| (item["doc_id"].as_str().unwrap().to_owned(), item["char_start"].as_u64().unwrap());
    let mut places: Vec<_> = results.map(place).collect();
    places.sort();
    places
}

/// What a document consists of, apart from its space and times.
fn parts(server: &Server, doc_id: &str) -> Value {
    let detail = server.get(&format!("/documents/{doc_id}")).data().clone();
    let [text, chunks] = ["text", "chunks?limit=100"]
        .map(|part| server.get(&format!("/documents/{doc_id}/{part}")).data().clone());
    let place = |chunk: &Value| json!([chunk["char_start"], chunk["char_end"], chunk["text"], chunk["path"]]);
    let chunks: Vec<Value> = chunks["items"].as_array().unwrap().iter().map(place).collect();
    assert_eq!(chunks.len() as u64, detail["chunk_count"].as_u64().unwrap(), "{doc_id}");
    json!([text["text"], chunks, detail["l1"]["title"], detail["chunk_count"]])
}

/// A document that is moved between two spaces. An equal document stays in the second.
struct MovedDocument {
    server: Server,
    doc_id: String,
    twin: String,
    /// What it consists of.
    parts: Value,
    /// Where its chunks begin.
    places: BTreeSet<u64>,
}

const SPACES: [&str; 2] = ["left", "right"];

impl MovedDocument {
    fn ingest() -> Self {
        let server = start();
        for name in SPACES {
            assert_eq!(create_space(&server, name).status, 201);
        }
        let [doc_id, twin] = SPACES.map(|space| server.add(&json!({"text": text("basalt"), "space": space})));
        let places: BTreeSet<u64> =
            found(&server, "left", "basalt").into_iter().map(|(_, place)| place).collect();
        assert_eq!(places.len(), SECTIONS);
        Self { parts: parts(&server, &doc_id), server, doc_id, twin, places }
    }

    fn space(&self) -> usize {
        let space = self.server.get(&format!("/documents/{}", self.doc_id)).data()["l1"]["space"].clone();
        SPACES.iter().position(|name| space == *name).unwrap()
    }

    /// Moves it on a server that ends at the fail point; `None` if that was at the start. Otherwise whether the move was
    /// confirmed, and whether the server still ran afterwards.
    fn move_with_fail_point(&self, point: &str, target: &str) -> Option<(bool, bool)> {
        if !self.server.restart_with_fail_point(point) {
            return None;
        }
        let path = format!("/api/v1/documents/{}", self.doc_id);
        let change = json!({ "space": target });
        let moved = self.server.try_call("PATCH", &path, Some(&change), Some(self.server.admin()));
        Some((moved.is_ok_and(|moved| moved.status == 200), !self.server.has_ended()))
    }

    /// Checks that all of it is in one space, once, and nothing of it in the other. Returns the space.
    fn check(&self, context: &str) -> usize {
        let Self { server, doc_id, twin, parts: whole, places } = self;
        let at = self.space();
        let (space, other) = (SPACES[at], SPACES[1 - at]);
        let here = found(server, space, "basalt").into_iter().filter(|(found, _)| found == doc_id);
        let expected = places.iter().map(|place| (doc_id.clone(), *place));
        assert!(here.eq(expected), "{context}: not all of it once in {space}");
        let there = found(server, other, "basalt");
        assert!(there.iter().all(|(found, _)| found == twin), "{context}: also in {other}");
        let listed = |space| server.get(&format!("/documents?space={space}")).data()["items"].clone();
        let is_in = |space| listed(space).as_array().unwrap().iter().any(|item| item["doc_id"] == **doc_id);
        assert_eq!((is_in(space), is_in(other)), (true, false), "{context}");
        assert_eq!(parts(server, doc_id), *whole, "{context}");
        at
    }
}

#[test]
fn kills_during_moves_leave_the_document_whole_in_one_space() {
    let document = MovedDocument::ingest();
    let server = &document.server;
    let mut at = 0;
    for point in FAIL_POINTS {
        let (mut cut_off, mut complete, mut n) = (0, 0, 0);
        // Two moves in a row that end before the fail point: a move reaches no more of them.
        while complete < 2 {
            n += 1;
            let context = format!("{point}:{n}");
            let target = SPACES[1 - at];
            let Some((is_confirmed, is_running)) = document.move_with_fail_point(&context, target) else {
                continue;
            };
            if !is_confirmed {
                (cut_off, complete) = (cut_off + 1, 0);
            } else if is_running {
                complete += 1;
            }
            server.restart();
            at = document.check(&context);
            assert!(!is_confirmed || SPACES[at] == target, "{context}: a confirmed move was lost");
        }
        eprintln!("{cut_off} moves were cut off at {point}");
        // Stores outside of the data folder do not write to that of one process.
        let is_reached = cut_off > 0 || (server.has_own_stores() && point.starts_with("store."));
        assert!(is_reached, "no move reached {point}");
    }
    let counts = assert_consistent(server);
    assert_garbage_collected(server, &counts);
    assert_healthy(server);
}

/// Adds documents to a space, a third of them with another source, and returns their ids.
fn fill(server: &Server, space: &str, documents: usize) -> Vec<String> {
    let document = |n: usize| {
        let source = if n.is_multiple_of(3) { "third" } else { "other" };
        json!({"text": text(&format!("slate{n}")), "space": space, "source": source, "force": true})
    };
    let body = json!({"documents": (0..documents).map(document).collect::<Vec<_>>()});
    let accepted = server.call("POST", "/documents/batch", Some(&body), Some(server.admin()));
    let tasks = accepted.data()["tasks"].as_array().unwrap().clone();
    let ended = tasks.iter().map(|task| server.wait_for_task(task["task_id"].as_str().unwrap()));
    ended.map(|task| task["result"]["doc_id"].as_str().unwrap().to_owned()).collect()
}

/// Kills the server during a task until it has ended, and returns the task and the number of kills.
fn kill_until_ended(server: &Server, task_id: &str, seed: &mut Seed) -> (Value, usize) {
    let mut kills = 0;
    let has_ended = |task: &Value| matches!(task["status"].as_str(), Some("done" | "failed"));
    let path = format!("/api/v1/documents/tasks/{task_id}");
    'kills: while kills < MAX_KILLS {
        let point = FAIL_POINTS[seed.below(2) as usize];
        let is_ready = server.restart_with_fail_point(&format!("{point}:{}", 5 + seed.below(25)));
        let started = Instant::now();
        while is_ready && !server.has_ended() && started.elapsed().as_secs() < 5 {
            let task = server.try_call("GET", &path, None, Some(server.admin()));
            if let Ok(task) = task
                && has_ended(task.data())
            {
                break 'kills;
            }
        }
        kills += 1;
    }
    // The last fail point would end the server later, while it collects garbage.
    server.restart();
    (server.wait_for_task(task_id), kills)
}

/// Checks that a task counts everything that it deleted, whichever attempt did.
fn assert_all_counted(task: &Value, points: u64, documents: usize) {
    assert_eq!(task["status"], "done", "{task}");
    assert_eq!(task["progress"], json!({"done": documents, "total": documents}), "{task}");
    assert_eq!(task["result"]["deleted"]["l1"], documents, "{task}");
    assert_eq!(task["result"]["deleted_total"], points, "{task}");
}

fn total_points(server: &Server) -> u64 {
    let stats = server.get("/knowledge/stats").data().clone();
    stats["collections"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
}

/// Checks that the audit log has one entry for the deletion of each document.
fn assert_logged_once(server: &Server, doc_ids: &[String]) {
    let (mut logged, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("/audit?action=document.delete&limit=100{after}");
        let page = server.call("GET", &path, None, Some(server.admin())).data().clone();
        let targets = page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["target"].as_str().unwrap().to_owned());
        logged.extend(targets);
        match page["next_offset"].as_str() {
            Some(next) => after = format!("&offset={next}"),
            None => break,
        }
    }
    logged.sort();
    let mut expected = doc_ids.to_vec();
    expected.sort();
    assert_eq!(logged, expected);
}

#[test]
fn kills_during_the_deletion_of_a_space_leave_nothing_of_it() {
    let server = start();
    let mut seed = Seed::announce("kills_during_the_deletion_of_a_space_leave_nothing_of_it");
    assert_eq!(create_space(&server, "gone").status, 201);
    let kept = server.add(&json!({"text": text("basalt")}));
    let before = total_points(&server);
    let doc_ids = fill(&server, "gone", DOCUMENTS);
    let points = total_points(&server) - before;
    let accepted = server.call("DELETE", "/spaces/gone?documents=delete", None, Some(server.admin()));
    assert_eq!(accepted.status, 202);
    let task_id = accepted.data()["task_id"].as_str().unwrap().to_owned();
    server.restart();
    assert_gone(&server, &doc_ids);
    let (task, kills) = kill_until_ended(&server, &task_id, &mut seed);
    eprintln!("{kills} kills: {}", task["result"]);
    assert!(kills > 1, "the task ended before the second kill");
    assert_all_counted(&task, points, DOCUMENTS);
    server.restart();
    assert_gone(&server, &doc_ids);
    assert_eq!(create_space(&server, "gone").code(), 1003);
    assert_logged_once(&server, &doc_ids);
    let counts = assert_consistent(&server);
    assert_eq!(server.list_all("/documents")[0]["doc_id"], kept);
    assert_garbage_collected(&server, &counts);
    assert_healthy(&server);
}

/// Checks that a deleted space is answered like an unknown one.
fn assert_gone(server: &Server, doc_ids: &[String]) {
    let admin = Some(server.admin());
    server.call("GET", "/spaces/gone", None, admin).assert_error(1004, 404);
    server.call("GET", "/documents?space=gone", None, admin).assert_error(1004, 404);
    let search = json!({"query": "slate1", "spaces": ["gone"]});
    server.call("POST", "/search", Some(&search), admin).assert_error(1004, 404);
    let anywhere = server.call("POST", "/search", Some(&json!({"query": "slate1"})), admin);
    let results = anywhere.data()["results"].as_array().unwrap().clone();
    assert!(results.iter().all(|result| result["space"] == "default"), "{results:?}");
    for doc_id in doc_ids.iter().step_by(7) {
        server.call("GET", &format!("/documents/{doc_id}"), None, admin).assert_error(1004, 404);
        server.call("GET", &format!("/documents/{doc_id}/text"), None, admin).assert_error(1004, 404);
    }
}

#[test]
fn kills_during_a_bulk_delete_delete_what_matches_and_nothing_else() {
    let server = start();
    let mut seed = Seed::announce("kills_during_a_bulk_delete_delete_what_matches_and_nothing_else");
    assert_eq!(create_space(&server, "team").status, 201);
    let documents = 2 * DOCUMENTS;
    let doc_ids = fill(&server, "team", documents);
    let matching: Vec<String> = doc_ids.iter().step_by(3).cloned().collect();
    let before = total_points(&server);
    let body = json!({"where": {"field": "source", "eq": "third"}, "dry_run": false});
    let accepted = server.call("POST", "/documents/delete", Some(&body), Some(server.admin()));
    assert_eq!(accepted.status, 202, "{}", accepted.json);
    let task_id = accepted.data()["task_id"].as_str().unwrap().to_owned();
    let (task, kills) = kill_until_ended(&server, &task_id, &mut seed);
    eprintln!("{kills} kills: {}", task["result"]);
    assert!(kills > 1, "the task ended before the second kill");
    let left: BTreeSet<String> = server
        .list_all("/documents")
        .iter()
        .map(|item| item["doc_id"].as_str().unwrap().to_owned())
        .collect();
    let expected = doc_ids.iter().filter(|doc_id| !matching.contains(doc_id)).cloned();
    assert_eq!(left, expected.collect());
    assert_all_counted(&task, before - total_points(&server), matching.len());
    assert_logged_once(&server, &matching);
    let counts = assert_consistent(&server);
    assert_garbage_collected(&server, &counts);
    assert_healthy(&server);
}

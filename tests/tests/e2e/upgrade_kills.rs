//! kill -9 during the first start of this version with a store of an earlier one.

use std::{collections::BTreeMap, path::Path, thread, time::Duration};

use lkr_domain::Layer;
use lkr_tests::{Seed, Server, assert_consistent, assert_garbage_collected, open_store, workspace};
use lkr_vectors::{Collection, Filter, Include, VectorStore};
use serde_json::{Value, json};

use crate::{
    doctor::assert_healthy,
    kill9::FAIL_POINTS,
    upgrade::{ENVIRONMENT, unpack},
};

/// How often a first start is killed at a random moment.
const RANDOM_KILLS: u64 = 8;

/// The vectors and tags of all points, by id.
type Points = BTreeMap<String, String>;

/// A store of an earlier version.
struct EarlierStore {
    /// The name of the archive.
    name: &'static str,
    /// The folder of the embedding model; empty for none.
    model: String,
    /// A word that searches find in it.
    word: &'static str,
}

impl EarlierStore {
    /// A stopped server with a copy of the store.
    fn unpacked(&self) -> Server {
        let mut environment = ENVIRONMENT.to_vec();
        if !self.model.is_empty() {
            environment.push(("LKR_MODEL_DIR", &self.model));
        }
        Server::with_data_dir(&environment, |data| unpack(self.name, data))
    }
}

/// Everything that a client sees of an upgraded store, without times, once its unfinished task has ended.
fn view(server: &Server, word: &str) -> Value {
    let body = json!({"username": "admin", "password": "fixture-password"});
    let login = server.call("POST", "/auth/login", Some(&body), None).data().clone();
    let admin = Some(login["access_token"].as_str().unwrap());
    let get = |path: &str| server.call("GET", path, None, admin).data().clone();
    server.wait_until(|| {
        let has = |status| get(&format!("/documents/tasks?status={status}"))["items"] != json!([]);
        (!has("pending") && !has("running")).then_some(())
    });
    let mut documents = server.list_all("/documents");
    for document in &mut documents {
        let path = format!("/documents/{}", document["doc_id"].as_str().unwrap());
        document["text"] = get(&format!("{path}/text"))["text"].clone();
        document["chunks"] = get(&format!("{path}/chunks?limit=100"))["items"].clone();
        document["updated_at"] = Value::Null;
        document["created_at"] = Value::Null;
    }
    let of = |path: &str, keys: &[&str]| -> Vec<Value> {
        let items = get(path)["items"].as_array().unwrap().clone();
        items.iter().map(|item| keys.iter().map(|key| item[key].clone()).collect()).collect()
    };
    let found = server.search(&json!({"query": word}))["results"].as_array().unwrap().clone();
    let found: Vec<Value> = found.iter().map(|result| json!([result["doc_id"], result["text"]])).collect();
    json!({
        "documents": documents,
        "users": of("/users", &["username", "role", "disabled", "created_at"]),
        "tasks": of("/documents/tasks?limit=100", &["task_id", "kind", "status", "space", "doc_id"]),
        "webhooks": of("/webhooks", &["id", "url", "events"]),
        "settings": get("/settings"),
        "found": found,
    })
}

/// All points of a stopped server. A point that was embedded again, or lost its vector, differs.
fn points(data_dir: &Path) -> Points {
    let store = open_store(&data_dir.join("store"));
    let vectors = store.vectors();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut points = Points::new();
        for layer in Layer::ALL {
            let collection = Collection::from(layer);
            let page = vectors.scroll(&collection, &Filter::all(), None, 1000, Include::All).await.unwrap();
            assert!(page.next.is_none());
            points.extend(page.points.into_iter().map(|point| {
                // A document of the unfinished task is as old as the start that made it.
                let tags: BTreeMap<_, _> =
                    point.tags.iter().filter(|(key, _)| !key.ends_with("ed_at")).collect();
                let content = format!("{:?} {:?} {tags:?}", point.dense, point.sparse);
                (format!("{layer} {:?}", point.id), content)
            }));
        }
        points
    })
}

/// Kills first starts with copies of a store, and compares the next starts with an upgrade that was not killed.
fn survive_kills(store: &EarlierStore) {
    let mut seed = Seed::announce("kills_during_an_upgrade");
    let server = store.unpacked();
    server.restart();
    let expected = view(&server, store.word);
    assert!(!expected["tasks"].to_string().contains("reembed"), "documents were embedded again");
    assert_ne!(expected["found"], json!([]));
    let counts = assert_consistent(&server);
    assert_garbage_collected(&server, &counts);
    let expected_points = points(&server.data_dir());
    let has_dense = |content: &String| content.starts_with("Some");
    assert!(expected_points.values().all(|content| has_dense(content) != store.model.is_empty()));
    let check = |server: &Server, context: &str| {
        server.restart();
        assert_eq!(view(server, store.word), expected, "{context}");
        let counts = assert_consistent(server);
        assert_garbage_collected(server, &counts);
        assert_eq!(points(&server.data_dir()), expected_points, "{context}");
        assert_healthy(server);
    };
    for point in FAIL_POINTS {
        let mut kills = 0;
        loop {
            let (server, context) = (store.unpacked(), format!("{point}:{}", kills + 1));
            if server.restart_with_fail_point(&context) {
                break;
            }
            kills += 1;
            check(&server, &context);
        }
        eprintln!("{kills} kills at {point}");
        assert!(kills > 0 || point.starts_with("blob"), "no start reached {point}");
    }
    for _ in 0..RANDOM_KILLS {
        let (server, after) = (store.unpacked(), Duration::from_millis(seed.below(150)));
        let mut process = server.command().env("RUST_LOG", "off").spawn().unwrap();
        thread::sleep(after);
        process.kill().unwrap();
        process.wait().unwrap();
        check(&server, &format!("killed after {after:?}"));
    }
}

#[test]
fn kills_during_the_upgrade_of_version_1_lose_nothing() {
    survive_kills(&EarlierStore { name: "1", model: String::new(), word: "volcanoes" });
}

#[test]
fn kills_during_the_upgrade_of_version_2_lose_nothing() {
    survive_kills(&EarlierStore { name: "2", model: String::new(), word: "basalt" });
}

/// Three documents with dense vectors, the category of one chosen by hand, and an account.
#[test]
fn kills_during_the_upgrade_of_a_store_with_dense_vectors_lose_nothing() {
    let model = workspace().join("crates/lkr-models-local/tests/fixtures/tiny-bert-mean");
    let model = model.display().to_string();
    survive_kills(&EarlierStore { name: "2-dense", model, word: "volcanoes" });
}

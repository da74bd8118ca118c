//! `lkr migrate` between a data folder and Redis, Qdrant and an object store.

use std::{
    env, fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use lkr_tests::{
    ADMIN_PASSWORD, CommandLine, Role, SECTIONS, Seed, Server, SharedStores, model_dir, printed, survey,
};
use serde_json::{Value, json};

/// A configuration for the command line.
fn write_config(file: &Path, pairs: &[(String, String)]) {
    let lines = pairs.iter().map(|(key, value)| {
        let key = key.trim_start_matches("LKR_").to_lowercase();
        let value = value.parse().map_or_else(|_| json!(value), |number: u64| json!(number));
        format!("{key} = {value}\n")
    });
    fs::write(file, lines.collect::<String>()).unwrap();
}

/// What a server answers, without what differs between two processes.
fn answers(server: &Server, documents: u64) -> Vec<Value> {
    let marks = (0..documents).step_by(3).map(|n| format!("mark{n}x{}", n % SECTIONS));
    let queries = marks.chain(["crystal in the valley".to_owned(), "a glacier and its moraine".to_owned()]);
    let mut answers: Vec<Value> = queries
        .map(|query| {
            let mut answer = server.search(&json!({"query": query, "top_k": 10}));
            for result in answer["results"].as_array_mut().unwrap() {
                // Sums of 32-bit numbers in another order.
                result.as_object_mut().unwrap().remove("scores");
                result["score"] = json!(format!("{:.4}", result["score"].as_f64().unwrap()));
            }
            json!({"results": answer["results"], "layers": answer["layers"].as_object().unwrap().keys().collect::<Vec<_>>()})
        })
        .collect();
    let mut listed = server.list_all("/documents");
    listed.sort_by_key(|doc| doc["doc_id"].to_string());
    answers.push(json!(listed));
    answers.push(server.get("/knowledge/stats").data()["collections"].clone());
    answers
}

/// Migrates; the process is killed up to three times on the way, after a longer time each. `scale` stretches these times.
fn migrate_with_kills(lkr: &CommandLine, from: &str, to: &str, scale: u64, seed: &mut Seed) {
    let arguments = ["migrate", "--from", from, "--to", to];
    let mut kills = 0;
    let last = loop {
        let mut process = lkr.command(&arguments).spawn().unwrap();
        if kills < 3 {
            thread::sleep(Duration::from_millis(scale * (40 + 40 * kills + seed.below(80))));
            if process.try_wait().unwrap().is_none() {
                process.kill().unwrap();
                process.wait().unwrap();
                kills += 1;
                continue;
            }
        }
        break process.wait_with_output().unwrap();
    };
    // The last kill may have come when the migration was complete.
    let is_complete = kills > 0 && printed(&last).contains("if a migration to it is complete already");
    assert!(last.status.success() || is_complete, "after {kills} kills: {}", printed(&last));
    let output = lkr.run(&[&arguments[..], &["--verify"]].concat());
    assert!(output.status.success(), "{}", printed(&output));
    eprintln!("migrate --from {from} --to {to}: killed {kills} times before it ended");
}

/// A knowledge base moves from a data folder to Redis, Qdrant and an object store and back into another folder, while the
/// command is killed. It answers the same in all three places. `LKR_E2E_MIGRATED` is the number of chunks.
#[test]
fn knowledge_base_moves_there_and_back_although_the_command_is_killed() {
    let Some(stores) = SharedStores::start() else { return };
    let chunks: u64 = env::var("LKR_E2E_MIGRATED").ok().and_then(|n| n.parse().ok()).unwrap_or(240);
    let (documents, scale) = (chunks / SECTIONS, 1.max(chunks / 400));
    let mut seed = Seed::announce("migration");
    let several = stores.environment(Role::All);
    let secret = several.iter().find(|(key, _)| key == "LKR_SECRET_KEY").unwrap().1.clone();
    let model: Option<PathBuf> = model_dir();
    let model: Vec<(&str, &str)> =
        model.iter().map(|folder| ("LKR_MODEL_DIR", folder.to_str().unwrap())).collect();
    let alone = [
        &[("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD), ("LKR_SECRET_KEY", &secret), ("LKR_STATE", "embedded")],
        &model[..],
    ];
    let alone = alone.concat();

    let one = Server::start_with(&alone);
    let tasks: Vec<Value> = (0..documents).map(|n| one.submit(&survey(n, &mut seed))).collect();
    let unfinished =
        || one.get("/documents/tasks?status=pending&limit=1").data()["items"].as_array().unwrap().len();
    while unfinished() > 0 {
        thread::sleep(Duration::from_millis(200));
    }
    for task in &tasks {
        assert_eq!(one.wait_for_task(task["task_id"].as_str().unwrap())["status"], "done");
    }
    let before = answers(&one, documents);
    let indexed = one.get("/knowledge/stats").data()["collections"].clone();
    one.stop();

    let lkr = CommandLine::alone();
    let in_folder = |folder: &Path| {
        [("data_dir", folder.to_str().unwrap()), ("secret_key", &secret)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
    };
    let folder = lkr.path("there");
    write_config(&lkr.path("one.toml"), &in_folder(&one.data_dir()));
    let mut pairs = several;
    pairs.retain(|(key, _)| key != "LKR_ADMIN_PASSWORD");
    pairs.push(("LKR_DATA_DIR".to_owned(), folder.to_str().unwrap().to_owned()));
    write_config(&lkr.path("several.toml"), &pairs);
    migrate_with_kills(&lkr, "one.toml", "several.toml", scale, &mut seed);
    let shared = stores.server_with(Role::All, &model);
    if stores.has_exact_scores() {
        assert_eq!(answers(&shared, documents), before, "on Redis, Qdrant and the object store");
    }
    shared.stop();

    let back = Server::with_data_dir(&alone, |folder| {
        write_config(&lkr.path("back.toml"), &in_folder(folder));
        migrate_with_kills(&lkr, "several.toml", "back.toml", scale, &mut seed);
    });
    back.restart();
    assert_eq!(answers(&back, documents), before, "in a data folder again");
    assert_eq!(back.get("/knowledge/stats").data()["collections"], indexed);
    eprintln!("{documents} documents, points {indexed}");
}

#[test]
fn source_without_a_knowledge_base_is_refused_and_nothing_is_made() {
    let lkr = CommandLine::alone();
    for (file, folder) in [("from.toml", "none"), ("to.toml", "new")] {
        let folder = lkr.path(folder).display().to_string();
        write_config(&lkr.path(file), &[("data_dir".to_owned(), folder)]);
    }
    let migrate = ["migrate", "--from", "from.toml", "--to", "to.toml"];
    for more in [[].as_slice(), &["--verify"], &["--discard"]] {
        let refused = lkr.run(&[&migrate, more].concat());
        let shown = printed(&refused);
        assert!(!refused.status.success() && shown.contains("no knowledge base in"), "{more:?}: {shown}");
        assert!(!lkr.path("none").exists() && !lkr.path("new").exists(), "{more:?}");
    }
}

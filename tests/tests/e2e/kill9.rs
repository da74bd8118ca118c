//! kill -9 at random moments and before and after every kind of write, under a load of adds, deletes, replacements,
//! metadata changes and searches.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    io::Write as _,
    time::Duration,
};

use lkr_tests::{
    LedgerEntry, Load, RewriteKind, Seed, Server, SmallDisk, Termination, WatchedDocuments,
    assert_consistent, assert_garbage_collected, damage_clusters, model_dir, workspace,
};
use serde_json::{Value, json};

use crate::doctor::assert_healthy;

/// How many live and how many deleted documents are searched for at the end.
const SEARCHED: usize = 25;

/// The fail points at which a server can end: before and after each write.
pub(crate) const FAIL_POINTS: [&str; 4] = ["store.write", "store.written", "blob.write", "blob.written"];

/// After this time the server is killed even if it has not reached its fail point.
const FAIL_POINT_TIMEOUT: Duration = Duration::from_secs(5);

/// The number of kills at random moments in the tests.
const RANDOM_KILLS: usize = 20;

#[test]
fn kills_at_random_moments_lose_nothing() {
    survive(&Server::start(), kills(RANDOM_KILLS), "kills_at_random_moments_lose_nothing", at_random);
}

#[test]
fn kills_at_fail_points_lose_nothing() {
    survive(&Server::start(), kills(16), "kills_at_fail_points_lose_nothing", at_fail_point);
}

#[test]
fn kills_during_embedding_lose_nothing() {
    let name = "kills_during_embedding_lose_nothing";
    let Some(model) = model_dir() else { return };
    let model = model.display().to_string();
    let password = lkr_tests::ADMIN_PASSWORD;
    let server = Server::start_with(&[("LKR_ADMIN_PASSWORD", password), ("LKR_MODEL_DIR", &model)]);
    survive(&server, kills(5), name, at_random);
}

/// The size of the disk, and the most space that stays free on it, in MiB.
const MEGABYTES: u32 = 96;
const MAX_FREE: u64 = 4;

/// Before this kill nothing is free, so that documents are rejected however few a slow machine adds until then.
const FULL: usize = 1;

/// The disk becomes full during the load, and is sometimes still full when the server restarts.
#[test]
fn kills_on_a_full_disk_lose_nothing() {
    let mut disk = None;
    let server = Server::with_data_dir(&[("LKR_ADMIN_PASSWORD", lkr_tests::ADMIN_PASSWORD)], |data| {
        disk = SmallDisk::mount(data, MEGABYTES);
    });
    let Some(_disk) = disk else { return };
    server.restart();
    let load = Load::on_limited_disk();
    survive_load(&server, &load, kills(8), "kills_on_a_full_disk_lose_nothing", fill_disk);
    let refused = load.ledger().values().filter(|entry| entry.refused).count();
    eprintln!("{refused} documents were rejected");
    assert!(refused > 0);
}

fn fill_disk(server: &Server, kill: usize, seed: &mut Seed) -> Option<Termination> {
    let ballast = server.data_dir().join("ballast");
    if kill.is_multiple_of(3) {
        let _ = fs::remove_file(&ballast);
        server.restart();
        return Some(Termination::After(Duration::from_millis(200 + seed.below(800))));
    }
    server.restart();
    // The store reuses its own pages, but texts no longer fit.
    let stat = rustix::fs::statvfs(server.data_dir()).unwrap();
    let left = if kill == FULL { 0 } else { seed.below(MAX_FREE << 20) };
    let free = (stat.f_bavail * stat.f_frsize).saturating_sub(left);
    let before = fs::metadata(&ballast).map_or(0, |meta| meta.len());
    let mut file = fs::OpenOptions::new().create(true).append(true).open(&ballast).unwrap();
    let _ = file.write_all(&vec![1; free as usize]);
    eprintln!("the ballast had {before} bytes and grows by {free}");
    Some(Termination::After(Duration::from_millis(500 + seed.below(1_500))))
}

/// Enough sections for a collection to get clusters, and the number of documents that contain them.
const SECTIONS: usize = 16_000;
const PARTS: usize = 8;
/// The source of these documents.
const SECTIONED: &str = "sectioned";

/// The clusters of vectors are damaged between a kill and the next start.
#[test]
fn kills_with_damaged_clusters_lose_nothing() {
    let name = "kills_with_damaged_clusters_lose_nothing";
    // With a model from the start, there are soon enough vectors for clusters.
    let model = workspace().join("crates/lkr-models-local/tests/fixtures/tiny-bert-mean");
    let server = Server::start_with(&[
        ("LKR_ADMIN_PASSWORD", lkr_tests::ADMIN_PASSWORD),
        ("LKR_MODEL_DIR", &model.display().to_string()),
    ]);
    for part in 0..PARTS {
        let _ = server.add(&json!({"text": many_sections(part), "source": SECTIONED}));
    }
    survive(&server, kills(8), name, with_damaged_clusters);
}

fn many_sections(part: usize) -> String {
    let section = |n| format!("## Section {n}\n\nRiver {part} passes place {n} at noon.\n");
    (0..SECTIONS / PARTS).map(section).collect::<Vec<_>>().join("\n")
}

fn with_damaged_clusters(server: &Server, kill: usize, seed: &mut Seed) -> Option<Termination> {
    server.kill();
    let folders = damage_clusters(server, seed);
    assert!(folders > 0 || kill == 0, "no clusters were built");
    server.restart();
    Some(Termination::After(Duration::from_millis(200 + seed.below(3_000))))
}

/// How often a server is killed: `usual` times, scaled by the number given to `cargo xtask crash`.
fn kills(usual: usize) -> usize {
    let configured = std::env::var("CRASH_KILLS").ok();
    configured.map_or(usual, |kills| (kills.parse::<usize>().unwrap() * usual).div_ceil(RANDOM_KILLS))
}

/// Starts the server and returns how it will be terminated; `None` if it exited before it was ready.
type KillStrategy = fn(&Server, usize, &mut Seed) -> Option<Termination>;

fn at_random(server: &Server, _: usize, seed: &mut Seed) -> Option<Termination> {
    server.restart();
    Some(Termination::After(Duration::from_millis(20 + seed.below(1000))))
}

/// A third of the fail points are among the first writes, which belong to the start and to recovery from earlier kills.
fn at_fail_point(server: &Server, kill: usize, seed: &mut Seed) -> Option<Termination> {
    let most = if kill.is_multiple_of(3) { 12 } else { 150 };
    let point = format!("{}:{}", FAIL_POINTS[kill % FAIL_POINTS.len()], 1 + seed.below(most));
    server.restart_with_fail_point(&point).then_some(Termination::AtFailPoint(FAIL_POINT_TIMEOUT))
}

fn survive(server: &Server, kills: usize, name: &str, restart_for_kill: KillStrategy) {
    survive_load(server, &Load::default(), kills, name, restart_for_kill);
}

fn survive_load(server: &Server, load: &Load, kills: usize, name: &str, restart_for_kill: KillStrategy) {
    let mut seed = Seed::announce(name);
    let watch = WatchedDocuments::ingest(server);
    let mut killed_at_start = 0;
    for kill in 0..kills {
        match restart_for_kill(server, kill, &mut seed) {
            Some(termination) => load.until_terminated(server, &watch, termination, &mut seed),
            None => killed_at_start += 1,
        }
    }
    // Frees the disk.
    let _ = fs::remove_file(server.data_dir().join("ballast"));
    server.restart();
    let ledger = load.ledger().clone();
    eprintln!(
        "{name}: {kills} kills, {killed_at_start} of them at the start; {} documents, {} accepted; {} searches",
        ledger.len(),
        ledger.values().filter(|entry| entry.task_id.is_some()).count(),
        watch.searches()
    );
    let tasks = ended_tasks(server, &ledger);
    check_documents(server, &ledger, &watch, &tasks);
    check_rewrites(server, &ledger, &tasks);
    check_search(server, &ledger, &tasks);
    let counts = assert_consistent(server);
    assert_garbage_collected(server, &counts);
    assert_healthy(server);
}

/// The tasks of the accepted documents. Checks that each ended correctly and that no other task is unfinished.
fn ended_tasks(server: &Server, ledger: &BTreeMap<u64, LedgerEntry>) -> HashMap<u64, Value> {
    let mut tasks = HashMap::new();
    for (&number, entry) in ledger {
        let Some(task_id) = &entry.task_id else { continue };
        let task = server.wait_for_task(task_id);
        if task["status"] == "failed" {
            assert!(entry.delete_sent, "document {number} failed although no delete was sent: {task}");
            assert_eq!(task["error"]["code"], 1003, "{number}: {task}");
        }
        tasks.insert(number, task);
    }
    // Tasks whose 202 response was lost by a kill end too.
    server.wait_until(|| {
        let tasks_with =
            |status| server.get(&format!("/documents/tasks?status={status}")).data()["items"].clone();
        let is_empty = |items: Value| items.as_array().is_some_and(Vec::is_empty);
        (is_empty(tasks_with("pending")) && is_empty(tasks_with("running"))).then_some(())
    });
    // An ended task never changes.
    for (number, task) in &tasks {
        assert_eq!(&server.task(task["task_id"].as_str().unwrap()), task, "{number}");
    }
    tasks
}

fn check_documents(
    server: &Server,
    ledger: &BTreeMap<u64, LedgerEntry>,
    watch: &WatchedDocuments,
    tasks: &HashMap<u64, Value>,
) {
    let mut listed: HashMap<String, Vec<String>> = HashMap::new();
    for item in server.list_all("/documents") {
        let text = |key: &str| item[key].as_str().unwrap().to_owned();
        listed.entry(text("source")).or_default().push(text("doc_id"));
    }
    for (&number, entry) in ledger {
        let doc_ids = listed.remove(&Load::source(number)).unwrap_or_default();
        assert!(doc_ids.len() <= 1, "document {number} exists {} times", doc_ids.len());
        assert!(!entry.refused || doc_ids.is_empty(), "document {number} was rejected and exists");
        let Some(task) = tasks.get(&number) else { continue };
        let doc_id = task["doc_id"].as_str().unwrap();
        assert!(doc_ids.iter().all(|listed| listed == doc_id), "document {number} has another id");
        if entry.deleted || task["status"] == "failed" {
            assert!(doc_ids.is_empty(), "document {number} was deleted and exists: {entry:?} {task}");
            server.get(&format!("/documents/{doc_id}")).assert_error(1004, 404);
        } else if !entry.delete_sent {
            assert_eq!(doc_ids, [doc_id], "document {number} is lost: {task}");
        }
    }
    listed.remove(SECTIONED);
    listed.retain(|source, doc_ids| !(watch.contains_source(source) && doc_ids.len() == 1));
    assert!(listed.is_empty(), "documents that were never sent: {listed:?}");
}

/// Checks that every confirmed change took effect, and that the tasks of all replacements have ended.
fn check_rewrites(server: &Server, ledger: &BTreeMap<u64, LedgerEntry>, tasks: &HashMap<u64, Value>) {
    let (mut replaced, mut changed) = (0, 0);
    for (number, entry) in ledger {
        for task_id in entry.rewrites.iter().filter_map(|rewrite| rewrite.task_id.as_ref()) {
            let task = server.wait_for_task(task_id);
            let cancelled = task["error"]["code"] == 1003;
            assert!(task["status"] == "done" || cancelled, "{number}: {task}");
            replaced += 1;
        }
        changed += entry.rewrites.iter().filter(|rewrite| rewrite.kind == RewriteKind::Patch).count();
        let Some(task) = tasks.get(number).filter(|task| task["status"] == "done" && !entry.delete_sent)
        else {
            continue;
        };
        let path = format!("/documents/{}", task["doc_id"].as_str().unwrap());
        let text = server.get(&format!("{path}/text")).data()["text"].as_str().unwrap().to_owned();
        let version = text.split_once("version ").and_then(|(_, rest)| rest.split_once('.')).unwrap().0;
        let mark = server.get(&path).data()["l1"]["metadata"]["mark"].as_str().map(str::to_owned);
        let actual = (version.parse().unwrap(), mark.map(|mark| mark.parse().unwrap()));
        let possible = entry.possible_versions();
        assert!(
            possible.contains(&actual),
            "document {number} has state {actual:?}, expected one of {possible:?}: {entry:?}"
        );
    }
    eprintln!("{replaced} replacements, {changed} changes");
}

fn check_search(server: &Server, ledger: &BTreeMap<u64, LedgerEntry>, tasks: &HashMap<u64, Value>) {
    let found = |number: u64| {
        let request = json!({"query": Load::word(number), "group_by": "document", "top_k": 100});
        let results = server.search(&request)["results"].as_array().unwrap().clone();
        results.iter().map(|result| result["source"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let deleted = ledger.iter().filter(|(_, entry)| entry.deleted).take(SEARCHED);
    for (&number, _) in deleted {
        assert!(!found(number).contains(&Load::source(number)), "search returned deleted document {number}");
    }
    let live = ledger.iter().filter(|(number, entry)| tasks.contains_key(number) && !entry.delete_sent);
    for (&number, _) in live.take(SEARCHED) {
        assert_eq!(
            found(number).first(),
            Some(&Load::source(number)),
            "document {number} is not the first result"
        );
    }
}

//! kill -9 at random moments and at every kind of boundary between two writes, under a load of adds, deletes,
//! replacements, changes and searches.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    io::Write as _,
    time::Duration,
};

use lkr_tests::{
    LedgerEntry, Load, RewriteKind, Seed, Server, SmallDisk, Termination, WatchedDocuments,
    assert_consistent, assert_garbage_collected, damage_graphs, model_dir, workspace,
};
use serde_json::{Value, json};

use crate::doctor::assert_healthy;

/// How many live and how many deleted documents are searched for at the end.
const SEARCHED: usize = 25;

/// The fail points at which a server can end: before and after each write.
const FAIL_POINTS: [&str; 4] = ["store.write", "store.written", "blob.write", "blob.written"];

/// The longest a server may take to reach its fail point.
const FAIL_POINT_TIMEOUT: Duration = Duration::from_secs(5);

/// The number of kills at random moments in the tests.
const AT_RANDOM: usize = 20;

#[test]
fn kills_at_random_moments_lose_nothing() {
    survive(&Server::start(), kills(AT_RANDOM), "kills_at_random_moments_lose_nothing", at_random);
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

/// The file that fills the disk up to a few megabytes.
const MEGABYTES: u32 = 96;
const LEFT: u64 = 4;

/// The disk fills during the load; sometimes it is still full when the server starts again.
#[test]
fn kills_on_a_full_disk_lose_nothing() {
    let mut disk = None;
    let server = Server::with_data_dir(&[("LKR_ADMIN_PASSWORD", lkr_tests::ADMIN_PASSWORD)], |data| {
        disk = SmallDisk::mount(data, MEGABYTES);
    });
    let Some(_disk) = disk else { return };
    server.restart();
    let load = Load::on_limited_disk();
    survive_load(&server, &load, kills(8), "kills_on_a_disk_that_fills_lose_nothing", fill_disk);
    let refused = load.ledger().values().filter(|outcome| outcome.refused).count();
    eprintln!("{refused} documents were refused");
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
    // Little room is left: the store has its pages already, and texts no longer fit.
    let stat = rustix::fs::statvfs(server.data_dir()).unwrap();
    let free = (stat.f_bavail * stat.f_frsize).saturating_sub(seed.below(LEFT << 20));
    let there = fs::metadata(&ballast).map_or(0, |meta| meta.len());
    let mut file = fs::OpenOptions::new().create(true).append(true).open(&ballast).unwrap();
    let _ = file.write_all(&vec![1; free as usize]);
    eprintln!("{there} bytes in the way, then {free} more");
    Some(Termination::After(Duration::from_millis(500 + seed.below(1_500))))
}

/// Enough sections for a collection to get a graph, and the number of documents they are in.
const SECTIONS: usize = 16_000;
const PARTS: usize = 8;
/// The source of these documents.
const SECTIONED: &str = "sectioned";

/// The graphs are damaged between a kill and the next start.
#[test]
fn kills_with_damaged_graphs_lose_nothing() {
    let name = "kills_and_damaged_graphs_lose_nothing";
    // Embedding starts at once, so that there are soon enough vectors.
    let model = workspace().join("crates/lkr-models-local/tests/fixtures/tiny-bert-mean");
    let server = Server::start_with(&[
        ("LKR_ADMIN_PASSWORD", lkr_tests::ADMIN_PASSWORD),
        ("LKR_MODEL_DIR", &model.display().to_string()),
    ]);
    for part in 0..PARTS {
        let _ = server.add(&json!({"text": many_sections(part), "source": SECTIONED}));
    }
    survive(&server, kills(8), name, with_damaged_graphs);
}

fn many_sections(part: usize) -> String {
    let section = |n| format!("## Section {n}\n\nRiver {part} passes place {n} at noon.\n");
    (0..SECTIONS / PARTS).map(section).collect::<Vec<_>>().join("\n")
}

fn with_damaged_graphs(server: &Server, kill: usize, seed: &mut Seed) -> Option<Termination> {
    server.kill();
    let graphs = damage_graphs(server, seed);
    assert!(graphs > 0 || kill == 0, "there is no graph");
    server.restart();
    Some(Termination::After(Duration::from_millis(200 + seed.below(3_000))))
}

/// How often a server is killed: `usual` times, or in proportion to the number given to `cargo xtask crash`.
fn kills(usual: usize) -> usize {
    let told = std::env::var("CRASH_KILLS").ok();
    told.map_or(usual, |kills| (kills.parse::<usize>().unwrap() * usual).div_ceil(AT_RANDOM))
}

/// Starts the server and returns how it will die; `None` if it died before it was ready.
type KillStrategy = fn(&Server, usize, &mut Seed) -> Option<Termination>;

fn at_random(server: &Server, _: usize, seed: &mut Seed) -> Option<Termination> {
    server.restart();
    Some(Termination::After(Duration::from_millis(20 + seed.below(1000))))
}

/// Sometimes at one of the first writes, which belong to the start itself and to recovery from an earlier kill.
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
    let mut early = 0;
    for kill in 0..kills {
        match restart_for_kill(server, kill, &mut seed) {
            Some(termination) => load.until_terminated(server, &watch, termination, &mut seed),
            None => early += 1,
        }
    }
    // There is room again.
    let _ = fs::remove_file(server.data_dir().join("ballast"));
    server.restart();
    let ledger = load.ledger().clone();
    eprintln!(
        "{name}: {kills} kills, {early} of them at the start; {} documents, {} accepted; {} searches",
        ledger.len(),
        ledger.values().filter(|o| o.task_id.is_some()).count(),
        watch.searches()
    );
    let ends = ends(server, &ledger);
    check_documents(server, &ledger, &watch, &ends);
    check_rewrites(server, &ledger, &ends);
    check_search(server, &ledger, &ends);
    let shown = assert_consistent(server);
    assert_garbage_collected(server, &shown);
    assert_healthy(server);
}

/// The tasks of the accepted documents. Each has ended as it must, and no other task is unfinished.
fn ends(server: &Server, ledger: &BTreeMap<u64, LedgerEntry>) -> HashMap<u64, Value> {
    let mut ends = HashMap::new();
    for (&number, outcome) in ledger {
        let Some(task_id) = &outcome.task_id else { continue };
        let task = server.wait_for_task(task_id);
        if task["status"] == "failed" {
            assert!(outcome.delete_sent, "{number} failed though nobody deleted it: {task}");
            assert_eq!(task["error"]["code"], 1003, "{number}: {task}");
        }
        ends.insert(number, task);
    }
    // Tasks whose 202 was lost to a kill end too.
    server.wait_until(|| {
        let under_way =
            |status| server.get(&format!("/documents/tasks?status={status}")).data()["items"].clone();
        let none = |items: Value| items.as_array().is_some_and(Vec::is_empty);
        (none(under_way("pending")) && none(under_way("running"))).then_some(())
    });
    // An ended task never changes.
    for (number, task) in &ends {
        assert_eq!(&server.task(task["task_id"].as_str().unwrap()), task, "{number}");
    }
    ends
}

fn check_documents(
    server: &Server,
    ledger: &BTreeMap<u64, LedgerEntry>,
    watch: &WatchedDocuments,
    ends: &HashMap<u64, Value>,
) {
    let mut listed: HashMap<String, Vec<String>> = HashMap::new();
    for item in server.list_all("/documents") {
        let text = |key: &str| item[key].as_str().unwrap().to_owned();
        listed.entry(text("source")).or_default().push(text("doc_id"));
    }
    for (&number, outcome) in ledger {
        let doc_ids = listed.remove(&Load::source(number)).unwrap_or_default();
        assert!(doc_ids.len() <= 1, "document {number} is there {} times", doc_ids.len());
        assert!(!outcome.refused || doc_ids.is_empty(), "document {number} was refused and is there");
        let Some(task) = ends.get(&number) else { continue };
        let doc_id = task["doc_id"].as_str().unwrap();
        assert!(doc_ids.iter().all(|listed| listed == doc_id), "document {number} has another id");
        if outcome.deleted || task["status"] == "failed" {
            assert!(doc_ids.is_empty(), "document {number} was deleted and is there: {outcome:?} {task}");
            server.get(&format!("/documents/{doc_id}")).assert_error(1004, 404);
        } else if !outcome.delete_sent {
            assert_eq!(doc_ids, [doc_id], "document {number} is lost: {task}");
        }
    }
    listed.remove(SECTIONED);
    listed.retain(|source, doc_ids| !(watch.contains_source(source) && doc_ids.len() == 1));
    assert!(listed.is_empty(), "nobody sent {listed:?}");
}

/// Every confirmed change is in force, and the tasks of all replacements have ended.
fn check_rewrites(server: &Server, ledger: &BTreeMap<u64, LedgerEntry>, ends: &HashMap<u64, Value>) {
    let (mut replaced, mut changed) = (0, 0);
    for (number, outcome) in ledger {
        for task_id in outcome.rewrites.iter().filter_map(|rewrite| rewrite.task_id.as_ref()) {
            let task = server.wait_for_task(task_id);
            let cancelled = task["error"]["code"] == 1003;
            assert!(task["status"] == "done" || cancelled, "{number}: {task}");
            replaced += 1;
        }
        changed += outcome.rewrites.iter().filter(|rewrite| rewrite.kind == RewriteKind::Patch).count();
        let Some(task) = ends.get(number).filter(|task| task["status"] == "done" && !outcome.delete_sent)
        else {
            continue;
        };
        let path = format!("/documents/{}", task["doc_id"].as_str().unwrap());
        let text = server.get(&format!("{path}/text")).data()["text"].as_str().unwrap().to_owned();
        let version = text.split_once("version ").and_then(|(_, rest)| rest.split_once('.')).unwrap().0;
        let mark = server.get(&path).data()["l1"]["metadata"]["mark"].as_str().map(str::to_owned);
        let standing = (version.parse().unwrap(), mark.map(|mark| mark.parse().unwrap()));
        let may = outcome.possible_versions();
        assert!(
            may.contains(&standing),
            "document {number} stands at {standing:?}, not {may:?}: {outcome:?}"
        );
    }
    eprintln!("{replaced} replacements, {changed} changes");
}

fn check_search(server: &Server, ledger: &BTreeMap<u64, LedgerEntry>, ends: &HashMap<u64, Value>) {
    let found = |number: u64| {
        let request = json!({"query": Load::word(number), "group_by": "document", "top_k": 100});
        let results = server.search(&request)["results"].as_array().unwrap().clone();
        results.iter().map(|result| result["source"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let gone = ledger.iter().filter(|(_, outcome)| outcome.deleted).take(SEARCHED);
    for (&number, _) in gone {
        assert!(
            !found(number).contains(&Load::source(number)),
            "a search shows document {number}, which was deleted"
        );
    }
    let there = ledger.iter().filter(|(number, outcome)| ends.contains_key(number) && !outcome.delete_sent);
    for (&number, _) in there.take(SEARCHED) {
        assert_eq!(
            found(number).first(),
            Some(&Load::source(number)),
            "document {number} is not found first"
        );
    }
}

//! Several servers on one Redis, one Qdrant and one object store.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    path::Path,
    process::Output,
    thread,
    time::{Duration, Instant},
};

use lkr_catalog::STORE_VERSION;
use lkr_state::{Expect, Write};
use lkr_test_history::Clock;
use lkr_test_support::{RedisSentinels, RedisServer, skip};
use lkr_tests::{ADMIN_PASSWORD, Role, Seed, Server, SharedStores, cli_binary, printed, server_binary};
use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

pub(crate) fn eventually(what: &str, condition: impl Fn() -> bool) {
    eventually_is(what, &true, condition);
}

/// Waits until a value is the expected one.
fn eventually_is<T: PartialEq + Debug>(what: &str, expected: &T, value: impl Fn() -> T) {
    let begun = Instant::now();
    loop {
        let now = value();
        if now == *expected {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}: {now:?} instead of {expected:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// `lkr doctor --shared` with the configuration of a server, and more arguments.
fn doctor(server: &Server, arguments: &[&str]) -> Output {
    let mut command = server.command_of(cli_binary());
    command.args(["doctor", "--shared"]).args(arguments).output().unwrap()
}

pub(crate) fn rock(n: u64) -> Value {
    json!({"title": format!("Rock {n}"), "source": format!("quarry:{n}"),
           "text": format!("# Rock {n}\n\nThe rock number{n} was found in the quarry. It is a dark volcanic stone.")})
}

#[test]
fn servers_of_each_role_work_as_one_service() {
    let Some(stores) = SharedStores::start() else { return };
    let (one, other) = (stores.server(Role::Api), stores.server(Role::Api));
    // A session of one is a session of the other.
    let token = one.admin().to_owned();
    assert_eq!(other.call("GET", "/auth/me", None, Some(&token)).data()["username"], "admin");

    // Without a worker, documents wait.
    let task = one.submit(&rock(1));
    let task_id = task["task_id"].as_str().unwrap().to_owned();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(other.task(&task_id)["status"], "pending");
    let worker = stores.server(Role::Worker);
    assert_eq!(other.wait_for_task(&task_id)["status"], "done");
    // A worker answers only questions about itself.
    for (path, status) in [("/healthz", 200), ("/metrics", 200), ("/", 404), ("/api/v1/knowledge/stats", 404)]
    {
        assert_eq!(worker.try_call("GET", path, None, None).unwrap().status, status, "{path}");
    }

    // What one changes, the other shows at once: a document.
    let found = |server: &Server| server.search(&json!({"query": "rock number1"}))["results"].clone();
    let doc_id = found(&one)[0]["doc_id"].as_str().unwrap().to_owned();
    assert_eq!(found(&one)[0]["doc_id"], found(&other)[0]["doc_id"]);
    let renamed =
        one.call("PATCH", &format!("/documents/{doc_id}"), Some(&json!({"title": "Basalt"})), Some(&token));
    assert_eq!(renamed.status, 200, "{renamed:?}");
    assert_eq!(found(&other)[0]["title"], "Basalt", "a cached answer is not used after a change elsewhere");
    let original = found(&other);
    assert_eq!(one.call("DELETE", &format!("/documents/{doc_id}"), None, Some(&token)).status, 200);
    assert_eq!(found(&other), json!([]), "deleted at one, found at the other: {original}");

    // A task that one accepted is followed at the other until it ends.
    let task = one.submit(&rock(2));
    let events = format!("/api/v1/documents/tasks/{}/events", task["task_id"].as_str().unwrap());
    let stream = other.try_call("GET", &events, None, Some(&token)).unwrap();
    let stream = String::from_utf8_lossy(&stream.body).into_owned();
    let last = stream.lines().rfind(|line| line.starts_with("data:")).unwrap_or_default();
    assert!(last.contains(r#""status":"done""#), "{stream}");

    // The setting that equal texts are one document is changed at one, and counts for what the other accepts.
    let add_twin = |server: &Server| {
        let mut twin = rock(2);
        twin["source"] = json!("quarry:twin");
        server.wait_for_task(server.submit(&twin)["task_id"].as_str().unwrap())["result"].clone()
    };
    assert_ne!(add_twin(&other)["duplicate_of"], Value::Null);
    let settings = json!({"dedup": {"strategy": "none"}});
    assert_eq!(one.call("PUT", "/settings", Some(&settings), Some(&token)).status, 200);
    let result = add_twin(&other);
    assert_eq!(result["duplicate_of"], Value::Null, "the setting was changed at one: {result}");

    // A file that one stored is downloaded from the other, whole and in part.
    let file = b"# Gneiss\n\nA banded stone of the old mountains.\n";
    let detail = one.upload_and_wait("gneiss.md", file);
    let path = format!("/api/v1/documents/{}/file", detail["l1"]["doc_id"].as_str().unwrap());
    let credential = ("Authorization", format!("Bearer {token}"));
    let whole = other.try_send("GET", &path, std::slice::from_ref(&credential), None).unwrap();
    assert_eq!((whole.status, &whole.body[..]), (200, &file[..]));
    let range = [credential, ("Range", "bytes=2-7".to_owned())];
    let part = other.try_send("GET", &path, &range, None).unwrap();
    assert_eq!((part.status, &part.body[..]), (206, &b"Gneiss"[..]), "{part:?}");

    // So with an account and its sessions.
    let account = json!({"username": "eva", "password": ADMIN_PASSWORD, "must_change_password": false});
    assert_eq!(one.call("POST", "/users", Some(&account), Some(&token)).status, 201);
    let login = other.post("/auth/login", &json!({"username": "eva", "password": ADMIN_PASSWORD}));
    let session = login.data()["access_token"].as_str().unwrap().to_owned();
    assert_eq!(one.call("GET", "/auth/me", None, Some(&session)).status, 200);
    assert_eq!(one.call("PATCH", "/users/eva", Some(&json!({"disabled": true})), Some(&token)).status, 200);
    assert_eq!(other.call("GET", "/auth/me", None, Some(&session)).status, 401, "disabled at one");
    assert_eq!(other.call("POST", "/auth/logout", None, Some(&token)).status, 200);
    assert_eq!(one.call("GET", "/auth/me", None, Some(&token)).status, 401, "ended at the other");

    // Both see every store.
    let ready = one.try_call("GET", "/readyz", None, None).unwrap();
    let dependencies = &ready.data()["dependencies"];
    for name in ["vectors", "state", "blobs", "queue"] {
        assert_eq!(dependencies[name], "ok", "{dependencies}");
    }
}

/// A process that is killed during a task and restarted with the same data folder continues the task before its lease expires.
#[test]
fn process_that_is_started_again_goes_on_with_its_tasks() {
    let Some(stores) = SharedStores::start() else { return };
    let server = stores.server(Role::All);
    let claims = server.data_dir().join("claims");
    let held = || std::fs::read_dir(&claims).unwrap().count();
    let sections =
        (0..3_000).map(|n| format!("## Rock {n}\n\nThe rock number{n} was found in the quarry.\n\n"));
    let task = server.submit(&json!({"title": "Rocks", "text": sections.collect::<String>()}));
    let task_id = task["task_id"].as_str().unwrap().to_owned();
    eventually("the task is claimed", || held() == 1);
    server.kill();
    assert_eq!(held(), 1, "the server was killed during the task");
    let begun = Instant::now();
    server.restart();
    assert_eq!(server.wait_for_task(&task_id)["status"], "done");
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    eventually("what ended is forgotten", || held() == 0);
}

/// Sentinels replace a master by a replica that it has not reached lately, so acknowledged writes are lost. The doctor names each
/// document whose record is gone, and its repair restores them from their points and texts.
#[test]
fn lesson_43_documents_that_a_failover_lost_are_named_and_restored() {
    let (Some(stores), Some(mut sentinels)) = (SharedStores::start(), RedisSentinels::start()) else {
        return;
    };
    let redis = [("LKR_REDIS_URL", sentinels.url()), ("LKR_REDIS_WAIT_REPLICAS", "1".to_owned())];
    let redis = redis.each_ref().map(|(key, value)| (*key, value.as_str()));
    let server = stores.server_with(Role::All, &redis);
    let kept = server.add(&rock(0));
    let mut lost = Vec::new();
    sentinels.lose(|| lost.extend((1..8).map(|n| server.add(&rock(n)))));
    let listed = || {
        let answer = server.try_call("GET", "/api/v1/documents", None, None).ok()?;
        let items = (answer.status == 200).then(|| answer.data()["items"].clone())?;
        Some(
            items
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["doc_id"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>(),
        )
    };
    let login = json!({"username": "admin", "password": ADMIN_PASSWORD});
    eventually("the new master accepts writes", || server.post("/auth/login", &login).status == 200);
    // The old master, which has come back with all records, counts as one until the sentinels make it a replica.
    eventually_is("the records of the new master are listed", &Some(vec![kept]), listed);

    let found = doctor(&server, &[]);
    assert_eq!(found.status.code(), Some(1), "{}", printed(&found));
    for doc_id in &lost {
        let problem = format!("document {doc_id} has points and a text, but its record is lost");
        assert!(printed(&found).contains(&problem), "{}", printed(&found));
    }
    server.stop();
    let repaired = doctor(&server, &["--repair"]);
    assert!(repaired.status.success(), "{}", printed(&repaired));
    server.restart();
    for (n, doc_id) in (1..8).zip(&lost) {
        let response = server.search(&json!({"query": format!("number{n}"), "top_k": 1}));
        assert_eq!(response["results"][0]["doc_id"], **doc_id, "{response}");
    }
    let checked = doctor(&server, &[]);
    assert!(checked.status.success(), "{}", printed(&checked));
}

/// The clock of Redis is an hour ahead of that of the server: times and ids of documents are by the former, and sessions hold.
#[test]
fn times_are_by_the_clock_of_redis() {
    const AHEAD: i64 = 3_600;
    let folder = tempfile::tempdir().unwrap();
    let clock = match Clock::new(folder.path(), "redis") {
        Ok(clock) => clock,
        Err(error) => return skip(&error.to_string()),
    };
    clock.set(AHEAD).unwrap();
    let (Some(stores), Some(redis)) = (SharedStores::start(), RedisServer::start_in(clock.environment()))
    else {
        return;
    };
    let server = stores.server_with(Role::All, &[("LKR_REDIS_URL", &redis.url())]);
    let task = server.wait_for_task(server.submit(&rock(1))["task_id"].as_str().unwrap());
    let text = |key: &str| task[key].as_str().unwrap();
    let created = OffsetDateTime::parse(text("created_at"), &Rfc3339).unwrap();
    let microseconds = text("doc_id").get(..12).unwrap();
    let in_id = i64::from_str_radix(microseconds, 16).unwrap() / 1_000;
    for seconds in [created.unix_timestamp(), in_id] {
        let ahead = seconds - OffsetDateTime::now_utc().unix_timestamp();
        assert!((AHEAD - 60..=AHEAD).contains(&ahead), "{ahead}: {task}");
    }
    assert_eq!(server.call("GET", "/auth/me", None, Some(server.admin())).status, 200);
}

/// A process of a later version waits to upgrade the stores: this one ends in order, and starts again only once nothing of the later
/// version is there.
#[test]
fn process_of_an_earlier_version_makes_room_for_a_later_one() {
    let Some(stores) = SharedStores::start() else { return };
    let server = stores.server(Role::All);
    let tasks: Vec<String> =
        (0..20).map(|n| server.submit(&rock(n))["task_id"].as_str().unwrap().to_owned()).collect();
    let later = Write::put("process-format", Expect::Any, (STORE_VERSION + 1).to_string());
    stores.apply(vec![later]);
    eventually("the server ends", || server.has_ended());
    assert_eq!(server.wait().code(), Some(1));
    assert!(server.log().contains("a later version of lkr upgrades the stores"), "{}", server.log());
    let refused = server.command().output().unwrap();
    let reason = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && reason.contains("a later lkr upgrades the store"), "{reason}");
    stores.apply(vec![Write::delete("process-format", Expect::Any)]);
    server.restart();
    for task in &tasks {
        assert_eq!(server.wait_for_task(task)["status"], "done");
    }
}

/// A process with its records in Redis and its points in its data folder is the only one: others would search without its points.
#[test]
fn process_with_points_of_its_own_works_alone() {
    let Some(stores) = SharedStores::start() else { return };
    let shared = stores.server(Role::All);
    let mut alone = stores.stopped_server(Role::All);
    alone.set("LKR_VECTORS", "embedded");
    let refusal = |server: &Server, reason: &str| {
        let refused = printed(&server.command().output().unwrap());
        assert!(refused.contains(reason), "{refused}");
    };
    refusal(&alone, "other processes (1) may work on the same records");
    shared.stop();
    alone.restart();
    let _ = alone.add(&rock(1));
    refusal(&shared, "another process works on the same records");
    // Its restart takes its own place at once, after a kill too.
    alone.restart();
    let found = |server: &Server| server.search(&json!({"query": "number1"}))["results"][0]["source"].clone();
    assert_eq!(found(&alone), "quarry:1");
    alone.stop();
    // Without its points nothing would be found, wherever they are looked for.
    let lost = "there are documents, but no points at all";
    refusal(&shared, lost);
    std::fs::remove_dir_all(alone.data_dir()).unwrap();
    refusal(&alone, lost);
    let repaired = doctor(&alone, &["--repair"]);
    assert!(repaired.status.success(), "{}", printed(&repaired));
    alone.restart();
    eventually("the document is not ingested again", || found(&alone) == "quarry:1");
}

/// Processes of two versions work on the same stores, while each is replaced by the other and back. `LKR_E2E_EARLIER` is the path of
/// an earlier server.
#[test]
fn processes_of_two_versions_work_as_one_service() {
    let Some(program) = std::env::var_os("LKR_E2E_EARLIER") else {
        eprintln!("skipped: `cargo xtask several versions PATH` names an earlier server");
        return;
    };
    let Some(stores) = SharedStores::start() else { return };
    let documents = 300;
    let (mut api, mut worker) = (stores.server(Role::Api), stores.server(Role::Worker));
    let programs = [Path::new(&program), server_binary()];
    let mut tasks: BTreeMap<u64, String> = BTreeMap::new();
    for n in 0..documents {
        if n % 50 == 25 {
            // Both meet: first the worker is of the other version, then the server too, then both change again.
            let round = (n / 50) as usize;
            let replaced = if round.is_multiple_of(2) { &mut worker } else { &mut api };
            if round.is_multiple_of(3) {
                replaced.kill();
            } else {
                replaced.stop();
            }
            replaced.run_program(programs[round / 2 % 2]);
            replaced.restart();
        }
        let accepted = api.call("POST", "/documents", Some(&rock(n)), Some(api.admin()));
        assert_eq!(accepted.status, 202, "{accepted:?}");
        tasks.insert(n, accepted.data()["task_id"].as_str().unwrap().to_owned());
        if n >= 100 && n % 3 == 0 {
            let earlier = n - 100;
            let title = json!({"title": format!("Stone {earlier}"), "metadata": {"renamed": "yes"}});
            assert_eq!(api.wait_for_task(&tasks[&earlier])["status"], "done");
            let found = api.search(&json!({"query": format!("number{earlier}"), "top_k": 1}));
            let doc_id =
                found["results"][0]["doc_id"].as_str().unwrap_or_else(|| panic!("{found}")).to_owned();
            let path = format!("/documents/{doc_id}");
            let renamed = api.call("PATCH", &path, Some(&title), Some(api.admin()));
            assert_eq!(renamed.status, 200, "{renamed:?}");
        }
    }
    for (n, task) in &tasks {
        assert_eq!(api.wait_for_task(task)["status"], "done", "rock {n}");
    }
    worker.stop();
    worker.run_program(server_binary());
    worker.restart();
    let titles: BTreeMap<String, String> = api
        .list_all("/documents")
        .iter()
        .map(|document| {
            let text = |key: &str| document[key].as_str().unwrap().to_owned();
            (text("source"), text("title"))
        })
        .collect();
    assert_eq!(titles.len() as u64, documents, "each document exists once");
    for n in 0..documents {
        let is_renamed = n + 100 < documents && (n + 100) % 3 == 0;
        let title = if is_renamed { format!("Stone {n}") } else { format!("Rock {n}") };
        assert_eq!(titles[&format!("quarry:{n}")], title);
        let found = api.search(&json!({"query": format!("number{n}"), "top_k": 1}));
        assert_eq!(found["results"][0]["title"], title, "{found}");
    }
    api.stop();
    worker.stop();
    let checked = doctor(&api, &[]);
    assert!(checked.status.success(), "{}", printed(&checked));
}

/// How many documents the tests of kills add.
pub(crate) fn documents_to_add() -> u64 {
    std::env::var("LKR_E2E_DOCUMENTS").ok().and_then(|n| n.parse().ok()).unwrap_or(150)
}

/// Submits the documents, waits until `disturbance` ends and all are ingested, and checks that each exists once and is found.
pub(crate) fn assert_ingested_once_despite(disturbance: impl FnOnce() + Send, api: &Server, documents: u64) {
    thread::scope(|scope| {
        let disturbing = scope.spawn(disturbance);
        let tasks: Vec<String> = (0..documents)
            .map(|n| {
                let accepted = api.call("POST", "/documents", Some(&rock(n)), Some(api.admin()));
                assert_eq!(accepted.status, 202, "{accepted:?}");
                accepted.data()["task_id"].as_str().unwrap().to_owned()
            })
            .collect();
        disturbing.join().unwrap();
        for (n, task) in tasks.iter().enumerate() {
            let ended = api.wait_for_task(task);
            assert_eq!(ended["status"], "done", "rock {n}: {ended}");
        }
    });
    let sources: Vec<String> =
        api.list_all("/documents").iter().map(|doc| doc["source"].as_str().unwrap().to_owned()).collect();
    assert_eq!(sources.len() as u64, documents, "each document exists once");
    assert_eq!(sources.iter().collect::<BTreeSet<_>>().len() as u64, documents);
    for n in 0..documents {
        let response = api.search(&json!({"query": format!("number{n}"), "top_k": 1}));
        assert_eq!(response["results"][0]["source"], format!("quarry:{n}"), "{response}");
    }
    assert_eq!(api.get("/knowledge/stats").data()["documents_total"], documents);
}

/// Documents are submitted to a server, while processes that ingest are killed. Afterwards each document exists exactly once and
/// is found. A killed process is restarted at once.
#[test]
fn lesson_43_what_was_accepted_is_there_once_although_processes_are_killed() {
    let Some(stores) = SharedStores::start() else { return };
    let documents = documents_to_add();
    let mut seed = Seed::announce("several_processes");
    let (api, all) = (stores.server(Role::Api), stores.server(Role::All));
    let workers = [stores.server(Role::Worker), stores.server(Role::Worker)];
    let victims = [&workers[0], &workers[1], &all];
    let kill = || {
        for _ in 0..(documents / 30).max(1) {
            thread::sleep(Duration::from_millis(700));
            let victim = victims[seed.below(3) as usize];
            victim.kill();
            victim.restart();
        }
    };
    assert_ingested_once_despite(kill, &api, documents);
}

/// Redis is killed and started again: requests fail with a clear error meanwhile or go on from memory, readiness says so, and
/// everything works again by itself.
#[test]
fn service_goes_on_when_redis_returns() {
    let Some(mut stores) = SharedStores::start() else { return };
    let (api, worker) = (stores.server(Role::Api), stores.server(Role::Worker));
    let task = api.submit(&rock(1));
    assert_eq!(api.wait_for_task(task["task_id"].as_str().unwrap())["status"], "done");
    let token = api.admin().to_owned();
    stores.redis.kill();

    let begun = Instant::now();
    let listed = api.call("GET", "/documents", None, Some(&token));
    assert!(listed.status == 500 || listed.status == 503, "{listed:?}");
    assert!(begun.elapsed() < Duration::from_secs(10), "the error came after {:?}", begun.elapsed());
    eventually("accounts do not go on from memory", || {
        api.try_call("GET", "/api/v1/auth/me", None, Some(&token)).is_ok_and(|me| me.status == 200)
    });
    let ready = api.try_call("GET", "/readyz", None, None).unwrap();
    let state = &ready.data()["dependencies"]["state"];
    assert_eq!((ready.status, state.as_str()), (200, Some("degraded")), "{ready:?}");
    let login = api.post("/auth/login", &json!({"username": "admin", "password": ADMIN_PASSWORD}));
    assert_eq!(login.status, 200, "{login:?}");
    let session = login.data()["access_token"].as_str().unwrap().to_owned();
    // A revocation holds at once, and still when Redis is back.
    assert_eq!(api.call("POST", "/auth/logout", None, Some(&token)).status, 200);
    assert_eq!(api.call("GET", "/auth/me", None, Some(&token)).status, 401);

    stores.redis.restart();
    eventually("the service does not come back", || {
        let ready = api.try_call("GET", "/readyz", None, None);
        ready.is_ok_and(|ready| ready.data()["dependencies"]["state"] == "ok")
    });
    let other = stores.server(Role::Api);
    assert_eq!(other.call("GET", "/auth/me", None, Some(&token)).status, 401, "a revoked session came back");
    assert_eq!(other.call("GET", "/auth/me", None, Some(&session)).status, 200, "a session was lost");
    let task = other.call("POST", "/documents", Some(&rock(2)), Some(&session));
    assert_eq!(other.wait_for_task(task.data()["task_id"].as_str().unwrap())["status"], "done");
    drop(worker);
}

/// Redis loses its records while servers run. Nothing is answered from memory then, no server starts on what is left and makes
/// a new first admin, and what the points and texts say is restored.
#[test]
fn emptied_redis_is_refused_until_its_records_are_restored() {
    let Some(mut stores) = SharedStores::start() else { return };
    let (api, worker) = (stores.server(Role::Api), stores.server(Role::Worker));
    let doc_id = {
        let task = api.submit(&rock(1));
        let ended = api.wait_for_task(task["task_id"].as_str().unwrap());
        ended["result"]["doc_id"].as_str().unwrap().to_owned()
    };
    let token = api.admin().to_owned();
    worker.stop();
    stores.redis.restart_empty();

    let login = json!({"username": "admin", "password": ADMIN_PASSWORD});
    let answer = |method: &str, path: &str, body: Option<&Value>| {
        let answer = api.call(method, path, body, Some(&token));
        (answer.code(), answer.status)
    };
    eventually("readiness does not tell of the loss", || {
        api.try_call("GET", "/readyz", None, None).is_ok_and(|ready| ready.status == 503)
    });
    let query = json!({"query": "rock number1"});
    let document = format!("/documents/{doc_id}");
    for (method, path, body) in [
        ("GET", "/documents", None),
        ("GET", document.as_str(), None),
        ("GET", "/auth/me", None),
        ("POST", "/search", Some(&query)),
        ("POST", "/auth/login", Some(&login)),
        ("POST", "/documents", Some(&rock(2))),
        ("DELETE", &document, None),
    ] {
        assert_eq!(answer(method, path, body), (1010, 503), "{method} {path}");
    }
    // No other process starts on the emptied store.
    let other = stores.stopped_server(Role::All);
    let started = other.command().output().unwrap();
    assert!(!started.status.success(), "{}", printed(&started));
    assert!(printed(&started).contains("lkr doctor --shared --repair"), "{}", printed(&started));

    api.stop();
    let repaired = doctor(&api, &["--repair"]);
    assert!(repaired.status.success(), "{}", printed(&repaired));
    api.restart();
    let refused = api.post("/auth/login", &login);
    assert_eq!(refused.status, 401, "a first admin was made again: {refused:?}");
    // Who may read what was lost with the records, so nobody reads it before an admin says so.
    assert_eq!(api.search(&query)["results"], json!([]));
    api.stop();
    let reset = api.command().arg("reset-admin").output().unwrap();
    assert!(reset.status.success(), "{}", printed(&reset));
    let password = std::fs::read_to_string(api.data_dir().join("initial-admin-password")).unwrap();
    let password = password.trim();
    api.restart();
    let login = api.post("/auth/login", &json!({"username": "admin", "password": password}));
    let token = login.data()["access_token"].as_str().unwrap().to_owned();
    let change = json!({"current_password": password, "new_password": ADMIN_PASSWORD});
    assert_eq!(api.call("POST", "/auth/password", Some(&change), Some(&token)).status, 200);
    let login = api.post("/auth/login", &json!({"username": "admin", "password": ADMIN_PASSWORD}));
    let token = login.data()["access_token"].as_str().unwrap().to_owned();
    let found = api.call("POST", "/search", Some(&query), Some(&token));
    assert_eq!(found.data()["results"][0]["doc_id"], doc_id.as_str(), "{found:?}");
}

/// Qdrant and then the object store are away for a while. What needs them says so at once, everything else goes on, and what was
/// accepted meanwhile is ingested afterwards.
#[test]
fn only_what_needs_a_store_fails_while_it_is_away() {
    let Some(mut stores) = SharedStores::start() else { return };
    let server = stores.server(Role::All);
    let doc_id = server.add(&rock(1));
    let token = server.admin().to_owned();
    let text = format!("/documents/{doc_id}/text");
    let call = |method: &str, path: &str, body: Option<&Value>| server.call(method, path, body, Some(&token));
    let found = |query: &str| call("POST", "/search", Some(&json!({"query": query})));

    let mut accepted = None;
    let was_away = stores.without_qdrant(|| {
        eventually("searches do not fail", || found("rock away").code() == 2000);
        let begun = Instant::now();
        let failed = found("rock number1 away");
        assert_eq!((failed.code(), failed.status), (2000, 500), "{failed:?}");
        assert!(begun.elapsed() < Duration::from_secs(1), "the error came after {:?}", begun.elapsed());
        assert_eq!(server.try_call("GET", "/readyz", None, None).unwrap().status, 503);
        assert_eq!(call("GET", "/documents", None).status, 200);
        assert_eq!(call("GET", &text, None).status, 200);
        let task = call("POST", "/documents", Some(&rock(2)));
        assert_eq!(task.status, 202, "{task:?}");
        let task_id = task.data()["task_id"].as_str().unwrap().to_owned();
        thread::sleep(Duration::from_secs(2));
        let waiting = server.task(&task_id);
        assert!(["pending", "running"].contains(&waiting["status"].as_str().unwrap()), "{waiting}");
        accepted = Some(task_id);
    });
    if was_away {
        assert_eq!(server.wait_for_task(&accepted.unwrap())["status"], "done");
        assert_eq!(found("rock number2").data()["results"][0]["source"], "quarry:2");
    }

    stores.s3.pause();
    assert_eq!(found("rock number1 again").data()["results"][0]["doc_id"], doc_id.as_str());
    assert_eq!(call("GET", "/documents", None).status, 200);
    for (method, path, body) in [("GET", text.as_str(), None), ("POST", "/documents", Some(&rock(3)))] {
        let refused = call(method, path, body);
        assert_eq!((refused.code(), refused.status), (1010, 503), "{method} {path}: {refused:?}");
    }
    stores.s3.resume();
    eventually("texts do not come back", || call("GET", &text, None).status == 200);
    let doc_id = server.add(&rock(3));
    assert_eq!(found("rock number3").data()["results"][0]["doc_id"], doc_id.as_str());
}

//! The stream of all tasks that the caller may read.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use actix_web::http::Method;
use async_trait::async_trait;
use lkr::{
    IngestOptions,
    ports::{
        Embedder,
        models::{self, EmbedKind, EmbedderProfile, MemoryEmbedder},
    },
};
use lkr_state::{FailingState, MemoryState};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use crate::{
    streams::{OpenStream, stream},
    support::{Api, App, TestOptions, TestResponse, TestStores, api, api_with},
};

const EVENTS: &str = "/api/v1/documents/tasks/events";

/// The longest wait for an event, and much more for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long nothing may arrive before a test believes that nothing will.
const SILENCE: Duration = Duration::from_millis(1_500);

/// A client that watches all tasks.
struct Watched {
    stream: OpenStream,
    events: VecDeque<Value>,
}

impl Watched {
    async fn open<S: App>(api: &Api<S>, query: &str, token: &str) -> Self {
        let response = api.open(&format!("{EVENTS}{query}"), token, "192.0.2.1").await;
        assert_eq!(response.headers().get("content-type").unwrap(), "text/event-stream");
        Self { stream: stream(response), events: VecDeque::new() }
    }

    /// The next task; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let part = timeout(PATIENCE, self.stream.next()).await.unwrap()?;
            let text = String::from_utf8(part.unwrap().to_vec()).unwrap();
            let events = text.split_terminator("\n\n").filter(|event| *event != ":");
            let task = |event: &str| {
                serde_json::from_str(event.strip_prefix("event: task\ndata: ").unwrap()).unwrap()
            };
            self.events.extend(events.map(task));
        }
    }

    /// Reads until a task has a status, and returns it with the statuses that came before.
    async fn until(&mut self, task_id: &str, status: &str) -> (Value, Vec<String>) {
        let mut before = Vec::new();
        loop {
            let task = self.next().await.unwrap();
            if task["task_id"] != task_id {
                continue;
            }
            if task["status"] == status {
                return (task, before);
            }
            before.push(task["status"].as_str().unwrap().to_owned());
        }
    }

    /// The tasks that arrive until nothing does for a while.
    async fn settled(&mut self) -> Vec<Value> {
        let mut tasks = Vec::new();
        while let Ok(Some(task)) = timeout(SILENCE, self.next()).await {
            tasks.push(task);
        }
        tasks
    }
}

/// An embedder that waits with a passage "gate N" until N gates are open.
#[derive(Debug)]
struct GatedEmbedder {
    embedder: MemoryEmbedder,
    open: watch::Receiver<usize>,
}

#[async_trait]
impl Embedder for GatedEmbedder {
    fn profile(&self) -> &EmbedderProfile {
        self.embedder.profile()
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> models::Result<Vec<Vec<f32>>> {
        let gate = (1..=2).find(|gate| texts.iter().any(|text| text.contains(&format!("gate {gate}"))));
        self.open.clone().wait_for(|open| *open >= gate.unwrap_or(0)).await.unwrap();
        self.embedder.embed(kind, texts).await
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.embedder.letters_per_piece(text)
    }
}

async fn submit<S: App>(api: &Api<S>, token: &str, body: Value) -> String {
    let accepted = api.post("/api/v1/documents", token, body).await.data();
    accepted["task_id"].as_str().unwrap().to_owned()
}

async fn create_space<S: App>(api: &Api<S>, admin: &str, space: &str, member: &str) {
    let body = json!({ "space": space });
    assert_eq!(api.post("/api/v1/spaces", admin, body).await.status.as_u16(), 201);
    let path = format!("/api/v1/spaces/{space}/members/user:{member}");
    let role = Some(json!({ "role": "writer" }));
    assert!(api.call(Method::PUT, &path, admin, role).await.status.is_success());
}

#[actix_web::test]
async fn watched_tasks_are_shown_from_pending_to_their_end() {
    let (gate, open) = watch::channel(0);
    let embedder = GatedEmbedder { embedder: MemoryEmbedder::new(), open };
    let api = api_with(TestOptions {
        embedder: Some(Arc::new(embedder)),
        ingest: IngestOptions { workers: 1, ..IngestOptions::default() },
        ..TestOptions::default()
    })
    .await;
    let admin = api.admin().await;
    let mut early = Watched::open(&api, "", &admin).await;
    let first = submit(&api, &admin, json!({ "text": "Basalt at gate 1." })).await;
    early.until(&first, "running").await;
    // The only worker is busy, so the next task waits.
    let second = submit(&api, &admin, json!({ "text": "Marble at gate 2." })).await;
    early.until(&second, "pending").await;
    // A later watcher gets the unfinished tasks first.
    let mut late = Watched::open(&api, "", &admin).await;
    late.until(&first, "running").await;
    gate.send_replace(1);
    for watched in [&mut early, &mut late] {
        watched.until(&second, "running").await;
    }
    gate.send_replace(2);
    for watched in [&mut early, &mut late] {
        let (task, before) = watched.until(&second, "done").await;
        assert!(before.iter().all(|status| status == "running"), "{before:?}");
        let path = format!("/api/v1/documents/tasks/{second}");
        assert_eq!(task, api.call(Method::GET, &path, &admin, None).await.data());
    }
    // Nothing is unfinished, and what ended long ago is not shown.
    assert_eq!(early.settled().await, Vec::<Value>::new());
}

#[actix_web::test]
async fn cancelled_failed_and_retried_tasks_are_shown() {
    let api = api().await;
    let admin = api.admin().await;
    let mut watched = Watched::open(&api, "", &admin).await;
    api.faults.set("queue", "push", true);
    let task_id = submit(&api, &admin, json!({ "text": "Basalt." })).await;
    watched.until(&task_id, "pending").await;
    let path = format!("/api/v1/documents/tasks/{task_id}");
    api.call(Method::POST, &format!("{path}/cancel"), &admin, None).await.data();
    let (task, _) = watched.until(&task_id, "failed").await;
    assert_eq!(task["error"]["code"], 1003);
    api.faults.clear();
    api.faults.set("vectors", "upsert", false);
    let task_id = submit(&api, &admin, json!({ "text": "Marble." })).await;
    watched.until(&task_id, "failed").await;
    api.faults.clear();
    let path = format!("/api/v1/documents/tasks/{task_id}/retry");
    api.call(Method::POST, &path, &admin, None).await.data();
    watched.until(&task_id, "done").await;
}

#[actix_web::test]
async fn watcher_sees_only_the_tasks_that_it_may_read() {
    let api = api().await;
    let admin = api.admin().await;
    let (eva, max) = (api.user("eva").await, api.user("max").await);
    create_space(&api, &admin, "legal", "eva").await;
    create_space(&api, &admin, "sales", "max").await;
    let mut watchers = Vec::new();
    for (name, query, token) in [
        ("eva", "", &eva),
        ("max", "", &max),
        ("anybody", "", &String::new()),
        ("admin", "", &admin),
        ("eva in legal", "?space=legal", &eva),
        ("admin in sales", "?space=sales", &admin),
    ] {
        watchers.push((name, Watched::open(&api, query, token).await));
    }
    let mut ids = Vec::new();
    for (token, space) in [(&eva, "legal"), (&max, "sales"), (&admin, "default")] {
        let task_id = submit(&api, token, json!({ "text": format!("In {space}."), "space": space })).await;
        api.ended(&admin, &task_id).await;
        ids.push(task_id);
    }
    for (name, watched) in &mut watchers {
        let tasks = watched.settled().await;
        let mut spaces: Vec<_> = tasks.iter().map(|task| task["space"].as_str().unwrap()).collect();
        spaces.sort_unstable();
        spaces.dedup();
        let expected: &[&str] = match *name {
            "eva" => &["default", "legal"],
            "max" => &["default", "sales"],
            "anybody" => &["default"],
            "admin" => &["default", "legal", "sales"],
            "eva in legal" => &["legal"],
            _ => &["sales"],
        };
        assert_eq!(spaces, expected, "{name}");
        let last = tasks.last().unwrap();
        assert_eq!(last["status"], "done", "{name}: {last}");
        assert!(tasks.iter().all(|task| ids.iter().any(|id| task["task_id"] == id.as_str())), "{name}");
    }
    for (query, code, status) in
        [("?space=sales", 1004, 404), ("?space=nope", 1004, 404), ("?more=1", 1001, 400)]
    {
        api.call(Method::GET, &format!("{EVENTS}{query}"), &eva, None).await.expect_error(code, status);
    }
}

#[actix_web::test]
async fn lost_membership_stops_the_events_of_the_space() {
    let api = api().await;
    let admin = api.admin().await;
    let eva = api.user("eva").await;
    create_space(&api, &admin, "legal", "eva").await;
    let mut all = Watched::open(&api, "", &eva).await;
    let mut named = Watched::open(&api, "?space=legal", &eva).await;
    let in_legal = |text: &str| json!({ "text": text, "space": "legal" });
    let task_id = submit(&api, &admin, in_legal("Basalt.")).await;
    all.until(&task_id, "done").await;
    named.until(&task_id, "done").await;
    let path = "/api/v1/spaces/legal/members/user:eva";
    assert!(api.call(Method::DELETE, path, &admin, None).await.status.is_success());
    let hidden = submit(&api, &admin, in_legal("Marble.")).await;
    let shown = submit(&api, &admin, json!({ "text": "Opal." })).await;
    while let Some(task) = all.next().await {
        assert_ne!(task["task_id"], hidden.as_str());
        if task["task_id"] == shown.as_str() && task["status"] == "done" {
            break;
        }
    }
    assert_eq!(named.next().await, None, "the stream of a space ends with the right to read it");
}

#[actix_web::test]
async fn stream_of_all_tasks_ends_with_its_account() {
    let api = api().await;
    let admin = api.admin().await;
    let token = api.user("eva").await;
    let mut watched = Watched::open(&api, "", &token).await;
    assert!(api.call(Method::DELETE, "/api/v1/users/eva", &admin, None).await.status.is_success());
    let started = Instant::now();
    assert_eq!(watched.next().await, None);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[actix_web::test]
async fn idle_stream_is_kept_alive() {
    let api = api().await;
    let admin = api.admin().await;
    let mut watched = Watched::open(&api, "", &admin).await.stream;
    assert_eq!(watched.next().await.unwrap().unwrap(), ":\n\n", "the client learns that it is connected");
    tokio::time::pause();
    for _ in 0..3 {
        let started = Instant::now();
        assert_eq!(watched.next().await.unwrap().unwrap(), ":\n\n");
        assert!(started.elapsed() <= Duration::from_secs(15), "{:?}", started.elapsed());
    }
}

#[actix_web::test]
async fn stream_ends_if_changes_may_have_been_missed() {
    let api = api().await;
    let admin = api.admin().await;
    let mut watched = Watched::open(&api, "", &admin).await;
    api.faults.set("state", "scan", true);
    tokio::time::pause();
    assert_eq!(watched.next().await, None);
    tokio::time::resume();
    api.faults.clear();
    let mut again = Watched::open(&api, "", &admin).await;
    let task_id = submit(&api, &admin, json!({ "text": "Basalt." })).await;
    again.until(&task_id, "done").await;
}

#[actix_web::test]
async fn many_watchers_read_the_changes_once() {
    let scans = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&scans);
    let state = FailingState::new(Arc::new(MemoryState::new()), move |operation| {
        counted.fetch_add(usize::from(operation == "scan"), Ordering::Relaxed);
        None
    });
    let stores = TestStores { state: Arc::new(state), ..TestStores::default() };
    let api = api_with(TestOptions { stores: Some(stores), ..TestOptions::default() }).await;
    let admin = api.admin().await;
    let count = async || {
        let before = scans.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(2)).await;
        scans.load(Ordering::Relaxed) - before
    };
    let without = count().await;
    let mut watchers = vec![Watched::open(&api, "", &admin).await];
    let with_one = count().await;
    for _ in 0..80 {
        watchers.push(Watched::open(&api, "", &admin).await);
    }
    let with_many = count().await;
    assert!(with_one > without, "{without} {with_one}");
    assert!(with_many <= with_one + 3, "{with_one} scans with one watcher, {with_many} with 81");
    let task_id = submit(&api, &admin, json!({ "text": "Basalt." })).await;
    for watched in &mut watchers {
        watched.until(&task_id, "done").await;
    }
    drop(watchers);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(count().await <= without + 1, "without watchers nobody reads the changes");
}

#[actix_web::test]
async fn streams_of_all_tasks_share_the_quota_of_event_streams() {
    let api = api().await;
    let mut open = Vec::new();
    let refusal = loop {
        let response = api.open(EVENTS, "", "192.0.2.1").await;
        if !response.status().is_success() {
            break TestResponse::of(response).await.expect_error(1010, 503);
        }
        open.push(stream(response));
        assert!(open.len() <= 1_000);
    };
    assert_eq!((refusal.as_str(), open.len()), ("too many clients watch tasks", 50));
    open.pop();
    assert!(api.open(EVENTS, "", "192.0.2.1").await.status().is_success());
}

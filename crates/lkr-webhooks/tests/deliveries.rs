//! Webhooks on a store in memory, with receivers that are real servers on this machine.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use lkr_catalog::Outbox;
use lkr_domain::{DocId, EventId, WebhookId};
use lkr_outgoing::{Outgoing, Policy};
use lkr_sealing::{SealingKey, Secret};
use lkr_state::{Error, Expect, Key, MemoryState, Record, ScanOrder, StateStore, Write};
use lkr_webhooks::{
    Deliverer, DeliveryOptions, DeliveryOutcome, ErrorKind, EventKind, EventOutbox, MOST_HOOKS, NewWebhook,
    Parts, Webhook, Webhooks, signature,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::Semaphore,
};

/// How long what is waited for may take.
const PATIENCE: Duration = Duration::from_secs(60);

const SECRET: &str = "a secret of the test's";

const OK: &str = "HTTP/1.1 204 No Content\r\n\r\n";
const BROKEN: &str = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";

/// What a receiver got.
#[derive(Debug, Clone)]
struct Got {
    head: String,
    body: String,
}

impl Got {
    fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| line.split_once(": ").filter(|(key, _)| *key == name));
        line.unwrap_or_else(|| panic!("no {name} in {}", self.head)).1
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn doc_id(&self) -> String {
        self.json()["data"]["doc_id"].as_str().unwrap().to_owned()
    }
}

/// A receiver. It answers what `answer` says, which is asked with how many deliveries came before; nothing where that
/// is empty.
#[derive(Debug, Clone)]
struct Receiver {
    url: String,
    got: Arc<Mutex<Vec<Got>>>,
    arrived: Arc<Semaphore>,
}

impl Receiver {
    async fn start(answer: impl Fn(usize) -> &'static str + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let receiver = Self { url, got: Arc::default(), arrived: Arc::new(Semaphore::new(0)) };
        let (serving, answer) = (receiver.clone(), Arc::new(answer));
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (serving, answer) = (serving.clone(), Arc::clone(&answer));
                tokio::spawn(async move {
                    let Some(got) = read(&mut stream).await else { return };
                    let text = {
                        let mut all = serving.got.lock().unwrap();
                        all.push(got);
                        answer(all.len() - 1)
                    };
                    serving.arrived.add_permits(1);
                    let _ = stream.write_all(text.as_bytes()).await;
                    if text.is_empty() {
                        while stream.read(&mut [0; 64]).await.unwrap_or(0) > 0 {}
                    }
                });
            }
        });
        receiver
    }

    /// Waits for `count` more deliveries, and answers all that came.
    async fn wait(&self, count: u32) -> Vec<Got> {
        let arrived = tokio::time::timeout(PATIENCE, self.arrived.acquire_many(count)).await;
        arrived.expect("it arrives").unwrap().forget();
        self.got()
    }

    fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }
}

/// Waits until something holds.
async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let held = tokio::time::timeout(PATIENCE, async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    held.await.expect("it comes to hold");
}

async fn read(stream: &mut tokio::net::TcpStream) -> Option<Got> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_lowercase();
        let length = head.split_once("content-length: ")?.1.lines().next()?.parse::<usize>().ok()?;
        if body.len() >= length {
            return Some(Got { head, body: body.to_owned() });
        }
    }
}

/// Webhooks over a store.
struct Ground {
    state: Arc<dyn StateStore>,
    outbox: EventOutbox,
    webhooks: Webhooks,
    outcomes: Arc<Mutex<Vec<DeliveryOutcome>>>,
    sealing: SealingKey,
}

fn quick() -> DeliveryOptions {
    DeliveryOptions {
        first_wait: Duration::from_millis(1),
        look: Duration::from_millis(2),
        lease: Duration::from_secs(3600),
        ..DeliveryOptions::default()
    }
}

impl Ground {
    async fn new() -> Self {
        Self::with(quick()).await
    }

    async fn with(options: DeliveryOptions) -> Self {
        Self::over(Arc::new(MemoryState::new()), SealingKey::generate(), options).await
    }

    async fn over(state: Arc<dyn StateStore>, sealing: SealingKey, options: DeliveryOptions) -> Self {
        Self::with_outbox(EventOutbox::new(|_| Value::Null), state, sealing, options).await
    }

    async fn with_outbox(
        outbox: EventOutbox,
        state: Arc<dyn StateStore>,
        sealing: SealingKey,
        options: DeliveryOptions,
    ) -> Self {
        let outcomes: Arc<Mutex<Vec<DeliveryOutcome>>> = Arc::default();
        let seen = Arc::clone(&outcomes);
        let parts = Parts {
            state: Arc::clone(&state),
            sealing: sealing.clone(),
            outgoing: Outgoing::new(Policy::any()).unwrap(),
            outbox: outbox.clone(),
            options,
            observe: Arc::new(move |outcome| seen.lock().unwrap().push(outcome)),
        };
        let webhooks = Webhooks::open(parts).await.unwrap();
        Self { state, outbox, webhooks, outcomes, sealing }
    }

    /// The same store, as another process would find it.
    async fn again(&self, options: DeliveryOptions) -> Self {
        Self::over(Arc::clone(&self.state), self.sealing.clone(), options).await
    }

    async fn hook(&self, url: &str) -> Webhook {
        self.webhooks.create(new_hook(url), vec![]).await.unwrap()
    }

    /// Something happens.
    async fn happen(&self) -> DocId {
        let doc_id = DocId::new();
        self.state.apply(self.outbox.document_deleted(doc_id)).await.unwrap();
        doc_id
    }

    async fn stored(&self, prefix: &str) -> usize {
        self.state.scan(prefix, None, ScanOrder::Ascending, 100_000).await.unwrap().len()
    }

    /// Waits until nothing is left to be done.
    async fn settled(&self) {
        until(async || self.stored("webhook/event/").await + self.stored("webhook/delivery/").await == 0)
            .await;
    }

    /// Waits for that many outcomes of a kind.
    async fn outcomes(&self, outcome: DeliveryOutcome, count: usize) {
        let seen = || self.outcomes.lock().unwrap().iter().filter(|seen| **seen == outcome).count();
        until(async || seen() >= count).await;
    }

    fn start(&self) -> Deliverer {
        self.webhooks.start()
    }
}

fn new_hook(url: &str) -> NewWebhook {
    NewWebhook {
        id: WebhookId::new(),
        url: url.to_owned(),
        secret: Secret::new(SECRET),
        events: vec![EventKind::DocumentDeleted],
        created_by: "admin".to_owned(),
    }
}

#[tokio::test]
async fn lesson_14_what_happens_is_delivered_and_signed() {
    let (ground, receiver) = (Ground::new().await, Receiver::start(|_| OK).await);
    ground.hook(&receiver.url).await;
    let _deliverer = ground.start();
    let doc_id = ground.happen().await;
    let got = receiver.wait(1).await.remove(0);
    assert!(got.head.starts_with("post /hook http/1.1"), "{}", got.head);
    assert_eq!(got.header("content-type"), "application/json");
    let json = got.json();
    assert_eq!(json["event"], "document.deleted");
    assert_eq!(json["data"], json!({ "doc_id": doc_id }));
    assert!(json["at"].as_str().unwrap().ends_with('Z'));
    let signed = got.header("x-lkr-signature");
    let seconds = signed.strip_prefix("t=").unwrap().split_once(',').unwrap().0.parse().unwrap();
    assert_eq!(signed, signature(SECRET, seconds, &got.body));
    assert_eq!(got.header("x-lkr-delivery").len(), 32);
    ground.settled().await;
    ground.outcomes(DeliveryOutcome::Delivered, 1).await;
}

#[tokio::test]
async fn nothing_is_written_that_nobody_wants_to_hear() {
    let ground = Ground::new().await;
    let unknown = EventOutbox::new(|_| Value::Null);
    assert_eq!(unknown.document_deleted(DocId::new()).len(), 1, "before anybody has looked, all is");
    assert_eq!(ground.outbox.document_deleted(DocId::new()), []);
    let tasks = NewWebhook { events: vec![EventKind::TaskDone], ..new_hook("http://127.0.0.1:9/") };
    let tasks = ground.webhooks.create(tasks, vec![]).await.unwrap();
    assert_eq!(ground.outbox.document_deleted(DocId::new()), []);
    let all = ground.hook("http://127.0.0.1:9/").await;
    assert_eq!(ground.outbox.document_deleted(DocId::new()).len(), 1);
    for hook in [all, tasks] {
        ground.webhooks.delete(hook.id, vec![]).await.unwrap();
    }
    assert_eq!(ground.outbox.document_deleted(DocId::new()), []);
    assert_eq!(ground.outbox.clone().shared().document_deleted(DocId::new()).len(), 1);
    let again = ground.again(quick()).await;
    assert_eq!(again.outbox.document_deleted(DocId::new()), [], "it is known after a start too");
}

/// Events go on while webhooks are made and deleted: what happened after a webhook was made is told to it.
#[tokio::test(flavor = "multi_thread")]
async fn lesson_14_a_new_webhook_hears_all_that_happens_from_then_on() {
    let (ground, receiver) = (Arc::new(Ground::new().await), Receiver::start(|_| OK).await);
    let _deliverer = ground.start();
    let noise = {
        let ground = Arc::clone(&ground);
        tokio::spawn(async move {
            loop {
                let hook = ground.hook("http://127.0.0.1:9/").await;
                ground.webhooks.delete(hook.id, vec![]).await.unwrap();
                ground.happen().await;
                tokio::task::yield_now().await;
            }
        })
    };
    for _ in 0..20 {
        let hook = ground.hook(&receiver.url).await;
        let told = ground.happen().await.to_string();
        until(async || receiver.got().iter().any(|got| got.doc_id() == told)).await;
        ground.webhooks.delete(hook.id, vec![]).await.unwrap();
    }
    noise.abort();
}

#[tokio::test]
async fn what_fails_is_tried_again_and_is_the_same_delivery() {
    let redirect = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n";
    let answers = move |n| [BROKEN, redirect, "nonsense", OK].into_iter().nth(n).unwrap_or(OK);
    let (ground, receiver) = (Ground::new().await, Receiver::start(answers).await);
    ground.hook(&receiver.url).await;
    let _deliverer = ground.start();
    ground.happen().await;
    let got = receiver.wait(4).await;
    for try_ in &got {
        assert_eq!(try_.body, got[0].body);
        assert_eq!(try_.header("x-lkr-delivery"), got[0].header("x-lkr-delivery"));
    }
    ground.settled().await;
    ground.outcomes(DeliveryOutcome::Delivered, 1).await;
    assert_eq!(
        *ground.outcomes.lock().unwrap(),
        [vec![DeliveryOutcome::Retried; 3], vec![DeliveryOutcome::Delivered]].concat()
    );
    assert_eq!(receiver.got().len(), 4);
}

#[tokio::test]
async fn retry_after_is_honoured() {
    let later = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n";
    let (ground, receiver) = (Ground::new().await, Receiver::start(move |_| later).await);
    let hook = ground.hook(&receiver.url).await;
    let _deliverer = ground.start();
    ground.happen().await;
    receiver.wait(1).await;
    ground.outcomes(DeliveryOutcome::Retried, 1).await;
    let prefix = format!("webhook/delivery/{}/", hook.id);
    let (key, _) = ground.state.scan(&prefix, None, ScanOrder::Ascending, 2).await.unwrap().remove(0);
    let due: u128 = key.strip_prefix(&prefix).unwrap().split('/').next().unwrap().parse().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    assert!(due > now + 3_500_000 && due < now + 3_700_000, "{due} {now}");
}

#[tokio::test]
async fn lesson_14_a_receiver_that_says_it_is_gone_is_asked_again() {
    let gone = "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n";
    let answer = move |n| if n < 2 { gone } else { OK };
    let (ground, receiver) = (Ground::new().await, Receiver::start(answer).await);
    ground.hook(&receiver.url).await;
    let _deliverer = ground.start();
    ground.happen().await;
    ground.settled().await;
    ground.outcomes(DeliveryOutcome::Delivered, 1).await;
    assert_eq!(receiver.got().len(), 3);
}

#[tokio::test]
async fn a_receiver_that_hangs_holds_nobody_up() {
    let (hanging, well) = (Receiver::start(|_| "").await, Receiver::start(|_| OK).await);
    let ground = Ground::new().await;
    ground.hook(&hanging.url).await;
    ground.hook(&well.url).await;
    let deliverer = ground.start();
    for _ in 0..20 {
        ground.happen().await;
    }
    assert_eq!(well.wait(20).await.len(), 20);
    hanging.wait(4).await;
    assert_eq!(hanging.got().len(), 4, "no more at once than are allowed");
    deliverer.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn what_waits_for_a_deleted_webhook_goes() {
    let (hanging, well) = (Receiver::start(|_| "").await, Receiver::start(|_| OK).await);
    let ground = Ground::new().await;
    let hook = ground.hook(&hanging.url).await;
    let deliverer = ground.start();
    for _ in 0..10 {
        ground.happen().await;
    }
    hanging.wait(4).await;
    ground.webhooks.delete(hook.id, vec![]).await.unwrap();
    ground.settled().await;
    let refused = ground.webhooks.delete(hook.id, vec![]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    ground.hook(&well.url).await;
    let doc_id = ground.happen().await;
    assert_eq!(well.wait(1).await[0].doc_id(), doc_id.to_string());
    assert_eq!(hanging.got().len(), 4);
    deliverer.shutdown(Duration::ZERO).await;
}

/// The process ends in between: before anything was put down, while a try is under way, and while one waits.
#[tokio::test]
async fn what_was_left_is_delivered_after_a_start() {
    let receiver = Receiver::start(|n| if n < 4 { "" } else { OK }).await;
    let ground = Ground::new().await;
    ground.hook(&receiver.url).await;
    let deliverer = ground.start();
    let mut told = Vec::new();
    for _ in 0..8 {
        told.push(ground.happen().await.to_string());
    }
    receiver.wait(4).await;
    drop(deliverer);
    told.push(ground.happen().await.to_string());
    let after = ground.again(quick()).await;
    let _deliverer = after.start();
    after.settled().await;
    let got: Vec<_> = receiver.got().iter().skip(4).map(Got::doc_id).collect();
    for doc_id in &told {
        assert_eq!(got.iter().filter(|got| *got == doc_id).count(), 1, "{doc_id}");
    }
}

#[tokio::test]
async fn deliveries_of_webhooks_that_went_unseen_are_swept() {
    let ground = Ground::new().await;
    let of_nobody = format!("webhook/delivery/{}/000000000000001/{}", WebhookId::new(), WebhookId::new());
    let torn = Write::put("webhook/event/torn", lkr_state::Expect::Absent, "torn");
    let put = Write::put(of_nobody, lkr_state::Expect::Absent, "whatever");
    ground.state.apply(vec![put, torn]).await.unwrap();
    let _deliverer = ground.start();
    ground.settled().await;
}

#[tokio::test]
async fn what_cannot_be_read_holds_nothing_up() {
    let (ground, receiver) = (Ground::new().await, Receiver::start(|_| OK).await);
    let hook = ground.hook(&receiver.url).await;
    let key = format!("webhook/delivery/{}/000000000000001/{}", hook.id, WebhookId::new());
    let torn = Write::put(key, lkr_state::Expect::Absent, "torn");
    ground.state.apply(vec![torn]).await.unwrap();
    let doc_id = ground.happen().await;
    let _deliverer = ground.start();
    assert_eq!(receiver.wait(1).await[0].doc_id(), doc_id.to_string());
    ground.settled().await;
}

#[tokio::test]
async fn what_waits_is_bounded_and_the_first_stay() {
    let ground = Ground::with(DeliveryOptions { most_waiting: 5, ..quick() }).await;
    let receiver = Receiver::start(|n| if n < 4 { "" } else { OK }).await;
    ground.hook(&receiver.url).await;
    let mut told = Vec::new();
    for _ in 0..7 {
        told.push(ground.happen().await.to_string());
    }
    let deliverer = ground.start();
    ground.outcomes(DeliveryOutcome::Dropped, 2).await;
    assert_eq!(ground.stored("webhook/delivery/").await, 5);
    drop(deliverer);
    let after = ground.again(quick()).await;
    let _deliverer = after.start();
    after.settled().await;
    let got: Vec<_> = receiver.got().iter().map(Got::doc_id).collect();
    assert!(told[..5].iter().all(|doc_id| got.contains(doc_id)), "{got:?}");
    assert!(!told[5..].iter().any(|doc_id| got.contains(doc_id)), "{got:?}");
}

#[tokio::test]
async fn a_day_is_enough() {
    let ground = Ground::with(DeliveryOptions { keep: Duration::from_millis(30), ..quick() }).await;
    let receiver = Receiver::start(|_| BROKEN).await;
    ground.hook(&receiver.url).await;
    let _deliverer = ground.start();
    ground.happen().await;
    ground.outcomes(DeliveryOutcome::Expired, 1).await;
    ground.settled().await;
    assert!(receiver.got().len() >= 2, "there is a last try at the end");
}

#[tokio::test]
async fn secrets_are_sealed_and_another_key_opens_none() {
    let (ground, receiver) = (Ground::new().await, Receiver::start(|_| OK).await);
    ground.hook(&receiver.url).await;
    let hooks = ground.state.scan("", None, ScanOrder::Ascending, 10).await.unwrap();
    assert!(hooks.iter().all(|(_, record)| !String::from_utf8_lossy(&record.value).contains(SECRET)));
    let other = Ground::over(Arc::clone(&ground.state), SealingKey::generate(), quick()).await;
    let deliverer = other.start();
    other.happen().await;
    other.outcomes(DeliveryOutcome::Retried, 1).await;
    deliverer.shutdown(Duration::from_secs(5)).await;
    assert_eq!(receiver.got().len(), 0, "nothing is sent unsigned");
    let _deliverer = ground.start();
    receiver.wait(1).await;
}

#[tokio::test]
async fn what_cannot_be_a_webhook() {
    let ground = Ground::new().await;
    let good = new_hook("http://127.0.0.1:9/");
    let secret = |text: String| NewWebhook { secret: text.into(), ..good.clone() };
    for (new, said) in [
        (new_hook("http://169.254.169.254/x"), "url has the host 169.254.169.254"),
        (new_hook("ftp://a.example/"), "url begins with ftp:"),
        (new_hook("http://u:planted@a.example/"), "url has a user"),
        (new_hook("nonsense"), "url is not an address"),
        (new_hook(&format!("http://a.example/{}", "x".repeat(2048))), "url has 2065 characters"),
        (secret(String::new()), "secret"),
        (secret("  ".to_owned()), "secret"),
        (secret("planted\n".to_owned()), "secret"),
        (secret("planted".repeat(40)), "secret"),
        (NewWebhook { events: vec![], ..good.clone() }, "events is empty"),
    ] {
        let error = ground.webhooks.create(new, vec![]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.reason().starts_with(said) && !error.reason().contains("planted"), "{error}");
    }
    assert_eq!(ground.stored("").await, 0);
    let twice = NewWebhook { events: vec![EventKind::TaskDone, EventKind::TaskDone], ..good };
    assert_eq!(ground.webhooks.create(twice, vec![]).await.unwrap().events, [EventKind::TaskDone]);
    for _ in 1..MOST_HOOKS {
        ground.hook("http://127.0.0.1:9/").await;
    }
    let error = ground.webhooks.create(new_hook("http://127.0.0.1:9/"), vec![]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooMany);
    let listed = ground.webhooks.list().await.unwrap();
    assert!(listed.len() == MOST_HOOKS && listed.is_sorted_by(|a, b| a.id > b.id), "the newest first");
}

/// Several processes at one store: each delivery is one's, and a webhook that one made is known to the others' outboxes.
#[tokio::test(flavor = "multi_thread")]
async fn of_several_processes_one_delivers() {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::new());
    let (sealing, receiver) = (SealingKey::generate(), Receiver::start(|_| OK).await);
    let mut processes = Vec::new();
    for _ in 0..3 {
        let outbox = EventOutbox::new(|_| Value::Null).shared();
        processes.push(Ground::with_outbox(outbox, Arc::clone(&state), sealing.clone(), quick()).await);
    }
    let _deliverers: Vec<_> = processes.iter().map(Ground::start).collect();
    processes[0].hook(&receiver.url).await;
    let mut told = Vec::new();
    for n in 0..60 {
        told.push(processes[n % 3].happen().await.to_string());
    }
    processes[0].settled().await;
    let mut got: Vec<_> = receiver.got().iter().map(Got::doc_id).collect();
    got.sort_unstable();
    told.sort_unstable();
    assert_eq!(got, told);
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis().try_into().unwrap()
}

const YEAR_MS: u64 = 365 * 24 * 60 * 60 * 1000;

/// A body of some document's end, and the document.
fn told() -> (String, String) {
    let doc_id = DocId::new().to_string();
    (json!({ "event": "document.deleted", "data": { "doc_id": doc_id } }).to_string(), doc_id)
}

/// Puts a delivery into a store, and answers its key.
async fn put_delivery(state: &dyn StateStore, hook: &Webhook, due_ms: u64, at_ms: u64, body: &str) -> Key {
    let key = format!("webhook/delivery/{}/{due_ms:015}/{}", hook.id, EventId::new());
    let record = json!({ "v": "1", "at_ms": at_ms, "attempts": 0, "taken": false, "body": body });
    state.apply(vec![Write::put(&key, Expect::Absent, record.to_string())]).await.unwrap();
    key
}

/// What was put off while the clock ran a year ahead does not wait for a year; what is put off by a receiver does wait.
#[tokio::test]
async fn lesson_14_a_clock_that_ran_ahead_keeps_nothing_waiting() {
    let (ground, receiver) = (Ground::new().await, Receiver::start(|_| OK).await);
    let hook = ground.hook(&receiver.url).await;
    let (body, doc_id) = told();
    let ahead = now_ms() + YEAR_MS;
    put_delivery(&*ground.state, &hook, ahead, ahead, &body).await;
    let tomorrow = now_ms() + YEAR_MS / 366;
    let waits = put_delivery(&*ground.state, &hook, tomorrow, now_ms(), "waits").await;
    let _deliverer = ground.start();
    assert_eq!(receiver.wait(1).await[0].doc_id(), doc_id);
    ground.outcomes(DeliveryOutcome::Delivered, 1).await;
    let left = ground.state.scan("webhook/delivery/", None, ScanOrder::Ascending, 10).await.unwrap();
    assert_eq!(left.iter().map(|(key, _)| key).collect::<Vec<_>>(), [&waits]);
}

#[tokio::test]
async fn lesson_14_what_happened_in_the_future_does_not_live_for_ever() {
    let ground = Ground::with(DeliveryOptions { keep: Duration::from_millis(30), ..quick() }).await;
    let receiver = Receiver::start(|_| BROKEN).await;
    ground.hook(&receiver.url).await;
    let (body, _) = told();
    let event = json!({ "v": "1", "kind": "document.deleted", "at_ms": now_ms() + YEAR_MS, "body": body });
    let key = format!("webhook/event/{}", EventId::new());
    ground.state.apply(vec![Write::put(key, Expect::Absent, event.to_string())]).await.unwrap();
    let _deliverer = ground.start();
    ground.outcomes(DeliveryOutcome::Expired, 1).await;
    ground.settled().await;
}

/// Whether something is due is looked up where it is stored: no count of what waits says that there is nothing.
#[tokio::test]
async fn what_is_due_is_seen_whatever_was_counted() {
    let (ground, receiver) = (Ground::new().await, Receiver::start(|_| OK).await);
    let hook = ground.hook(&receiver.url).await;
    let _deliverer = ground.start();
    ground.happen().await;
    ground.outcomes(DeliveryOutcome::Delivered, 1).await;
    let (body, doc_id) = told();
    put_delivery(&*ground.state, &hook, now_ms(), now_ms(), &body).await;
    let got = tokio::time::timeout(Duration::from_secs(20), receiver.wait(2)).await.unwrap();
    assert_eq!(got[1].doc_id(), doc_id);
}

/// Over a start too, the bytes of what waits are bounded, and not its number alone.
#[tokio::test]
async fn lesson_14_the_bytes_of_what_waits_are_bounded() {
    let options = DeliveryOptions { most_waiting_bytes: 1000, ..quick() };
    let ground = Ground::with(options.clone()).await;
    let receiver = Receiver::start(|_| "").await;
    let hook = ground.hook(&receiver.url).await;
    put_delivery(&*ground.state, &hook, now_ms(), now_ms(), &"x".repeat(300)).await;
    let deliverer = ground.start();
    for _ in 0..10 {
        ground.happen().await;
    }
    until(async || ground.stored("webhook/event/").await == 0).await;
    drop(deliverer);
    let waiting =
        |stored: Vec<(Key, Record)>| stored.iter().map(|(_, record)| record.value.len()).sum::<usize>();
    let all = ground.state.scan("webhook/delivery/", None, ScanOrder::Ascending, 100).await.unwrap();
    let count = all.len();
    assert!(count > 1 && count < 10, "{count}");
    let bytes = waiting(all);
    assert!((600..1050).contains(&bytes), "{bytes}");
    let after = ground.again(options).await;
    let _deliverer = after.start();
    for _ in 0..5 {
        after.happen().await;
    }
    after.outcomes(DeliveryOutcome::Dropped, 5).await;
    assert_eq!(after.stored("webhook/delivery/").await, count);
}

/// A store in which records of some keys are damaged: nothing is done that would read one.
#[derive(Debug)]
struct Damaged {
    inner: MemoryState,
    keys: Mutex<Vec<Key>>,
}

impl Damaged {
    fn new() -> Arc<Self> {
        Arc::new(Self { inner: MemoryState::new(), keys: Mutex::default() })
    }

    fn damage(&self, key: Key) {
        self.keys.lock().unwrap().push(key);
    }

    fn check<'k>(&self, mut keys: impl Iterator<Item = &'k Key>) -> lkr_state::Result<()> {
        let damaged = self.keys.lock().unwrap();
        match keys.find(|key| damaged.contains(key)) {
            Some(_) => Err(Error::new(lkr_state::ErrorKind::Corrupt, "read", "some record is damaged")),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl StateStore for Damaged {
    async fn get_many(&self, keys: &[Key]) -> lkr_state::Result<Vec<Option<Record>>> {
        self.check(keys.iter())?;
        self.inner.get_many(keys).await
    }

    async fn apply(&self, writes: Vec<Write>) -> lkr_state::Result<()> {
        self.check(writes.iter().map(|write| &write.key))?;
        self.inner.apply(writes).await
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> lkr_state::Result<Vec<(Key, Record)>> {
        let found = self.inner.scan(prefix, after, order, limit).await?;
        self.check(found.iter().map(|(key, _)| key))?;
        Ok(found)
    }

    async fn snapshot(&self, to: &Path) -> lkr_state::Result<()> {
        self.inner.snapshot(to).await
    }

    async fn health(&self) -> lkr_state::Result<()> {
        self.inner.health().await
    }
}

#[tokio::test]
async fn lesson_14_a_damaged_record_holds_nothing_up() {
    let (state, receiver) = (Damaged::new(), Receiver::start(|_| OK).await);
    let sealing = SealingKey::generate();
    let ground = Ground::over(Arc::clone(&state) as Arc<dyn StateStore>, sealing, quick()).await;
    let hook = ground.hook(&receiver.url).await;
    let mut expected = Vec::new();
    // Every other one is damaged, the first and two neighbours among them.
    for due in 1..=7 {
        let (body, doc_id) = told();
        let key = put_delivery(&*state, &hook, due, now_ms(), &body).await;
        if [1, 3, 4, 7].contains(&due) {
            state.damage(key);
        } else {
            expected.push(doc_id);
        }
    }
    for n in 0..6 {
        let key = format!("webhook/event/{}", EventId::new());
        state.apply(vec![Write::put(&key, Expect::Absent, "torn")]).await.unwrap();
        if n % 2 == 0 {
            state.damage(key);
        }
        expected.push(ground.happen().await.to_string());
    }
    let _deliverer = ground.start();
    ground.outcomes(DeliveryOutcome::Delivered, expected.len()).await;
    let later = ground.happen().await.to_string();
    expected.push(later);
    ground.outcomes(DeliveryOutcome::Delivered, expected.len()).await;
    let mut got: Vec<_> = receiver.got().iter().map(Got::doc_id).collect();
    got.sort_unstable();
    expected.sort_unstable();
    assert_eq!(got, expected);
    assert_eq!(state.inner.scan("webhook/", None, ScanOrder::Ascending, 100).await.unwrap().len(), 4 + 3 + 1);
    // Those that are left of a webhook that is no more are in nobody's way either.
    ground.webhooks.delete(hook.id, vec![]).await.unwrap();
    ground.hook(&receiver.url).await;
    ground.happen().await;
    ground.outcomes(DeliveryOutcome::Delivered, expected.len() + 1).await;
}

#[tokio::test]
async fn lesson_14_where_the_webhooks_are_damaged_they_are_off() {
    let (state, receiver) = (Damaged::new(), Receiver::start(|_| OK).await);
    let before =
        Ground::over(Arc::clone(&state) as Arc<dyn StateStore>, SealingKey::generate(), quick()).await;
    before.hook(&receiver.url).await;
    state.damage("webhook/hooks".to_owned());
    let ground = before.again(quick()).await;
    let deliverer = ground.start();
    assert_eq!(ground.outbox.document_deleted(DocId::new()), [], "nothing piles up that nobody takes away");
    assert_eq!(ground.webhooks.list().await.unwrap_err().kind(), ErrorKind::Corrupt);
    let refused = ground.webhooks.create(new_hook(&receiver.url), vec![]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    // They are on again where they can be read.
    state.keys.lock().unwrap().clear();
    assert_eq!(ground.webhooks.list().await.unwrap().len(), 1);
    let doc_id = ground.happen().await;
    assert_eq!(receiver.wait(1).await[0].doc_id(), doc_id.to_string());
    deliverer.shutdown(Duration::from_secs(5)).await;
}

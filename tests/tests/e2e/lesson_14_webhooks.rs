//! Webhooks for ended tasks and deleted documents.

use std::{collections::BTreeMap, thread, time::Duration};

use lkr_state::{Expect, StateStore, Write};
use lkr_tests::{Delivery, Server, WebhookReceiver};
use serde_json::{Value, json};

const EVENTS: [&str; 3] = ["task.done", "task.failed", "document.deleted"];

fn create_webhook(server: &Server, receiver: &WebhookReceiver, body: &Value) -> Value {
    let mut body = body.clone();
    body["url"] = receiver.url().into();
    let response = server.call("POST", "/webhooks", Some(&body), Some(server.admin()));
    assert_eq!(response.status, 201, "{}", response.json);
    response.data().clone()
}

fn is_about(event: &str, key: &str, id: &str) -> impl Fn(&Delivery) -> bool {
    let (event, key, id) = (event.to_owned(), key.to_owned(), id.to_owned());
    move |delivery| {
        let json = delivery.json();
        json["event"] == event && json["data"][&key] == id
    }
}

/// Waits for the delivery that reports the end of a task, checks it, and returns the task.
fn assert_task_delivered(
    server: &Server,
    receiver: &WebhookReceiver,
    event: &str,
    task_id: &str,
    secret: &str,
) -> Value {
    let delivery = receiver.wait_for(is_about(event, "task_id", task_id));
    assert!(delivery.is_signed_with(secret), "{delivery:?}");
    assert!(delivery.request.starts_with("POST /hook HTTP/1.1"), "{delivery:?}");
    assert_eq!(delivery.header("content-type"), "application/json");
    assert_eq!(delivery.header("x-lkr-delivery").len(), 32);
    let json = delivery.json();
    let keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["at", "data", "event"]);
    assert_eq!(json["data"], server.task(task_id), "the delivery equals the task");
    assert_eq!(json["at"], json["data"]["updated_at"]);
    json["data"].clone()
}

#[test]
fn lesson_14_every_task_end_is_delivered_and_signed() {
    let (server, receiver) = (Server::start(), WebhookReceiver::start());
    let created = create_webhook(&server, &receiver, &json!({"events": EVENTS}));
    let secret = created["secret"].as_str().unwrap().to_owned();
    let delivered = |event: &str, task: &Value| {
        let task_id = task["task_id"].as_str().unwrap();
        assert_task_delivered(&server, &receiver, event, task_id, &secret)
    };
    let first = server.submit(&json!({"text": "Kestrels circle above fields."}));
    let first = delivered("task.done", &first);
    assert_eq!(first["kind"], "ingest");
    let doc_id = first["doc_id"].as_str().unwrap().to_owned();
    let duplicate = server.submit(&json!({"text": "Kestrels circle above fields."}));
    assert_eq!(delivered("task.done", &duplicate)["result"]["duplicate_of"]["doc_id"], doc_id);
    let path = format!("/documents/{doc_id}");
    let body = json!({"text": "Kestrels hover above fields."});
    let replaced = server.call("PUT", &path, Some(&body), Some(server.admin()));
    assert_eq!(delivered("task.done", replaced.data())["kind"], "replace");
    let all = server.call("POST", "/knowledge/reclassify", None, Some(server.admin()));
    assert_eq!(delivered("task.done", all.data())["kind"], "reclassify");
    let sentence = |n: u64| format!("Kestrel {} circles above field {} at noon. ", n % 101, n % 89);
    let long: String = (0..60_000).map(sentence).collect();
    let cancelled = server.submit(&json!({"text": long}));
    let cancel = format!("/documents/tasks/{}/cancel", cancelled["task_id"].as_str().unwrap());
    assert_eq!(server.call("POST", &cancel, None, Some(server.admin())).status, 202);
    assert_eq!(delivered("task.failed", &cancelled)["error"]["message"], "cancelled");
    let blank = json!({"text": "  "});
    let rejected = server.call("POST", "/documents", Some(&blank), Some(server.admin()));
    assert_ne!(rejected.status, 202, "a rejected document creates no task and no event");
    assert_eq!(server.call("DELETE", &path, None, Some(server.admin())).status, 200);
    let deletion = receiver.wait_for(is_about("document.deleted", "doc_id", &doc_id));
    assert!(deletion.is_signed_with(&secret));
    assert_eq!(deletion.json()["data"], json!({"doc_id": doc_id}));
    let mut ids: Vec<_> =
        receiver.deliveries().iter().map(|d| d.header("x-lkr-delivery").to_owned()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), receiver.deliveries().len()), (6, 6), "each event is delivered once");
    // The metric counts a delivery when its end is recorded, which may be after its receipt.
    server.wait_until(|| {
        let metrics = server.try_call("GET", "/metrics", None, None).unwrap();
        let text = String::from_utf8(metrics.body).unwrap();
        text.contains("lkr_webhook_deliveries_total{outcome=\"delivered\"} 6").then_some(())
    });
}

/// Each webhook receives only its events, signed with its own secret.
#[test]
fn webhook_receives_only_its_events() {
    let (server, done, deleted) = (Server::start(), WebhookReceiver::start(), WebhookReceiver::start());
    let secret = "as it was sent, ä";
    create_webhook(&server, &done, &json!({"events": ["task.done"], "secret": secret}));
    create_webhook(&server, &deleted, &json!({"events": ["document.deleted"], "secret": "another"}));
    let doc_id = server.add(&json!({"text": "Kestrels circle."}));
    let path = format!("/documents/{doc_id}");
    assert_eq!(server.call("DELETE", &path, None, Some(server.admin())).status, 200);
    let delivery = deleted.wait_for(|_| true);
    assert!(delivery.is_signed_with("another") && !delivery.is_signed_with(secret));
    assert_eq!(delivery.json()["event"], "document.deleted");
    let delivery = done.wait_for(|_| true);
    assert!(delivery.is_signed_with(secret));
    assert_eq!((done.deliveries().len(), deleted.deliveries().len()), (1, 1));
}

#[test]
fn lesson_14_deliveries_are_retried_after_kill_9() {
    let (server, receiver) = (Server::start(), WebhookReceiver::start());
    receiver.set_response("500 Internal Server Error");
    let created = create_webhook(&server, &receiver, &json!({"events": ["task.done"]}));
    let secret = created["secret"].as_str().unwrap();
    let task_id = server.submit(&json!({"text": "Kestrels circle."}))["task_id"].as_str().unwrap().to_owned();
    let first = receiver.wait_for(|_| true);
    server.wait_until(|| (receiver.deliveries().len() >= 2).then_some(()));
    server.kill();
    // One delivery is pending when the process ends.
    receiver.set_response("");
    let before = receiver.deliveries().len();
    server.restart();
    server.wait_until(|| (receiver.deliveries().len() > before).then_some(()));
    server.kill();
    receiver.set_response("200 OK");
    let attempts = receiver.deliveries().len();
    server.restart();
    server.wait_until(|| (receiver.deliveries().len() > attempts).then_some(()));
    assert_task_delivered(&server, &receiver, "task.done", &task_id, secret);
    for delivery in receiver.deliveries() {
        assert_eq!(delivery.body, first.body);
        assert_eq!(delivery.header("x-lkr-delivery"), first.header("x-lkr-delivery"));
        assert!(delivery.is_signed_with(secret));
    }
    // A delivery that arrived is not sent again.
    let arrived = receiver.deliveries().len();
    server.stop();
    server.restart();
    let next = server.submit(&json!({"text": "Buzzards soar."}));
    assert_task_delivered(&server, &receiver, "task.done", next["task_id"].as_str().unwrap(), secret);
    assert_eq!(receiver.deliveries().len(), arrived + 1);
}

/// Kills at random moments: every end is reported, and nothing else.
#[test]
fn lesson_14_no_event_is_lost_by_kills() {
    let (server, receiver) = (Server::start(), WebhookReceiver::start());
    create_webhook(&server, &receiver, &json!({"events": EVENTS}));
    let mut accepted = Vec::new();
    for round in 0..6_u64 {
        for n in 0..15 {
            let text = format!("Kestrel {n} of round {round} circles above field {}.", n * 7 + round);
            accepted.push(server.submit(&json!({"text": text}))["task_id"].as_str().unwrap().to_owned());
        }
        thread::sleep(Duration::from_millis(40 * round));
        server.restart();
    }
    let mut tasks = BTreeMap::new();
    for task_id in &accepted {
        tasks.insert(task_id.clone(), server.wait_for_task(task_id));
    }
    for (task_id, task) in &tasks {
        let event = format!("task.{}", task["status"].as_str().unwrap());
        let delivery = receiver.wait_for(is_about(&event, "task_id", task_id));
        assert_eq!(&delivery.json()["data"], task);
    }
    for delivery in receiver.deliveries() {
        let data = delivery.json()["data"].clone();
        assert_eq!(
            tasks.get(data["task_id"].as_str().unwrap()),
            Some(&data),
            "a delivery reports a task that was never accepted"
        );
    }
}

#[test]
fn hanging_or_deleted_receiver_does_not_delay_others() {
    let (server, hanging, healthy) = (Server::start(), WebhookReceiver::start(), WebhookReceiver::start());
    hanging.set_response("");
    let slow = create_webhook(&server, &hanging, &json!({"events": ["task.done"]}));
    let _ = create_webhook(&server, &healthy, &json!({"events": ["task.done"]}));
    let mut last = String::new();
    for n in 0..12 {
        let task = server.submit(&json!({"text": format!("Kestrel number {n} circles above its field.")}));
        last = task["task_id"].as_str().unwrap().to_owned();
    }
    let _ = server.wait_for_task(&last);
    server.wait_until(|| (healthy.deliveries().len() == 12).then_some(()));
    assert!(hanging.deliveries().len() <= 4, "too many concurrent deliveries to one webhook");
    let path = format!("/webhooks/{}", slow["id"].as_str().unwrap());
    assert_eq!(server.call("DELETE", &path, None, Some(server.admin())).status, 200);
    let before = hanging.deliveries().len();
    hanging.set_response("200 OK");
    server.restart();
    let more = server.submit(&json!({"text": "Buzzards soar above hills."}));
    let _ = healthy.wait_for(is_about("task.done", "task_id", more["task_id"].as_str().unwrap()));
    assert_eq!(hanging.deliveries().len(), before, "pending deliveries of a deleted webhook are dropped");
}

/// If the webhook record is damaged, webhooks are disabled and everything else works.
#[test]
fn lesson_14_damaged_webhook_record_does_not_prevent_start() {
    let (server, receiver) = (Server::start(), WebhookReceiver::start());
    create_webhook(&server, &receiver, &json!({"events": EVENTS}));
    server.stop();
    let store = lkr_tests::open_store(&server.data_dir().join("store"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let corrupt = vec![Write::put("webhook/hooks", Expect::Any, "corrupt")];
    runtime.block_on(store.state().apply(corrupt)).unwrap();
    drop((runtime, store));
    server.restart();
    assert!(server.log().contains("webhooks are off"), "{}", server.log());
    assert_eq!(server.call("GET", "/webhooks", None, Some(server.admin())).status, 500);
    let _ = server.add(&json!({"text": "Kestrels circle."}));
    assert_eq!(receiver.deliveries().len(), 0);
}

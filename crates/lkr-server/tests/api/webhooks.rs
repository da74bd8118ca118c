//! Webhooks and the log of their deliveries.

use std::time::Duration;

use actix_web::http::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::support::{Api, App, api};

const PATH: &str = "/api/v1/webhooks";

async fn create<S: App>(api: &Api<S>, token: &str, body: Value) -> crate::support::TestResponse {
    api.post(PATH, token, body).await
}

async fn list<S: App>(api: &Api<S>, token: &str, query: &str) -> Value {
    api.call(Method::GET, &format!("{PATH}{query}"), token, None).await.data()
}

fn webhook() -> Value {
    json!({ "url": "http://127.0.0.1:9/hook", "events": ["task.done"] })
}

#[actix_web::test]
async fn webhook_of_an_unknown_space_is_refused() {
    let api = api().await;
    let admin = api.admin().await;
    let with_space = |space: &str| {
        let mut body = webhook();
        body["space"] = json!(space);
        body
    };
    for unknown in ["legal", "No Name"] {
        let message = create(&api, &admin, with_space(unknown)).await.expect_error(1004, 404);
        assert!(message.contains(unknown), "{message}");
    }
    let created = create(&api, &admin, with_space("default")).await.data();
    assert_eq!(created["space"], "default");
    let listed = api.call(Method::GET, "/api/v1/webhooks", &admin, None).await.data();
    assert_eq!(listed["items"][0]["space"], "default");
}

#[actix_web::test]
async fn generated_webhook_secret_is_shown_once() {
    let api = api().await;
    let admin = api.admin().await;
    let created = create(&api, &admin, webhook()).await;
    assert_eq!(created.status.as_u16(), 201);
    let created = created.data();
    let keys: Vec<_> = created.as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["created_at", "created_by", "events", "id", "secret", "space", "url"]);
    assert_eq!(
        (&created["url"], &created["created_by"]),
        (&json!("http://127.0.0.1:9/hook"), &json!("admin"))
    );
    let secret = created["secret"].as_str().unwrap();
    assert!(secret.len() > 64 && created["id"].as_str().unwrap().len() == 32);
    let other = create(&api, &admin, webhook()).await.data();
    assert_ne!(other["secret"].as_str().unwrap(), secret);
    for given in [json!("s"), json!("x".repeat(256)), json!("a b é")] {
        let body = json!({ "url": "http://127.0.0.1:9/", "events": ["task.failed"], "secret": given });
        assert_eq!(create(&api, &admin, body).await.data()["secret"], Value::Null);
    }
    let null = json!({ "url": "http://127.0.0.1:9/", "events": ["task.failed"], "secret": null });
    assert!(create(&api, &admin, null).await.data()["secret"].is_string());
    let listed = list(&api, &admin, "").await;
    assert!(!listed.to_string().contains("secret") && listed["items"].as_array().unwrap().len() == 6);
    let last = &listed["items"][5];
    let mut shown = created.clone();
    shown.as_object_mut().unwrap().remove("secret");
    assert_eq!(*last, shown, "newest first");
    let audit = api.call(Method::GET, "/api/v1/audit?action=webhook.create", &admin, None).await.data();
    assert_eq!(audit["items"].as_array().unwrap().len(), 6);
    assert_eq!(
        (&audit["items"][5]["target"], &audit["items"][5]["actor"]),
        (&created["id"], &json!("admin"))
    );
    assert!(!audit.to_string().contains(secret));
}

#[actix_web::test]
async fn webhooks_are_listed_page_by_page_and_deleted() {
    let api = api().await;
    let admin = api.admin().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(create(&api, &admin, webhook()).await.data()["id"].as_str().unwrap().to_owned());
    }
    ids.reverse();
    let (mut listed_ids, mut query) = (Vec::new(), "?limit=2".to_owned());
    loop {
        let page = list(&api, &admin, &query).await;
        let items = page["items"].as_array().unwrap();
        listed_ids.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_offset"].as_str() else { break };
        assert_eq!(items.len(), 2);
        query = format!("?limit=2&offset={next}");
    }
    assert_eq!(listed_ids, ids);
    for query in ["?limit=0", "?offset=x", "?more=1"] {
        api.call(Method::GET, &format!("{PATH}{query}"), &admin, None).await.expect_error(1001, 400);
    }
    let path = format!("{PATH}/{}", ids[2]);
    let deleted = api.call(Method::DELETE, &path, &admin, None).await.data();
    assert_eq!(deleted, json!({ "id": ids[2], "deleted": true }));
    api.call(Method::DELETE, &path, &admin, None).await.expect_error(1004, 404);
    api.call(Method::DELETE, &format!("{PATH}/x"), &admin, None).await.expect_error(1004, 404);
    assert_eq!(list(&api, &admin, "").await["items"].as_array().unwrap().len(), 4);
    let audit = api.call(Method::GET, "/api/v1/audit?action=webhook.delete", &admin, None).await.data();
    assert_eq!(audit["items"].as_array().unwrap().len(), 1, "a delete of an unknown webhook is not logged");
}

#[actix_web::test]
async fn invalid_webhook_is_refused_and_names_the_field() {
    let api = api().await;
    let admin = api.admin().await;
    for (body, field) in [
        (json!({ "events": ["task.done"] }), "url"),
        (json!({ "url": "http://a.example" }), "events"),
        (json!({ "url": "http://a.example", "events": [] }), "events"),
        (json!({ "url": "http://a.example", "events": ["task.done", "task.dnoe"] }), "events[1]"),
        (json!({ "url": "http://a.example", "events": "task.done" }), "events"),
        (json!({ "url": "http://a.example", "events": ["task.done"], "retries": 3 }), "retries"),
        (json!({ "url": "http://a.example", "events": ["task.done"], "secret": "" }), "secret"),
        (json!({ "url": "http://a.example", "events": ["task.done"], "secret": [4711] }), "secret"),
        (json!({ "url": 1, "events": ["task.done"] }), "url"),
        (json!({ "url": "a.example", "events": ["task.done"] }), "url"),
        (json!({ "url": "file:///etc/passwd", "events": ["task.done"] }), "url"),
        (json!({ "url": "http://u:4711@a.example", "events": ["task.done"] }), "url"),
        (json!({ "url": "http://169.254.169.254/", "events": ["task.done"] }), "169.254.169.254"),
        (json!({ "url": "http://[::ffff:a9fe:a9fe]/", "events": ["task.done"] }), "url"),
        (json!({ "url": "http://metadata.google.internal/", "events": ["task.done"] }), "url"),
    ] {
        let message = create(&api, &admin, body.clone()).await.expect_error(1001, 400);
        assert!(message.contains(field) && !message.contains("4711"), "{body}: {message}");
    }
    assert_eq!(list(&api, &admin, "").await["items"], json!([]));
    for _ in 0..20 {
        create(&api, &admin, webhook()).await.data();
    }
    create(&api, &admin, webhook()).await.expect_error(1003, 409);
}

#[actix_web::test]
async fn lesson_26_model_url_that_is_never_called_is_refused() {
    let api = api().await;
    let admin = api.admin().await;
    for address in ["http://169.254.169.254/v1", "http://2852039166/", "https://metadata.google.internal/v1"]
    {
        let body = json!({ "models": { "rerank": { "base_url": address } } });
        for (method, path) in [(Method::PUT, "/api/v1/settings"), (Method::POST, "/api/v1/settings/test")] {
            let message = api.call(method, path, &admin, Some(body.clone())).await.expect_error(1001, 400);
            assert!(
                message.contains("models.rerank.base_url") && message.contains("never called"),
                "{message}"
            );
        }
    }
    let settings = api.call(Method::GET, "/api/v1/settings", &admin, None).await.data();
    assert_eq!(settings["models"]["rerank"]["base_url"], "");
}

/// A receiver that responds with these statuses and a body, and then with 204. Returns its URL.
async fn receiver(statuses: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook?key=4711", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for n in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut request, mut part) = (String::new(), [0; 4096]);
            while !request.ends_with('}') {
                let read = stream.read(&mut part).await.unwrap();
                request += &String::from_utf8_lossy(&part[..read]);
            }
            let response = match statuses.get(n) {
                Some(status) => {
                    format!("HTTP/1.1 {status}\r\nContent-Length: 11\r\nConnection: close\r\n\r\nhidden body")
                }
                None => "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n".to_owned(),
            };
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    url
}

/// Waits until the newest delivery has a state and a number of attempts, and returns the list.
async fn delivery_in<S: App>(api: &Api<S>, path: &str, admin: &str, state: &str, attempts: u64) -> Value {
    let waiting = async {
        loop {
            let listed = api.call(Method::GET, path, admin, None).await.data();
            let newest = &listed["items"][0];
            if newest["state"] == state && newest["attempts"].as_u64() >= Some(attempts) {
                return listed;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap()
}

#[actix_web::test]
async fn deliveries_are_listed_with_their_failures_and_their_end() {
    let api = api().await;
    let admin = api.admin().await;
    let url = receiver(&["500 Internal Server Error"]).await;
    let body = json!({ "url": url, "events": ["task.done", "document.deleted"], "secret": "4712" });
    let id = create(&api, &admin, body).await.data()["id"].as_str().unwrap().to_owned();
    let path = format!("{PATH}/{id}/deliveries");
    assert_eq!(
        api.call(Method::GET, &path, &admin, None).await.data(),
        json!({ "items": [], "next_offset": null })
    );
    let _deliverer = api.webhooks.as_ref().unwrap().start();
    let doc_id = api.add(&admin, json!({ "text": "Basalt." })).await;
    let waiting = delivery_in(&api, &path, &admin, "waiting", 1).await["items"][0].clone();
    let keys: Vec<_> = waiting.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        keys,
        [
            "at",
            "attempted_at",
            "attempts",
            "delivery_id",
            "doc_id",
            "error",
            "event",
            "next_attempt_at",
            "state",
            "status",
            "task_id"
        ]
    );
    assert_eq!((&waiting["event"], &waiting["doc_id"]), (&json!("task.done"), &json!(doc_id)));
    assert!(waiting["task_id"].is_string() && waiting["next_attempt_at"].is_string());
    assert_eq!(waiting["status"], 500);
    assert_eq!(waiting["error"], "the receiver responded with status 500");
    let delivered = delivery_in(&api, &path, &admin, "delivered", 2).await["items"][0].clone();
    assert_eq!(delivered["delivery_id"], waiting["delivery_id"]);
    assert_eq!((&delivered["status"], &delivered["error"]), (&json!(204), &Value::Null));
    assert_eq!(delivered["next_attempt_at"], Value::Null);
    api.call(Method::DELETE, &format!("/api/v1/documents/{doc_id}"), &admin, None).await.data();
    let listed = delivery_in(&api, &path, &admin, "delivered", 1).await;
    let deleted = loop {
        let listed = api.call(Method::GET, &path, &admin, None).await.data();
        if listed["items"][0]["event"] == "document.deleted" {
            break listed["items"][0].clone();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!((&deleted["task_id"], &deleted["doc_id"]), (&Value::Null, &json!(doc_id)));
    let page = api.call(Method::GET, &format!("{path}?limit=1"), &admin, None).await.data();
    assert_eq!(page["items"], json!([deleted]));
    let next = format!("{path}?limit=1&offset={}", page["next_offset"].as_str().unwrap());
    let page = api.call(Method::GET, &next, &admin, None).await.data();
    assert_eq!(page["items"][0]["delivery_id"], delivered["delivery_id"]);
    assert_eq!((page["items"].as_array().unwrap().len(), &page["next_offset"]), (1, &Value::Null));
    for hidden in ["4711", "4712", "hidden", "http"] {
        assert!(!listed.to_string().contains(hidden), "{hidden}: {listed}");
    }
}

#[actix_web::test]
async fn deliveries_of_an_unknown_or_deleted_webhook_are_not_found() {
    let api = api().await;
    let admin = api.admin().await;
    let id = create(&api, &admin, webhook()).await.data()["id"].as_str().unwrap().to_owned();
    let path = format!("{PATH}/{id}/deliveries");
    api.call(Method::GET, &format!("{path}?limit=101"), &admin, None).await.expect_error(1001, 400);
    api.call(Method::DELETE, &format!("{PATH}/{id}"), &admin, None).await.data();
    for unknown in [path, format!("{PATH}/x/deliveries"), format!("{PATH}/{}/deliveries", "0".repeat(32))] {
        api.call(Method::GET, &unknown, &admin, None).await.expect_error(1004, 404);
    }
}

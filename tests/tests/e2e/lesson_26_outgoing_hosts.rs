//! The server calls only allowed hosts.

use lkr_tests::{ADMIN_PASSWORD, Response, Server, WebhookReceiver};
use serde_json::json;

fn create_webhook(server: &Server, url: &str) -> Response {
    let body = json!({"url": url, "events": ["task.done"]});
    server.call("POST", "/webhooks", Some(&body), Some(server.admin()))
}

fn set_address(server: &Server, base_url: &str) -> Response {
    let body = json!({"models": {"summarize": {"provider": "remote_compatible", "base_url": base_url}}});
    server.call("PUT", "/settings", Some(&body), Some(server.admin()))
}

#[test]
fn lesson_26_metadata_addresses_are_refused_in_every_form() {
    let server = Server::start();
    for url in [
        "http://169.254.169.254/latest/meta-data/",
        "http://0xa9fea9fe/",
        "http://2852039166/",
        "http://0251.0376.0251.0376/",
        "http://169.254.169.254./",
        "http://[::ffff:169.254.169.254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[fe80::1]/",
        "http://[fd00:ec2::254]/",
        "http://100.100.100.200/",
        "http://[fd00:a9fe:a9fe::1]/",
        "http://[fd00:100::100:200]/",
        "http://[64:ff9b:1:8a9:fe:a9fe:808:808]/",
        "http://METADATA.google.internal./",
        "http://0.0.0.0:1/",
    ] {
        let hook = create_webhook(&server, url);
        hook.assert_error(1001, 400);
        assert!(hook.message().contains("url"), "{}", hook.message());
        let settings = set_address(&server, url);
        settings.assert_error(1001, 400);
        assert!(settings.message().contains("models.summarize.base_url"), "{}", settings.message());
    }
    assert_eq!(
        set_address(&server, "http://127.0.0.1:11434/v1").status,
        200,
        "local model servers are allowed"
    );
}

#[test]
fn lesson_26_only_listed_hosts_are_called() {
    let mut server = Server::start();
    let receiver = WebhookReceiver::start();
    assert_eq!(create_webhook(&server, &receiver.url()).status, 201);
    server.stop();
    server.set("LKR_OUTGOING_HOSTS", "models.example, localhost");
    server.restart();
    let rejected = create_webhook(&server, &receiver.url());
    rejected.assert_error(1001, 400);
    assert!(rejected.message().contains("127.0.0.1"), "{}", rejected.message());
    create_webhook(&server, "http://models.example.evil.test/").assert_error(1001, 400);
    set_address(&server, "http://10.0.0.1/v1").assert_error(1001, 400);
    assert_eq!(set_address(&server, "https://Models.Example/v1").status, 200);
    // A webhook that is older than the list is not called; a listed one is.
    let task = server.submit(&json!({"text": "Kestrels circle."}));
    let listed = WebhookReceiver::start();
    assert_eq!(create_webhook(&server, &listed.url().replace("127.0.0.1", "localhost")).status, 201);
    let _ = server.wait_for_task(task["task_id"].as_str().unwrap());
    server.wait_until(|| server.log().contains("not among those that may be called").then_some(()));
    let task = server.submit(&json!({"text": "Buzzards soar."}));
    let _ = listed.wait_for(|delivery| delivery.json()["data"]["task_id"] == task["task_id"]);
    assert_eq!(receiver.deliveries().len(), 0);
    // The webhook receives its pending events once its host is allowed again.
    server.stop();
    server.set("LKR_OUTGOING_HOSTS", "");
    server.restart();
    let _ = receiver.wait_for(|delivery| delivery.json()["data"]["task_id"] == task["task_id"]);
    // An empty list is not the same as no list.
    for wrong in ["http://h", ",", " "] {
        let checked = server.command().env("LKR_OUTGOING_HOSTS", wrong).output().unwrap();
        let printed = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(!checked.status.success() && printed.contains("LKR_OUTGOING_HOSTS"), "{printed}");
    }
}

/// Redirects and proxies of the environment are ignored.
#[test]
fn lesson_26_redirects_and_proxies_are_ignored() {
    let (receiver, elsewhere) = (WebhookReceiver::start(), WebhookReceiver::start());
    let proxy = elsewhere.url();
    let environment = [
        ("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD),
        ("http_proxy", &*proxy),
        ("HTTP_PROXY", &proxy),
        ("ALL_PROXY", &proxy),
        ("all_proxy", &proxy),
    ];
    let server = Server::start_with(&environment);
    receiver.set_response(&format!("307 Temporary Redirect\r\nLocation: {}", elsewhere.url()));
    assert_eq!(create_webhook(&server, &receiver.url()).status, 201);
    let _ = server.submit(&json!({"text": "Kestrels circle."}));
    server.wait_until(|| (receiver.deliveries().len() >= 2).then_some(()));
    receiver.set_response("204 No Content");
    let before = receiver.deliveries().len();
    server.wait_until(|| (receiver.deliveries().len() > before).then_some(()));
    assert_eq!(elsewhere.deliveries().len(), 0);
}

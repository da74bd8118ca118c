//! No secret appears in a response, in the log, or unsealed in a file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use lkr_tests::{Server, WebhookReceiver};
use serde_json::{Value, json};

/// The planted secrets, each recognisable by its digits.
const ADMIN: &str = "correct horse battery 9";
const USER: &str = "planted-user-password-4711";
const CHANGED: &str = "planted-changed-password-4712";
const RESET: &str = "planted-reset-password-4713";
const WRONG: &str = "planted-wrong-password-4714";
const TYPED: &str = "planted-typed-as-name-4715";
const MODEL_KEYS: [&str; 4] = ["sk-planted-4716", "sk-planted-4717", "sk-planted-4718", "sk-planted-4719"];
const IN_URL: &str = "planted-in-a-url-4720";
const HOOK: &str = "planted-webhook-secret-4721";

/// Returns the secret of a response that may show it once, and records the rest of the response.
fn take_secret(
    responses: &mut Vec<(String, String)>,
    what: &str,
    response: &lkr_tests::Response,
    key: &str,
) -> String {
    let secret = response.data()[key].as_str().unwrap().to_owned();
    let rest = String::from_utf8_lossy(&response.body).replacen(&secret, "", 1);
    responses.push((what.to_owned(), rest));
    secret
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn no_secret_appears_in_responses_logs_or_files() {
    let sealing = "5ec2e7".repeat(10) + "abcd";
    let environment =
        [("LKR_ADMIN_PASSWORD", ADMIN), ("LKR_SECRET_KEY", &*sealing), ("LKR_AUTH_REGISTER_ENABLED", "true")];
    let mut server = Server::start_with(&environment);
    server.set("RUST_LOG", "debug");
    server.restart();
    let (mut responses, mut secrets) = (Vec::new(), Vec::new());
    let mut call = |method: &str, path: &str, body: Option<&Value>, token: Option<&str>| {
        let response = server.call(method, path, body, token);
        responses.push((format!("{method} {path}"), String::from_utf8_lossy(&response.body).into_owned()));
        response
    };
    let admin = server.admin().to_owned();
    secrets.push(admin.clone());
    let credentials = |name: &str, password: &str| json!({"username": name, "password": password});
    // An error does not repeat the submitted values.
    for body in [
        credentials("admin", WRONG),
        credentials(TYPED, "x"),
        json!({"username": TYPED, "password": 471_500_815}),
    ] {
        call("POST", "/auth/login", Some(&body), None);
    }
    call("POST", "/auth/register", Some(&credentials("x", USER)), None);
    call("POST", "/users", Some(&credentials("y", USER)), Some(&admin));
    call("POST", "/users", Some(&credentials("eva", USER)), Some(&admin));
    let models: Value = ["embed", "summarize", "classify", "rerank"]
        .into_iter()
        .zip(MODEL_KEYS)
        .map(|(name, key)| {
            let entry =
                json!({"provider": "remote_compatible", "base_url": "http://m.example", "api_key": key});
            (name.to_owned(), entry)
        })
        .collect::<serde_json::Map<_, _>>()
        .into();
    call("PUT", "/settings", Some(&json!({"models": models})), Some(&admin));
    for wrong in [
        json!({"models": {"embed": {"base_url": format!("http://u:{IN_URL}@h")}}}),
        json!({"models": {"embed": {"base_url": format!("http://h/?key={IN_URL}")}}}),
        json!({"models": {"embed": {"api_key": format!("{IN_URL}\n")}}}),
        json!({"models": {"embed": {"api_key": [IN_URL]}}}),
    ] {
        assert_eq!(call("PUT", "/settings", Some(&wrong), Some(&admin)).status, 400);
    }
    for name in ["embed", "summarize"] {
        let entry = json!({"models": {name: {"api_key": MODEL_KEYS[0]}}});
        call("POST", "/settings/test", Some(&entry), Some(&admin));
    }
    let receiver = WebhookReceiver::start();
    let (url, events) = (receiver.url(), ["task.done"]);
    let created =
        call("POST", "/webhooks", Some(&json!({"url": url, "events": events, "secret": HOOK})), Some(&admin));
    assert_eq!(created.status, 201);
    for wrong in [
        json!({"url": format!("http://u:{IN_URL}@h"), "events": events}),
        json!({"url": url, "events": events, "secret": format!("{HOOK}\n")}),
        json!({"url": url, "events": events, "secret": [HOOK]}),
    ] {
        assert_eq!(call("POST", "/webhooks", Some(&wrong), Some(&admin)).status, 400);
    }
    let password = json!({"current_password": WRONG, "new_password": CHANGED});
    call("POST", "/auth/password", Some(&password), Some(&admin));
    call("POST", "/users/eva/password", Some(&json!({"new_password": RESET})), Some(&admin));
    call("POST", "/documents", Some(&json!({"text": "x"})), Some("0123"));
    let eva = server.post("/auth/login", &credentials("eva", RESET));
    let eva = take_secret(&mut responses, "login", &eva, "access_token");
    let changed = json!({"current_password": RESET, "new_password": CHANGED});
    let token = server.call("POST", "/auth/password", Some(&changed), Some(&eva));
    let token = take_secret(&mut responses, "password", &token, "access_token");
    let key = server.call("POST", "/auth/keys", Some(&json!({"name": "k"})), Some(&token));
    let key = take_secret(&mut responses, "key", &key, "key");
    let registered = server.post("/auth/register", &credentials("adam", USER));
    let registered = take_secret(&mut responses, "register", &registered, "access_token");
    let generated =
        server.call("POST", "/webhooks", Some(&json!({"url": url, "events": events})), Some(&admin));
    let generated = take_secret(&mut responses, "webhook", &generated, "secret");
    let _ = server.add(&json!({"text": "a document about webhooks"}));
    // The reranker has a key and is unavailable.
    let found = server.post("/search", &json!({"query": "a document about webhooks"}));
    assert!(String::from_utf8_lossy(&found.body).contains("not reranked"));
    responses.push(("search".to_owned(), String::from_utf8_lossy(&found.body).into_owned()));
    for secret in [&generated, HOOK] {
        let delivery = receiver.wait_for(|delivery| delivery.is_signed_with(secret));
        responses.push(("delivery".to_owned(), format!("{delivery:?}")));
    }
    secrets.extend([eva, token, key.clone(), registered, generated]);
    for path in [
        "/auth/me",
        "/auth/keys",
        "/users",
        "/audit?limit=100",
        "/webhooks",
        "/settings",
        "/settings/schema",
        "/documents",
        "/documents/tasks",
        "/knowledge/stats",
        "/knowledge/categories",
        "/openapi.json",
    ] {
        for token in [&admin, &key] {
            let response = server.call("GET", path, None, Some(token));
            responses.push((path.to_owned(), String::from_utf8_lossy(&response.body).into_owned()));
        }
    }
    for path in ["/", "/docs", "/healthz", "/readyz", "/metrics"] {
        let response = server.try_call("GET", path, None, None).unwrap();
        responses.push((path.to_owned(), String::from_utf8_lossy(&response.body).into_owned()));
    }
    let checked = server.command().arg("--check-config").output().unwrap();
    responses.push(("--check-config".to_owned(), String::from_utf8_lossy(&checked.stdout).into_owned()));
    server.stop();

    let planted = [ADMIN, USER, CHANGED, RESET, WRONG, TYPED, IN_URL, HOOK, &sealing].map(str::to_owned);
    secrets.extend(planted.into_iter().chain(MODEL_KEYS.map(str::to_owned)));
    secrets.push("471500815".to_owned());
    // Stored forms of passwords and tokens are not shown either.
    for (what, response) in &responses {
        assert!(!response.contains("$pbkdf2"), "{what}");
    }
    let mut all = Vec::new();
    files(&server.data_dir(), &mut all);
    assert!(all.len() > 2, "{all:?}");
    let contents: Vec<_> =
        all.iter().map(|file| (file.display().to_string(), fs::read(file).unwrap())).collect();
    let unsealed = b"http://m.example";
    let contains = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    assert!(contents.iter().any(|(_, bytes)| contains(bytes, unsealed)), "unsealed values are found");
    let log = server.log();
    assert!(log.contains("reason"), "the log contains the rejected logins");
    for secret in &secrets {
        for (what, response) in &responses {
            assert!(!response.contains(secret), "{what} shows {secret}");
        }
        assert!(!log.contains(secret), "the log shows {secret}");
        for (file, bytes) in &contents {
            assert!(!contains(bytes, secret.as_bytes()), "{file} contains {secret}");
        }
    }
}

//! Administration across restarts and kills.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Output};

use lkr_tests::{Response, Server};
use serde_json::{Value, json};

const PASSWORD: &str = "correct horse battery 9";
const OTHER: &str = "another long password 7";

fn login(server: &Server, username: &str, password: &str) -> Response {
    server.post("/auth/login", &json!({"username": username, "password": password}))
}

fn me(server: &Server, token: &str) -> Response {
    server.call("GET", "/auth/me", None, Some(token))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn reset_admin(server: &Server) -> Output {
    server.command().arg("reset-admin").output().unwrap()
}

#[test]
fn accounts_sessions_keys_and_settings_survive_kill_9() {
    let server = Server::start();
    let admin = server.admin().to_owned();
    let create = json!({"username": "eva", "password": PASSWORD, "must_change_password": false});
    assert_eq!(server.call("POST", "/users", Some(&create), Some(&admin)).status, 201);
    let eva = text(&login(&server, "eva", PASSWORD).data()["access_token"]);
    let keys = ["kept", "ended"].map(|name| {
        server.call("POST", "/auth/keys", Some(&json!({"name": name})), Some(&eva)).data().clone()
    });
    let ended = format!("/auth/keys/{}", text(&keys[1]["id"]));
    assert_eq!(server.call("DELETE", &ended, None, Some(&eva)).status, 200);
    let settings = json!({"models": {"summarize": {"base_url": "http://models.example", "api_key": "sk-1"}}});
    let put = server.call("PUT", "/settings", Some(&settings), Some(&admin));
    let expected = put.data().clone();
    for _ in 0..9 {
        login(&server, "adam", OTHER).assert_error(1005, 401);
    }
    server.restart();
    assert_eq!(me(&server, &eva).data()["username"], "eva");
    assert_eq!(me(&server, keys[0]["key"].as_str().unwrap()).data()["username"], "eva");
    me(&server, keys[1]["key"].as_str().unwrap()).assert_error(1005, 401);
    let now = server.call("GET", "/settings", None, Some(&admin));
    assert_eq!((now.data(), now.header("etag")), (&expected, put.header("etag")));
    assert_eq!(expected["models"]["summarize"]["api_key"], "********");
    // Failed logins from before the restart count too.
    login(&server, "adam", OTHER).assert_error(1005, 401);
    login(&server, "adam", OTHER).assert_error(1009, 429);
    let log = server.call("GET", "/audit?action=settings.change", None, Some(&admin));
    assert_eq!(log.data()["items"].as_array().unwrap().len(), 1);
}

#[test]
fn lesson_23_first_admin_is_never_seeded_again() {
    let server = Server::start();
    let admin = server.admin().to_owned();
    let body = json!({"current_password": PASSWORD, "new_password": OTHER});
    let changed = server.call("POST", "/auth/password", Some(&body), Some(&admin));
    let token = text(&changed.data()["access_token"]);
    // The configured password is used at the first start only.
    server.restart();
    login(&server, "admin", PASSWORD).assert_error(1005, 401);
    assert_eq!(me(&server, &token).data()["must_change_password"], false);
    let create =
        json!({"username": "eva", "password": PASSWORD, "role": "admin", "must_change_password": false});
    assert_eq!(server.call("POST", "/users", Some(&create), Some(&token)).status, 201);
    let eva = text(&login(&server, "eva", PASSWORD).data()["access_token"]);
    assert_eq!(server.call("DELETE", "/users/admin", None, Some(&eva)).status, 200);
    server.restart();
    login(&server, "admin", PASSWORD).assert_error(1005, 401);
    login(&server, "admin", OTHER).assert_error(1005, 401);
    assert_eq!(server.call("GET", "/users", None, Some(&eva)).data()["items"].as_array().unwrap().len(), 1);
}

#[test]
fn reset_admin_lets_locked_out_admin_in() {
    let server = Server::start();
    let admin = server.admin().to_owned();
    let key = server.call("POST", "/auth/keys", Some(&json!({"name": "k"})), Some(&admin)).data().clone();
    for _ in 0..10 {
        login(&server, "admin", OTHER).assert_error(1005, 401);
    }
    login(&server, "admin", PASSWORD).assert_error(1009, 429);
    let while_running = reset_admin(&server);
    assert!(!while_running.status.success());
    let printed = String::from_utf8_lossy(&while_running.stderr).into_owned();
    assert!(printed.contains("in use") && printed.trim().lines().count() == 1, "{printed}");
    assert_eq!(me(&server, &admin).status, 200, "the session is still valid");
    server.stop();
    let done = reset_admin(&server);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let file = server.data_dir().join("initial-admin-password");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let password = fs::read_to_string(&file).unwrap().trim().to_owned();
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(printed.contains("initial-admin-password") && !printed.contains(&password), "{printed}");
    server.restart();
    me(&server, &admin).assert_error(1005, 401);
    me(&server, key["key"].as_str().unwrap()).assert_error(1005, 401);
    login(&server, "admin", PASSWORD).assert_error(1005, 401);
    let token = login(&server, "admin", &password).data().clone();
    assert_eq!(token["user"]["must_change_password"], true);
    let token = text(&token["access_token"]);
    server.call("GET", "/users", None, Some(&token)).assert_error(1008, 403);
    let body = json!({"current_password": password, "new_password": OTHER});
    let token =
        text(&server.call("POST", "/auth/password", Some(&body), Some(&token)).data()["access_token"]);
    assert!(!file.exists(), "changing the password removes the file");
    assert_eq!(server.call("GET", "/users", None, Some(&token)).status, 200);
    // Without a knowledge base, the command creates nothing.
    let nowhere = server.folder().join("nowhere");
    let output = server.command().arg("reset-admin").env("LKR_DATA_DIR", &nowhere).output().unwrap();
    assert!(!output.status.success() && !nowhere.exists());
}

/// A reset restores a deleted admin, even if another admin exists.
#[test]
fn reset_admin_restores_deleted_admin() {
    let server = Server::start();
    let create =
        json!({"username": "eva", "password": PASSWORD, "role": "admin", "must_change_password": false});
    assert_eq!(server.call("POST", "/users", Some(&create), Some(server.admin())).status, 201);
    let eva = text(&login(&server, "eva", PASSWORD).data()["access_token"]);
    assert_eq!(server.call("DELETE", "/users/admin", None, Some(&eva)).status, 200);
    server.stop();
    assert!(reset_admin(&server).status.success());
    server.restart();
    let password = fs::read_to_string(server.data_dir().join("initial-admin-password")).unwrap();
    assert_eq!(login(&server, "admin", password.trim()).data()["user"]["role"], "admin");
}

#[test]
fn secret_key_file_is_private_and_can_be_configured() {
    let mut server = Server::start();
    let file = server.data_dir().join("secret.key");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(server.data_dir()).unwrap().permissions().mode() & 0o777, 0o700);
    let admin = server.admin().to_owned();
    let settings = json!({"models": {"rerank": {"base_url": "http://models.example", "api_key": "sk-1"}}});
    assert_eq!(server.call("PUT", "/settings", Some(&settings), Some(&admin)).status, 200);
    server.stop();
    // With another key the server starts, and keeps the sealed secrets that it cannot open.
    let key = fs::read_to_string(&file).unwrap().trim().to_owned();
    server.set("LKR_SECRET_KEY", &"ab".repeat(32));
    server.restart();
    let rerank = |server: &Server| {
        server.call("GET", "/settings", None, Some(&admin)).data()["models"]["rerank"].clone()
    };
    assert_eq!(rerank(&server)["api_key"], "********");
    server.stop();
    fs::remove_file(&file).unwrap();
    server.set("LKR_SECRET_KEY", &key);
    server.restart();
    assert!(!file.exists(), "a configured key is not written to a file");
    assert_eq!(rerank(&server)["api_key"], "********");
    server.stop();
    server.set("LKR_SECRET_KEY", "");
    fs::write(&file, "nonsense").unwrap();
    let output = server.command().env("RUST_LOG", "off").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && printed.contains("secret.key") && !printed.contains("nonsense"),
        "{printed}"
    );
}

#[test]
fn taxonomy_file_is_loaded_and_errors_name_file_and_line() {
    let mut server = Server::start();
    server.stop();
    let file = server.folder().join("stones.yaml");
    let category = "- id: igneous\n    name: Igneous rocks\n    description: Rocks made of molten rock.\n";
    fs::write(&file, format!("categories:\n  {category}")).unwrap();
    server.set("LKR_TAXONOMY_PATH", file.to_str().unwrap());
    server.restart();
    let data = server.get("/knowledge/categories").data().clone();
    assert_eq!(
        (data["count"].as_u64(), data["categories"][0]["name"].as_str()),
        (Some(1), Some("Igneous rocks"))
    );
    let doc_id = server.add(&json!({"text": "Basalt comes from volcanoes."}));
    let change = |category: &str| {
        let body = json!({"category": category});
        server.call("PATCH", &format!("/documents/{doc_id}"), Some(&body), Some(server.admin()))
    };
    assert_eq!(change("Igneous rocks").data()["category"], "Igneous rocks");
    change("People").assert_error(1001, 400);
    server.stop();
    for (text, line) in [
        (format!("categories:\n  {category}  {category}"), 5),
        (format!("categories:\n  {category}    parent: nobody\n"), 5),
        ("categories: [\n".to_owned(), 2),
        (format!("categories:\n  {category}    colour: red\n"), 5),
    ] {
        fs::write(&file, &text).unwrap();
        let output = server.command().env("RUST_LOG", "off").output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && printed.trim().lines().count() == 1, "{printed}");
        assert!(printed.contains(&format!("stones.yaml:{line}")), "{text}\n{printed}");
    }
}

/// Each rejected login is logged once, with address and reason, and without the submitted name and password.
#[test]
fn rejected_logins_are_logged_without_the_submitted_values() {
    let mut server = Server::start();
    server.set("RUST_LOG", "warn");
    server.restart();
    login(&server, "admin", "wrong password 4711").assert_error(1005, 401);
    login(&server, "a-password-4712", "x").assert_error(1005, 401);
    let log = server.log();
    let lines: Vec<_> =
        log.lines().filter(|line| line.contains("127.0.0.1") && line.contains("reason")).collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(lines[0].contains("admin") && lines[1].contains("unknown"), "{lines:?}");
    for line in lines {
        // Only the message is checked: the time and the request id contain arbitrary digits.
        let (_, printed) = line.split_once(" WARN ").unwrap();
        let (printed, _) = printed.split_once("request_id").unwrap();
        assert!(!printed.contains("471"), "{line}");
    }
}

/// A slow request is checked against the rights that its sender has when the body is complete.
#[test]
fn lesson_24_right_revoked_during_a_request_is_refused() {
    let server = Server::start();
    let admin = server.admin().to_owned();
    let doc_id = server.add(&json!({"text": "Basalt comes from volcanoes."}));
    let document = format!("/documents/{doc_id}");
    let user = json!({"username": "mallory", "password": PASSWORD, "role": "admin"});
    let settings = json!({"dedup": {"simhash_threshold": 9}});
    for (n, (method, path, body)) in [
        ("POST", "/auth/keys", json!({"name": "k"})),
        ("POST", "/auth/password", json!({"current_password": PASSWORD, "new_password": OTHER})),
        ("POST", "/users", user),
        ("PUT", "/settings", settings),
        ("POST", "/settings/reset", json!({})),
        ("POST", "/settings/test", json!({"models": {"embed": {}}})),
        ("POST", "/knowledge/reclassify", json!({})),
        ("POST", "/documents", json!({"text": "more"})),
        ("PATCH", &document, json!({"title": "Mine"})),
        ("DELETE", &document, json!({})),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("admin-{n}");
        let create =
            json!({"username": name, "password": PASSWORD, "role": "admin", "must_change_password": false});
        assert_eq!(server.call("POST", "/users", Some(&create), Some(&admin)).status, 201);
        let token = text(&login(&server, &name, PASSWORD).data()["access_token"]);
        // The right is revoked by logout, disabling, deletion and demotion in turn.
        let user = format!("/users/{name}");
        let (end, code) = match n % 4 {
            0 => (("POST", "/auth/logout".to_owned(), json!({}), &token), 1005),
            1 => (("PATCH", user, json!({"disabled": true}), &admin), 1005),
            2 => (("DELETE", user, json!({}), &admin), 1005),
            _ => (("PATCH", user, json!({"role": "user"}), &admin), 1006),
        };
        let request_body = body.to_string();
        let head = format!(
            "{method} /api/v1{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{{",
            request_body.len()
        );
        let response = lkr_tests::send_raw_in_parts(server.port(), head.as_bytes(), || {
            // By then the server has accepted the head and its credential.
            std::thread::sleep(std::time::Duration::from_millis(300));
            let (method, path, body, token) = &end;
            assert_eq!(server.call(method, path, Some(body), Some(token)).status, 200, "{method} {path}");
            &request_body.as_bytes()[1..]
        });
        let is_open_to_users = code == 1006 && matches!(path, "/documents" | "/auth/keys");
        if is_open_to_users {
            assert_eq!(response.code(), 0, "{method} {path}");
        } else {
            assert_eq!(response.code(), code, "{method} {path}: {}", response.message());
        }
    }
    assert_eq!(server.get(&document).data()["l1"]["doc_id"], doc_id);
    assert_eq!(server.get(&document).data()["l1"]["title"], "Basalt comes from volcanoes.");
    let now = server.call("GET", "/settings", None, Some(&admin));
    assert_eq!(now.data()["dedup"]["simhash_threshold"], 3);
    let users = server.call("GET", "/users?limit=100", None, Some(&admin)).data()["items"].to_string();
    assert!(!users.contains("mallory"), "{users}");
}

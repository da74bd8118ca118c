//! The quick start of README.md, and the same steps one by one.

use std::{env, fs, path::Path, process::Command};

use lkr_tests::Server;
use serde_json::{Deserializer, Value, json};

#[test]
fn readme_quick_start_works_as_written() {
    let is_installed =
        |tool: &str| Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_installed("curl") || !is_installed("python3") {
        return lkr_test_support::skip("the quick start needs curl and python3");
    }
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let (_, script) = readme.split_once("```sh\n").expect("a quick start in the README");
    let (script, _) = script.split_once("```").unwrap();
    let server = Server::start_without_config();
    let base_url = format!("http://127.0.0.1:{}", server.port());
    assert!(script.contains("http://127.0.0.1:8080"), "{script}");
    let script = script.replace("http://127.0.0.1:8080", &base_url);
    let output =
        Command::new("sh").args(["-e", "-c", &script]).current_dir(server.folder()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    // It prints the task and the search's response.
    let responses: Vec<Value> = Deserializer::from_str(&printed)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap_or_else(|e| panic!("{e}: {printed}"));
    let [task, found] = responses.as_slice() else {
        panic!("expected a task and a search response: {printed}")
    };
    assert_eq!(task["data"]["status"], "done", "{task}");
    let best = &found["data"]["results"][0];
    assert_eq!(best["title"], "Tides", "{found}");
    assert!(found["data"]["summary"]["text"].as_str().is_some_and(|text| !text.is_empty()), "{found}");
}

#[test]
fn first_login_password_change_add_and_search_work() {
    let server = Server::start_with(&[]);
    let file = server.data_dir().join("initial-admin-password");
    let password = fs::read_to_string(&file).unwrap();
    let login = json!({"username": "admin", "password": password.trim_end()});
    let session = server.post("/auth/login", &login).data().clone();
    assert_eq!(session["token_type"], "Bearer");
    assert_eq!(session["user"]["must_change_password"], true);

    // Until the password is changed, nothing else is allowed.
    let document =
        json!({"text": "# Tea\n\nGreen tea is steeped at 80 degrees.\n\n# Coffee\n\nCoffee takes 93."});
    let token = session["access_token"].as_str().unwrap();
    server.call("POST", "/documents", Some(&document), Some(token)).assert_error(1008, 403);
    let change = json!({"current_password": password.trim_end(), "new_password": "a better password"});
    let session = server.call("POST", "/auth/password", Some(&change), Some(token)).data().clone();
    server.call("GET", "/auth/me", None, Some(token)).assert_error(1005, 401);
    assert!(!file.exists(), "changing the password removes the file with the first one");
    assert_eq!(session["user"]["must_change_password"], false);

    let token = session["access_token"].as_str().unwrap();
    let accepted = server.call("POST", "/documents", Some(&document), Some(token));
    assert_eq!((accepted.status, &accepted.data()["status"]), (202, &json!("pending")));
    let task = server.wait_for_task(accepted.data()["task_id"].as_str().unwrap());
    assert_eq!(task["status"], "done", "{task}");
    let found = server.search(&json!({"query": "How hot for green tea?"}));
    assert_eq!(found["results"][0]["path"], json!(["Tea"]), "{found}");
    assert!(found["results"][0]["text"].as_str().unwrap().contains("80 degrees"));
}

#[test]
fn initial_password_is_not_created_again() {
    let mut server = Server::start();
    let file = server.data_dir().join("initial-admin-password");
    assert!(!file.exists(), "a configured password is not written to a file");
    server.stop();
    // Changing the variable later does not change the password.
    server.set("LKR_ADMIN_PASSWORD", "another password");
    server.restart();
    let login = json!({"username": "admin", "password": "another password"});
    server.post("/auth/login", &login).assert_error(1005, 401);
    let _ = server.admin();
    assert!(!file.exists());
}

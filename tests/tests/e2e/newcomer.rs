//! The quick start, step by step, with nothing configured.

use std::fs;

use lkr_tests::Server;
use serde_json::json;

#[test]
fn a_newcomer_finds_what_they_added() {
    let server = Server::start_with(&[]);
    let file = server.data_dir().join("initial-admin-password");
    let password = fs::read_to_string(&file).unwrap();
    let login = json!({"username": "admin", "password": password.trim_end()});
    let session = server.post("/auth/login", &login).data().clone();
    assert_eq!(session["token_type"], "Bearer");
    assert_eq!(session["user"]["must_change_password"], true);

    // Nothing but the change of the password is open before it.
    let document =
        json!({"text": "# Tea\n\nGreen tea is steeped at 80 degrees.\n\n# Coffee\n\nCoffee takes 93."});
    let token = session["access_token"].as_str().unwrap();
    server.call("POST", "/documents", Some(&document), Some(token)).refused(1008, 403);
    let change = json!({"current_password": password.trim_end(), "new_password": "a better password"});
    let session = server.call("POST", "/auth/password", Some(&change), Some(token)).data().clone();
    server.call("GET", "/auth/me", None, Some(token)).refused(1005, 401);
    assert!(!file.exists(), "the file with the first password goes with it");
    assert_eq!(session["user"]["must_change_password"], false);

    let token = session["access_token"].as_str().unwrap();
    let accepted = server.call("POST", "/documents", Some(&document), Some(token));
    assert_eq!((accepted.status, &accepted.data()["status"]), (202, &json!("pending")));
    let task = server.ended(accepted.data()["task_id"].as_str().unwrap());
    assert_eq!(task["status"], "done", "{task}");
    let found = server.search(&json!({"query": "How hot for green tea?"}));
    assert_eq!(found["results"][0]["path"], json!(["Tea"]), "{found}");
    assert!(found["results"][0]["text"].as_str().unwrap().contains("80 degrees"));
}

#[test]
fn the_first_password_is_not_made_again() {
    let mut server = Server::start();
    let file = server.data_dir().join("initial-admin-password");
    assert!(!file.exists(), "a password that was given is not written down");
    server.stop();
    // What the environment says later does not change the account.
    server.set("LKR_ADMIN_PASSWORD", "another password");
    server.restart();
    let login = json!({"username": "admin", "password": "another password"});
    server.post("/auth/login", &login).refused(1005, 401);
    let _ = server.admin();
    assert!(!file.exists());
}

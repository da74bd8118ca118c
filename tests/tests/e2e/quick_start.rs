//! The first steps with a server, one by one.

use std::fs;

use lkr_tests::Server;
use serde_json::json;

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

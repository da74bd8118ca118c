//! Documents, uploads and searches of one account beside a burst of another.

use std::{
    thread,
    time::{Duration, Instant},
};

use lkr_tests::{ADMIN_PASSWORD, Server, model_dir};
use serde_json::json;

const PASSWORD: &str = "a long word for tests";

/// A server with the embedding model, and the token of a second account; `None` without the model.
fn server() -> Option<(Server, String)> {
    let model = model_dir()?;
    let environment =
        [("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD), ("LKR_MODEL_DIR", &model.display().to_string())];
    let server = Server::start_with(&environment);
    let user =
        json!({"username": "eva", "password": PASSWORD, "role": "user", "must_change_password": false});
    assert_eq!(server.call("POST", "/users", Some(&user), Some(server.admin())).status, 201);
    let credentials = json!({"username": "eva", "password": PASSWORD});
    let login = server.call("POST", "/auth/login", Some(&credentials), None);
    let token = login.data()["access_token"].as_str().unwrap().to_owned();
    Some((server, token))
}

/// English words in sentences, different for each number.
fn text(number: usize, bytes: usize) -> String {
    let words = ["granite", "basalt", "marble", "slate", "quartz", "gneiss", "chalk", "flint"];
    let sentence = |n: usize| format!("The {} {n} of layer {number} is old. ", words[(n * 7 + number) % 8]);
    let mut text = String::with_capacity(bytes + 64);
    for n in 0.. {
        text.push_str(&sentence(n));
        if text.len() >= bytes {
            break;
        }
    }
    text
}

/// Submits documents of these sizes as admin, and returns their tasks.
fn flood(server: &Server, sizes: &[usize]) -> Vec<String> {
    let submit = |(number, &bytes): (usize, &usize)| {
        let task = server.submit(&json!({ "text": text(number, bytes) }));
        task["task_id"].as_str().unwrap().to_owned()
    };
    sizes.iter().enumerate().map(submit).collect()
}

/// The time from the request to the end of the task of a document of 1 kB.
fn time_of_a_document(server: &Server, token: &str, number: usize) -> Duration {
    let started = Instant::now();
    let document = json!({ "text": text(1_000 + number, 1_000) });
    let accepted = server.call("POST", "/documents", Some(&document), Some(token));
    assert_eq!(accepted.status, 202, "{}", accepted.message());
    let task = server.wait_for_task(accepted.data()["task_id"].as_str().unwrap());
    assert_eq!(task["status"], "done", "{task}");
    started.elapsed()
}

fn time_of_an_upload(server: &Server, token: &str, number: usize) -> Duration {
    let started = Instant::now();
    let uploaded =
        server.try_upload(&format!("{number}.md"), text(2_000 + number, 1_000).as_bytes(), &[], token);
    assert_eq!(uploaded.unwrap().status, 202);
    started.elapsed()
}

fn time_of_a_search(server: &Server, number: usize) -> Duration {
    let started = Instant::now();
    let _ = server.search(&json!({"query": format!("old granite {number}")}));
    started.elapsed()
}

/// The number of tasks that have not ended.
fn unfinished(server: &Server, tasks: &[String]) -> usize {
    let has_ended = |task: &&String| matches!(server.task(task)["status"].as_str(), Some("done" | "failed"));
    tasks.len() - tasks.iter().filter(has_ended).count()
}

#[test]
fn document_of_an_account_is_done_while_a_burst_of_another_waits() {
    let Some((server, token)) = server() else { return };
    // More documents than workers, of the longest texts that workers read, and long ones.
    let burst = flood(&server, &[[1_000_000; 10], [3_000_000; 10]].concat());
    time_of_a_document(&server, &token, 0);
    assert!(unfinished(&server, &burst) >= 12, "the document waited for the burst");
}

/// Prints the times of an account alone and beside a burst, and their ratios.
#[test]
#[ignore = "measures times, which takes minutes"]
fn times_beside_a_burst() {
    let bursts: [(&str, &[usize]); 2] =
        [("8 texts of 12 MB", &[12_000_000; 8]), ("24 texts of 1 MB", &[1_000_000; 24])];
    for (name, sizes) in bursts {
        let Some((server, token)) = server() else { return };
        let times = |numbers: std::ops::Range<usize>| {
            let times = |time: &dyn Fn(usize) -> Duration| {
                let mut times: Vec<Duration> = numbers.clone().map(time).collect();
                times.sort_unstable();
                times[times.len() / 2]
            };
            [
                times(&|number| time_of_a_document(&server, &token, number)),
                times(&|number| time_of_an_upload(&server, &token, number)),
                times(&|number| time_of_a_search(&server, number)),
            ]
        };
        let _ = server.add(&json!({"text": text(5_000, 1_000)}));
        time_of_a_document(&server, &token, 99);
        let alone = times(0..9);
        let burst = flood(&server, sizes);
        // Until all workers are busy.
        thread::sleep(Duration::from_secs(5));
        let beside = times(10..19);
        assert!(unfinished(&server, &burst) > 0, "the burst ended too early");
        for (what, (alone, beside)) in ["document", "upload", "search"].iter().zip(alone.iter().zip(beside)) {
            let ratio = beside.as_secs_f64() / alone.as_secs_f64();
            eprintln!("{name}, {what}: {alone:?} alone, {beside:?} beside it, {ratio:.1} times");
        }
    }
}

//! Documents, uploads and searches of one account beside a burst of another.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use lkr_tests::{ADMIN_PASSWORD, Server, model_dir};
use rustix::process::{Pid, getpriority_process};
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

/// The names of the threads of a process, and how much nicer each is than the process; `None` without /proc.
fn niceness_of_threads(pid: u32) -> Option<Vec<(String, i32)>> {
    let of = |id: &str| getpriority_process(Pid::from_raw(id.parse().ok()?)).ok();
    let of_process = of(&pid.to_string())?;
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let thread = |entry: fs::DirEntry| {
        // It may have ended.
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        Some((name.trim().to_owned(), of(entry.file_name().to_str()?)? - of_process))
    };
    Some(threads.flatten().filter_map(thread).collect())
}

#[test]
fn threads_of_ingestion_give_way_and_those_of_requests_do_not() {
    let server = Server::start();
    let _ = server.add(&json!({"text": text(0, 10_000)}));
    let Some(threads) = niceness_of_threads(server.pid()) else {
        return lkr_test_support::skip("no /proc to list threads");
    };
    let named = |start: &str| -> Vec<i32> {
        let named = threads.iter().filter(|(name, _)| name.starts_with(start));
        named.map(|(_, niceness)| *niceness).collect()
    };
    let (ingestion, requests) = (named("lkr-ingest"), named("actix"));
    assert!(!ingestion.is_empty() && ingestion.iter().all(|niceness| *niceness > 0), "{threads:?}");
    assert!(!requests.is_empty() && requests.iter().all(|niceness| *niceness == 0), "{threads:?}");
}

/// A PDF file of pages with sixty lines each. 6,000 pages take a processor about ten seconds.
fn pdf(pages: usize) -> Vec<u8> {
    let content = |page: usize| -> String {
        let line = |n: usize| {
            let (y, number) = (780 - n * 12, n * page);
            format!(
                "BT /F1 8 Tf 50 {y} Td (Line {n} of page {page} says that granite {number} is old.) Tj ET\n"
            )
        };
        (0..60).map(line).collect()
    };
    let kids: String = (0..pages).map(|page| format!("{} 0 R ", 4 + 2 * page)).collect();
    let mut objects = vec![
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        format!("<</Type/Pages/Kids[{kids}]/Count {pages}>>"),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_owned(),
    ];
    for page in 0..pages {
        objects.push(format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>/Contents {} 0 R>>",
            5 + 2 * page
        ));
        let content = content(page);
        objects.push(format!("<</Length {}>>stream\n{content}endstream", content.len()));
    }
    let (mut file, mut table) = ("%PDF-1.4\n".to_owned(), "0000000000 65535 f \n".to_owned());
    for (number, object) in (1..).zip(&objects) {
        table.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{number} 0 obj\n{object}\nendobj\n"));
    }
    let (size, at) = (objects.len() + 1, file.len());
    file.push_str(&format!(
        "xref\n0 {size}\n{table}trailer<</Size {size}/Root 1 0 R>>\nstartxref\n{at}\n%%EOF"
    ));
    file.into_bytes()
}

/// Prints the times of an account beside files of another that take long to read.
#[test]
#[ignore = "measures times, which takes minutes"]
fn times_beside_slow_files() {
    let Some((server, token)) = server() else { return };
    let slow = pdf(6_000);
    let _ = server.add(&json!({"text": text(5_000, 1_000)}));
    time_of_a_document(&server, &token, 99);
    let alone = Times::of(&server, &token, 0..9);
    thread::scope(|scope| {
        let (server, slow) = (&server, &slow);
        let upload = |number| {
            // A client may give up before its file is read.
            let sent = move || server.try_upload(&format!("{number}.pdf"), slow, &[], server.admin());
            scope.spawn(move || sent().map_or(0, |response| response.status))
        };
        let uploads: Vec<_> = (0..16).map(upload).collect();
        // Until all readers are busy.
        thread::sleep(Duration::from_secs(5));
        let beside = Times::of(server, &token, 10..19);
        assert!(uploads.iter().any(|upload| !upload.is_finished()), "the burst ended too early");
        alone.print_beside("16 files of 6,000 pages", &beside);
        let statuses: Vec<u16> = uploads.into_iter().map(|upload| upload.join().unwrap()).collect();
        eprintln!("statuses of the files: {statuses:?}");
    });
}

/// Medians of several measurements.
struct Times([Duration; 3]);

impl Times {
    fn of(server: &Server, token: &str, numbers: std::ops::Range<usize>) -> Self {
        let median = |time: &dyn Fn(usize) -> Duration| {
            let mut times: Vec<Duration> = numbers.clone().map(time).collect();
            times.sort_unstable();
            times[times.len() / 2]
        };
        Self([
            median(&|number| time_of_a_document(server, token, number)),
            median(&|number| time_of_an_upload(server, token, number)),
            median(&|number| time_of_a_search(server, number)),
        ])
    }

    fn print_beside(&self, burst: &str, beside: &Self) {
        for (what, (alone, beside)) in
            ["document", "upload", "search"].iter().zip(self.0.iter().zip(beside.0))
        {
            let ratio = beside.as_secs_f64() / alone.as_secs_f64();
            eprintln!("{burst}, {what}: {alone:?} alone, {beside:?} beside it, {ratio:.1} times");
        }
    }
}

/// Prints the times of an account alone and beside a burst, and their ratios.
#[test]
#[ignore = "measures times, which takes minutes"]
fn times_beside_a_burst() {
    let bursts: [(&str, &[usize]); 2] =
        [("8 texts of 12 MB", &[12_000_000; 8]), ("24 texts of 1 MB", &[1_000_000; 24])];
    for (name, sizes) in bursts {
        let Some((server, token)) = server() else { return };
        let _ = server.add(&json!({"text": text(5_000, 1_000)}));
        time_of_a_document(&server, &token, 99);
        let alone = Times::of(&server, &token, 0..9);
        let burst = flood(&server, sizes);
        // Until all workers are busy.
        thread::sleep(Duration::from_secs(5));
        let beside = Times::of(&server, &token, 10..19);
        assert!(unfinished(&server, &burst) > 0, "the burst ended too early");
        alone.print_beside(name, &beside);
    }
}

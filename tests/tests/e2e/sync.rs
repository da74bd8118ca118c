//! `lkr sync`: a folder and the documents of a space.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use lkr_tests::{CommandLine, Seed, Server, printed};
use serde_json::{Value, json};

/// How often a run is killed, and every fourth time the server before it; `CRASH_KILLS` overrides it.
const KILLS: u64 = 12;

/// How long a watched change may take to be found.
const TIMEOUT: Duration = Duration::from_secs(60);

fn sync(lkr: &CommandLine, arguments: &[&str]) -> Value {
    let mut lines = lkr.json(&[&["sync", "folder", "--space", "sea"], arguments].concat());
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.remove(0)
}

fn write(lkr: &CommandLine, path: &str, text: &str) {
    let path = lkr.path("folder").join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The documents of the space `sea`, by source.
fn documents(server: &Server) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for item in server.list_all_as("/documents?space=sea", Some(server.admin())) {
        let source = item["source"].as_str().unwrap().to_owned();
        assert!(found.insert(source.clone(), item).is_none(), "two documents have the source {source}");
    }
    found
}

/// The documents that a folder should have: the text of each file by its path.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(folder.join(&below)).unwrap() {
            let entry = entry.unwrap();
            let path = below.join(entry.file_name());
            if entry.file_name() == ".lkr" {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(folder.join(&path)).unwrap();
                found.insert(path.to_str().unwrap().to_owned(), text);
            }
        }
    }
    found
}

/// Asserts that the synchronised documents are the files, with their texts.
fn assert_equal(server: &Server, folder: &Path) {
    let mut expected = files(folder);
    for (source, document) in documents(server) {
        let Some((_, path)) = source.strip_prefix("sync:").and_then(|rest| rest.split_once('/')) else {
            continue;
        };
        let text = expected.remove(path);
        let id = document["doc_id"].as_str().unwrap();
        let stored = server.call("GET", &format!("/documents/{id}/text"), None, Some(server.admin()));
        assert_eq!(stored.data()["text"].as_str(), text.as_deref(), "{path}");
    }
    assert!(expected.is_empty(), "without a document: {:?}", expected.keys());
}

fn server_with_space() -> (Server, CommandLine) {
    let server = Server::start();
    let lkr = CommandLine::on(&server);
    assert_eq!(lkr.print(&["spaces", "create", "sea"]), "created sea\n");
    (server, lkr)
}

#[test]
fn lesson_38_sync_touches_its_own_documents_alone_and_embeds_only_what_changed() {
    let (server, lkr) = server_with_space();
    let other = json!({"text": "Another way.", "source": "by hand", "space": "sea"});
    let _ = server.add(&other);
    write(&lkr, "a.md", "# A\n\nThe first letter.\n");
    write(&lkr, "deep/b.txt", "The second letter.\n");
    write(&lkr, "skipped/c.txt", "The third letter.\n");
    write(&lkr, ".gitignore", "skipped/\n");
    let shown = lkr.print(&["sync", "folder", "--space", "sea", "--dry-run"]);
    assert_eq!(shown, "new      a.md\nnew      deep/b.txt\n");
    assert_eq!(documents(&server).len(), 1, "a dry run changed something");
    assert_eq!(sync(&lkr, &[])["new"], 2);
    let before = documents(&server);

    // A moved file keeps its document, and nothing is read or embedded again.
    let tasks = |server: &Server| server.list_all_as("/documents/tasks", Some(server.admin())).len();
    let tasks_before = tasks(&server);
    fs::rename(lkr.path("folder/deep/b.txt"), lkr.path("folder/moved.txt")).unwrap();
    assert_eq!(sync(&lkr, &[])["moved"], 1);
    assert_eq!(sync(&lkr, &[])["unchanged"], 2);
    assert_eq!(tasks(&server), tasks_before);
    let after = documents(&server);
    let id = |documents: &BTreeMap<String, Value>, end: &str| {
        documents.iter().find(|(source, _)| source.ends_with(end)).map(|(_, item)| item["doc_id"].clone())
    };
    assert_eq!(id(&after, "/moved.txt"), id(&before, "/deep/b.txt"));

    // Two copies of the folder do not collide.
    let copy = Path::new("copy");
    fs::create_dir_all(lkr.path("copy/.lkr")).unwrap();
    for name in ["a.md", ".lkr/folder.json"] {
        fs::copy(lkr.path("folder").join(name), lkr.folder().join(copy).join(name)).unwrap();
    }
    let report = lkr.json(&["sync", "copy", "--space", "sea", "--delete"]);
    assert_eq!((&report[0]["new"], &report[0]["deleted"]), (&json!(1), &json!(0)), "{report:?}");
    assert_eq!(documents(&server).len(), 4);

    // A delete needs permission, and ends at the folder's own documents.
    fs::remove_file(lkr.path("folder/a.md")).unwrap();
    assert_eq!(sync(&lkr, &[])["kept"], 1);
    assert_eq!(sync(&lkr, &["--delete"])["deleted"], 1);
    let sources: Vec<String> = documents(&server).into_keys().collect();
    assert_eq!(sources.len(), 3, "{sources:?}");
    assert!(sources.contains(&"by hand".to_owned()), "{sources:?}");
}

#[test]
fn refused_file_is_reported_and_sent_again_only_on_request() {
    let (server, lkr) = server_with_space();
    write(&lkr, "bad.pdf", "%PDF-1.4 no");
    write(&lkr, "good.txt", "words");
    let run = |more: &[&str]| lkr.run(&[&["sync", "folder", "--space", "sea"], more].concat());
    for more in [&[][..], &[], &["--retry-refused"]] {
        let output = run(more);
        assert_eq!(output.status.code(), Some(5), "{}", printed(&output));
        assert!(printed(&output).contains("bad.pdf: refused: "), "{}", printed(&output));
    }
    write(&lkr, "bad.pdf", "");
    fs::remove_file(lkr.path("folder/bad.pdf")).unwrap();
    assert_eq!(sync(&lkr, &[])["unchanged"], 1);
    assert_eq!(documents(&server).len(), 1);
}

#[test]
fn account_without_the_right_is_refused_and_nothing_is_lost() {
    let (server, lkr) = server_with_space();
    write(&lkr, "a.txt", "words");
    let missing = lkr.run(&["sync", "folder", "--space", "moon"]);
    assert_eq!(missing.status.code(), Some(4), "{}", printed(&missing));
    let key = lkr.print(&["keys", "create", "reader", "--read-only"]);
    let reader = CommandLine::with_token(&server, key.trim());
    let folder = lkr.path("folder").display().to_string();
    let refused = reader.run(&["sync", &folder, "--space", "sea"]);
    assert_eq!(refused.status.code(), Some(3), "{}", printed(&refused));
    assert_eq!(sync(&lkr, &[])["new"], 1);
}

#[test]
fn dry_run_with_any_flag_writes_nothing_and_shows_what_would_be_done() {
    let (server, lkr) = server_with_space();
    write(&lkr, "a.txt", "one");
    write(&lkr, "b.txt", "two");
    let dry_run =
        |more: &[&str]| lkr.print(&[&["sync", "folder", "--space", "sea", "--dry-run"], more].concat());
    assert_eq!(dry_run(&["--id", "sea-docs"]), "new      a.txt\nnew      b.txt\n");
    assert!(!lkr.path("folder/.lkr").exists(), "a dry run made a folder");
    assert_eq!(sync(&lkr, &[])["new"], 2);

    fs::remove_file(lkr.path("folder/b.txt")).unwrap();
    let before = own_files(&lkr);
    assert_eq!(dry_run(&[]), "kept     b.txt\n");
    assert_eq!(dry_run(&["--quiet"]), "");
    assert_eq!(dry_run(&["--delete"]), "deleted  b.txt\n");
    assert_eq!(dry_run(&["--id", "sea-docs", "--delete"]), "new      a.txt\n");
    let plan = sync(&lkr, &["--dry-run"]);
    assert_eq!((&plan["deletes"], &plan["kept"][0]["path"]), (&json!([]), &json!("b.txt")));
    assert_eq!(own_files(&lkr), before);
    let report = sync(&lkr, &["--delete"]);
    assert_eq!((&report["unchanged"], &report["deleted"]), (&json!(1), &json!(1)), "{report}");
    assert_eq!(documents(&server).len(), 1);
}

/// The files in `.lkr` with their contents.
fn own_files(lkr: &CommandLine) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(lkr.path("folder/.lkr")).unwrap();
    entries.map(|entry| entry.unwrap().path()).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn copy_whose_original_was_moved_asks_whether_it_is_a_copy() {
    let (server, lkr) = server_with_space();
    write(&lkr, "a.txt", "words");
    assert_eq!(sync(&lkr, &[])["new"], 1);
    fs::create_dir_all(lkr.path("second/.lkr")).unwrap();
    for name in ["a.txt", ".lkr/folder.json"] {
        fs::copy(lkr.path("folder").join(name), lkr.path("second").join(name)).unwrap();
    }
    fs::rename(lkr.path("folder"), lkr.path("first")).unwrap();
    let run = |folder: &str, more: &[&str]| lkr.run(&[&["sync", folder, "--space", "sea"], more].concat());
    let first = run("first", &["--delete"]);
    assert!(first.status.success(), "{}", printed(&first));
    assert!(printed(&first).contains("this folder was moved from "), "{}", printed(&first));
    let second = run("second", &["--delete"]);
    assert_eq!(second.status.code(), Some(2), "{}", printed(&second));
    assert!(printed(&second).contains("pass --moved "), "{}", printed(&second));
    let second = run("second", &["--delete", "--copied"]);
    assert!(printed(&second).contains("1 new, 0 changed, 0 moved, 0 deleted"), "{}", printed(&second));
    assert_eq!(documents(&server).len(), 2);
}

#[test]
fn invalid_id_is_a_wrong_argument() {
    let lkr = CommandLine::alone();
    write(&lkr, "a.txt", "words");
    let output =
        lkr.run(&["sync", "folder", "--id", "a/b", "--token", "x", "--server", "http://127.0.0.1:9"]);
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    assert!(printed(&output).contains("the id \"a/b\" must have 1 to 64 characters"), "{}", printed(&output));
}

#[test]
fn watch_that_is_started_before_the_server_waits_for_it() {
    let (server, lkr) = server_with_space();
    write(&lkr, "a.txt", "one");
    server.stop();
    let mut watch = lkr.command(&["sync", "folder", "--space", "sea", "--watch"]);
    let mut watch = watch.stdout(Stdio::null()).spawn().unwrap();
    let mut warning = String::new();
    // The command fails if nobody reads what it says later.
    let mut stderr = BufReader::new(watch.stderr.take().unwrap());
    stderr.read_line(&mut warning).unwrap();
    assert!(warning.contains("trying again every 10 s"), "{warning}");
    server.restart();
    wait_until(&server, &["/a.txt"]);
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn watch_follows_the_changes_of_a_folder() {
    let (server, lkr) = server_with_space();
    write(&lkr, "a.txt", "one");
    let mut watch = lkr.command(&["sync", "folder", "--space", "sea", "--watch", "--delete"]);
    let mut watch = watch.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until(&server, &["/a.txt"]);
    write(&lkr, "b/new.txt", "two");
    wait_until(&server, &["/a.txt", "/b/new.txt"]);
    fs::rename(lkr.path("folder/a.txt"), lkr.path("folder/b/old.txt")).unwrap();
    wait_until(&server, &["/b/new.txt", "/b/old.txt"]);
    fs::remove_dir_all(lkr.path("folder/b")).unwrap();
    wait_until(&server, &[]);
    watch.kill().unwrap();
    watch.wait().unwrap();
}

fn wait_until(server: &Server, ends: &[&str]) {
    let started = Instant::now();
    loop {
        let sources: Vec<String> = documents(server).into_keys().collect();
        let is_equal =
            sources.len() == ends.len() && ends.iter().all(|end| sources.iter().any(|s| s.ends_with(end)));
        if is_equal {
            return;
        }
        assert!(started.elapsed() < TIMEOUT, "{ends:?} expected, {sources:?} found");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn kills_amid_a_sync_leave_one_document_for_each_file() {
    let (server, lkr) = server_with_space();
    let other = json!({"text": "Another way.", "source": "by hand", "space": "sea"});
    let _ = server.add(&other);
    let kills = env::var("CRASH_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let mut seed = Seed::announce("kills_amid_a_sync");
    for number in 0..40 {
        write(&lkr, &format!("{}/{number}.txt", number % 3), &text(&mut seed));
    }
    for _ in 0..kills {
        let mut child = start(&lkr);
        change(&lkr, &mut seed);
        thread::sleep(Duration::from_millis(seed.below(600)));
        change(&lkr, &mut seed);
        // Any end is right: it may have been killed, or have been done before.
        if seed.below(4) == 0 {
            server.restart();
        }
        let _ = child.kill();
        child.wait().unwrap();
    }
    let report = sync(&lkr, &["--delete"]);
    assert_eq!(report["issues"], json!([]), "{report}");
    assert_equal(&server, &lkr.path("folder"));
    assert!(documents(&server).contains_key("by hand"));
}

fn start(lkr: &CommandLine) -> Child {
    let mut command = lkr.command(&["sync", "folder", "--space", "sea", "--delete"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn text(seed: &mut Seed) -> String {
    let words: Vec<String> = (0..30).map(|_| format!("word{}", seed.below(1_000))).collect();
    words.join(" ")
}

/// Adds, rewrites, moves or removes a few files.
fn change(lkr: &CommandLine, seed: &mut Seed) {
    let folder = lkr.path("folder");
    for _ in 0..4 {
        let paths: Vec<String> = files(&folder).into_keys().collect();
        let number = seed.below(paths.len() as u64 + 1) as usize;
        match (paths.get(number), seed.below(3)) {
            (Some(path), 0) => fs::remove_file(folder.join(path)).unwrap(),
            (Some(path), 1) => {
                let new = format!("{}/moved{}.txt", seed.below(4), seed.below(1_000_000));
                fs::create_dir_all(folder.join(&new).parent().unwrap()).unwrap();
                fs::rename(folder.join(path), folder.join(new)).unwrap();
            }
            (Some(path), _) => fs::write(folder.join(path), text(seed)).unwrap(),
            (None, _) => {
                write(lkr, &format!("{}/new{}.txt", seed.below(4), seed.below(1_000_000)), &text(seed));
            }
        }
    }
}

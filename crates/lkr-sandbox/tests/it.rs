//! The sandbox with a worker that does harm.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test, and what helps it, ends where something fails"
)]

use std::{
    env, fs,
    io::Write,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use lkr_sandbox::{ErrorKind, Extracted, FileSource, Limits, Mode, Result, Sandbox, SandboxOptions};
use serde_json::{Value, json};

/// The example is built with the tests, beside them.
fn worker() -> PathBuf {
    let tests = env::current_exe().unwrap();
    tests.ancestors().nth(2).unwrap().join("examples/worker")
}

struct Base {
    sandbox: Sandbox,
    _spool: tempfile::TempDir,
}

impl Base {
    fn new(parallel: usize, waiting: usize) -> Self {
        let spool = tempfile::tempdir().unwrap();
        let mode = Mode::Worker { program: worker(), arguments: Vec::new() };
        let options = SandboxOptions::new(mode, spool.path().join("spool"));
        let sandbox = Sandbox::new(SandboxOptions { parallel, waiting, ..options }).unwrap();
        Self { sandbox, _spool: spool }
    }

    async fn read(&self, text: &str) -> Result<Extracted> {
        self.read_with(json!("plan"), text, limits()).await
    }

    async fn read_with(&self, plan: Value, text: &str, limits: Limits) -> Result<Extracted> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let length = text.len() as u64;
        let source = FileSource { file_name: "a.txt".into(), media_type: None, file, length };
        self.sandbox.extract(plan, source, limits).await
    }
}

fn limits() -> Limits {
    Limits { time: Duration::from_secs(3), ..Limits::default() }
}

async fn refused(text: &str) -> (ErrorKind, String) {
    let error = Base::new(2, 8).read(text).await.unwrap_err();
    (error.kind(), error.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_worker_reads() {
    let base = Base::new(2, 8);
    for _ in 0..5 {
        let extracted = base.read("some words").await.unwrap();
        let parsed = extracted.read().unwrap();
        assert_eq!((parsed.text.as_str(), parsed.blocks.len()), ("some words", 1));
        assert_eq!(parsed.blocks[0].page, Some(1));
    }
    assert!(base.read("").await.unwrap().is_blank());
    let large = "many words ".repeat(1_000_000);
    assert_eq!(base.read(&large).await.unwrap().read().unwrap().text, large.trim());
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_come_through() {
    assert_eq!(refused("refuse").await, (ErrorKind::Encrypted, "read the file: it needs a password".into()));
    let error = Base::new(2, 8).read_with(json!("broken"), "x", limits()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Internal, "read the file: no such plugin".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lesson_28_what_crashes_harms_nobody() {
    for harm in ["panic", "recurse"] {
        assert_eq!(refused(harm).await, (ErrorKind::Crash, "read the file: the parser failed on it".into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_too_long_is_ended() {
    let begun = Instant::now();
    for harm in ["sleep", "spin"] {
        let (kind, message) = refused(harm).await;
        assert_eq!(
            (kind, message.as_str()),
            (ErrorKind::Limit, "read the file: it takes longer than 3 s to read")
        );
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[tokio::test(flavor = "multi_thread")]
async fn lesson_07_what_takes_too_much_memory_is_ended() {
    let (kind, message) = refused("allocate").await;
    assert_eq!(kind, ErrorKind::Limit);
    assert_eq!(message, "read the file: it takes more than 512 MiB of memory to read");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_writes_too_much_is_ended() {
    let (kind, message) = refused("fill").await;
    assert_eq!((kind, message.contains("more room")), (ErrorKind::Limit, true), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parser_may_answer_in_time_what_it_has() {
    let extracted = Base::new(2, 8).read("deadline").await.unwrap();
    assert_eq!(extracted.read().unwrap().text, "deadline");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_has_no_network_and_no_secrets() {
    let base = Base::new(2, 8);
    let warnings = base.read("connect").await.unwrap().warnings().to_vec();
    assert!(warnings[0].contains("not permitted"), "{warnings:?}");
    assert_eq!(base.read("environment").await.unwrap().warnings(), ["none"]);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_has_no_file_of_its_parent() {
    let file = tempfile::tempfile().unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let warnings = Base::new(2, 8).read("files").await.unwrap().warnings().to_vec();
    let open: usize = warnings[0].parse().unwrap();
    // The standard ones, the output, and the folder that is being read.
    assert!(open <= 5, "{open}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_parser_prints_is_not_its_text() {
    assert_eq!(Base::new(2, 8).read("chatter").await.unwrap().read().unwrap().text, "chatter");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_worker_started_ends_with_it() {
    let sleeping = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        lines.filter(|line| line.starts_with(b"sleep\x00600")).count()
    };
    let before = sleeping();
    let base = Arc::new(Base::new(2, 8));
    let reading = tokio::spawn({
        let base = Arc::clone(&base);
        async move { base.read("child").await.map(drop) }
    });
    eventually(|| sleeping() > before).await;
    reading.abort();
    eventually(|| sleeping() == before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_are_refused_and_a_caller_who_leaves_makes_room() {
    let base = Arc::new(Base::new(1, 1));
    let patient = Limits { time: Duration::from_secs(600), ..limits() };
    let readings = [0; 2].map(|_| {
        let base = Arc::clone(&base);
        // The trial below may take the place of one of them for a moment.
        tokio::spawn(async move { while base.read_with(json!(""), "sleep", patient).await.is_err() {} })
    });
    let full = async || {
        let trial = tokio::time::timeout(Duration::from_millis(50), base.read("words")).await;
        matches!(trial, Ok(Err(error)) if error.kind() == ErrorKind::Overloaded)
    };
    while !full().await {}
    readings.iter().for_each(tokio::task::JoinHandle::abort);
    while full().await {}
    base.read("words").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn in_process_a_parser_is_a_function() {
    let spool = tempfile::tempdir().unwrap();
    let mode = Mode::InProcess(Arc::new(|_| Ok(Box::new(lkr_parsers::Markdown))));
    let sandbox = Sandbox::new(SandboxOptions::new(mode, spool.path().into())).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"# One\n\nTwo.").unwrap();
    let source = FileSource { file_name: "a.md".into(), media_type: None, file, length: 11 };
    let parsed = sandbox.extract(Value::Null, source, limits()).await.unwrap().read().unwrap();
    assert_eq!((parsed.text.as_str(), parsed.blocks.len()), ("# One\n\nTwo.", 2));
}

async fn eventually(holds: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to hold");
}

//! The sandbox with a worker whose parser misbehaves on demand.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a failing test panics")]

use std::{
    env, fs,
    io::Write,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use lkr_parsers::{Parser, Source};
use lkr_sandbox::{
    ErrorKind, Extracted, FileSource, FileViewer, Layer, Limits, ReaderFactory, Result, Sandbox, SandboxMode,
    SandboxOptions,
};
use serde_json::{Value, json};

/// The path of the example, which is built with the tests.
fn worker_path() -> PathBuf {
    let tests = env::current_exe().unwrap();
    tests.ancestors().nth(2).unwrap().join("examples/worker")
}

struct TestSandbox {
    sandbox: Sandbox,
    _spool: tempfile::TempDir,
}

impl TestSandbox {
    fn new(concurrency: usize, max_waiting: usize) -> Self {
        let spool = tempfile::tempdir().unwrap();
        let mode = SandboxMode::Worker { program: worker_path(), arguments: Vec::new() };
        let options = SandboxOptions::new(mode, spool.path().join("spool"));
        let sandbox = Sandbox::new(SandboxOptions { concurrency, max_waiting, ..options }).unwrap();
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

async fn extraction_error(text: &str) -> (ErrorKind, String) {
    let error = TestSandbox::new(2, 8).read(text).await.unwrap_err();
    (error.kind(), error.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_returns_text_and_blocks_of_files_of_any_size() {
    let sandbox = TestSandbox::new(2, 8);
    for _ in 0..5 {
        let extracted = sandbox.read("some words").await.unwrap();
        let parsed = extracted.read().unwrap();
        assert_eq!((parsed.text.as_str(), parsed.blocks.len()), ("some words", 1));
        assert_eq!(parsed.blocks[0].page, Some(1));
    }
    assert!(sandbox.read("").await.unwrap().is_blank());
    let large = "many words ".repeat(1_000_000);
    assert_eq!(sandbox.read(&large).await.unwrap().read().unwrap().text, large.trim());
}

#[tokio::test(flavor = "multi_thread")]
async fn parser_errors_reach_the_caller() {
    assert_eq!(
        extraction_error("refuse").await,
        (ErrorKind::Encrypted, "extract text: the file needs a password".into())
    );
    let error = TestSandbox::new(2, 8).read_with(json!("broken"), "x", limits()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Internal, "extract text: no such plugin".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lesson_28_parser_crash_fails_only_its_own_file() {
    for fault in ["panic", "recurse"] {
        assert_eq!(
            extraction_error(fault).await,
            (ErrorKind::Crash, "extract text: the parser crashed on the file".into())
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_beyond_the_time_limit_is_killed() {
    let started = Instant::now();
    for (fault, time, seconds) in
        [("spin", Duration::from_secs(2), 2), ("sleep", Duration::from_millis(500), 0)]
    {
        let limits = Limits { time, ..limits() };
        let error = TestSandbox::new(2, 8).read_with(json!("plan"), fault, limits).await.unwrap_err();
        let message = format!("extract text: extraction exceeded the time limit of {seconds} s");
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Limit, message), "{fault}");
    }
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn worker_that_waits_longer_than_its_time_limit_is_not_killed() {
    let limits = Limits { time: Duration::from_secs(1), ..limits() };
    let extracted = TestSandbox::new(2, 8).read_with(json!("plan"), "nap", limits).await.unwrap();
    assert_eq!(extracted.warnings(), ["the deadline has not passed"]);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn processor_time_of_the_ocr_program_counts() {
    let limits = Limits { time: Duration::from_secs(1), ..limits() };
    let read = TestSandbox::new(2, 8).read_with(json!("ocr"), "ocr sha256sum /dev/zero", limits).await;
    assert_eq!(read.unwrap_err().to_string(), "extract text: extraction exceeded the time limit of 1 s");
}

#[tokio::test(flavor = "multi_thread")]
async fn lesson_07_worker_beyond_the_memory_limit_is_killed() {
    let (kind, message) = extraction_error("allocate").await;
    assert_eq!(kind, ErrorKind::Limit);
    assert_eq!(message, "extract text: extraction exceeded the memory limit of 512 MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_beyond_the_output_limit_is_killed() {
    let small = Limits { output: 1024 * 1024, ..limits() };
    let text = "many words ".repeat(200_000);
    let error = TestSandbox::new(2, 8).read_with(json!("plan"), &text, small).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(error.to_string(), "extract text: extraction exceeded the output limit of 1 MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn parser_that_stops_at_its_deadline_returns_its_text() {
    let extracted = TestSandbox::new(2, 8).read("deadline").await.unwrap();
    assert_eq!(extracted.read().unwrap().text, "deadline");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn worker_has_no_network_and_inherits_no_secrets() {
    let sandbox = TestSandbox::new(2, 8);
    let warnings = sandbox.read("connect").await.unwrap().warnings().to_vec();
    assert!(warnings[0].contains("not permitted"), "{warnings:?}");
    assert_eq!(sandbox.read("environment").await.unwrap().warnings(), ["none"]);
}

/// What the worker writes that views a file with `text`.
#[cfg(target_os = "linux")]
async fn view(text: &str) -> std::result::Result<Vec<u8>, ErrorKind> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let source = FileSource { file_name: "a.txt".into(), media_type: None, file, length: text.len() as u64 };
    let view = TestSandbox::new(2, 8).sandbox.view_for("", json!("plan"), source, limits()).await;
    view.map_err(|error| error.kind())
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn extraction_gives_way_to_searches_more_than_a_view() {
    let own = rustix::process::getpriority_process(None).unwrap();
    let nicer_by = |difference: i32| (own + difference).min(19).to_string();
    assert_eq!(TestSandbox::new(2, 8).read("niceness").await.unwrap().warnings(), [nicer_by(10)]);
    assert_eq!(view("niceness").await.unwrap(), nicer_by(2).as_bytes());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn worker_views_files_under_the_limits_of_a_parser() {
    assert!(view("connect").await.is_ok_and(|warning| !warning.is_empty()));
    assert_eq!(view("refuse").await, Err(ErrorKind::Encrypted));
    for (text, kind) in
        [("panic", ErrorKind::Crash), ("spin", ErrorKind::Limit), ("allocate", ErrorKind::Limit)]
    {
        assert_eq!(view(text).await, Err(kind), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_inherits_no_open_files() {
    let file = tempfile::tempfile().unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let warnings = TestSandbox::new(2, 8).read("files").await.unwrap().warnings().to_vec();
    let open: usize = warnings[0].parse().unwrap();
    // The three standard streams and the output file.
    assert_eq!(open, 4);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn lesson_28_worker_reaches_no_files_and_no_other_process() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret.key");
    fs::write(&secret, "key").unwrap();
    let text = format!("attempt {} {}", std::process::id(), secret.display());
    let sandbox = TestSandbox::new(2, 8);
    let confinement = sandbox.sandbox.confinement().await.unwrap();
    if !confinement.missing().is_empty() {
        return lkr_test_support::skip(&format!("not enforced here: {:?}", confinement.missing()));
    }
    let results = sandbox.read(&text).await.unwrap().warnings().to_vec();
    assert!(results.len() > 20, "{results:?}");
    let denied = |result: &&String| result.ends_with(": PermissionDenied");
    assert_eq!(results.iter().filter(|result| !denied(result)).collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(fs::read(&secret).unwrap(), b"key");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn ocr_process_starts_only_its_program_and_reads_only_its_files() {
    let sandbox = TestSandbox::new(2, 8);
    if !sandbox.sandbox.confinement().await.unwrap().has(Layer::Landlock) {
        return lkr_test_support::skip("the kernel has no Landlock");
    }
    let read = async |command: &str| {
        let read = sandbox.read_with(json!("ocr"), &format!("ocr {command}"), limits()).await;
        read.map_or_else(|error| error.to_string(), |extracted| extracted.warnings().join(" "))
    };
    assert_eq!(read("/bin/cat /etc/ld.so.cache").await, "succeeded");
    for command in ["/bin/cat /etc/passwd", "/bin/true", "/bin/cat /proc/self/environ"] {
        assert!(read(command).await.contains("Permission denied"), "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_printed_by_a_parser_is_not_part_of_the_text() {
    assert_eq!(TestSandbox::new(2, 8).read("chatter").await.unwrap().read().unwrap().text, "chatter");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn processes_started_by_a_worker_are_killed_with_it() {
    let sleeping = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        lines.filter(|line| line.starts_with(b"sleep\x00600")).count()
    };
    let before = sleeping();
    let sandbox = Arc::new(TestSandbox::new(2, 8));
    let read = tokio::spawn({
        let sandbox = Arc::clone(&sandbox);
        async move { sandbox.read_with(json!("ocr"), "ocr sleep 600", limits()).await.map(drop) }
    });
    wait_until(|| sleeping() > before).await;
    read.abort();
    wait_until(|| sleeping() == before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_beyond_the_queue_are_refused_until_a_caller_is_dropped() {
    let sandbox = Arc::new(TestSandbox::new(1, 1));
    let long = Limits { time: Duration::from_secs(600), ..limits() };
    let reads = [0; 2].map(|_| {
        let sandbox = Arc::clone(&sandbox);
        // The probe below may briefly take the slot of one of them, so a refused read is repeated.
        tokio::spawn(async move { while sandbox.read_with(json!(""), "sleep", long).await.is_err() {} })
    });
    let full = async || {
        let probe = tokio::time::timeout(Duration::from_millis(50), sandbox.read("words")).await;
        matches!(probe, Ok(Err(error)) if error.kind() == ErrorKind::Overloaded)
    };
    while !full().await {}
    reads.iter().for_each(tokio::task::JoinHandle::abort);
    while full().await {}
    sandbox.read("words").await.unwrap();
}

/// Parses Markdown, and views the length of a file.
#[derive(Debug)]
struct Readers;

impl ReaderFactory for Readers {
    fn parser(&self, _: Value) -> lkr_parsers::Result<Box<dyn Parser>> {
        Ok(Box::new(lkr_parsers::Markdown))
    }

    fn viewer(&self, _: Value) -> lkr_parsers::Result<Box<dyn FileViewer>> {
        Ok(Box::new(Self))
    }
}

impl FileViewer for Readers {
    fn view(&self, source: &Source<'_>) -> lkr_parsers::Result<Vec<u8>> {
        Ok(source.bytes.len().to_string().into_bytes())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_process_mode_extracts_text_and_views_files() {
    let spool = tempfile::tempdir().unwrap();
    let mode = SandboxMode::InProcess(Arc::new(Readers));
    let sandbox = Sandbox::new(SandboxOptions::new(mode, spool.path().into())).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"# One\n\nTwo.").unwrap();
    let source = FileSource { file_name: "a.md".into(), media_type: None, file, length: 11 };
    let again = source.try_clone().unwrap();
    let parsed = sandbox.extract(Value::Null, source, limits()).await.unwrap().read().unwrap();
    assert_eq!(sandbox.view_for("", Value::Null, again, limits()).await.unwrap(), b"11");
    assert_eq!((parsed.text.as_str(), parsed.blocks.len()), ("# One\n\nTwo.", 2));
}

/// Parses each file for as long as it has the lock, and counts how many are parsed at once.
#[derive(Debug, Default)]
struct SlowReaders {
    lock: Arc<tokio::sync::Mutex<()>>,
    running: Arc<AtomicUsize>,
}

impl ReaderFactory for SlowReaders {
    fn parser(&self, _: Value) -> lkr_parsers::Result<Box<dyn Parser>> {
        self.running.fetch_add(1, Ordering::SeqCst);
        let _held = self.lock.blocking_lock();
        self.running.fetch_sub(1, Ordering::SeqCst);
        Ok(Box::new(lkr_parsers::Markdown))
    }

    fn viewer(&self, _: Value) -> lkr_parsers::Result<Box<dyn FileViewer>> {
        unreachable!("nothing is viewed")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_extraction_in_process_keeps_its_place_until_it_ends() {
    let spool = tempfile::tempdir().unwrap();
    let readers = SlowReaders::default();
    let (lock, running) = (Arc::clone(&readers.lock), Arc::clone(&readers.running));
    let mode = SandboxMode::InProcess(Arc::new(readers));
    let options = SandboxOptions::new(mode, spool.path().into());
    let sandbox = Sandbox::new(SandboxOptions { concurrency: 1, ..options }).unwrap();
    let read = || {
        let file = tempfile::tempfile().unwrap();
        let source = FileSource { file_name: "a.md".into(), media_type: None, file, length: 0 };
        let sandbox = sandbox.clone();
        // An account of its own may have a place beside the others, so all are of one.
        async move { sandbox.extract(Value::Null, source, limits()).await }
    };
    let held = lock.lock().await;
    for _ in 0..4 {
        assert!(tokio::time::timeout(Duration::from_millis(100), read()).await.is_err());
        wait_until(|| running.load(Ordering::SeqCst) == 1).await;
    }
    drop(held);
    read().await.unwrap();
}

async fn wait_until(is_true: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if is_true() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("timed out after 10 s");
}

//! What one run does.

use std::{
    collections::BTreeMap,
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use lkr_sync::{ApplyOptions, ErrorKind, Event, FILE_SHA256, IssueKind, Observer, Options, Reason};

use crate::{
    bench::{Bench, age, deleting, options},
    service::{Fault, ME},
};

#[test]
fn first_run_stores_every_file_and_the_second_nothing() {
    let bench = Bench::new(&[("a.txt", "one"), ("b/c.MD", "two"), ("b/d.bin", "three")]);
    let report = bench.run();
    assert_eq!((report.new, report.unchanged, report.issues.len()), (2, 0, 0));
    assert_eq!(bench.stored(), ["a.txt", "b/c.MD"]);
    let document = bench.service.document(&bench.source("a.txt"));
    assert_eq!(document.content, b"one");
    assert_eq!(document.metadata[FILE_SHA256].len(), 64);

    let plan = bench.plan();
    assert!(plan.is_empty());
    assert_eq!(plan.unchanged, 2);
    assert_eq!(bench.service.uploads(), 2);
}

#[test]
fn changed_file_replaces_its_document() {
    let bench = Bench::new(&[("a.txt", "one"), ("b.txt", "two")]);
    bench.run();
    let before = bench.service.document(&bench.source("a.txt"));
    bench.write("a.txt", "ONE");
    let report = bench.run();
    assert_eq!((report.new, report.changed, report.unchanged), (0, 1, 1));
    let after = bench.service.document(&bench.source("a.txt"));
    assert_eq!((after.doc_id, after.content), (before.doc_id, b"ONE".to_vec()));
}

#[test]
fn deletes_need_permission() {
    let bench = Bench::new(&[("a.txt", "one"), ("b.txt", "two")]);
    bench.run();
    bench.remove("a.txt");
    let mut sync = bench.open();
    let plan = sync.plan(&bench.service, &()).unwrap();
    assert_eq!(
        plan.deletes.iter().map(|d| (d.path.as_str(), d.reason)).collect::<Vec<_>>(),
        [("a.txt", Reason::Gone)]
    );
    let report = sync.apply(plan.clone(), &bench.service, ApplyOptions::default(), &()).unwrap();
    assert_eq!((report.deleted, report.kept), (0, 1));
    let report = sync.apply(plan, &bench.service, deleting(), &()).unwrap();
    assert_eq!((report.deleted, report.kept), (1, 0));
    drop(sync);
    assert_eq!(bench.stored(), ["b.txt"]);
}

#[test]
fn files_that_vanish_during_the_run_keep_their_documents_until_the_next() {
    let bench = Bench::new(&[("a.txt", "one"), ("b.txt", "two"), ("c.txt", "three")]);
    bench.run();
    bench.remove("a.txt");
    bench.write("c.txt", "THREE");
    let gone = bench.path("b.txt");
    bench.service.inner().before_upload = Some(Arc::new(move |_| {
        let _ = fs::remove_file(&gone);
    }));
    let report = bench.run();
    assert_eq!((report.changed, report.deleted, report.kept), (1, 1, 1));
    assert_eq!(bench.run().deleted, 1);
    assert_eq!(bench.stored(), ["c.txt"]);
}

#[test]
fn newest_right_document_of_a_path_is_kept() {
    let bench = Bench::new(&[("a.txt", "one")]);
    let source = bench.source("a.txt");
    bench.run();
    let right = bench.service.document(&source);
    bench.service.add(&source, ME, b"older twin");
    let report = bench.run();
    assert_eq!((report.deleted, report.changed), (1, 0));
    assert_eq!(bench.service.document(&source).doc_id, right.doc_id);
}

#[test]
fn wrong_documents_of_a_path_become_one_right_one_in_one_run() {
    let bench = Bench::new(&[("a.txt", "one")]);
    let source = bench.source("a.txt");
    for _ in 0..3 {
        bench.service.add(&source, ME, b"wrong");
    }
    let report = bench.run();
    assert_eq!((report.changed, report.deleted), (1, 2));
    assert_eq!(bench.service.document(&source).content, b"one");
    assert_eq!(bench.stored(), ["a.txt"]);
}

#[test]
fn refused_file_is_sent_again_only_when_it_changes_or_on_request() {
    for content in ["bad in the task", "no at once"] {
        let bench = Bench::new(&[("a.txt", content), ("b.txt", "two")]);
        let report = bench.run();
        assert_eq!((report.new, report.count(IssueKind::Refused)), (1, 1));
        let uploads = bench.service.inner().calls;

        let report = bench.run();
        assert_eq!(report.count(IssueKind::Refused), 1);
        assert_eq!(bench.service.inner().calls, uploads + 1, "only the listing");

        let again = Options { retry_refused: true, ..options() };
        assert_eq!(bench.try_run(again).unwrap().count(IssueKind::Refused), 1);
        assert!(bench.service.inner().calls > uploads + 2);

        bench.write("a.txt", "good");
        let report = bench.run();
        assert_eq!((report.new, report.issues.len()), (1, 0));
    }
}

#[test]
fn refused_change_keeps_the_earlier_document() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.run();
    bench.write("a.txt", "bad");
    let report = bench.run();
    assert_eq!((report.deleted, report.count(IssueKind::Refused)), (0, 1));
    assert_eq!(bench.service.document(&bench.source("a.txt")).content, b"one");
}

#[test]
fn file_that_changes_while_it_is_sent_is_read_again_in_the_same_run() {
    let bench = Bench::new(&[("a.txt", "one")]);
    age(&bench.path("a.txt"));
    let (path, done) = (bench.path("a.txt"), AtomicBool::new(false));
    bench.service.inner().before_upload = Some(Arc::new(move |_| {
        if !done.swap(true, Ordering::SeqCst) {
            fs::write(&path, "ONE").unwrap();
            // The change is not visible in size and time.
            age(&path);
        }
    }));
    let report = bench.run();
    assert_eq!((report.new, report.issues.len()), (1, 0));
    assert_eq!(bench.service.document(&bench.source("a.txt")).content, b"ONE");
    assert_eq!(bench.service.uploads(), 1, "the mixed content was never stored");
}

#[test]
fn file_that_changes_each_time_is_reported() {
    let bench = Bench::new(&[("a.txt", "one"), ("b.txt", "two")]);
    let (path, count) = (bench.path("a.txt"), AtomicUsize::new(0));
    bench.service.inner().before_upload = Some(Arc::new(move |source| {
        if source.ends_with("a.txt") {
            fs::write(&path, format!("{}", count.fetch_add(1, Ordering::SeqCst))).unwrap();
        }
    }));
    let report = bench.run();
    assert_eq!((report.new, report.count(IssueKind::Failed)), (1, 1));
    assert_eq!(bench.stored(), ["b.txt"]);
}

#[test]
fn unavailable_service_stops_the_run_and_the_next_goes_on() {
    let names: Vec<String> = (0..40).map(|index| format!("{index}.txt")).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), name.as_str())).collect();
    let bench = Bench::new(&files);
    bench.service.restart_client(BTreeMap::from([(20, Fault::Before(ErrorKind::Unavailable))]));
    let error = bench.try_run(options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.is_retryable());
    bench.service.restart_client(BTreeMap::new());
    assert!(bench.run().issues.is_empty());
    assert_eq!(bench.stored().len(), 40);
    assert!(bench.service.uploads() <= 40, "nothing is sent twice");
}

#[test]
fn failed_file_is_sent_again_in_the_next_round() {
    let bench = Bench::new(&[("a.txt", "one"), ("b.txt", "two")]);
    bench.service.restart_client(BTreeMap::from([(1, Fault::Before(ErrorKind::Other))]));
    let report = bench.run();
    assert_eq!((report.new, report.issues.len()), (2, 0));
}

#[test]
fn many_failures_in_a_row_stop_the_run() {
    let names: Vec<String> = (0..40).map(|index| format!("{index}.txt")).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), name.as_str())).collect();
    let bench = Bench::new(&files);
    let faults = (1..100).map(|call| (call, Fault::Before(ErrorKind::Other)));
    bench.service.restart_client(faults.collect());
    assert_eq!(bench.try_run(options()).unwrap_err().kind(), ErrorKind::Other);
}

#[test]
fn run_after_an_interrupted_one_waits_for_its_tasks() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.service.inner().delay = usize::MAX;
    bench.service.restart_client(BTreeMap::from([(2, Fault::Before(ErrorKind::Unavailable))]));
    bench.try_run(options()).unwrap_err();
    bench.service.restart_client(BTreeMap::new());
    bench.rename("a.txt", "b.txt");
    let observer = Recorder::default();
    let plan = bench.open().plan(&bench.service, &observer).unwrap();
    assert!(observer.lines().contains(&"Waiting { tasks: 1 }".to_owned()), "{:?}", observer.lines());
    assert_eq!((plan.moves.len(), plan.uploads.len()), (1, 0), "the document of the lost task is moved");
}

#[test]
fn task_that_the_service_does_not_tell_about_ends_before_the_run() {
    for kind in [ErrorKind::NotFound, ErrorKind::Other] {
        let bench = Bench::new(&[("a.txt", "one")]);
        bench.service.inner().delay = 5;
        bench.service.restart_client(BTreeMap::from([(2, Fault::Before(kind))]));
        let report = bench.run();
        assert!(report.issues.is_empty());
        assert_eq!((bench.stored().len(), bench.service.uploads()), (1, 1));
    }
}

#[test]
fn unfinished_tasks_are_bounded_by_the_window() {
    let names: Vec<String> = (0..30).map(|index| format!("{index}.txt")).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), name.as_str())).collect();
    let bench = Bench::new(&files);
    bench.service.inner().delay = 2;
    let mut sync = bench.open();
    let plan = sync.plan(&bench.service, &()).unwrap();
    let options = ApplyOptions { window: 4, ..deleting() };
    let report = sync.apply(plan, &bench.service, options, &()).unwrap();
    assert_eq!(report.new, 30);
    assert!(bench.service.inner().most_unfinished <= 4);
}

#[test]
fn folder_that_vanished_deletes_nothing() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.run();
    let mut sync = bench.open();
    fs::remove_dir_all(bench.root()).unwrap();
    fs::create_dir(bench.root()).unwrap();
    assert_eq!(sync.plan(&bench.service, &()).unwrap_err().kind(), ErrorKind::Folder);
    assert_eq!(bench.service.inner().documents.len(), 1);
}

#[test]
fn ten_thousand_unchanged_files_are_not_read() {
    let bench = Bench::new(&[]);
    for index in 0..10_000 {
        let path = format!("{}/{index}.txt", index / 100);
        bench.write(&path, &index.to_string());
        age(&bench.path(&path));
    }
    assert_eq!(bench.plan().hashed, 10_000);
    let plan = bench.plan();
    assert_eq!((plan.uploads.len(), plan.hashed), (10_000, 0));
}

#[test]
fn lost_state_costs_reading_and_no_upload() {
    let bench = Bench::new(&[("a.txt", "one"), ("b.txt", "two")]);
    for path in ["a.txt", "b.txt"] {
        age(&bench.path(path));
    }
    bench.run();
    assert_eq!(bench.plan().hashed, 0);
    fs::remove_file(state_file(&bench)).unwrap();
    let plan = bench.plan();
    assert!(plan.is_empty());
    assert_eq!((plan.unchanged, plan.hashed), (2, 2));
}

#[test]
fn young_files_are_read_again_although_size_and_time_are_equal() {
    let bench = Bench::new(&[("a.txt", "one")]);
    let time = fs::metadata(bench.path("a.txt")).unwrap().modified().unwrap();
    bench.run();
    bench.write("a.txt", "ONE");
    fs::File::options().write(true).open(bench.path("a.txt")).unwrap().set_modified(time).unwrap();
    assert_eq!(bench.run().changed, 1);
}

#[test]
fn damaged_state_is_replaced() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.run();
    for damage in ["", "{", "{\"version\": 99}"] {
        fs::write(state_file(&bench), damage).unwrap();
        assert!(bench.plan().is_empty());
    }
}

#[test]
fn observer_sees_every_file_and_can_stop_the_run() {
    let bench = Bench::new(&[("a.txt", "one"), ("b.txt", "bad"), ("c.txt", "three")]);
    let mut sync = bench.open();
    let observer = Recorder::default();
    let plan = sync.plan(&bench.service, &observer).unwrap();
    sync.apply(plan.clone(), &bench.service, deleting(), &observer).unwrap();
    let lines = observer.lines();
    for line in [
        "Walked { files: 3, to_hash: 3, bytes: 11 }",
        "Hashed { path: \"a.txt\", bytes: 3 }",
        "Round { round: 1, files: 3, bytes: 11, moves: 0, deletes: 0 }",
        "Sent { path: \"b.txt\", bytes: 3 }",
        "Refused { path: \"b.txt\", bytes: 3, reason: \"cannot be read\" }",
        "Done { path: \"c.txt\", bytes: 5, replaces: false }",
    ] {
        assert!(lines.contains(&line.to_owned()), "{line} is not in {lines:?}");
    }
    observer.is_stopped.store(true, Ordering::SeqCst);
    let error = sync.apply(plan, &bench.service, deleting(), &observer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stopped);
}

fn state_file(bench: &Bench) -> std::path::PathBuf {
    let is_state = |path: &std::path::PathBuf| path.to_string_lossy().contains("state-");
    let entries = fs::read_dir(bench.path(".lkr")).unwrap();
    entries.map(|entry| entry.unwrap().path()).find(is_state).unwrap()
}

#[derive(Debug, Default)]
struct Recorder {
    lines: Mutex<Vec<String>>,
    is_stopped: AtomicBool,
}

impl Recorder {
    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

impl Observer for Recorder {
    fn event(&self, event: &Event<'_>) {
        self.lines.lock().unwrap().push(format!("{event:?}"));
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }
}

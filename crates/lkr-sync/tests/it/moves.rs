//! Documents that follow their files.

use std::collections::BTreeMap;

use lkr_sync::{ApplyOptions, ErrorKind, IssueKind};
use proptest::prelude::*;

use crate::{
    bench::{Bench, options},
    service::Fault,
};

#[test]
fn moved_file_keeps_its_document_and_a_title_made_from_its_name_follows() {
    let bench = Bench::new(&[("a.txt", "one"), ("b.txt", "two")]);
    bench.run();
    let before = ["a.txt", "b.txt"].map(|path| bench.service.document(&bench.source(path)));
    for document in &mut bench.service.inner().documents {
        if document.title == "b" {
            document.title = "Chosen".into();
        }
    }
    bench.rename("a.txt", "c/d.txt");
    bench.rename("b.txt", "e.txt");
    let report = bench.run();
    assert_eq!((report.moved, report.new, report.deleted), (2, 0, 0));
    let after = ["c/d.txt", "e.txt"].map(|path| bench.service.document(&bench.source(path)));
    assert_eq!(after.each_ref().map(|d| &d.doc_id), before.each_ref().map(|d| &d.doc_id));
    assert_eq!(after.map(|document| document.title), ["d", "Chosen"]);
    assert_eq!(bench.service.uploads(), 2);
}

#[test]
fn each_of_two_equal_files_that_moved_gets_one_document() {
    let bench = Bench::new(&[("a/x.txt", "same"), ("a/y.txt", "same")]);
    bench.run();
    let [x, y] = ["a/x.txt", "a/y.txt"].map(|path| bench.service.document(&bench.source(path)).doc_id);
    bench.rename("a/x.txt", "b/x.txt");
    bench.rename("a/y.txt", "b/y.txt");
    assert_eq!(bench.run().moved, 2);
    assert_eq!(bench.service.document(&bench.source("b/x.txt")).doc_id, x);
    assert_eq!(bench.service.document(&bench.source("b/y.txt")).doc_id, y);
}

#[test]
fn copy_of_a_file_gets_a_document_of_its_own() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.run();
    bench.write("b.txt", "one");
    let report = bench.run();
    assert_eq!((report.moved, report.new), (0, 1));
    assert_eq!(bench.stored(), ["a.txt", "b.txt"]);
}

#[test]
fn file_is_sent_if_the_service_refuses_to_move_its_document() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.run();
    bench.rename("a.txt", "b.txt");
    bench.service.inner().refuse_renames = true;
    let report = bench.run();
    assert_eq!((report.moved, report.new, report.deleted), (0, 1, 1));
    assert_eq!(report.count(IssueKind::Failed), 0);
    assert_eq!(bench.stored(), ["b.txt"]);
}

#[test]
fn document_that_cannot_be_moved_stays_until_its_file_was_sent() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.run();
    bench.rename("a.txt", "b.txt");
    bench.service.inner().refuse_renames = true;
    // The calls are: list, rename, list, and twice upload, unfinished tasks, list. Both uploads fail.
    let failing = [3, 6].map(|call| (call, Fault::Before(ErrorKind::Other)));
    bench.service.restart_client(BTreeMap::from(failing));
    let report = bench.run();
    assert_eq!(bench.stored(), ["a.txt"]);
    assert_eq!((report.new, report.deleted, report.kept), (0, 0, 1));
    assert_eq!((report.count(IssueKind::Failed), report.issues[0].path.as_str()), (1, "b.txt"));

    bench.service.restart_client(BTreeMap::new());
    let report = bench.run();
    assert_eq!((report.new, report.deleted, report.issues.len()), (1, 1, 0));
    assert_eq!(bench.stored(), ["b.txt"]);
}

#[test]
fn renamed_file_of_another_format_is_read_again_under_its_id() {
    let bench = Bench::new(&[("notes.txt", "# Notes")]);
    bench.run();
    let before = bench.service.document(&bench.source("notes.txt"));
    bench.rename("notes.txt", "notes.md");
    // Nothing may be deleted.
    let mut sync = bench.open();
    let plan = sync.plan(&bench.service, &()).unwrap();
    let report = sync.apply(plan, &bench.service, ApplyOptions::default(), &()).unwrap();
    drop(sync);
    assert_eq!((report.moved, report.changed, report.new, report.kept), (1, 1, 0, 0));
    assert_eq!((bench.stored(), bench.service.uploads()), (vec!["notes.md".to_owned()], 2));
    let after = bench.service.document(&bench.source("notes.md"));
    assert_eq!((after.doc_id, after.metadata), (before.doc_id, before.metadata));
    assert!(bench.plan().is_empty());
}

#[test]
fn run_after_one_that_ended_between_rename_and_upload_sends_the_file() {
    let bench = Bench::new(&[("notes.txt", "# Notes")]);
    bench.run();
    bench.rename("notes.txt", "notes.md");
    // The calls are: list, rename, upload.
    bench.service.restart_client(BTreeMap::from([(2, Fault::Before(ErrorKind::Unavailable))]));
    bench.try_run(options()).unwrap_err();
    bench.service.restart_client(BTreeMap::new());
    assert_eq!(bench.stored(), ["notes.md"]);
    assert_eq!((bench.run().changed, bench.service.uploads()), (1, 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn files_of_unique_content_keep_their_documents_wherever_they_move(
        moves in prop::collection::vec((0_usize..6, 0_usize..4), 1..6),
    ) {
        let names: Vec<String> = (0..6).map(|index| format!("{index}.txt")).collect();
        let files: Vec<_> = names.iter().map(|name| (name.as_str(), name.as_str())).collect();
        let bench = Bench::new(&files);
        bench.run();
        let mut places = names.clone();
        let before: Vec<_> =
            names.iter().map(|name| bench.service.document(&bench.source(name)).doc_id).collect();
        for (step, (file, folder)) in moves.into_iter().enumerate() {
            let to = format!("{folder}/{step}.txt");
            bench.rename(&places[file], &to);
            places[file] = to;
        }
        let report = bench.run();
        prop_assert_eq!((report.new, report.deleted), (0, 0));
        for (place, doc_id) in places.iter().zip(before) {
            prop_assert_eq!(bench.service.document(&bench.source(place)).doc_id, doc_id);
        }
    }
}

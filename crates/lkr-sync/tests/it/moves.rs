//! Documents that follow their files.

use lkr_sync::IssueKind;
use proptest::prelude::*;

use crate::bench::Bench;

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

//! Histories of documents that no correct service has, and histories that look alike and have an order.

use lkr_test_history::{
    Answer, DocumentCall, DocumentOperation, Ended,
    FindingKind::{self, *},
    Shown, check_documents,
};

fn operation(start: u64, end: Option<u64>, call: DocumentCall) -> DocumentOperation {
    DocumentOperation { process: 0, source: "s".to_owned(), start, end, call }
}

/// An upsert that was accepted one moment after its start.
fn upsert(start: u64, end: u64, doc: &str, write: u64, ended: Ended) -> DocumentOperation {
    let call = DocumentCall::Upsert { write, doc: doc.to_owned(), accepted: start + 1, ended };
    operation(start, Some(end), call)
}

fn done(start: u64, end: u64, doc: &str, write: u64) -> DocumentOperation {
    upsert(start, end, doc, write, Ended::Done)
}

fn retitle(start: u64, end: u64, doc: &str, write: u64) -> DocumentOperation {
    let call = DocumentCall::Retitle { doc: doc.to_owned(), write, answer: Answer::Done };
    operation(start, Some(end), call)
}

fn delete(start: u64, end: u64, doc: &str) -> DocumentOperation {
    operation(start, Some(end), DocumentCall::Delete { doc: doc.to_owned(), answer: Answer::Done })
}

fn unanswered_delete(start: u64, doc: &str) -> DocumentOperation {
    operation(start, None, DocumentCall::Delete { doc: doc.to_owned(), answer: Answer::Unknown })
}

fn shown(doc: &str, text: u64, title: u64) -> Shown {
    Shown { doc: doc.to_owned(), text: Some(text), title: Some(title) }
}

fn find(start: u64, end: u64, found: &[Shown]) -> DocumentOperation {
    operation(start, Some(end), DocumentCall::Find { found: found.to_vec() })
}

fn get(start: u64, end: u64, doc: &str, found: Option<Shown>) -> DocumentOperation {
    operation(start, Some(end), DocumentCall::Get { doc: doc.to_owned(), found })
}

#[track_caller]
fn check(history: &[DocumentOperation], expected: &[FindingKind]) {
    let findings = check_documents(history);
    let mut kinds: Vec<FindingKind> = findings.iter().map(|finding| finding.kind).collect();
    kinds.dedup();
    assert_eq!(kinds, expected, "{findings:#?}");
}

#[test]
fn document_that_is_added_replaced_renamed_and_deleted_is_accepted() {
    check(
        &[
            done(10, 20, "a", 1),
            find(12, 14, &[]),
            find(15, 19, &[shown("a", 1, 1)]),
            done(30, 40, "a", 2),
            retitle(41, 45, "a", 3),
            get(50, 51, "a", Some(shown("a", 2, 3))),
            delete(60, 65, "a"),
            get(61, 62, "a", Some(shown("a", 2, 3))),
            get(63, 64, "a", None),
            done(70, 80, "b", 4),
            find(81, 82, &[shown("b", 4, 4)]),
            get(83, 84, "a", None),
        ],
        &[],
    );
}

#[test]
fn text_that_was_replaced_before_the_read_began_is_found() {
    let stale = find(41, 42, &[shown("a", 1, 1)]);
    check(&[done(10, 20, "a", 1), done(30, 40, "a", 2), stale.clone()], &[NoOrder]);
    // The task of the replacement had not ended.
    check(&[done(10, 20, "a", 1), done(30, 50, "a", 2), stale], &[]);
}

#[test]
fn read_that_goes_back_is_found() {
    let reads = [find(32, 33, &[shown("a", 2, 2)]), find(34, 35, &[shown("a", 1, 1)])];
    check(&[&[done(10, 20, "a", 1), done(30, 50, "a", 2)][..], &reads].concat(), &[NoOrder]);
}

#[test]
fn missing_document_is_found() {
    check(&[done(10, 20, "a", 1), find(21, 22, &[])], &[NoOrder]);
    check(&[done(10, 20, "a", 1), get(21, 22, "a", None)], &[NoOrder]);
}

#[test]
fn deleted_document_that_is_shown_is_found() {
    let history = [done(10, 20, "a", 1), delete(30, 40, "a"), find(41, 42, &[shown("a", 1, 1)])];
    check(&history, &[NoOrder]);
}

#[test]
fn delete_without_an_answer_may_come_at_any_time_but_not_be_undone() {
    let begin = [done(10, 20, "a", 1), unanswered_delete(30, "a"), find(41, 42, &[shown("a", 1, 1)])];
    check(&begin, &[]);
    check(&[&begin[..], &[find(51, 52, &[])]].concat(), &[]);
    let undone = [find(51, 52, &[]), find(61, 62, &[shown("a", 1, 1)])];
    check(&[&begin[..], &undone].concat(), &[NoOrder]);
}

#[test]
fn second_document_of_a_source_is_found() {
    check(&[done(10, 20, "a", 1), done(30, 40, "b", 2)], &[NoOrder]);
    check(&[done(10, 20, "a", 1), find(21, 22, &[shown("a", 1, 1), shown("b", 1, 1)])], &[ShownTwice]);
    // Two at once with a new source make one.
    check(&[done(10, 20, "a", 1), done(10, 20, "b", 2)], &[NoOrder]);
    check(&[upsert(10, 20, "a", 1, Ended::Cancelled), done(10, 20, "a", 2)], &[]);
}

#[test]
fn replacement_that_was_accepted_first_and_shows_last_is_found() {
    let writes = [done(10, 20, "a", 1), done(30, 60, "a", 2), done(40, 60, "a", 3)];
    let read = |text| find(70, 71, &[shown("a", text, text)]);
    check(&[&writes[..], &[read(3)]].concat(), &[]);
    check(&[&writes[..], &[read(2)]].concat(), &[NoOrder]);
}

#[test]
fn title_that_was_set_after_the_acceptance_stays() {
    let writes = [done(10, 20, "a", 1), done(30, 60, "a", 2), retitle(40, 50, "a", 3)];
    check(&[&writes[..], &[get(70, 71, "a", Some(shown("a", 2, 3)))]].concat(), &[]);
    check(&[&writes[..], &[get(70, 71, "a", Some(shown("a", 2, 2)))]].concat(), &[NoOrder]);
}

#[test]
fn cancelled_text_that_is_shown_is_found() {
    let history =
        [done(10, 20, "a", 1), upsert(30, 40, "a", 2, Ended::Cancelled), find(32, 34, &[shown("a", 2, 2)])];
    check(&history, &[CancelledShown]);
}

#[test]
fn unknown_change_explains_what_was_read() {
    let call = DocumentCall::Retitle { doc: "a".to_owned(), write: 2, answer: Answer::Unknown };
    let history = [done(10, 20, "a", 1), operation(25, None, call)];
    for titles in [&[1, 1][..], &[1, 2], &[2, 2]] {
        let reads =
            (0..).zip(titles).map(|(n, title)| find(30 + 10 * n, 35 + 10 * n, &[shown("a", 1, *title)]));
        check(&[&history[..], &reads.collect::<Vec<_>>()].concat(), &[]);
    }
    let reads = [find(30, 35, &[shown("a", 1, 2)]), find(40, 45, &[shown("a", 1, 1)])];
    check(&[&history[..], &reads].concat(), &[NoOrder]);
}

#[test]
fn other_sources_do_not_matter() {
    let other = DocumentOperation { source: "t".to_owned(), ..done(10, 20, "b", 2) };
    check(&[done(10, 20, "a", 1), other, find(21, 22, &[shown("a", 1, 1)])], &[]);
}

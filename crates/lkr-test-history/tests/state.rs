//! One history for each anomaly of a store, and histories that look alike and are correct.

#[path = "support/build.rs"]
mod build;

use build::{delete, increment, put, read, refused, step, unanswered};
use lkr_test_history::{
    AnomalyKind::{self, *},
    Expect::{Absent, Any, Version},
    Operation, check_state,
};

#[track_caller]
fn check(history: &[Operation], expected: &[AnomalyKind]) {
    let anomalies = check_state(history);
    let shown = || anomalies.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let mut kinds: Vec<AnomalyKind> = anomalies.iter().map(|anomaly| anomaly.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, expected, "{}", shown());
}

#[test]
fn steps_and_reads_in_order_are_accepted() {
    check(
        &[
            step(0, 1, &[put("a", Absent, "x"), put("b", Absent, "x")]),
            read(2, 3, &[("a", Some((1, "x"))), ("b", Some((1, "x")))]),
            step(4, 5, &[put("a", Version(1), "y"), increment("c")]),
            refused(6, 7, &[put("a", Version(1), "z")]),
            step(8, 9, &[delete("a", 2)]),
            read(10, 11, &[("a", None), ("c", Some((2, "1")))]),
            step(12, 13, &[put("a", Absent, "w")]),
            read(14, 15, &[("a", Some((4, "w"))), ("b", Some((1, "x")))]),
        ],
        &[],
    );
}

#[test]
fn unanswered_step_may_have_been_applied_or_not() {
    let first = step(0, 1, &[put("a", Absent, "x")]);
    let unknown = unanswered(2, &[put("a", Version(1), "y"), increment("c")]);
    let before = read(3, 4, &[("a", Some((1, "x"))), ("c", None)]);
    let after = read(9, 10, &[("a", Some((2, "y"))), ("c", Some((2, "1")))]);
    check(&[first.clone(), unknown.clone(), before.clone()], &[]);
    check(&[first.clone(), unknown.clone(), before, after.clone()], &[]);
    let back = read(11, 12, &[("a", Some((1, "x")))]);
    check(&[first, unknown, after, back], &[StaleRead, Cycle]);
}

#[test]
fn version_with_two_values_is_found() {
    let history = [
        step(0, 1, &[put("a", Any, "x")]),
        read(2, 3, &[("a", Some((1, "x")))]),
        step(4, 5, &[put("a", Any, "y")]),
        read(6, 7, &[("a", Some((1, "y")))]),
    ];
    // Such versions have no order either.
    check(&history, &[VersionRepeated, Cycle]);
    let counts = [
        step(0, 1, &[increment("c")]),
        read(2, 3, &[("c", Some((5, "1")))]),
        step(4, 5, &[increment("c")]),
        read(6, 7, &[("c", Some((5, "2")))]),
    ];
    check(&counts, &[VersionRepeated]);
}

#[test]
fn step_applied_twice_is_found_by_its_version_or_its_increment() {
    let once = step(0, 9, &[put("a", Any, "x"), increment("c")]);
    let first = read(2, 3, &[("a", Some((1, "x")))]);
    check(&[once.clone(), first, read(6, 7, &[("a", Some((2, "x")))])], &[AppliedTwice, Cycle]);
    check(&[once.clone(), read(10, 11, &[("c", Some((2, "2")))])], &[AppliedTwice]);
    check(&[once, read(10, 11, &[("c", None)])], &[LostWrite]);
}

#[test]
fn value_that_nobody_wrote_is_found() {
    check(&[read(0, 1, &[("a", Some((1, "x")))])], &[UnwrittenValue]);
}

#[test]
fn refused_step_that_was_applied_is_found() {
    let refusal = refused(0, 1, &[put("a", Version(7), "x")]);
    check(&[refusal, read(2, 3, &[("a", Some((8, "x")))])], &[ConflictApplied]);
}

#[test]
fn refusal_although_the_expectation_held_is_found() {
    let first = step(0, 1, &[put("a", Absent, "x")]);
    let (seen, seen_later) = (read(2, 3, &[("a", Some((1, "x")))]), read(8, 9, &[("a", Some((1, "x")))]));
    let refusal = refused(4, 5, &[put("a", Version(1), "y")]);
    check(&[first.clone(), seen.clone(), refusal.clone(), seen_later], &[ConflictWithoutReason]);
    check(
        &[first.clone(), seen, refusal, step(8, 9, &[put("a", Version(1), "z")])],
        &[ConflictWithoutReason],
    );
    // Another step may have been applied before the refusal.
    let other = unanswered(4, &[put("a", Version(1), "z")]);
    check(&[first, other, refused(4, 5, &[put("a", Version(1), "y")])], &[]);
}

#[test]
fn two_steps_that_replace_one_version_are_a_cycle() {
    let first = step(0, 1, &[put("a", Absent, "x")]);
    let seen = read(2, 3, &[("a", Some((1, "x")))]);
    let (one, two) = (step(4, 9, &[put("a", Version(1), "y")]), step(5, 8, &[put("a", Version(1), "z")]));
    check(&[first, seen, one, two], &[Cycle]);
}

#[test]
fn acknowledged_step_that_no_read_finds_is_a_cycle() {
    let history = [
        step(0, 1, &[put("a", Absent, "x")]),
        read(2, 3, &[("a", Some((1, "x")))]),
        step(4, 5, &[put("a", Version(1), "y")]),
        read(6, 7, &[("a", Some((1, "x")))]),
    ];
    check(&history, &[StaleRead, Cycle]);
}

#[test]
fn record_that_vanished_is_found() {
    let put_and_gone = [step(0, 1, &[put("a", Absent, "x")]), read(2, 3, &[("a", None)])];
    check(&put_and_gone, &[LostWrite]);
    let deleted_later = [
        step(0, 1, &[put("a", Absent, "x")]),
        read(2, 3, &[("a", Some((1, "x")))]),
        read(3, 4, &[("a", None)]),
        step(5, 6, &[delete("a", 1)]),
    ];
    check(&deleted_later, &[LostWrite]);
}

#[test]
fn deleted_record_that_comes_back_is_found() {
    let history = [
        step(0, 1, &[put("a", Absent, "x")]),
        step(2, 3, &[delete("a", 1)]),
        read(4, 5, &[("a", Some((1, "x")))]),
    ];
    check(&history, &[StaleRead, Cycle]);
    let history = [
        step(0, 1, &[put("a", Absent, "x")]),
        read(1, 2, &[("a", Some((1, "x")))]),
        unanswered(2, &[delete("a", 1)]),
        read(4, 5, &[("a", None)]),
        read(6, 7, &[("a", Some((1, "x")))]),
    ];
    check(&history, &[StaleRead, Cycle]);
}

#[test]
fn step_applied_in_part_is_a_cycle() {
    let both = |start, end, a: (u64, &'static str), b: (u64, &'static str)| {
        read(start, end, &[("a", Some(a)), ("b", Some(b))])
    };
    let first = step(0, 1, &[put("a", Absent, "x"), put("b", Absent, "x")]);
    let second = step(2, 9, &[put("a", Version(1), "y"), put("b", Version(1), "y")]);
    check(
        &[first.clone(), both(1, 2, (1, "x"), (1, "x")), second.clone(), both(3, 4, (2, "y"), (2, "y"))],
        &[],
    );
    check(&[first, both(1, 2, (1, "x"), (1, "x")), second, both(3, 4, (2, "y"), (1, "x"))], &[Cycle]);
}

/// Two steps read what the other one writes: serializable stores do not allow it (write skew).
#[test]
fn write_skew_is_a_cycle() {
    let check_of = |key: &str| lkr_test_history::Write {
        key: key.to_owned(),
        expect: Version(1),
        change: lkr_test_history::Change::Check,
    };
    let history = [
        step(0, 1, &[put("a", Absent, "x"), put("b", Absent, "x")]),
        read(2, 3, &[("a", Some((1, "x"))), ("b", Some((1, "x")))]),
        step(4, 9, &[check_of("a"), put("b", Version(1), "y")]),
        step(5, 8, &[check_of("b"), put("a", Version(1), "z")]),
    ];
    check(&history, &[Cycle]);
}

#[test]
fn unexpected_failure_is_reported() {
    let mut failed = unanswered(0, &[put("a", Absent, "x")]);
    failed.outcome = lkr_test_history::Outcome::Failed("internal".to_owned());
    check(&[failed], &[UnexpectedFailure]);
}

#[test]
fn report_names_the_operations_and_why_they_are_ordered() {
    let history = [
        step(0, 1, &[put("a", Absent, "x")]),
        read(2_000_000_000, 2_500_000_000, &[("a", Some((1, "x")))]),
        step(3_000_000_000, 3_500_000_000, &[put("a", Version(1), "y")]),
        read(4_000_000_000, 4_500_000_000, &[("a", Some((1, "x")))]),
    ];
    let anomalies = check_state(&history);
    let cycle = anomalies.iter().find(|anomaly| anomaly.kind == Cycle).unwrap().to_string();
    for part in
        ["read what the next one replaced of a", "ended before the next one began", "[4.000000, 4.500000]"]
    {
        assert!(cycle.contains(part), "{part:?} is not in {cycle}");
    }
}

//! Histories of accounts in which something revoked was accepted, and histories that look alike and are right.

use lkr_test_history::{
    AccountCall::{self, *},
    AccountOperation, Answer, Away,
    FindingKind::{self, *},
    check_revocations,
};

/// A request to a process between two times.
fn at(process: u32, start: u64, end: u64, call: AccountCall, answer: Answer) -> AccountOperation {
    AccountOperation { process, account: "eva".to_owned(), start, end: Some(end), call, answer }
}

fn done(process: u32, start: u64, end: u64, call: AccountCall) -> AccountOperation {
    at(process, start, end, call, Answer::Done)
}

fn refused(process: u32, start: u64, end: u64, call: AccountCall) -> AccountOperation {
    at(process, start, end, call, Answer::Refused)
}

fn unanswered(process: u32, start: u64, call: AccountCall) -> AccountOperation {
    AccountOperation { end: None, answer: Answer::Unknown, ..done(process, start, start, call) }
}

/// A login at process 0, which begins session 1 with password 1.
fn log_in() -> AccountOperation {
    done(0, 10, 20, LogIn { password: 1, session: Some(1) })
}

fn away(process: u32, from: u64, until: u64) -> Away {
    Away { process, from, until: Some(until) }
}

#[track_caller]
fn check(history: &[AccountOperation], away: &[Away], expected: &[FindingKind]) {
    let findings = check_revocations(history, away);
    let kinds: Vec<FindingKind> = findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, expected, "{findings:#?}");
}

#[test]
fn session_that_is_used_and_ended_is_accepted_until_then() {
    let history = [
        log_in(),
        done(1, 30, 31, UseSession(1)),
        done(0, 40, 50, LogOut(1)),
        done(1, 45, 55, UseSession(1)),
        refused(1, 51, 52, UseSession(1)),
        refused(2, 60, 61, UseSession(1)),
    ];
    check(&history, &[], &[]);
}

#[test]
fn ended_session_that_is_accepted_is_found_in_every_process() {
    for process in [0, 1] {
        let history = [log_in(), done(0, 40, 50, LogOut(1)), done(process, 51, 52, UseSession(1))];
        check(&history, &[], &[RevokedAccepted]);
    }
    // Not if it is not known whether it was ended.
    check(&[log_in(), unanswered(0, 40, LogOut(1)), done(1, 51, 52, UseSession(1))], &[], &[]);
}

#[test]
fn process_that_cannot_reach_redis_may_accept_what_others_revoked_until_it_is_back() {
    let history = |start| [log_in(), done(0, 40, 50, LogOut(1)), done(1, start, start + 1, UseSession(1))];
    check(&history(60), &[away(1, 45, 70)], &[]);
    check(&history(71), &[away(1, 45, 70)], &[RevokedAccepted]);
    check(&history(60), &[away(2, 45, 70)], &[RevokedAccepted]);
    check(&history(60), &[Away { process: 1, from: 45, until: None }], &[]);
}

#[test]
fn revocation_without_redis_holds_in_its_process_at_once_and_elsewhere_from_its_return_on() {
    let history = |process, start| {
        [log_in(), done(0, 40, 50, LogOut(1)), done(process, start, start + 1, UseSession(1))]
    };
    let times = [away(0, 35, 70)];
    check(&history(0, 60), &times, &[RevokedAccepted]);
    check(&history(1, 60), &times, &[]);
    check(&history(1, 71), &times, &[RevokedAccepted]);
}

#[test]
fn change_of_the_password_ends_earlier_sessions_and_passwords() {
    let change = done(0, 40, 50, ChangePassword { password: 2, session: Some(2) });
    let after = |call| [log_in(), change.clone(), done(1, 60, 61, call)];
    check(&after(UseSession(1)), &[], &[RevokedAccepted]);
    check(&after(LogIn { password: 1, session: Some(3) }), &[], &[RevokedAccepted]);
    check(&after(UseSession(2)), &[], &[]);
    check(&after(LogIn { password: 2, session: Some(3) }), &[], &[]);
}

#[test]
fn disabled_account_is_refused_and_its_sessions_have_ended_for_good() {
    let begin = [log_in(), done(0, 22, 23, CreateKey(7)), done(0, 40, 50, Disable)];
    let enabled = [&begin[..], &[done(2, 60, 70, Enable)]].concat();
    let then = |before: &[AccountOperation], call| [before, &[done(1, 80, 81, call)]].concat();
    check(&then(&begin, UseSession(1)), &[], &[RevokedAccepted]);
    check(&then(&begin, UseKey(7)), &[], &[RevokedAccepted]);
    check(&then(&begin, LogIn { password: 1, session: Some(2) }), &[], &[RevokedAccepted]);
    check(&then(&enabled, UseSession(1)), &[], &[RevokedAccepted]);
    check(&then(&enabled, UseKey(7)), &[], &[]);
    check(&then(&enabled, LogIn { password: 1, session: Some(2) }), &[], &[]);
    let perhaps_enabled = [&begin[..], &[unanswered(2, 60, Enable)]].concat();
    check(&then(&perhaps_enabled, UseKey(7)), &[], &[]);
}

#[test]
fn deleted_key_that_is_accepted_is_found() {
    let key = [log_in(), done(0, 22, 23, CreateKey(7)), done(1, 40, 50, DeleteKey(7))];
    check(&[&key[..], &[done(2, 51, 52, UseKey(7))]].concat(), &[], &[RevokedAccepted]);
    check(&[&key[..], &[done(2, 45, 52, UseKey(7))]].concat(), &[], &[]);
}

#[test]
fn session_that_is_refused_without_a_reason_is_found() {
    check(&[log_in(), refused(1, 30, 31, UseSession(1))], &[], &[ValidRefused]);
    // It began while its process was away, or the other one is.
    check(&[log_in(), refused(1, 30, 31, UseSession(1))], &[away(0, 5, 25)], &[]);
    check(&[log_in(), refused(1, 30, 31, UseSession(1))], &[away(1, 25, 35)], &[]);
    // Something may have ended it.
    for ending in [LogOut(1), Disable, ChangePassword { password: 2, session: None }] {
        check(&[log_in(), unanswered(2, 25, ending), refused(1, 30, 31, UseSession(1))], &[], &[]);
    }
    // What ended another one did not.
    let enabled = [done(0, 1, 2, Disable), done(0, 3, 4, Enable)];
    check(&[&enabled[..], &[log_in(), refused(1, 30, 31, UseSession(1))]].concat(), &[], &[ValidRefused]);
}

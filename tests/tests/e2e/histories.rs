//! Histories of the service: three servers and two workers on shared stores, which are killed and stopped, cut off from Redis, and
//! get other clocks, while clients change and read documents and accounts. What was recorded must have an order, each acknowledged
//! document must be there once with its last text, and nothing may be accepted that was revoked.
//!
//! `LKR_HISTORY_SECONDS` is how long the service is disturbed; `cargo xtask histories` sets it.

mod accounts;
mod disturbance;
mod documents;
mod service;

use std::{
    collections::BTreeMap,
    env, fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use accounts::Accounts;
use disturbance::Disturber;
use documents::Documents;
use lkr_test_history::{
    AccountCall, Answer, Away, DocumentCall, Ended, Finding, FindingKind, check_documents, check_revocations,
};
use lkr_tests::Seed;
use service::{SERVERS, Service};

/// How long the short history is disturbed.
const SHORT: Duration = Duration::from_secs(6);

/// How long processes may take to come back to Redis when nothing disturbs them any more.
const HEALED: Duration = Duration::from_secs(120);

/// How long a broken service may stay unnoticed.
const LONGEST: Duration = Duration::from_secs(120);

/// How long the clients of a broken service run until what they recorded is checked.
const ROUND: Duration = Duration::from_secs(2);

/// The clients of documents, and the accounts with a client each.
const DOCUMENT_CLIENTS: usize = 3;
const ACCOUNT_CLIENTS: usize = 2;

/// The number of findings that are shown.
const MOST_SHOWN: usize = 3;

#[test]
fn disturbed_service_keeps_documents_in_order_and_revocations_in_force() {
    let Some(service) = Service::start() else { return };
    let mut seed = Seed::announce("histories");
    let time = env::var("LKR_HISTORY_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let time = time.map_or(SHORT, Duration::from_secs);
    let (documents, accounts) = (Documents::default(), Accounts::default());
    let away = record(&service, &documents, &accounts, &mut seed, time);
    summarize(&documents, &accounts, &away);
    let begun = Instant::now();
    let findings = check(&documents, &accounts, &away);
    eprintln!("checked in {:?}", begun.elapsed());
    assert!(findings.is_empty(), "{}", shown(&findings));
    let changed = documents
        .history()
        .iter()
        .any(|operation| matches!(operation.call, DocumentCall::Upsert { ended: Ended::Done, .. }));
    let used = accounts.history().iter().any(|operation| {
        operation.answer == Answer::Done && matches!(operation.call, AccountCall::UseSession(_))
    });
    assert!(changed && used, "too little was done to mean something");
}

#[test]
fn servers_that_do_not_read_sessions_again_are_caught() {
    catch("auth/session/", Duration::from_secs(20), FindingKind::RevokedAccepted);
}

#[test]
fn servers_that_do_not_read_documents_again_are_caught() {
    catch("doc/", Duration::from_secs(3), FindingKind::NoOrder);
}

/// Runs clients and disturbances for some time, ends the disturbances, reads everything, and returns when servers went on without
/// Redis.
fn record(
    service: &Service,
    documents: &Documents,
    accounts: &Accounts,
    seed: &mut Seed,
    time: Duration,
) -> Vec<Away> {
    let (stop, stop_watching) = (AtomicBool::new(false), AtomicBool::new(false));
    let clients: Vec<_> = (0..ACCOUNT_CLIENTS).map(|_| accounts.client(service, seed.fork())).collect();
    thread::scope(|scope| {
        let watcher = scope.spawn(|| service.watch(&stop_watching));
        let flags = [&stop, &stop_watching];
        let ended = StopOnDrop(&flags);
        let stop = &stop;
        let mut running = Vec::new();
        for _ in 0..DOCUMENT_CLIENTS {
            let seed = seed.fork();
            running.push(scope.spawn(move || documents.run(service, seed, stop)));
        }
        let clients = clients.into_iter().map(|mut client| {
            scope.spawn(move || {
                client.run(stop);
                client
            })
        });
        let clients: Vec<_> = clients.collect();
        let mut disturber = Disturber::new(service, seed.fork());
        disturber.run(time);
        eprintln!("{:?}", disturber.counts);
        stop.store(true, Ordering::SeqCst);
        running.into_iter().for_each(|client| client.join().unwrap());
        let mut clients: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        let begun = Instant::now();
        while let Some(state) = service.missing() {
            assert!(begun.elapsed() < HEALED, "a process does not come back to Redis: {state}");
            thread::sleep(Duration::from_millis(50));
        }
        documents.finish(service, seed);
        clients.iter_mut().for_each(accounts::Client::finish);
        drop(ended);
        watcher.join().unwrap()
    })
}

/// Runs clients on a service whose servers know records with this in their keys as they were up to so long before, until the
/// checkers find it.
fn catch(word: &str, age: Duration, kind: FindingKind) {
    let Some(service) = Service::start() else { return };
    let mut seed = Seed::announce("histories");
    let (documents, accounts) = (Documents::default(), Accounts::default());
    let mut client = accounts.client(&service, seed.fork());
    let members = service.members.iter().take(SERVERS);
    members.for_each(|member| member.proxy.answer_from_memory(word, age));
    let begun = Instant::now();
    loop {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let (service, documents, stop) = (&service, &documents, &stop);
            let (client, other) = (&mut client, seed.fork());
            scope.spawn(move || documents.run(service, other, stop));
            scope.spawn(move || client.run(stop));
            thread::sleep(ROUND);
            stop.store(true, Ordering::SeqCst);
        });
        documents.finish(&service, &mut seed);
        let findings = check(&documents, &accounts, &[]);
        if let Some(found) = findings.iter().find(|finding| finding.kind == kind) {
            return eprintln!("{word} caught after {:?}: {found}", begun.elapsed());
        }
        assert!(begun.elapsed() < LONGEST, "{word} was not caught: {}", shown(&findings));
    }
}

/// Sets its flags, also if the test fails, because a scope waits for its threads.
struct StopOnDrop<'a>(&'a [&'a AtomicBool]);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|stop| stop.store(true, Ordering::SeqCst));
    }
}

fn check(documents: &Documents, accounts: &Accounts, away: &[Away]) -> Vec<Finding> {
    let history = documents.history().clone();
    let mut findings = check_documents(&history);
    let history = accounts.history().clone();
    findings.extend(check_revocations(&history, away));
    findings
}

fn summarize(documents: &Documents, accounts: &Accounts, away: &[Away]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let name = |call: &str| call.split([' ', '(', '{']).next().unwrap_or_default().to_owned();
    let mut count =
        |call: String, answer: String| *counts.entry(format!("{call} {answer}")).or_default() += 1;
    for operation in documents.history().iter() {
        let answer = match &operation.call {
            DocumentCall::Upsert { ended, .. } => format!("{ended:?}"),
            DocumentCall::Retitle { answer, .. } | DocumentCall::Delete { answer, .. } => {
                format!("{answer:?}")
            }
            DocumentCall::Get { found, .. } => format!("found {}", found.iter().count()),
            DocumentCall::Find { found } => format!("found {}", found.len()),
        };
        count(name(&format!("{:?}", operation.call)), answer);
    }
    for operation in accounts.history().iter() {
        count(name(&format!("{:?}", operation.call)), format!("{:?}", operation.answer));
    }
    let spent = away.iter().filter_map(|away| Some(Duration::from_nanos(away.until? - away.from)));
    eprintln!("{counts:?}; {} times without Redis, {:?} in all", away.len(), spent.sum::<Duration>());
}

fn shown(findings: &[Finding]) -> String {
    let texts: Vec<String> = findings.iter().take(MOST_SHOWN).map(ToString::to_string).collect();
    let folder = env::temp_dir().join(format!("lkr-histories-{}", std::process::id()));
    let all: Vec<String> = findings.iter().map(ToString::to_string).collect();
    let kept = fs::write(&folder, all.join("\n")).is_ok();
    let place = if kept { format!(" (all in {})", folder.display()) } else { String::new() };
    format!("{} findings{place}\n{}", findings.len(), texts.join("\n"))
}

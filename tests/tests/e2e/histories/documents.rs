//! Clients that add, replace, rename, delete, read and find the documents of a few sources.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use lkr_test_history::{Answer, DocumentCall, DocumentOperation, Ended, Shown};
use lkr_tests::{Load, Seed};
use serde_json::{Value, json};

use super::service::{Reply, Request, SERVERS, Service};

/// The sources.
const SOURCES: u64 = 6;
/// The first number of their words, far from those of other tests.
const WORDS: u64 = 8_000_000;
/// The most upserts that have not ended. More would make the search for an order long.
const MOST_OPEN: usize = 5;

/// How long tasks may take to end when nothing disturbs them any more. Those of a worker that was killed wait for their leases.
const ENDS: Duration = Duration::from_secs(150);

/// What the clients did and know.
#[derive(Default)]
pub(super) struct Documents {
    history: Mutex<Vec<DocumentOperation>>,
    open: Mutex<Vec<Upsert>>,
    /// The documents that were named so far, the latest of each source last.
    known: Mutex<Vec<(u64, String)>>,
}

/// An upsert that has not ended.
#[derive(Debug, Clone)]
struct Upsert {
    source: u64,
    write: u64,
    /// When it was sent first.
    start: u64,
    process: u32,
    accepted: Option<Accepted>,
}

#[derive(Debug, Clone)]
struct Accepted {
    at: u64,
    task: String,
}

impl Documents {
    /// Makes requests until `stop`.
    pub(super) fn run(&self, service: &Service, mut seed: Seed, stop: &AtomicBool) {
        while !stop.load(Ordering::SeqCst) {
            let (server, source) = (seed.below(SERVERS as u64) as usize, seed.below(SOURCES));
            match seed.below(20) {
                0..=3 => self.add(service, server, source),
                4..=6 => self.retitle(service, server, source),
                7 => self.delete(service, server, source),
                8..=10 => self.get(service, server, source, seed.below(2) == 0),
                11..=12 => self.list(service, server, source),
                13..=16 => self.search(service, server, source, &mut seed),
                _ => self.follow(service, server),
            }
            thread::sleep(Duration::from_millis(seed.below(30)));
        }
    }

    /// Follows all tasks to their ends, and reads everything from each server.
    pub(super) fn finish(&self, service: &Service, seed: &mut Seed) {
        let begun = Instant::now();
        while !self.open.lock().unwrap().is_empty() {
            assert!(begun.elapsed() < ENDS, "{:?} do not end", self.open.lock().unwrap());
            (0..SERVERS).for_each(|server| self.follow(service, server));
            thread::sleep(Duration::from_millis(50));
        }
        let known = self.known.lock().unwrap().clone();
        for server in 0..SERVERS {
            for source in 0..SOURCES {
                self.list(service, server, source);
                self.search(service, server, source, seed);
            }
            for (source, doc) in &known {
                self.read(service, server, *source, doc, false);
            }
        }
    }

    pub(super) fn history(&self) -> MutexGuard<'_, Vec<DocumentOperation>> {
        self.history.lock().unwrap()
    }

    fn add(&self, service: &Service, server: usize, source: u64) {
        if self.open.lock().unwrap().len() >= MOST_OPEN {
            return self.follow(service, server);
        }
        let write = service.number();
        let upsert = Upsert { source, write, start: 0, process: server as u32, accepted: None };
        let reply = service.ask(server, request(&upsert, &service.admin, &key(write)));
        let upsert = Upsert { start: reply.start, accepted: accepted(&reply), ..upsert };
        self.open.lock().unwrap().push(upsert);
    }

    /// Asks how the open upserts are. One whose acceptance got no answer is sent again with the same idempotency key.
    fn follow(&self, service: &Service, server: usize) {
        let open = self.open.lock().unwrap().clone();
        for upsert in open {
            let Some(accepted) = &upsert.accepted else {
                let reply = service.ask(server, request(&upsert, &service.admin, &key(upsert.write)));
                let Some(accepted) = accepted(&reply) else { continue };
                let mut open = self.open.lock().unwrap();
                let found = open.iter_mut().find(|other| other.write == upsert.write);
                // Another client may have sent it again too.
                if let Some(found) = found.filter(|found| found.accepted.is_none()) {
                    found.accepted = Some(accepted);
                }
                continue;
            };
            let path = format!("/documents/tasks/{}", accepted.task);
            let reply = service.ask(server, Request::get(&path, &service.admin));
            let Some(doc) = reply.data["doc_id"].as_str() else { continue };
            self.know(upsert.source, doc);
            let ended = match reply.data["status"].as_str() {
                Some("done") => Ended::Done,
                Some("failed") => {
                    assert_eq!(reply.data["error"]["code"], 1003, "a task failed: {}", reply.data);
                    Ended::Cancelled
                }
                _ => continue,
            };
            self.end(&upsert, accepted.at, doc, reply.end, ended);
        }
    }

    fn know(&self, source: u64, doc: &str) {
        let mut known = self.known.lock().unwrap();
        if known.iter().all(|(_, other)| other != doc) {
            known.push((source, doc.to_owned()));
        }
    }

    fn end(&self, upsert: &Upsert, accepted: u64, doc: &str, end: u64, ended: Ended) {
        let mut open = self.open.lock().unwrap();
        let Some(place) = open.iter().position(|other| other.write == upsert.write) else { return };
        open.remove(place);
        self.history().push(DocumentOperation {
            process: upsert.process,
            source: source(upsert.source),
            start: upsert.start,
            end: Some(end),
            call: DocumentCall::Upsert { write: upsert.write, doc: doc.to_owned(), accepted, ended },
        });
    }

    fn retitle(&self, service: &Service, server: usize, source: u64) {
        let Some(doc) = self.latest(source) else { return };
        let (write, path) = (service.number(), format!("/documents/{doc}"));
        let change = Request::post(&path, json!({"title": title(write)})).method("PATCH");
        let reply = service.ask(server, change.with(&service.admin));
        let answer = answer(reply.status);
        self.note(server, source, &reply, answer, DocumentCall::Retitle { doc, write, answer });
    }

    fn delete(&self, service: &Service, server: usize, source: u64) {
        let Some(doc) = self.latest(source) else { return };
        let path = format!("/documents/{doc}");
        let reply = service.ask(server, Request::get(&path, &service.admin).method("DELETE"));
        let answer = answer(reply.status);
        self.note(server, source, &reply, answer, DocumentCall::Delete { doc, answer });
    }

    fn get(&self, service: &Service, server: usize, source: u64, text: bool) {
        if let Some(doc) = self.latest(source) {
            self.read(service, server, source, &doc, text);
        }
    }

    /// Reads the record of a document, or its text.
    fn read(&self, service: &Service, server: usize, source: u64, doc: &str, text: bool) {
        let path = format!("/documents/{doc}{}", if text { "/text" } else { "" });
        let reply = service.ask(server, Request::get(&path, &service.admin));
        let found = match (reply.status, text) {
            (200, true) => Some(Shown {
                doc: doc.to_owned(),
                text: Some(number_after(&reply.data["text"], "version ")),
                title: None,
            }),
            (200, false) => Some(record(&reply.data["l1"])),
            (404, _) => None,
            _ => return,
        };
        self.note(server, source, &reply, Answer::Done, DocumentCall::Get { doc: doc.to_owned(), found });
    }

    fn list(&self, service: &Service, server: usize, number: u64) {
        let path = format!("/documents?source={}", source(number));
        let reply = service.ask(server, Request::get(&path, &service.admin));
        if reply.status == 200 {
            let items = reply.data["items"].as_array().unwrap();
            let found = items.iter().map(record).collect();
            self.note(server, number, &reply, Answer::Done, DocumentCall::Find { found });
        }
    }

    /// Searches for the word of a source; half of the queries were asked before, so that answers are cached.
    fn search(&self, service: &Service, server: usize, number: u64, seed: &mut Seed) {
        let more = if seed.below(2) == 0 { seed.below(1_000_000) } else { 0 };
        let query = json!({"query": format!("{} {more}", word(number)), "top_k": 20});
        let reply = service.ask(server, Request::post("/search", query).with(&service.admin));
        if reply.status == 200 {
            let results = reply.data["results"].as_array().unwrap();
            let matching = results.iter().filter(|result| result["source"] == source(number).as_str());
            let found: BTreeSet<Shown> = matching.map(hit).collect();
            let found = found.into_iter().collect();
            self.note(server, number, &reply, Answer::Done, DocumentCall::Find { found });
        }
    }

    fn latest(&self, source: u64) -> Option<String> {
        let known = self.known.lock().unwrap();
        known.iter().rev().find(|(of, _)| *of == source).map(|(_, doc)| doc.clone())
    }

    fn note(&self, server: usize, number: u64, reply: &Reply, answer: Answer, call: DocumentCall) {
        let end = (answer != Answer::Unknown).then_some(reply.end);
        let operation = DocumentOperation {
            process: server as u32,
            source: source(number),
            start: reply.start,
            end,
            call,
        };
        self.history().push(operation);
    }
}

/// What an answer says of an upsert; `None` if it was not accepted.
fn accepted(reply: &Reply) -> Option<Accepted> {
    Some(Accepted { at: reply.end, task: reply.data["task_id"].as_str()?.to_owned() })
}

const fn answer(status: u16) -> Answer {
    match status {
        200 => Answer::Done,
        404 => Answer::Refused,
        _ => Answer::Unknown,
    }
}

fn request<'a>(upsert: &Upsert, admin: &'a str, key: &'a str) -> Request<'a> {
    let Upsert { source: number, write, .. } = upsert;
    let word = word(*number);
    let part = |n| format!("## Part {n}\n\nThe {word} of part {n} is at version {write}.\n");
    let body = json!({
        "title": title(*write), "source": source(*number), "upsert": true,
        "text": (0..3).map(part).collect::<Vec<_>>().join("\n"), "metadata": {"version": write.to_string()},
    });
    Request { idempotency: Some(key), ..Request::post("/documents", body).with(admin) }
}

fn key(write: u64) -> String {
    format!("upsert-{write}")
}

fn source(number: u64) -> String {
    format!("history:{number}")
}

fn word(number: u64) -> String {
    Load::word(WORDS + number)
}

fn title(write: u64) -> String {
    format!("Title {write}.")
}

/// A document's record as an answer shows it.
fn record(item: &Value) -> Shown {
    Shown {
        doc: item["doc_id"].as_str().unwrap().to_owned(),
        text: item["metadata"]["version"].as_str().and_then(|version| version.parse().ok()),
        title: Some(number_after(&item["title"], "Title ")),
    }
}

/// A result of a search.
fn hit(result: &Value) -> Shown {
    Shown {
        doc: result["doc_id"].as_str().unwrap().to_owned(),
        text: Some(number_after(&result["text"], "version ")),
        title: Some(number_after(&result["title"], "Title ")),
    }
}

/// The number in a text between a word and a full stop.
fn number_after(text: &Value, word: &str) -> u64 {
    let (_, rest) = text.as_str().unwrap().split_once(word).unwrap();
    rest.split_once('.').unwrap().0.parse().unwrap()
}

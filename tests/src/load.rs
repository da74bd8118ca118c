use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{Answer, Seed, Server, Watch};

/// How many add documents at once.
const ADDING: usize = 3;

/// Adds, deletes, replaces and changes at random, and a ledger of what the server said to them.
#[derive(Debug, Default)]
pub struct Load {
    /// Whether the server may find no room for what it is sent.
    disk_fills: bool,
    count: AtomicU64,
    ledger: Mutex<BTreeMap<u64, Outcome>>,
}

/// How a server dies.
#[derive(Debug, Clone, Copy)]
pub enum Death {
    /// It is killed after this time.
    After(Duration),
    /// It ends itself where it was told to; where it does not come there in this time, it is killed.
    OfItself(Duration),
}

impl Death {
    fn await_on(self, server: &Server) {
        match self {
            Self::After(time) => {
                thread::sleep(time);
                assert!(!server.has_ended(), "it ended by itself:\n{}", server.log());
            }
            Self::OfItself(time) => {
                let deadline = Instant::now() + time;
                while !server.has_ended() && Instant::now() < deadline {
                    thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }
}

/// What is known of one document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The task that its 202 named; none where the server was killed before it answered.
    pub task_id: Option<String>,
    /// Whether it was refused for want of room: then nothing of it may be there.
    pub refused: bool,
    /// Whether a delete of it was sent.
    pub delete_sent: bool,
    /// Whether a delete of it was answered.
    pub deleted: bool,
    /// What was done to it besides, one after another.
    pub rewrites: Vec<Rewrite>,
}

/// A replacement or change of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// What it was.
    pub kind: RewriteKind,
    /// The number that the document carries after it.
    pub number: u64,
    /// Whether it was answered; where it was not, the server was killed, and it may have been done or not.
    pub answered: bool,
    /// The task that its 202 named.
    pub task_id: Option<String>,
}

/// What is done to a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewriteKind {
    /// Its text is replaced by one that names the number as its version; its metadata go.
    Put,
    /// Its metadata get the number as their mark.
    Patch,
}

/// How a document may stand: the version that its text names, and its mark.
pub type Standing = (u64, Option<u64>);

impl Outcome {
    /// How the document may stand after all that was done to it: what was answered is in force, and what was not may
    /// be. A change that came after a replacement outlasts it, however late that becomes visible.
    #[must_use]
    pub fn standings(&self) -> BTreeSet<Standing> {
        let mut standings = BTreeSet::from([(0, None)]);
        for Rewrite { kind, number, answered, .. } in &self.rewrites {
            let after = standings.iter().map(|(version, _)| match kind {
                RewriteKind::Put => (*number, None),
                RewriteKind::Patch => (*version, Some(*number)),
            });
            let after: BTreeSet<Standing> = after.collect();
            match answered {
                true => standings = after,
                false => standings.extend(after),
            }
        }
        standings
    }
}

impl Load {
    /// A load on a server whose disk fills now and then.
    #[must_use]
    pub fn on_a_disk_that_fills() -> Self {
        Self { disk_fills: true, ..Self::default() }
    }

    /// Adds, deletes, replaces and changes until the server dies amid that, and searches meanwhile.
    pub fn until_dead(&self, server: &Server, watch: &Watch, death: Death, seed: &mut Seed) {
        self.during(server, watch, seed, || {
            death.await_on(server);
            server.kill();
        });
    }

    /// Adds, deletes, replaces and changes as long as `work` goes on, and searches meanwhile.
    pub fn during(&self, server: &Server, watch: &Watch, seed: &mut Seed, work: impl FnOnce()) {
        let over = AtomicBool::new(false);
        // The token is had first: what comes then may fail at any moment.
        let token = server.admin();
        thread::scope(|scope| {
            for _ in 0..ADDING {
                let (mut seed, over) = (seed.fork(), &over);
                scope.spawn(
                    move || while !over.load(Ordering::Relaxed) && self.add(server, token, &mut seed) {},
                );
            }
            let (mut forked, over_too) = (seed.fork(), &over);
            scope.spawn(move || {
                while !over_too.load(Ordering::Relaxed) && self.delete(server, token, &mut forked) {}
            });
            let (mut forked, over_too) = (seed.fork(), &over);
            scope.spawn(move || {
                while !over_too.load(Ordering::Relaxed) && self.rewrite(server, token, &mut forked) {}
            });
            let (mut forked, over_too) = (seed.fork(), &over);
            scope.spawn(move || {
                while !over_too.load(Ordering::Relaxed) && watch.replace(self, server, token, &mut forked) {
                    thread::sleep(Duration::from_millis(forked.below(60)));
                }
            });
            let (mut forked, over_too) = (seed.fork(), &over);
            scope.spawn(
                move || {
                    while !over_too.load(Ordering::Relaxed) && watch.search(server, &mut forked) {}
                },
            );
            // Also where it fails: nobody would stop then.
            let _over = OnDrop(|| over.store(true, Ordering::Relaxed));
            work();
        });
    }

    /// What is known of every document, by its number.
    pub fn ledger(&self) -> MutexGuard<'_, BTreeMap<u64, Outcome>> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The source of a document.
    #[must_use]
    pub fn source(number: u64) -> String {
        format!("load:{number}")
    }

    /// A word that stands in this document alone.
    #[must_use]
    pub fn word(mut number: u64) -> String {
        let mut letters = String::from("zq");
        for _ in 0..5 {
            letters.push(char::from(b'a' + (number % 26) as u8));
            number /= 26;
        }
        letters + "qz"
    }

    /// Sends one more document; false where the server is gone.
    fn add(&self, server: &Server, token: &str, seed: &mut Seed) -> bool {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        self.ledger().insert(number, Outcome::default());
        let (text, source) = (text(number, 0, seed), Self::source(number));
        // Some come as files.
        let answer = if number.is_multiple_of(3) {
            server.try_upload("report.md", text.as_bytes(), &[("source", &source)], token)
        } else {
            let body = json!({"text": text, "source": source});
            server.try_call("POST", "/api/v1/documents", Some(&body), Some(token))
        };
        let Ok(answer) = answer else { return false };
        if self.has_no_room(&answer) {
            self.change(number, |outcome| outcome.refused = true);
            return true;
        }
        assert_eq!(answer.status, 202, "{}", answer.json);
        let task_id = answer.data()["task_id"].as_str().map(str::to_owned);
        self.change(number, |outcome| outcome.task_id = task_id);
        thread::sleep(Duration::from_millis(seed.below(20)));
        true
    }

    /// Deletes a document that was accepted, whatever has become of it; false where the server is gone.
    fn delete(&self, server: &Server, token: &str, seed: &mut Seed) -> bool {
        thread::sleep(Duration::from_millis(seed.below(30)));
        let Some((number, task_id)) = self.pick(seed) else { return true };
        let Ok(task) = server.try_call("GET", &format!("/api/v1/documents/tasks/{task_id}"), None, None)
        else {
            return false;
        };
        let doc_id = doc_id_of(task.data());
        self.change(number, |outcome| outcome.delete_sent = true);
        let path = format!("/api/v1/documents/{doc_id}");
        let Ok(answer) = server.try_call("DELETE", &path, None, Some(token)) else { return false };
        if self.has_no_room(&answer) {
            return true;
        }
        assert_eq!(answer.data()["doc_id"], doc_id);
        self.change(number, |outcome| outcome.deleted = true);
        true
    }

    /// Replaces or changes a document that may be live by now; false where the server is gone. One thread does so, one
    /// after another.
    fn rewrite(&self, server: &Server, token: &str, seed: &mut Seed) -> bool {
        thread::sleep(Duration::from_millis(seed.below(15)));
        let Some((number, task_id)) = self.pick(seed) else { return true };
        let task = server.try_call("GET", &format!("/api/v1/documents/tasks/{task_id}"), None, None);
        let Ok(task) = task else { return false };
        let path = format!("/api/v1/documents/{}", doc_id_of(task.data()));
        let at = self.count.fetch_add(1, Ordering::Relaxed);
        let kind = if seed.below(2) == 0 { RewriteKind::Put } else { RewriteKind::Patch };
        let (method, body) = match kind {
            RewriteKind::Put => {
                ("PUT", json!({"text": text(number, at, seed), "source": Self::source(number)}))
            }
            RewriteKind::Patch => ("PATCH", json!({"metadata": {"mark": at.to_string()}})),
        };
        let rewrite = Rewrite { kind, number: at, answered: false, task_id: None };
        self.change(number, |outcome| outcome.rewrites.push(rewrite));
        let answer = server.try_call(method, &path, Some(&body), Some(token));
        let Ok(answer) = answer else { return false };
        self.change(number, |outcome| match answer.status {
            // It is not live yet, or not any more.
            404 => drop(outcome.rewrites.pop()),
            _ if self.has_no_room(&answer) => drop(outcome.rewrites.pop()),
            200 | 202 => {
                if let Some(last) = outcome.rewrites.last_mut() {
                    last.answered = true;
                    last.task_id = answer.data()["task_id"].as_str().map(str::to_owned);
                }
            }
            status => panic!("{method} {path}: {status} {}", answer.json),
        });
        true
    }

    /// Whether it was refused because the disk is full.
    pub(crate) fn has_no_room(&self, answer: &Answer) -> bool {
        self.disk_fills && answer.status == 500 && answer.json["code"] == 2000
    }

    /// One of the last documents that were accepted, so that some are still pending or running.
    fn pick(&self, seed: &mut Seed) -> Option<(u64, String)> {
        let ledger = self.ledger();
        let accepted: Vec<_> = ledger
            .iter()
            .rev()
            .filter(|(_, outcome)| !outcome.delete_sent)
            .filter_map(|(&number, outcome)| Some((number, outcome.task_id.clone()?)))
            .take(20)
            .collect();
        let place = seed.below(accepted.len().max(1) as u64);
        accepted.into_iter().nth(place as usize)
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Outcome)) {
        change(self.ledger().entry(number).or_default());
    }
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The document that a task works on.
pub(crate) fn doc_id_of(task: &Value) -> String {
    task["doc_id"].as_str().expect("a task names its document").to_owned()
}

/// A document of one to six sections, which names its version.
fn text(number: u64, version: u64, seed: &mut Seed) -> String {
    let mut text = format!("# Report {number}\n\nIt is about {}, version {version}.\n", Load::word(number));
    for section in 0..=seed.below(6) {
        text += &format!("\n## Section {section}\n\n");
        for sentence in 0..5 + seed.below(30) {
            let (subject, object) = (seed.below(500), seed.below(500));
            text += &format!(
                "Station {subject} reports the level of river {object} as steady on day {sentence}. "
            );
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_differ() {
        let words: std::collections::HashSet<String> = (0..2000).map(Load::word).collect();
        assert_eq!(words.len(), 2000);
    }
}

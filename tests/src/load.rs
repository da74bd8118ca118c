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

use crate::{Response, Seed, Server, WatchedDocuments};

/// The number of threads that add documents.
const ADD_THREADS: usize = 3;

/// Random adds, deletes, replacements and metadata changes, with a ledger of the server's responses.
#[derive(Debug, Default)]
pub struct Load {
    /// Whether the disk may fill up.
    disk_fills: bool,
    count: AtomicU64,
    ledger: Mutex<BTreeMap<u64, LedgerEntry>>,
}

/// How a server is terminated.
#[derive(Debug, Clone, Copy)]
pub enum Termination {
    /// It is killed after this time.
    After(Duration),
    /// It exits at its fail point, or is killed after this time.
    AtFailPoint(Duration),
}

impl Termination {
    fn await_on(self, server: &Server) {
        match self {
            Self::After(time) => {
                thread::sleep(time);
                assert!(!server.has_ended(), "the server exited by itself:\n{}", server.log());
            }
            Self::AtFailPoint(time) => {
                let deadline = Instant::now() + time;
                while !server.has_ended() && Instant::now() < deadline {
                    thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }
}

/// The ledger's record of one document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The task of the 202 response; `None` if the server was killed before it responded.
    pub task_id: Option<String>,
    /// Whether it was rejected because the disk was full. Then nothing of it may be stored.
    pub refused: bool,
    /// Whether a delete was sent.
    pub delete_sent: bool,
    /// Whether a delete was confirmed.
    pub deleted: bool,
    /// Its replacements and changes, in order.
    pub rewrites: Vec<Rewrite>,
}

/// A replacement or change of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// Its kind.
    pub kind: RewriteKind,
    /// The number of the version or mark that it sets.
    pub number: u64,
    /// Whether it was confirmed. If not, the server was killed, and the rewrite may or may not have taken effect.
    pub confirmed: bool,
    /// The task of the 202 response.
    pub task_id: Option<String>,
}

/// The kind of a rewrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewriteKind {
    /// The text is replaced by one that states the number as its version; the metadata are cleared.
    Put,
    /// The metadata get the number as their mark.
    Patch,
}

/// A possible state of a document: the version that its text states, and its mark.
pub type DocumentVersion = (u64, Option<u64>);

impl LedgerEntry {
    /// The possible states after all rewrites: confirmed ones took effect, the others may have. A change that was accepted
    /// after a replacement survives it, however late the replacement is published.
    #[must_use]
    pub fn possible_versions(&self) -> BTreeSet<DocumentVersion> {
        let mut possible_versions = BTreeSet::from([(0, None)]);
        for Rewrite { kind, number, confirmed, .. } in &self.rewrites {
            let after = possible_versions.iter().map(|(version, _)| match kind {
                RewriteKind::Put => (*number, None),
                RewriteKind::Patch => (*version, Some(*number)),
            });
            let after: BTreeSet<DocumentVersion> = after.collect();
            match confirmed {
                true => possible_versions = after,
                false => possible_versions.extend(after),
            }
        }
        possible_versions
    }
}

impl Load {
    /// A load on a server whose disk may fill up.
    #[must_use]
    pub fn on_limited_disk() -> Self {
        Self { disk_fills: true, ..Self::default() }
    }

    /// Runs the load and the searches until the server is terminated.
    pub fn until_terminated(
        &self,
        server: &Server,
        watch: &WatchedDocuments,
        termination: Termination,
        seed: &mut Seed,
    ) {
        self.run_while(server, watch, seed, || {
            termination.await_on(server);
            server.kill();
        });
    }

    /// Runs the load and the searches while `work` runs.
    pub fn run_while(&self, server: &Server, watch: &WatchedDocuments, seed: &mut Seed, work: impl FnOnce()) {
        let stop = AtomicBool::new(false);
        let is_running = || !stop.load(Ordering::Relaxed);
        // The login comes first, because later requests may fail at any moment.
        let token = server.admin();
        thread::scope(|scope| {
            for _ in 0..ADD_THREADS {
                let mut seed = seed.fork();
                scope.spawn(move || while is_running() && self.add(server, token, &mut seed) {});
            }
            let mut delete_seed = seed.fork();
            scope.spawn(move || while is_running() && self.delete(server, token, &mut delete_seed) {});
            let mut rewrite_seed = seed.fork();
            scope.spawn(move || while is_running() && self.rewrite(server, token, &mut rewrite_seed) {});
            let mut replace_seed = seed.fork();
            scope.spawn(move || {
                while is_running() && watch.replace(self, server, token, &mut replace_seed) {
                    thread::sleep(Duration::from_millis(replace_seed.below(60)));
                }
            });
            let mut search_seed = seed.fork();
            scope.spawn(move || while is_running() && watch.search(server, &mut search_seed) {});
            // Stops the threads even if `work` panics.
            let _stop = DropGuard(|| stop.store(true, Ordering::Relaxed));
            work();
        });
    }

    /// The ledger, by document number.
    pub fn ledger(&self) -> MutexGuard<'_, BTreeMap<u64, LedgerEntry>> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The source of a document.
    #[must_use]
    pub fn source(number: u64) -> String {
        format!("load:{number}")
    }

    /// A word that only this document contains.
    #[must_use]
    pub fn word(mut number: u64) -> String {
        let mut letters = String::from("zq");
        for _ in 0..5 {
            letters.push(char::from(b'a' + (number % 26) as u8));
            number /= 26;
        }
        letters + "qz"
    }

    /// Sends one more document; false if the server is down.
    fn add(&self, server: &Server, token: &str, seed: &mut Seed) -> bool {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        self.ledger().insert(number, LedgerEntry::default());
        let (text, source) = (text(number, 0, seed), Self::source(number));
        // Some are uploaded as files.
        let response = if number.is_multiple_of(3) {
            server.try_upload("report.md", text.as_bytes(), &[("source", &source)], token)
        } else {
            let body = json!({"text": text, "source": source});
            server.try_call("POST", "/api/v1/documents", Some(&body), Some(token))
        };
        let Ok(response) = response else { return false };
        if self.is_disk_full(&response) {
            self.change(number, |entry| entry.refused = true);
            return true;
        }
        assert_eq!(response.status, 202, "{}", response.json);
        let task_id = response.data()["task_id"].as_str().map(str::to_owned);
        self.change(number, |entry| entry.task_id = task_id);
        thread::sleep(Duration::from_millis(seed.below(20)));
        true
    }

    /// Deletes an accepted document in any state; false if the server is down.
    fn delete(&self, server: &Server, token: &str, seed: &mut Seed) -> bool {
        thread::sleep(Duration::from_millis(seed.below(30)));
        let Some((number, task_id)) = self.pick(seed) else { return true };
        let Ok(task) = server.try_call("GET", &format!("/api/v1/documents/tasks/{task_id}"), None, None)
        else {
            return false;
        };
        let doc_id = doc_id_of(task.data());
        self.change(number, |entry| entry.delete_sent = true);
        let path = format!("/api/v1/documents/{doc_id}");
        let Ok(response) = server.try_call("DELETE", &path, None, Some(token)) else { return false };
        if self.is_disk_full(&response) {
            return true;
        }
        assert_eq!(response.data()["doc_id"], doc_id);
        self.change(number, |entry| entry.deleted = true);
        true
    }

    /// Replaces or changes a document that may be live by now; false if the server is down. Called by one thread, one rewrite
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
        let rewrite = Rewrite { kind, number: at, confirmed: false, task_id: None };
        self.change(number, |entry| entry.rewrites.push(rewrite));
        let response = server.try_call(method, &path, Some(&body), Some(token));
        let Ok(response) = response else { return false };
        self.change(number, |entry| match response.status {
            // The document is not live.
            404 => drop(entry.rewrites.pop()),
            _ if self.is_disk_full(&response) => drop(entry.rewrites.pop()),
            200 | 202 => {
                if let Some(last) = entry.rewrites.last_mut() {
                    last.confirmed = true;
                    last.task_id = response.data()["task_id"].as_str().map(str::to_owned);
                }
            }
            status => panic!("{method} {path}: {status} {}", response.json),
        });
        true
    }

    /// Whether the response reports a full disk.
    pub(crate) fn is_disk_full(&self, response: &Response) -> bool {
        self.disk_fills && response.status == 500 && response.json["code"] == 2000
    }

    /// One of the documents accepted last, so that some are still pending or running.
    fn pick(&self, seed: &mut Seed) -> Option<(u64, String)> {
        let ledger = self.ledger();
        let accepted: Vec<_> = ledger
            .iter()
            .rev()
            .filter(|(_, entry)| !entry.delete_sent)
            .filter_map(|(&number, entry)| Some((number, entry.task_id.clone()?)))
            .take(20)
            .collect();
        let index = seed.below(accepted.len().max(1) as u64);
        accepted.into_iter().nth(index as usize)
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut LedgerEntry)) {
        change(self.ledger().entry(number).or_default());
    }
}

struct DropGuard<F: Fn()>(F);

impl<F: Fn()> Drop for DropGuard<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The document of a task.
pub(crate) fn doc_id_of(task: &Value) -> String {
    task["doc_id"].as_str().expect("a task has a document id").to_owned()
}

/// The text of a document with one to seven sections, which states its version.
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
    fn words_of_documents_are_distinct() {
        let words: std::collections::HashSet<String> = (0..2000).map(Load::word).collect();
        assert_eq!(words.len(), 2000);
    }
}

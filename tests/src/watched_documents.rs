//! Documents that are replaced continuously, and searches for them.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering},
};

use serde_json::{Value, json};

use crate::{Load, Seed, Server};

/// The number of watched documents.
const DOCUMENTS: u64 = 3;

/// The first number of their words, far from the numbers of a load.
const WORDS: u64 = 5_000_000;

/// Documents that are always live. Each version states its number in every section.
#[derive(Debug)]
pub struct WatchedDocuments {
    documents: Vec<Watched>,
    versions: AtomicU64,
    searches: AtomicU64,
}

#[derive(Debug)]
struct Watched {
    word: String,
    source: String,
    doc_id: String,
    /// The latest version that a search returned.
    latest: AtomicU64,
}

impl WatchedDocuments {
    /// Ingests the documents.
    #[must_use]
    pub fn ingest(server: &Server) -> Self {
        let watched = |n| {
            let (word, source) = (Load::word(WORDS + n), format!("watched:{n}"));
            let doc_id = server.add(&json!({"text": text(&word, 0), "source": source}));
            Watched { word, source, doc_id, latest: AtomicU64::new(0) }
        };
        let documents = (0..DOCUMENTS).map(watched).collect();
        Self { documents, versions: AtomicU64::new(0), searches: AtomicU64::new(0) }
    }

    /// How many responses were checked.
    pub fn searches(&self) -> u64 {
        self.searches.load(Ordering::Relaxed)
    }

    /// Whether `source` belongs to a watched document.
    #[must_use]
    pub fn contains_source(&self, source: &str) -> bool {
        self.documents.iter().any(|document| document.source == source)
    }

    /// Sends the next version of a random one; false if the server is down. Called by one thread.
    pub(crate) fn replace(&self, load: &Load, server: &Server, token: &str, seed: &mut Seed) -> bool {
        let version = self.versions.fetch_add(1, Ordering::Relaxed) + 1;
        let Watched { word, source, doc_id, .. } = &self.documents[seed.below(DOCUMENTS) as usize];
        let body = json!({"text": text(word, version), "source": source});
        let path = format!("/api/v1/documents/{doc_id}");
        let Ok(response) = server.try_call("PUT", &path, Some(&body), Some(token)) else { return false };
        assert!(
            response.status == 202 || load.is_disk_full(&response),
            "{source} is live and was not replaced: {}",
            response.json
        );
        true
    }

    /// Searches for a random one; false if the server is down. Called by one thread.
    ///
    /// # Panics
    /// If the document is not found, is found in two versions, or in an earlier version than before.
    pub(crate) fn search(&self, server: &Server, seed: &mut Seed) -> bool {
        let Watched { word, source, latest, .. } = &self.documents[seed.below(DOCUMENTS) as usize];
        let mode = if seed.below(2) == 0 { "layered" } else { "flat" };
        let request =
            json!({"query": format!("{word} {}", seed.below(1_000_000)), "mode": mode, "top_k": 20});
        let Ok(response) = server.try_call("POST", "/api/v1/search", Some(&request), None) else {
            return false;
        };
        assert_eq!(response.status, 200, "{}", response.json);
        let found = response.data()["results"].as_array().expect("results");
        let matching = found.iter().filter(|result| result["source"] == source.as_str());
        let versions: BTreeSet<u64> = matching.flat_map(versions_of).collect();
        assert!(!versions.is_empty(), "{source} is live and was not found: {}", response.json);
        assert_eq!(versions.len(), 1, "{source} was found in versions {versions:?}");
        let before = latest.fetch_max(versions.iter().copied().max().unwrap_or_default(), Ordering::Relaxed);
        assert!(
            versions.iter().all(|&version| version >= before),
            "{source} went back from version {before} to {versions:?}"
        );
        self.searches.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// The versions that a result states.
fn versions_of(result: &Value) -> Vec<u64> {
    let text = result["text"].as_str().expect("a text");
    let parts = text.split("version ").skip(1);
    parts.map(|rest| rest.split_once('.').expect("a full stop").0.parse().expect("a number")).collect()
}

fn text(word: &str, version: u64) -> String {
    let section = |n| format!("## Part {n}\n\nThe {word} of part {n} is at version {version}.\n");
    format!("# The {word}\n\n{}", (0..6).map(section).collect::<Vec<_>>().join("\n"))
}

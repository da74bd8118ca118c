//! The requests of each kind.

use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::UNIX_EPOCH,
};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    bench::{load::kind::Kind, random::XorShift64},
    collection::json_lines,
    exit::usage,
};

/// Cached searches use this many queries, whose responses fit into the cache.
const CACHED_QUERIES: usize = 16;

/// The longest run of spaces between two words.
const MAX_SPACES: u64 = 4;

/// The words of a line in an added document.
const LINE_WORDS: usize = 12;

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) method: &'static str,
    /// The path below `/api/v1`.
    pub(super) path: String,
    pub(super) body: Option<Value>,
}

/// Makes requests, no two of them alike except those of kind `cached`.
#[derive(Debug)]
pub(super) struct Requests {
    pub(super) queries: Vec<String>,
    /// The space of searches in a space, and of added documents.
    pub(super) space: String,
    /// The expression of filtered searches.
    pub(super) filter: Value,
    /// How the sources of added documents begin.
    pub(super) prefix: String,
    /// The size of an added document, in bytes, about.
    pub(super) document_bytes: usize,
    next: AtomicU64,
    /// The first variant of the queries. Those of a run a moment ago may be in the cache.
    first_variant: u64,
}

#[derive(Debug, Deserialize)]
struct QueryRow {
    text: String,
}

/// Reads the queries of a collection.
pub(super) fn collection_queries(dir: &Path) -> Result<Vec<String>> {
    let rows: Vec<QueryRow> = json_lines(&dir.join("queries.jsonl"))?;
    Ok(rows.into_iter().map(|row| row.text).collect())
}

/// Reads a file with one query in each line.
pub(super) fn file_queries(file: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    Ok(text.lines().map(str::to_owned).collect())
}

impl Requests {
    /// Requests with these queries. Blank ones are left out.
    pub(super) fn new(
        queries: Vec<String>,
        space: &str,
        filter: Value,
        document_bytes: usize,
    ) -> Result<Self> {
        let queries: Vec<String> = queries.into_iter().filter(|query| !query.trim().is_empty()).collect();
        if queries.is_empty() {
            return Err(usage("there are no queries"));
        }
        let now = UNIX_EPOCH.elapsed().unwrap_or_default();
        Ok(Self {
            queries,
            space: space.to_owned(),
            filter,
            prefix: format!("bench:{:x}:", now.as_nanos()),
            document_bytes,
            next: AtomicU64::new(0),
            first_variant: XorShift64::new(u64::from(now.subsec_nanos())).next() >> 32,
        })
    }

    /// The next request of a kind; `None` for a deletion, which needs a document.
    pub(super) fn next(&self, kind: Kind) -> Option<Request> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let post =
            |path: &str, body| Some(Request { method: "POST", path: path.to_owned(), body: Some(body) });
        match kind {
            Kind::Search => post("/search", json!({ "query": self.query(number) })),
            Kind::Cached => post("/search", self.cached(number)),
            Kind::Filtered => post("/search", json!({ "query": self.query(number), "where": self.filter })),
            Kind::Space => post("/search", json!({ "query": self.query(number), "spaces": [self.space] })),
            Kind::Context => post("/context", json!({ "query": self.query(number) })),
            Kind::Summary => post("/search", json!({ "query": self.query(number), "summarize": true })),
            Kind::Add => Some(self.added()),
            Kind::Delete => None,
        }
    }

    /// The addition of a document.
    pub(super) fn added(&self) -> Request {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Request { method: "POST", path: "/documents".to_owned(), body: Some(self.document(number)) }
    }

    /// Every cached search once.
    pub(super) fn all_cached(&self) -> impl Iterator<Item = Value> {
        (0..CACHED_QUERIES.min(self.queries.len()) as u64).map(|number| self.cached(number))
    }

    fn cached(&self, number: u64) -> Value {
        let count = CACHED_QUERIES.min(self.queries.len());
        let index = usize::try_from(number).unwrap_or_default() % count.max(1);
        json!({ "query": self.queries.get(index) })
    }

    fn query(&self, number: u64) -> String {
        let (count, place) = (self.queries.len() as u64, usize::try_from(number).unwrap_or_default());
        let query = self.queries.get(place % self.queries.len().max(1));
        let variant = self.first_variant.wrapping_add(number / count.max(1));
        query.map(|query| variant_of(query, variant)).unwrap_or_default()
    }

    /// A document that no other document equals, of words of the queries.
    fn document(&self, number: u64) -> Value {
        let words: Vec<&str> = self.queries.iter().flat_map(|query| query.split_whitespace()).collect();
        let mut random = XorShift64::new(self.first_variant.wrapping_add(number).wrapping_mul(0x9e37_79b9));
        let mut text = format!("# Document {number} of {}\n", self.prefix);
        let mut count = 0;
        while text.len() < self.document_bytes {
            text.push_str(if count % LINE_WORDS == 0 { "\n\n" } else { " " });
            let index = usize::try_from(random.next() >> 33).unwrap_or_default() % words.len().max(1);
            text.push_str(words.get(index).copied().unwrap_or("word"));
            count += 1;
        }
        let source = format!("{}{number}", self.prefix);
        json!({ "text": text, "source": source, "space": self.space, "force": true })
    }
}

/// A query of the same words with other spaces between them. They change neither scores nor literal matches, but the cache compares
/// queries by their characters. No variant has single spaces alone, as the cached queries of most files do. A query of one
/// word has one variant.
fn variant_of(query: &str, number: u64) -> String {
    let gaps = query.split_whitespace().skip(1).count();
    let variants = u32::try_from(gaps).ok().and_then(|gaps| MAX_SPACES.checked_pow(gaps)).unwrap_or(u64::MAX);
    // Variant 0 has single spaces alone.
    let mut variant = 1 + number % variants.saturating_sub(1).max(1);
    let mut varied = String::new();
    for word in query.split_whitespace() {
        if !varied.is_empty() {
            (0..=variant % MAX_SPACES).for_each(|_| varied.push(' '));
            variant /= MAX_SPACES;
        }
        varied.push_str(word);
    }
    varied
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn requests(queries: &[&str]) -> Requests {
        let queries = queries.iter().map(|query| (*query).to_owned()).collect();
        Requests::new(queries, "default", json!({}), 500).unwrap()
    }

    #[test]
    fn uncached_searches_differ_in_spaces_alone() {
        let requests = requests(&["why does the sea rise at noon", " ", "what moves the\tsea up"]);
        let sent: Vec<String> = (0..400)
            .map(|_| requests.next(Kind::Search).unwrap().body.unwrap()["query"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(sent.iter().collect::<HashSet<_>>().len(), 400);
        let words: HashSet<Vec<&str>> = sent.iter().map(|query| query.split_whitespace().collect()).collect();
        assert_eq!(words.len(), 2);
    }

    #[test]
    fn uncached_searches_are_never_the_cached_one() {
        let requests = requests(&["why is it blue"]);
        let cached = requests.next(Kind::Cached);
        assert!((0..200).all(|_| requests.next(Kind::Search) != cached));
    }

    #[test]
    fn cached_searches_are_a_few_that_repeat() {
        let queries: Vec<String> = (0..40).map(|n| format!("query {n}")).collect();
        let requests = requests(&queries.iter().map(String::as_str).collect::<Vec<_>>());
        let first: HashSet<String> = requests.all_cached().map(|body| body.to_string()).collect();
        let sent: HashSet<String> =
            (0..100).map(|_| requests.next(Kind::Cached).unwrap().body.unwrap().to_string()).collect();
        assert_eq!((first.len(), sent), (CACHED_QUERIES, first));
    }

    #[test]
    fn added_documents_differ_and_carry_the_prefix() {
        let requests = requests(&["tides"]);
        let document = || requests.next(Kind::Add).unwrap().body.unwrap();
        let (one, two) = (document(), document());
        assert_ne!(one["text"], two["text"]);
        assert!((500..520).contains(&one["text"].as_str().unwrap().len()));
        let source = one["source"].as_str().unwrap();
        assert!(source.starts_with("bench:") && source.starts_with(&requests.prefix), "{source}");
        assert!(requests.next(Kind::Delete).is_none());
    }

    #[test]
    fn queries_must_not_all_be_blank() {
        assert!(Requests::new(vec!["  ".to_owned()], "default", json!({}), 1).is_err());
    }
}

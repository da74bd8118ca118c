//! What random operations are made of: ids that were seen, and a few texts, words, sources and keys, so that they meet.

use actix_web::http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use crate::{
    refusing_embedder::REFUSED_WORD,
    service::{Answer, Caller, Operation},
};

/// The most ids of a kind that are remembered.
const REMEMBERED: usize = 40;

const WORDS: [&str; 24] = [
    "basalt", "coast", "moon", "tide", "granite", "harbour", "lantern", "orchard", "velvet", "copper",
    "meadow", "glacier", "pepper", "violin", "marble", "falcon", "cinnamon", "anchor", "willow", "saffron",
    "ERR-1001", "thunder", "quarry", "ember",
];

/// Makes random operations.
#[derive(Debug)]
pub(crate) struct Generator {
    rng: StdRng,
    pub(crate) visible: SeenIds,
    pub(crate) hidden: SeenIds,
    /// Requests for the next page of a listing.
    pub(crate) next_pages: Vec<Operation>,
    /// The last search, until it is repeated.
    pub(crate) last_search: Option<Operation>,
    /// The number of hidden spaces, groups and accounts that were made.
    pub(crate) made: usize,
}

/// Ids in answers.
#[derive(Debug, Default)]
pub(crate) struct SeenIds {
    pub(crate) documents: Vec<String>,
    pub(crate) tasks: Vec<String>,
}

impl SeenIds {
    /// Remembers the ids in a value.
    pub(crate) fn learn(&mut self, value: &Value) {
        match value {
            Value::Object(map) => map.iter().for_each(|(name, value)| match (name.as_str(), value) {
                ("doc_id", Value::String(id)) => remember(&mut self.documents, id.clone()),
                ("task_id", Value::String(id)) => remember(&mut self.tasks, id.clone()),
                _ => self.learn(value),
            }),
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            _ => {}
        }
    }
}

fn remember<T: PartialEq>(seen: &mut Vec<T>, new: T) {
    if !seen.contains(&new) {
        seen.push(new);
    }
    if seen.len() > REMEMBERED {
        seen.remove(0);
    }
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: StdRng::seed_from_u64(seed),
            visible: SeenIds::default(),
            hidden: SeenIds::default(),
            next_pages: Vec::new(),
            last_search: None,
            made: 0,
        }
    }

    /// Remembers what the answer to an operation of both services says. The answer to a deletion repeats its id, even that
    /// of a hidden document.
    pub(crate) fn learn(&mut self, operation: &Operation, answer: &Answer) {
        if operation.method == Method::DELETE {
            return;
        }
        let Ok(body) = serde_json::from_str::<Value>(&answer.body) else { return };
        self.visible.learn(&body);
        if let Some(offset) = body["data"]["next_offset"].as_str() {
            let path = operation.path.split("&offset=").next().unwrap();
            let next = Operation { path: format!("{path}&offset={offset}"), ..operation.clone() };
            remember(&mut self.next_pages, next);
        }
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.rng.random_range(0..end)
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    pub(crate) fn observer(&mut self) -> Caller {
        let [bob, key, carl, anonymous] = Caller::OBSERVERS;
        self.pick(&[bob, bob, bob, bob, key, key, carl, anonymous])
    }

    pub(crate) fn word(&mut self) -> &'static str {
        self.pick(&WORDS)
    }

    /// One of nine texts, perhaps with another word: the texts of different callers are often equal or nearly so.
    pub(crate) fn text(&mut self) -> String {
        let mut fixed = StdRng::seed_from_u64(self.below(9) as u64);
        let mut words =
            |n: usize| -> Vec<&str> { (0..n).map(|_| WORDS[fixed.random_range(0..WORDS.len())]).collect() };
        let (title, first, second) = (words(2), words(9), words(12));
        let mut text = format!(
            "# {}\n\n{}.\n\n## {}\n\n{}.\n",
            title.join(" "),
            first.join(" "),
            title[0],
            second.join(" ")
        );
        match self.below(10) {
            0..3 => text = text.replace(second[3], self.word()),
            3 => text.push_str(&format!("\n{REFUSED_WORD}\n")),
            _ => {}
        }
        text
    }

    pub(crate) fn source(&mut self) -> String {
        format!("/sources/{}", self.below(4))
    }

    pub(crate) fn idempotency_key(&mut self, percent: usize) -> Option<String> {
        self.chance(percent).then(|| format!("key-{}", self.below(5)))
    }

    pub(crate) fn query(&mut self) -> String {
        match self.below(8) {
            0 => format!("\"{} {}\"", self.word(), self.word()),
            1..4 => self.word().to_owned(),
            _ => [self.word(), self.word(), self.word()].join(" "),
        }
    }

    /// A body that adds or replaces a document; without a space if `space` is empty.
    pub(crate) fn document(&mut self, space: &str) -> Value {
        let mut body = json!({ "text": self.text() });
        if !space.is_empty() {
            body["space"] = json!(space);
        }
        if self.chance(40) {
            body["title"] = json!(format!("{} {}", self.word(), self.word()));
        }
        if self.chance(50) {
            body["source"] = json!(self.source());
            body["upsert"] = json!(self.chance(60));
        }
        if self.chance(30) {
            body["metadata"] = json!({ "price": self.below(5).to_string(), "kind": self.word() });
        }
        if self.chance(25) {
            body["force"] = json!(true);
        }
        body
    }

    /// A body that changes a document's properties.
    pub(crate) fn properties(&mut self) -> Value {
        match self.below(5) {
            0 => json!({ "title": self.word() }),
            1 => json!({ "source": self.source() }),
            2 => json!({ "category": self.pick(&["", "technology", "science", "no such category"]) }),
            3 => json!({ "metadata": { "price": self.below(5).to_string() } }),
            _ => json!({ "title": self.word(), "metadata": { "kind": null } }),
        }
    }

    /// A filter expression.
    pub(crate) fn condition(&mut self) -> Value {
        match self.below(9) {
            0 => json!({ "field": "metadata.price", "gte": self.below(5) }),
            1 => json!({ "field": "metadata.kind", "eq": self.word() }),
            2 => json!({ "field": "source", "prefix": "/sources/1" }),
            3 => json!({ "field": "created_by", "eq": self.pick(&["bob", "alice", "wim", "carl"]) }),
            4 => json!({ "field": "space", "eq": self.space_name() }),
            5 => json!({ "not": { "field": "source", "exists": true } }),
            6 => json!({ "field": "title", "gt": self.word() }),
            7 => {
                json!({ "or": [{ "field": "doc_id", "eq": self.any_document() }, { "field": "title", "prefix": "b" }] })
            }
            _ => json!({ "field": "language", "in": ["en", "de"] }),
        }
    }

    /// The name of a space that is readable, hidden or unknown.
    pub(crate) fn space_name(&mut self) -> String {
        match self.below(10) {
            0..7 => self.pick(&["default", "default", "desk", "team"]).to_owned(),
            7 => format!("hidden-{}", self.below(self.made + 1)),
            _ => self.pick(&["legal", "vault", "archive", "nowhere"]).to_owned(),
        }
    }

    /// The id of a document that was seen, is hidden, or does not exist.
    pub(crate) fn any_document(&mut self) -> String {
        let (visible, hidden) = (self.visible.documents.clone(), self.hidden.documents.clone());
        self.any(&visible, &hidden)
    }

    /// The id of a task that was seen, is hidden, or does not exist.
    pub(crate) fn any_task(&mut self) -> String {
        let (visible, hidden) = (self.visible.tasks.clone(), self.hidden.tasks.clone());
        self.any(&visible, &hidden)
    }

    fn any(&mut self, visible: &[String], hidden: &[String]) -> String {
        match self.below(10) {
            0 => self.pick(&["0".repeat(32), "no-id".to_owned()]),
            1..3 if !hidden.is_empty() => self.pick(hidden),
            _ if !visible.is_empty() => self.pick(visible),
            _ => "1".repeat(32),
        }
    }
}

/// A request without a body.
pub(crate) fn request(caller: Caller, method: Method, path: String) -> Operation {
    Operation { caller, method, path, body: None, idempotency_key: None }
}

/// A request with a body.
pub(crate) fn with_body(caller: Caller, method: Method, path: impl Into<String>, body: Value) -> Operation {
    Operation { body: Some(body), ..request(caller, method, path.into()) }
}

/// A text in the query of a URL.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

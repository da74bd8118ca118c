//! Conformance suites of the ports: one function a case, and macros that turn the cases into tests. See
//! [`chat_suite!`](crate::chat_suite), [`embedder_suite!`](crate::embedder_suite) and
//! [`reranker_suite!`](crate::reranker_suite).
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "the cases are tests"
)]

mod chat;
mod embedder;
mod reranker;

pub use chat::*;
pub use embedder::*;
pub use reranker::*;

/// Texts of several lengths and scripts, not sorted by length.
const TEXTS: [&str; 8] = [
    "The heart pumps blood through the arteries, and the veins lead it back.",
    "cat",
    "Wie beantrage ich Urlaub, wenn mein Vorgesetzter verreist ist?",
    "心臓は血液を送り出す。",
    "SELECT name FROM users WHERE id = 42;",
    "naïve café 🦉 — “quoted” … ﬁne",
    "line one\n\n\tline two\r\nline three",
    "42",
];

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

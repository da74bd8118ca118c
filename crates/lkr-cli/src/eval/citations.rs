//! Whether results say what their documents say.

use std::collections::{HashMap, HashSet};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::{
    eval::{server_search, systems},
    http::Client,
};

/// How many mismatches are kept to be shown.
const SHOWN: usize = 5;

/// Checks results against the extracted texts of their documents.
#[derive(Debug)]
pub(super) struct Citations {
    /// Where texts are read that are not here yet.
    client: Option<Client>,
    texts: HashMap<String, CharText>,
    seen: HashSet<String>,
    outcome: Outcome,
}

/// What a result says of where it comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Citation<'a> {
    chunk_id: &'a str,
    /// What its document's text is known by.
    document: &'a str,
    source: &'a str,
    range: (u32, u32),
    text: &'a str,
}

impl<'a> From<&'a server_search::Hit> for Citation<'a> {
    fn from(hit: &'a server_search::Hit) -> Self {
        let server_search::Hit { chunk_id, doc_id, source, text, char_start, char_end } = hit;
        Self { chunk_id, document: doc_id, source, range: (*char_start, *char_end), text }
    }
}

impl<'a> From<&'a systems::Hit> for Citation<'a> {
    fn from(hit: &'a systems::Hit) -> Self {
        let systems::Hit { chunk_id, source, span, text, .. } = hit;
        Self { chunk_id, document: source, source, range: (span.start, span.end), text }
    }
}

/// What came of the checks.
#[derive(Debug, Default, Serialize)]
pub(super) struct Outcome {
    /// Chunks that were checked, each once.
    pub(super) checked: u64,
    /// Those whose text is not what stands in the document between their offsets.
    pub(super) mismatches: u64,
    /// The first of them.
    pub(super) examples: Vec<String>,
}

impl Citations {
    /// Against the texts that a server extracted, each read once.
    pub(super) fn from_server(client: Client) -> Self {
        Self { client: Some(client), ..Self::of([]) }
    }

    /// Against these texts, each with its document's source.
    pub(super) fn of(texts: impl IntoIterator<Item = (String, String)>) -> Self {
        let texts = texts.into_iter().map(|(source, text)| (source, CharText::new(text))).collect();
        Self { client: None, texts, seen: HashSet::new(), outcome: Outcome::default() }
    }

    /// Checks one result, if it was not checked before.
    pub(super) fn check(&mut self, citation: &Citation<'_>) -> Result<()> {
        let Citation { chunk_id, document, source, range: (start, end), text } = *citation;
        if !self.seen.insert(chunk_id.to_owned()) {
            return Ok(());
        }
        if let Some(client) = self.client.as_ref().filter(|_| !self.texts.contains_key(document)) {
            let text = read_text(client, document)?;
            self.texts.insert(document.to_owned(), CharText::new(text));
        }
        let cut = self.texts.get(document).and_then(|text| text.cut(start as usize, end as usize));
        self.outcome.checked += 1;
        if cut != Some(text) {
            self.outcome.mismatches += 1;
            if self.outcome.examples.len() < SHOWN {
                self.outcome.examples.push(format!("{chunk_id} of {source}, {start} to {end}"));
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Outcome {
        self.outcome
    }
}

fn read_text(client: &Client, doc_id: &str) -> Result<String> {
    let answer = client.get(&format!("/documents/{doc_id}/text"))?;
    let text = answer.data.get("text").and_then(|text| text.as_str());
    Ok(text.with_context(|| format!("the text of document {doc_id} is not in the answer"))?.to_owned())
}

/// A text that can be cut by code points.
#[derive(Debug)]
struct CharText {
    text: String,
    /// The byte of every code point, and the length.
    bytes: Vec<u32>,
}

impl CharText {
    fn new(text: String) -> Self {
        let starts = text.char_indices().map(|(byte, _)| byte);
        let bytes = starts.chain([text.len()]).map(|byte| u32::try_from(byte).unwrap_or(u32::MAX)).collect();
        Self { text, bytes }
    }

    fn cut(&self, start: usize, end: usize) -> Option<&str> {
        let byte = |character: usize| self.bytes.get(character).map(|&byte| byte as usize);
        self.text.get(byte(start)?..byte(end)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_count_code_points() {
        let text = CharText::new("aé🏔z".to_owned());
        assert_eq!(text.cut(1, 3), Some("é🏔"));
        assert_eq!(text.cut(0, 4), Some("aé🏔z"));
        assert_eq!((text.cut(4, 4), text.cut(3, 5), text.cut(3, 2)), (Some(""), None, None));
    }
}

//! Checks that the text of each result equals its document at the result's offsets.

use std::collections::{HashMap, HashSet};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::{
    eval::{server_search, systems},
    http::Client,
};

/// The most mismatches that are shown.
const MAX_EXAMPLES: usize = 5;

/// Checks results against the extracted texts of their documents.
#[derive(Debug)]
pub(super) struct Citations {
    /// The client that fetches missing texts.
    client: Option<Client>,
    texts: HashMap<String, CharText>,
    checked_chunks: HashSet<String>,
    report: CitationReport,
}

/// The location that a result claims for its text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Citation<'a> {
    chunk_id: &'a str,
    /// The key of its document's text.
    document: &'a str,
    source: &'a str,
    range: (u32, u32),
    text: &'a str,
}

impl<'a> From<&'a server_search::ServerHit> for Citation<'a> {
    fn from(hit: &'a server_search::ServerHit) -> Self {
        let server_search::ServerHit { chunk_id, doc_id, source, text, char_start, char_end } = hit;
        Self { chunk_id, document: doc_id, source, range: (*char_start, *char_end), text }
    }
}

impl<'a> From<&'a systems::Hit> for Citation<'a> {
    fn from(hit: &'a systems::Hit) -> Self {
        let systems::Hit { chunk_id, source, span, text, .. } = hit;
        Self { chunk_id, document: source, source, range: (span.start, span.end), text }
    }
}

/// The result of the checks.
#[derive(Debug, Default, Serialize)]
pub(super) struct CitationReport {
    /// The number of chunks that were checked, each once.
    pub(super) checked: u64,
    /// The number of chunks whose text differs from the document at their offsets.
    pub(super) mismatches: u64,
    /// The first mismatches.
    pub(super) examples: Vec<String>,
}

impl Citations {
    /// Checks against the texts of a server, each fetched once.
    pub(super) fn from_server(client: Client) -> Self {
        Self { client: Some(client), ..Self::of([]) }
    }

    /// Checks against these texts, each with its document's source.
    pub(super) fn of(texts: impl IntoIterator<Item = (String, String)>) -> Self {
        let texts = texts.into_iter().map(|(source, text)| (source, CharText::new(text))).collect();
        Self { client: None, texts, checked_chunks: HashSet::new(), report: CitationReport::default() }
    }

    /// Checks a result unless it was checked before.
    pub(super) fn check(&mut self, citation: &Citation<'_>) -> Result<()> {
        let Citation { chunk_id, document, source, range: (start, end), text } = *citation;
        if !self.checked_chunks.insert(chunk_id.to_owned()) {
            return Ok(());
        }
        if let Some(client) = self.client.as_ref().filter(|_| !self.texts.contains_key(document)) {
            let text = read_text(client, document)?;
            self.texts.insert(document.to_owned(), CharText::new(text));
        }
        let slice = self.texts.get(document).and_then(|text| text.slice(start as usize, end as usize));
        self.report.checked += 1;
        if slice != Some(text) {
            self.report.mismatches += 1;
            if self.report.examples.len() < MAX_EXAMPLES {
                self.report.examples.push(format!("{chunk_id} of {source}, {start} to {end}"));
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> CitationReport {
        self.report
    }
}

fn read_text(client: &Client, doc_id: &str) -> Result<String> {
    let response = client.get(&format!("/documents/{doc_id}/text"))?;
    let text = response.data.get("text").and_then(|text| text.as_str());
    Ok(text.with_context(|| format!("the text of document {doc_id} is missing in the response"))?.to_owned())
}

/// A text that can be sliced by code points.
#[derive(Debug)]
struct CharText {
    text: String,
    /// The byte offset of every code point, and the length.
    bytes: Vec<u32>,
}

impl CharText {
    fn new(text: String) -> Self {
        let starts = text.char_indices().map(|(byte, _)| byte);
        let bytes = starts.chain([text.len()]).map(|byte| u32::try_from(byte).unwrap_or(u32::MAX)).collect();
        Self { text, bytes }
    }

    fn slice(&self, start: usize, end: usize) -> Option<&str> {
        let byte = |character: usize| self.bytes.get(character).map(|&byte| byte as usize);
        self.text.get(byte(start)?..byte(end)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_count_code_points() {
        let text = CharText::new("aé🏔z".to_owned());
        assert_eq!(text.slice(1, 3), Some("é🏔"));
        assert_eq!(text.slice(0, 4), Some("aé🏔z"));
        assert_eq!((text.slice(4, 4), text.slice(3, 5), text.slice(3, 2)), (Some(""), None, None));
    }
}

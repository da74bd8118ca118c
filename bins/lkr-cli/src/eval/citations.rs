//! Whether results say what their documents say.

use std::collections::{HashMap, HashSet};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::{eval::search::Hit, http::Client};

/// How many mismatches are kept to be shown.
const SHOWN: usize = 5;

/// Checks results against the extracted texts of their documents, each text read once.
#[derive(Debug)]
pub(super) struct Citations {
    client: Client,
    texts: HashMap<String, CharText>,
    seen: HashSet<String>,
    outcome: Outcome,
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
    pub(super) fn new(client: Client) -> Self {
        Self { client, texts: HashMap::new(), seen: HashSet::new(), outcome: Outcome::default() }
    }

    /// Checks one result.
    pub(super) fn check(&mut self, hit: &Hit) -> Result<()> {
        if !self.seen.insert(hit.chunk_id.clone()) {
            return Ok(());
        }
        if !self.texts.contains_key(&hit.doc_id) {
            let text = read_text(&self.client, &hit.doc_id)?;
            self.texts.insert(hit.doc_id.clone(), CharText::new(text));
        }
        let cut = self.texts.get(&hit.doc_id).and_then(|text| text.cut(hit.char_start, hit.char_end));
        self.outcome.checked += 1;
        if cut != Some(&hit.text) {
            self.outcome.mismatches += 1;
            if self.outcome.examples.len() < SHOWN {
                let Hit { chunk_id, source, char_start, char_end, .. } = hit;
                self.outcome.examples.push(format!("{chunk_id} of {source}, {char_start} to {char_end}"));
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

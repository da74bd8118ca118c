//! `fetch`: the text of a document, in parts. With `id` alone it has the form that research clients expect.

use std::{collections::BTreeMap, mem};

use lkr_domain::Metadata;
use lkr_text::prompt_tokens;
use rmcp::model::{JsonObject, Tool};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{citation_url, parse, tool};
use crate::{
    Error, McpServer, Result,
    output::{MAX_TOKENS, cut_json, json, json_tokens, line},
    reference::Reference,
    text_page::{self, TextPage},
};

pub(super) const NAME: &str = "fetch";

/// The most tokens of a document's own metadata.
const METADATA_TOKENS: usize = 800;
/// What a key and its value may take of them, however many there are.
const ENTRY_TOKENS: usize = 16;
/// The most tokens of a title, a source or a category.
const LINE_TOKENS: usize = 300;
/// The tokens that the parts of an answer may take together beyond what they take one by one.
const MARGIN_TOKENS: usize = 50;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    id: String,
}

#[derive(Debug, Serialize)]
struct Answer {
    id: String,
    title: String,
    text: String,
    url: String,
    metadata: BTreeMap<String, Value>,
    /// The id of the next part.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

pub(super) fn definition() -> Tool {
    tool(
        NAME,
        "Read a document from an id on: of search, context or list, or next of the part before. Long ones come in parts.",
        &json!({ "id": { "type": "string" } }),
        &["id"],
        true,
    )
}

pub(super) async fn call(server: &McpServer, arguments: JsonObject) -> Result<Vec<String>> {
    let Arguments { id } = parse(NAME, arguments)?;
    let unknown = || {
        let shown: String = id.chars().take(100).collect();
        Error::not_found(NAME, format!("no document has the id {shown:?}"))
    };
    let from: Reference = id.parse().map_err(|_| unknown())?;
    let scope = server.access().scope(None).await?;
    let page = text_page::read(server.kb(), &scope, from).await?.ok_or_else(unknown)?;
    let end = Reference { start: page.end, ..from };
    let frame = Answer { next: Some(end.to_string()), ..answer(from, &page, String::new()) };
    let room = MAX_TOKENS.saturating_sub(prompt_tokens(&json(&frame)?) + MARGIN_TOKENS);
    let mut page = page.within(room);
    let text = mem::take(&mut page.text);
    Ok(vec![json(&answer(from, &page, text))?])
}

fn answer(from: Reference, page: &TextPage, text: String) -> Answer {
    let document = &page.document;
    Answer {
        id: from.to_string(),
        title: bounded(&document.title),
        url: citation_url(&document.source, Reference::whole(document.doc_id).uri()),
        metadata: metadata(page),
        next: page.next.map(|next| next.to_string()),
        text,
    }
}

/// The document's properties.
fn metadata(page: &TextPage) -> BTreeMap<String, Value> {
    let document = &page.document;
    let known = [
        ("doc_id", json!(document.doc_id.to_string())),
        ("space", json!(document.space.as_str())),
        ("source", json!(bounded(&document.source))),
        ("category", json!(bounded(&document.category))),
        ("chars", json!([page.start, page.end, document.char_count])),
    ];
    let own = own_metadata(&document.metadata).into_iter().map(|(key, value)| (key, json!(value)));
    own.chain(known.map(|(key, value)| (key.to_owned(), value))).collect()
}

/// A document's own metadata. Values are cut, and entries without room are left out, because they may be long.
fn own_metadata(own: &Metadata) -> Vec<(String, String)> {
    let (mut kept, mut left) = (Vec::with_capacity(own.len()), METADATA_TOKENS);
    for ((key, value), remaining) in own.iter().zip((1..=own.len()).rev()) {
        let (key, value) = (line(key), line(value));
        // The colon and the comma.
        let key_tokens = json_tokens(&key) + 2;
        let share = (left / remaining).max(ENTRY_TOKENS).min(left);
        let value = cut_json(&value, share.saturating_sub(key_tokens));
        let tokens = key_tokens + json_tokens(value);
        if tokens <= share {
            left -= tokens;
            kept.push((key, value.to_owned()));
        }
    }
    kept
}

/// A line of at most [`LINE_TOKENS`] tokens as JSON.
fn bounded(text: &str) -> String {
    cut_json(&line(text), LINE_TOKENS).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tokens of the metadata that are kept of these, and how many entries that are.
    fn kept(own: impl IntoIterator<Item = (String, String)>) -> (usize, usize) {
        let kept: BTreeMap<String, String> = own_metadata(&own.into_iter().collect()).into_iter().collect();
        (prompt_tokens(&json(&kept).unwrap()), kept.len())
    }

    #[test]
    fn metadata_takes_no_more_than_its_tokens() {
        let few =
            [("kind", "article"), ("year", "2024")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(own_metadata(&few.clone().into()), few);
        let entries = |count: usize, key: &str, value: &str| {
            let (key, value) = (key.to_owned(), value.to_owned());
            (0..count).map(move |n| (format!("{n} {key}"), value.clone()))
        };
        for (count, key, value) in [
            (64, "x7 Q".repeat(75), "v".repeat(3_000)),
            (64, "\u{1}".repeat(290), "\u{2}".repeat(3_000)),
            (64, "key".to_owned(), "a value of some words ".repeat(9)),
            (1, "東".repeat(250), "\"".repeat(3_000)),
        ] {
            let (tokens, entries) = kept(entries(count, &key, &value));
            assert!(tokens <= METADATA_TOKENS + MARGIN_TOKENS, "{entries} entries of {tokens} tokens");
            assert!(entries > 0 || key.len() > 280, "{key}");
        }
    }
}

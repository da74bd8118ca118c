//! `fetch`: the text of a document, in parts. With `id` alone it has the form that research clients expect.

use std::collections::BTreeMap;

use rmcp::model::{JsonObject, Tool};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{citation_url, parse, tool};
use crate::{
    Error, McpServer, Result,
    output::{cut, json, line},
    reference::Reference,
    text_page::{self, TextPage},
};

pub(super) const NAME: &str = "fetch";

/// The most tokens of a document's own metadata.
const METADATA_TOKENS: usize = 800;

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
    Ok(vec![json(&answer(from, page))?])
}

fn answer(from: Reference, page: TextPage) -> Answer {
    let document = &page.document;
    Answer {
        id: from.to_string(),
        title: line(&document.title),
        url: citation_url(&document.source, Reference::whole(document.doc_id).uri()),
        metadata: metadata(&page),
        next: page.next.map(|next| next.to_string()),
        text: page.text,
    }
}

/// The document's properties. Its own metadata are cut, because they may be long.
fn metadata(page: &TextPage) -> BTreeMap<String, Value> {
    let document = &page.document;
    let own = &document.metadata;
    let each = METADATA_TOKENS / own.len().max(1);
    let own = own.iter().map(|(key, value)| (line(key), json!(cut(&line(value), each.max(8)))));
    let known = [
        ("doc_id", json!(document.doc_id.to_string())),
        ("space", json!(document.space.as_str())),
        ("source", json!(line(&document.source))),
        ("category", json!(line(&document.category))),
        ("chars", json!([page.start, page.end, document.char_count])),
    ];
    own.chain(known.map(|(key, value)| (key.to_owned(), value))).collect()
}

//! `list`: the documents, page by page, and the spaces.

use lkr::{DocId, Document, ListFilter};
use rmcp::model::{JsonObject, Tool};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{citation_url, integer, parse, tool, within};
use crate::{
    Error, McpServer, Result,
    output::{MAX_TOKENS, cut, fitting, json, line},
    reference::Reference,
};

pub(super) const NAME: &str = "list";

const LIMIT: u32 = 20;
const LIMITS: (u32, u32) = (1, 50);

/// The most names of spaces, and the most tokens of a document's summary.
const MAX_SPACES: usize = 100;
const SUMMARY_TOKENS: usize = 60;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    space: Option<String>,
    title: Option<String>,
    #[serde(default, deserialize_with = "integer")]
    limit: Option<u32>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct Answer {
    documents: Vec<Item>,
    /// The names of the spaces, on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    spaces: Option<Vec<String>>,
    /// The cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Debug, Serialize)]
struct Item {
    id: String,
    title: String,
    url: String,
    space: String,
    summary: String,
}

pub(super) fn definition() -> Tool {
    tool(
        NAME,
        "List the documents, newest first, and the spaces. Pages: pass next as cursor.",
        &json!({
            "space": { "type": "string", "description": "Only this space" },
            "title": { "type": "string", "description": "Only titles that start so" },
            "limit": { "type": "integer", "minimum": LIMITS.0, "maximum": LIMITS.1, "default": LIMIT },
            "cursor": { "type": "string" },
        }),
        &[],
        true,
    )
}

pub(super) async fn call(server: &McpServer, arguments: JsonObject) -> Result<Vec<String>> {
    let Arguments { space, title, limit, cursor } = parse(NAME, arguments)?;
    let limit = within(NAME, "limit", limit.unwrap_or(LIMIT), LIMITS)?;
    let after = cursor.as_deref().map(parse_cursor).transpose()?;
    let scope = server.access().scope(space.as_deref()).await?;
    let filter = ListFilter { title_prefix: title, ..ListFilter::default() };
    let page = server.kb().list(&scope, &filter, after, limit).await?;
    let documents = fitting(page.items.iter().map(Item::from).collect(), MAX_TOKENS)?;
    // If not all fit, the page ends earlier.
    let next = match page.items.get(documents.len()..) {
        Some([]) | None => page.next,
        Some(_) => {
            documents.len().checked_sub(1).and_then(|last| page.items.get(last)).map(|item| item.doc_id)
        }
    };
    let spaces = if after.is_none() && space.is_none() { Some(spaces(server).await?) } else { None };
    Ok(vec![json(&Answer { documents, spaces, next: next.map(|next| next.to_string()) })?])
}

async fn spaces(server: &McpServer) -> Result<Vec<String>> {
    let names = server.access().spaces().await?;
    Ok(names.iter().take(MAX_SPACES).map(ToString::to_string).collect())
}

fn parse_cursor(cursor: &str) -> Result<DocId> {
    let invalid = || Error::invalid(NAME, "cursor is not the next of an earlier page");
    cursor.parse().map_err(|_| invalid())
}

impl From<&Document> for Item {
    fn from(document: &Document) -> Self {
        let reference = Reference::whole(document.doc_id);
        Self {
            id: reference.to_string(),
            title: line(&document.title),
            url: citation_url(&document.source, reference.uri()),
            space: document.space.to_string(),
            summary: cut(&document.summary, SUMMARY_TOKENS).to_owned(),
        }
    }
}

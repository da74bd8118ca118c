//! `search`: the best passages for a query. With `query` alone it has the form that research clients expect.

use std::time::Instant;

use lkr::{SearchRequest, SearchResult};
use rmcp::model::{JsonObject, Tool};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{citation_url, integer, parse, tool, within};
use crate::{
    McpServer, Result,
    output::{MAX_TOKENS, cut, fitting, json, line},
    reference::Reference,
};

pub(super) const NAME: &str = "search";

const LIMIT: u32 = 8;
const LIMITS: (u32, u32) = (1, 20);

/// The most tokens of a passage.
const PASSAGE_TOKENS: usize = 400;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    query: String,
    #[serde(default, deserialize_with = "integer")]
    limit: Option<u32>,
    space: Option<String>,
}

#[derive(Debug, Serialize)]
struct Answer {
    results: Vec<Hit>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// A passage. `id` is where [`fetch`](super::fetch) starts to read.
#[derive(Debug, Serialize)]
struct Hit {
    id: String,
    title: String,
    url: String,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    path: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<u32>,
    space: String,
}

pub(super) fn definition() -> Tool {
    tool(
        NAME,
        "Search the knowledge base. Returns the best passages, each with the id from which fetch reads on.",
        &json!({
            "query": { "type": "string", "description": "Question or keywords; \"quotes\" match literally" },
            "limit": { "type": "integer", "minimum": LIMITS.0, "maximum": LIMITS.1, "default": LIMIT },
            "space": { "type": "string", "description": "Only this space" },
        }),
        &["query"],
        true,
    )
}

pub(super) async fn call(server: &McpServer, arguments: JsonObject) -> Result<Vec<String>> {
    let Arguments { query, limit, space } = parse(NAME, arguments)?;
    let top_k = within(NAME, "limit", limit.unwrap_or(LIMIT), LIMITS)?;
    let scope = server.access().scope(space.as_deref()).await?;
    let request = SearchRequest { query, top_k, scope, ..SearchRequest::default() };
    let started = Instant::now();
    let found = server.kb().search(&request).await?;
    server.access().searched(&request.query, started.elapsed(), found.profile.as_ref());
    let results = fitting(found.response.results.iter().map(Hit::from).collect(), MAX_TOKENS)?;
    let mut warnings: Vec<String> = found.response.warnings.iter().map(|warning| line(warning)).collect();
    let left_out = found.response.results.len().saturating_sub(results.len());
    if left_out > 0 {
        warnings.push(format!("results that have no room: {left_out}; ask for fewer"));
    }
    Ok(vec![json(&Answer { results, warnings })?])
}

impl From<&SearchResult> for Hit {
    fn from(result: &SearchResult) -> Self {
        let reference = Reference { doc_id: result.doc_id, start: result.char_start };
        Self {
            id: reference.to_string(),
            title: line(&result.title),
            url: citation_url(&result.source, Reference::whole(result.doc_id).uri()),
            text: cut(&result.text, PASSAGE_TOKENS).to_owned(),
            path: result.path.iter().map(|heading| line(heading)).collect(),
            page: result.page_start,
            space: result.space.to_string(),
        }
    }
}

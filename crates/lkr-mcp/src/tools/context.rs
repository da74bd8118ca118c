//! `context`: the best passages for a question as one text, within a budget of tokens.

use std::time::Instant;

use lkr::{ContextPassage, ContextRequest};
use lkr_text::prompt_tokens;
use rmcp::model::{JsonObject, Tool};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{citation_url, integer, parse, tool, within};
use crate::{
    McpServer, Result,
    output::{MAX_TOKENS, fitting, json, line},
    reference::Reference,
};

pub(super) const NAME: &str = "context";

const TOKENS: u32 = 2_000;
const LIMITS: (u32, u32) = (50, 6_000);

/// The tokens that the list of passages may have beside a long text.
const CITATION_TOKENS: usize = 2_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    query: String,
    #[serde(default, deserialize_with = "integer")]
    max_tokens: Option<u32>,
    space: Option<String>,
}

/// What the numbers in the text refer to.
#[derive(Debug, Serialize)]
struct Citations {
    passages: Vec<Citation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Citation {
    marker: String,
    id: String,
    title: String,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<u32>,
}

pub(super) fn definition() -> Tool {
    tool(
        NAME,
        "Gather what answers a question: one text of numbered passages within max_tokens, then what the numbers refer to.",
        &json!({
            "query": { "type": "string" },
            "max_tokens": { "type": "integer", "minimum": LIMITS.0, "maximum": LIMITS.1, "default": TOKENS },
            "space": { "type": "string", "description": "Only this space" },
        }),
        &["query"],
        true,
    )
}

pub(super) async fn call(server: &McpServer, arguments: JsonObject) -> Result<Vec<String>> {
    let Arguments { query, max_tokens, space } = parse(NAME, arguments)?;
    let max_tokens = within(NAME, "max_tokens", max_tokens.unwrap_or(TOKENS), LIMITS)?;
    let scope = server.access().scope(space.as_deref()).await?;
    let request = ContextRequest { query, max_tokens, scope, ..ContextRequest::default() };
    let started = Instant::now();
    let context = server.kb().context(&request).await?;
    server.access().gathered(&request.query, started.elapsed(), &context.profile);
    let room = MAX_TOKENS.saturating_sub(prompt_tokens(&context.text)).max(CITATION_TOKENS);
    let passages = fitting(context.passages.iter().map(Citation::from).collect(), room)?;
    let mut warnings: Vec<String> = context.warnings.iter().map(|warning| line(warning)).collect();
    let left_out = context.passages.len().saturating_sub(passages.len());
    if left_out > 0 {
        warnings.push(format!("passages that have no room in the list: {left_out}; ask for fewer tokens"));
    }
    Ok(vec![context.text, json(&Citations { passages, warnings })?])
}

impl From<&ContextPassage> for Citation {
    fn from(passage: &ContextPassage) -> Self {
        let reference = Reference { doc_id: passage.doc_id, start: passage.char_start };
        Self {
            marker: passage.marker.clone(),
            id: reference.to_string(),
            title: line(&passage.title),
            url: citation_url(&passage.source, Reference::whole(passage.doc_id).uri()),
            page: passage.page_start,
        }
    }
}

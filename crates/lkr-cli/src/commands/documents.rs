//! Documents by id or source.

use anyhow::Result;
use serde_json::json;

use crate::{
    commands::{
        ids::{Ids, LISTED, is_id, is_prefix},
        query::QueryString,
    },
    exit::{not_found, usage},
    http::Client,
};

const DOCUMENTS: Ids = Ids { noun: "document", path: "/documents", field: "doc_id" };

/// The id of the document that a person names: by its id, by its source if one document has it, by the path of a file that
/// `lkr add` added, or by the beginning of its id.
pub(crate) fn find(client: &Client, named: &str) -> Result<String> {
    // An unset variable of a script would name the document without a source.
    if named.trim().is_empty() {
        return Err(usage("the name of a document is empty"));
    }
    if is_id(named) {
        return Ok(named.to_owned());
    }
    for source in [named.to_owned(), format!("file:{named}")] {
        if let Some(id) = only(client, named, &QueryString::default().with("source", source))? {
            return Ok(id);
        }
    }
    let mut found = None;
    if is_prefix(named) {
        let by_id = json!({"field": "doc_id", "prefix": named}).to_string();
        found = only(client, named, &QueryString::default().with("where", by_id))?;
    }
    found.ok_or_else(|| not_found(format!("no document has the id or source {named}")))
}

/// The id of the only document that a query lists; `None` if it lists none.
fn only(client: &Client, named: &str, query: &QueryString) -> Result<Option<String>> {
    DOCUMENTS.only(named, DOCUMENTS.listed(client, query, Some(LISTED + 1))?)
}

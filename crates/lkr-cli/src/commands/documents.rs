//! Documents by id or source.

use anyhow::Result;
use serde_json::Value;

use crate::{
    commands::{each_item, query::QueryString},
    exit::{not_found, usage},
    http::Client,
    terminal::field,
};

/// The most documents of one source that an error lists.
const LISTED: usize = 10;

/// The id of the document that a person names: by its id, by its source if one document has it, or by the path
/// of a file that `lkr add` added.
pub(crate) fn find(client: &Client, named: &str) -> Result<String> {
    if is_id(named) {
        return Ok(named.to_owned());
    }
    let mut ids = with_source(client, named)?;
    if ids.is_empty() {
        ids = with_source(client, &format!("file:{named}"))?;
    }
    match ids.as_slice() {
        [id] => Ok(id.clone()),
        [] => Err(not_found(format!("no document has the id or source {named}"))),
        several => Err(usage(format!(
            "several documents have the source {named}; name one by its id: {}",
            several.join(", ")
        ))),
    }
}

/// The ids of the documents with a source, as many as an error lists.
fn with_source(client: &Client, source: &str) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    let query = QueryString::default().with("source", source);
    each_item(client, "/documents", &query, Some(LISTED), &mut |item: Value| {
        ids.push(field(&item, "doc_id"));
        Ok(())
    })?;
    Ok(ids)
}

/// Whether a text has the form of an id: 32 lower-case hexadecimal digits.
fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_32_hexadecimal_digits() {
        assert!(is_id(&"0a".repeat(16)));
        assert!(!is_id(&"0A".repeat(16)) && !is_id("tides.md") && !is_id(""));
    }
}

//! Documents by id or source.

use anyhow::Result;
use serde_json::Value;

use crate::{
    commands::{each_item, query::QueryString},
    exit::usage,
    http::{ApiError, Client},
    terminal::field,
};

/// The most documents of one source that an error lists.
const LISTED: usize = 10;

/// The id of the document that a person names: by its id, or by its source if one document has it.
pub(crate) fn find(client: &Client, named: &str) -> Result<String> {
    if is_id(named) {
        return Ok(named.to_owned());
    }
    let mut ids = Vec::new();
    let query = QueryString::default().with("source", named);
    each_item(client, "/documents", &query, Some(LISTED), &mut |item: Value| {
        ids.push(field(&item, "doc_id"));
        Ok(())
    })?;
    match ids.as_slice() {
        [id] => Ok(id.clone()),
        [] => {
            let message = format!("no document has the id or source {named}");
            Err(ApiError { status: 404, code: Some(1004), message, retry_after: None }.into())
        }
        several => Err(usage(format!(
            "several documents have the source {named}; name one by its id: {}",
            several.join(", ")
        ))),
    }
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

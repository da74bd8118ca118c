//! Values of arguments.

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::exit::usage;

/// A filter expression.
pub(crate) fn expression(text: &str) -> Result<Value> {
    serde_json::from_str(text)
        .map_err(|error| usage(format!("{error}")))
        .context("--where is no JSON expression, such as {\"field\": \"title\", \"prefix\": \"T\"}")
}

/// Metadata that is given as `key=value`.
pub(crate) fn pairs(given: &[String]) -> Result<Map<String, Value>> {
    let pair = |text: &String| {
        let pair = text.split_once('=').map(|(key, value)| (key.to_owned(), json!(value)));
        pair.ok_or_else(|| usage(format!("--metadata {text}: expected KEY=VALUE")))
    };
    given.iter().map(pair).collect()
}

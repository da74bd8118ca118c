//! The tools: their definitions, and calling them by name.
//!
//! Definitions are sent with every conversation, so they are short: all of them take less than 1,500 tokens.

mod add;
mod context;
mod fetch;
mod list;
mod search;

use std::{borrow::Cow, sync::Arc};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, Unexpected},
};
use serde_json::{Number, Value, json};

use crate::{Error, McpServer, Result};

/// The definitions of the tools; `add` only if the caller may add documents.
pub(crate) fn definitions(may_add: bool) -> Vec<Tool> {
    let reading = [search::definition(), fetch::definition(), context::definition(), list::definition()];
    reading.into_iter().chain(may_add.then(add::definition)).collect()
}

/// The definition of the tool with this name, also of one that the caller may not call.
pub(crate) fn definition(name: &str) -> Option<Tool> {
    definitions(true).into_iter().find(|tool| tool.name == name)
}

/// Calls a tool. Returns its text in parts; `None` if there is no such tool.
pub(crate) async fn call(
    server: &McpServer,
    name: &str,
    arguments: JsonObject,
) -> Option<Result<Vec<String>>> {
    let called = match name {
        search::NAME => search::call(server, arguments).await,
        fetch::NAME => fetch::call(server, arguments).await,
        context::NAME => context::call(server, arguments).await,
        list::NAME => list::call(server, arguments).await,
        add::NAME => add::call(server, arguments).await,
        _ => return None,
    };
    Some(called)
}

/// A tool's definition. `properties` describe its arguments.
fn tool(
    name: &'static str,
    description: &'static str,
    properties: &Value,
    required: &[&str],
    reads_only: bool,
) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let schema = match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    let hints = ToolAnnotations::new().read_only(reads_only).destructive(false).open_world(false);
    Tool::new(Cow::Borrowed(name), Cow::Borrowed(description), Arc::new(schema)).with_annotations(hints)
}

/// The arguments of a tool.
fn parse<T: DeserializeOwned>(name: &'static str, arguments: JsonObject) -> Result<T> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| Error::invalid(name, format!("invalid arguments of {name}: {error}")))
}

/// Reads an argument of the type `integer` of JSON Schema, to which 3.0 belongs too.
fn integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else { return Ok(None) };
    let whole = match number.as_u64() {
        Some(whole) => u32::try_from(whole).ok(),
        // A float is displayed without a fraction of zero.
        None => number.as_f64().and_then(|float| float.to_string().parse().ok()),
    };
    let unexpected =
        || D::Error::invalid_value(Unexpected::Other(&number.to_string()), &"a whole number, 0 or more");
    whole.map(Some).ok_or_else(unexpected)
}

/// Checks a number against its limits.
fn within(name: &'static str, argument: &str, value: u32, limits: (u32, u32)) -> Result<usize> {
    let (least, most) = limits;
    if (least..=most).contains(&value) {
        return Ok(value as usize);
    }
    Err(Error::invalid(name, format!("{argument} is {value}, {least} to {most} are allowed")))
}

/// The address of a document for a citation: its source if that is one on the web, otherwise its address as a resource.
fn citation_url(source: &str, uri: String) -> String {
    let is_web = source.starts_with("https://") || source.starts_with("http://");
    let is_short = source.len() <= 2_048 && !source.contains(char::is_whitespace);
    if is_web && is_short { source.to_owned() } else { uri }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lesson_40_definitions_take_less_than_1500_tokens() {
        let definitions = serde_json::to_string(&definitions(true)).unwrap();
        let tokens = lkr_text::prompt_tokens(&definitions);
        assert!(tokens < 1_500, "{tokens} tokens: {definitions}");
    }

    #[test]
    fn add_is_listed_only_for_callers_that_may_add() {
        let names = |may_add| -> Vec<_> { definitions(may_add).into_iter().map(|tool| tool.name).collect() };
        assert_eq!(names(false), ["search", "fetch", "context", "list"]);
        assert_eq!(names(true), ["search", "fetch", "context", "list", "add"]);
    }

    #[test]
    fn whole_number_may_have_a_fraction_of_zero() {
        #[derive(Debug, serde::Deserialize)]
        struct Arguments {
            #[serde(default, deserialize_with = "integer")]
            limit: Option<u32>,
        }
        let read = |text: &str| -> Result<Option<u32>, String> {
            let arguments: JsonObject = serde_json::from_str(text).unwrap();
            parse("list", arguments).map(|Arguments { limit }| limit).map_err(|error| error.reason())
        };
        for (text, expected) in [
            ("{}", None),
            (r#"{"limit":null}"#, None),
            (r#"{"limit":3}"#, Some(3)),
            (r#"{"limit":3.0}"#, Some(3)),
            (r#"{"limit":2e1}"#, Some(20)),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
        for number in ["3.5", "-3", "-3.0", "4294967296", "1e300", "\"3\"", "[3]"] {
            let reason = read(&format!(r#"{{"limit":{number}}}"#)).unwrap_err();
            assert!(reason.starts_with("invalid arguments of list: invalid"), "{number}: {reason}");
        }
    }

    #[test]
    fn only_a_web_address_is_cited_as_it_is() {
        let cite = |source| citation_url(source, "lkr://documents/1".to_owned());
        assert_eq!(cite("https://example.org/a"), "https://example.org/a");
        for other in ["handbook.pdf", "javascript:alert(1)", "https://example.org/a b", ""] {
            assert_eq!(cite(other), "lkr://documents/1");
        }
    }
}

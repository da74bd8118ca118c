//! Validates requests against OpenAI's published schema: <https://github.com/openai/openai-openapi>, `openapi.yaml`,
//! `CreateChatCompletionRequest` and `CreateEmbeddingRequest`. Only fields that
//! lkr sends are known; add a field here before sending it.

use serde_json::{Map, Value};

type Checked = Result<(), String>;

/// The most texts of an embedding request.
const MAX_TEXTS: usize = 2048;

pub(crate) fn check_chat(body: &Value) -> Checked {
    let fields = object(body, "the body")?;
    for (name, value) in fields {
        match name.as_str() {
            "model" => non_empty_text(value, name)?,
            "messages" => check_messages(value)?,
            "temperature" => number(value, name, 0.0, 2.0)?,
            "max_tokens" | "max_completion_tokens" => {
                integer(value, name).and(number(value, name, 1.0, f64::from(u32::MAX)))?;
            }
            "stream" => boolean(value, name)?,
            "stream_options" => check_stream_options(value, fields)?,
            "response_format" => check_format(value, fields)?,
            _ => return Err(unknown(name)),
        }
    }
    required(fields, &["model", "messages"])?;
    if fields.contains_key("max_tokens") && fields.contains_key("max_completion_tokens") {
        return Err("max_tokens and max_completion_tokens exclude each other".to_owned());
    }
    Ok(())
}

pub(crate) fn check_embeddings(body: &Value) -> Checked {
    let fields = object(body, "the body")?;
    for (name, value) in fields {
        match name.as_str() {
            "model" => non_empty_text(value, name)?,
            "input" => check_input(value)?,
            "encoding_format" => one_of(value, name, &["float", "base64"])?,
            "dimensions" => number(value, name, 1.0, 1e6).and(integer(value, name))?,
            _ => return Err(unknown(name)),
        }
    }
    required(fields, &["model", "input"])
}

fn check_input(input: &Value) -> Checked {
    let Value::Array(texts) = input else { return non_empty_text(input, "input") };
    if texts.is_empty() || texts.len() > MAX_TEXTS {
        return Err(format!("input has {} texts, allowed are 1 to {MAX_TEXTS}", texts.len()));
    }
    texts.iter().try_for_each(|text| non_empty_text(text, "input"))
}

fn check_messages(messages: &Value) -> Checked {
    let messages = messages.as_array().filter(|messages| !messages.is_empty());
    for message in messages.ok_or("messages must be a list of at least one")? {
        let fields = object(message, "a message")?;
        for (name, value) in fields {
            match name.as_str() {
                "role" => one_of(value, name, &["developer", "system", "user", "assistant"])?,
                "content" if value.is_string() => {}
                _ => return Err(unknown(name)),
            }
        }
        required(fields, &["role", "content"])?;
    }
    Ok(())
}

fn check_stream_options(options: &Value, fields: &Map<String, Value>) -> Checked {
    if fields.get("stream") != Some(&Value::Bool(true)) {
        return Err("stream_options requires stream".to_owned());
    }
    object(options, "stream_options")?.iter().try_for_each(|(name, value)| match name.as_str() {
        "include_usage" => boolean(value, name),
        _ => Err(unknown(name)),
    })
}

fn check_format(format: &Value, fields: &Map<String, Value>) -> Checked {
    let format = object(format, "response_format")?;
    let kind = format.get("type").and_then(Value::as_str).unwrap_or_default();
    let known: &[&str] = if kind == "json_schema" { &["type", "json_schema"] } else { &["type"] };
    only(format, known)?;
    required(format, known)?;
    match kind {
        "text" => Ok(()),
        "json_object" => {
            let messages = fields.get("messages").map(Value::to_string).unwrap_or_default();
            let has_word = messages.to_lowercase().contains("json");
            has_word.then_some(()).ok_or_else(|| "messages must contain the word json".to_owned())
        }
        "json_schema" => check_schema(&format["json_schema"]),
        _ => Err(format!("response_format.type {kind:?} is not one of text, json_object, json_schema")),
    }
}

fn check_schema(named: &Value) -> Checked {
    let fields = object(named, "json_schema")?;
    only(fields, &["name", "description", "schema", "strict"])?;
    required(fields, &["name"])?;
    let name = fields.get("name").and_then(Value::as_str).unwrap_or_default();
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > 64 || !name.chars().all(allowed) {
        return Err(format!("json_schema.name {name:?} is not 1 to 64 of a-z, A-Z, 0-9, _, -"));
    }
    fields.get("strict").map_or(Ok(()), |strict| boolean(strict, "strict"))?;
    let schema = fields.get("schema").unwrap_or(&Value::Null);
    if fields.get("strict") == Some(&Value::Bool(true)) { check_strict(schema) } else { Ok(()) }
}

/// Checks the requirements of a strict schema at every depth.
fn check_strict(schema: &Value) -> Checked {
    let fields = object(schema, "json_schema.schema")?;
    if let Some(items) = fields.get("items") {
        return check_strict(items);
    }
    let Some(properties) = fields.get("properties") else { return Ok(()) };
    let properties = object(properties, "properties")?;
    if fields.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Err("additionalProperties must be false in a strict schema".to_owned());
    }
    let named = fields.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let all = properties.keys().all(|name| named.iter().any(|known| known == name));
    all.then_some(()).ok_or("required must name all properties in a strict schema")?;
    properties.values().try_for_each(check_strict)
}

fn object<'a>(value: &'a Value, name: &str) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{name} is not an object"))
}

fn required(fields: &Map<String, Value>, names: &[&str]) -> Checked {
    let missing = names.iter().find(|name| !fields.contains_key(**name));
    missing.map_or(Ok(()), |name| Err(format!("you must provide a {name} parameter")))
}

fn only(fields: &Map<String, Value>, names: &[&str]) -> Checked {
    let other = fields.keys().find(|name| !names.contains(&name.as_str()));
    other.map_or(Ok(()), |name| Err(unknown(name)))
}

fn unknown(name: &str) -> String {
    format!("Unrecognized request argument supplied, or one of the wrong type: {name}")
}

fn non_empty_text(value: &Value, name: &str) -> Checked {
    let text = value.as_str().filter(|text| !text.is_empty());
    text.map(drop).ok_or_else(|| format!("{name} is not a string, or is empty"))
}

fn boolean(value: &Value, name: &str) -> Checked {
    value.as_bool().map(drop).ok_or_else(|| format!("{name} is neither true nor false"))
}

fn number(value: &Value, name: &str, least: f64, most: f64) -> Checked {
    let found = value.as_f64().filter(|found| (least..=most).contains(found));
    found.map(drop).ok_or_else(|| format!("{name} is not a number from {least} to {most}"))
}

fn integer(value: &Value, name: &str) -> Checked {
    value.as_u64().map(drop).ok_or_else(|| format!("{name} is not an integer"))
}

fn one_of(value: &Value, name: &str, names: &[&str]) -> Checked {
    let found = value.as_str().filter(|found| names.contains(found));
    found.map(drop).ok_or_else(|| format!("{name} is not one of {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(name: &str, value: Value) -> Value {
        let mut body = json!({ "model": "m", "messages": [{ "role": "user", "content": "as json" }] });
        body[name] = value;
        body
    }

    #[test]
    fn check_chat_accepts_valid_requests_only() {
        let strict = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"], "additionalProperties": false });
        let format = |schema: &Value| json!({ "type": "json_schema", "json_schema": { "name": "a", "strict": true, "schema": schema } });
        for (name, value) in [
            ("temperature", json!(0.2)),
            ("max_tokens", json!(1)),
            ("stream", json!(true)),
            ("response_format", json!({ "type": "json_object" })),
            ("response_format", format(&strict)),
        ] {
            assert_eq!(check_chat(&with(name, value)), Ok(()), "{name}");
        }
        for (name, value) in [
            ("temperature", json!(2.1)),
            ("temperature", json!("hot")),
            ("max_tokens", json!(0)),
            ("max_tokens", json!(1.5)),
            ("max_token", json!(1)),
            ("stream", json!("yes")),
            ("stream_options", json!({ "include_usage": true })),
            ("model", json!("")),
            ("messages", json!([])),
            ("messages", json!([{ "role": "tool", "content": "x" }])),
            ("messages", json!([{ "role": "user", "content": null }])),
            ("messages", json!([{ "role": "user", "content": "x", "text": "x" }])),
            ("response_format", json!("json")),
            ("response_format", json!({ "type": "json_schema" })),
            ("response_format", format(&json!({ "type": "object", "properties": { "a": {} } }))),
        ] {
            assert!(check_chat(&with(name, value.clone())).is_err(), "{name} {value}");
        }
        assert!(check_chat(&json!({ "messages": [] })).is_err() && check_chat(&json!([])).is_err());
    }

    #[test]
    fn check_embeddings_accepts_valid_requests_only() {
        let check = |input: Value| check_embeddings(&json!({ "model": "m", "input": input }));
        assert!(check(json!("a")).is_ok() && check(json!(["a", "b"])).is_ok());
        let many = vec!["a"; MAX_TEXTS + 1];
        for input in [json!(""), json!([]), json!(["a", ""]), json!([1]), json!(null), json!(many)] {
            assert!(check(input.clone()).is_err(), "{input}");
        }
        assert!(check_embeddings(&json!({ "model": "m", "input": "a", "truncate": true })).is_err());
    }
}

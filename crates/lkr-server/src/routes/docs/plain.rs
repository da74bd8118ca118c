//! The OpenAPI document as HTML without scripts.

use std::fmt::Write as _;

use serde_json::Value;

/// The operations of an OpenAPI document as HTML.
pub(super) fn operations(document: &Value) -> String {
    let mut html = format!(
        "<h1>{}</h1><p>{}</p><p><a href=\"/api/v1/openapi.json\">openapi.json</a></p>",
        text(document, "/info/title"),
        text(document, "/info/description")
    );
    for (path, item) in entries(document, "/paths") {
        for (method, operation) in item.as_object().into_iter().flatten() {
            // Writing to a string cannot fail.
            let _ = write!(
                html,
                "<details><summary><b class=\"m\">{}</b> <code>{}</code> {}</summary>{}</details>",
                escape(&method.to_uppercase()),
                escape(path),
                text(operation, "/summary"),
                detail(operation)
            );
        }
    }
    let schemas = document.pointer("/components/schemas").unwrap_or(&Value::Null);
    let schemas = serde_json::to_string_pretty(schemas).unwrap_or_default();
    let _ = write!(html, "<h2>Schemas</h2><pre>{}</pre>", escape(&schemas));
    html
}

fn detail(operation: &Value) -> String {
    let mut html = String::new();
    for parameter in operation.pointer("/parameters").and_then(Value::as_array).into_iter().flatten() {
        let (name, location) = (text(parameter, "/name"), text(parameter, "/in"));
        let _ = write!(html, "<p><code>{name}</code> ({location}) {}</p>", text(parameter, "/description"));
    }
    let body = text(operation, "/requestBody/content/application~1json/schema/$ref");
    if let Some((_, name)) = body.rsplit_once('/') {
        let _ = write!(html, "<p>Body: <code>{name}</code></p>");
    }
    for (status, response) in entries(operation, "/responses") {
        let _ = write!(html, "<p><code>{}</code> {}</p>", escape(status), text(response, "/description"));
    }
    html
}

/// The text at a JSON pointer, escaped; empty if there is none.
fn text(document: &Value, pointer: &str) -> String {
    escape(document.pointer(pointer).and_then(Value::as_str).unwrap_or_default())
}

fn entries<'a>(document: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    document.pointer(pointer).and_then(Value::as_object).into_iter().flatten()
}

fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut html, character| {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
        html
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_of_the_document_is_escaped_in_the_page() {
        let document = json!({
            "info": { "title": "<b>", "description": "&" },
            "paths": { "/<i>": { "get": { "summary": "\"'", "responses": { "200": { "description": "<x>" } } } } },
        });
        let html = operations(&document);
        assert!(html.contains("&lt;b&gt;") && html.contains("/&lt;i&gt;") && html.contains("&quot;&#39;"));
        assert!(!html.contains("<i>") && !html.contains("<x>"));
    }
}

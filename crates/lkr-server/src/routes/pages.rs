//! HTML pages. They are static and have no script; their content security policy allows their own style only.

use std::fmt::Write as _;

use actix_web::{
    HttpResponse,
    http::{
        Method,
        header::{self, HeaderName},
    },
};
use serde_json::Value;

use crate::{
    error::ApiError,
    http::{ApiResponse, Endpoint, HandlerResult, Public, RequestContext},
    openapi::{OperationDoc, ResponseShape},
};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color:#1b1f24;background:#fff}code{font:14px ui-monospace,monospace}h2{margin-top:2.5rem}\
details{border:1px solid #d0d7de;border-radius:6px;margin:.5rem 0;padding:.4rem .8rem}summary{cursor:pointer}\
b.m{display:inline-block;min-width:4.5rem}pre{overflow:auto;background:#f6f8fa;padding:.8rem}\
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}details{border-color:#30363d}\
pre{background:#161b22}a{color:#58a6ff}}";

/// `openapi_json` makes the OpenAPI document.
pub(super) fn endpoints(openapi_json: fn() -> Result<String, ApiError>) -> Vec<Endpoint> {
    let doc = |id, summary| OperationDoc::new("Operations", id, summary, ResponseShape::Raw("text/html"));
    vec![
        Endpoint::new(
            Method::GET,
            "/docs",
            doc("docs", "Returns this document as a page"),
            move |permission, cx| docs(permission, cx, openapi_json),
        ),
        Endpoint::new(Method::GET, "/", doc("home", "Returns the start page"), home),
    ]
}

async fn home(_: Public, _: RequestContext) -> HandlerResult {
    let body = "<h1>lkr</h1><p>A layered knowledge retrieval service.</p><ul>\
        <li><a href=\"/docs\">API documentation</a> (<a href=\"/api/v1/openapi.json\">OpenAPI</a>)</li>\
        <li><a href=\"/readyz\">Readiness</a></li><li><a href=\"/metrics\">Metrics</a></li></ul>";
    Ok(page("lkr", body))
}

async fn docs(_: Public, _: RequestContext, openapi_json: fn() -> Result<String, ApiError>) -> HandlerResult {
    let document: Value =
        serde_json::from_str(&openapi_json()?).map_err(|error| ApiError::internal(&error))?;
    Ok(page("lkr: API documentation", &operations(&document)))
}

/// The operations of an OpenAPI document as HTML.
fn operations(document: &Value) -> String {
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

fn page(title: &str, body: &str) -> ApiResponse {
    let nonce = uuid::Uuid::new_v4().simple().to_string();
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{}</title><style nonce=\"{nonce}\">{STYLE}</style></head>\
         <body>{body}</body></html>",
        escape(title)
    );
    let response = HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((header::CONTENT_SECURITY_POLICY, policy))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((HeaderName::from_static("cross-origin-opener-policy"), "same-origin"))
        .body(html);
    ApiResponse::Raw(response)
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

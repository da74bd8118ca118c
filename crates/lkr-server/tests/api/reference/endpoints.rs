//! docs/reference/api.md, from the OpenAPI document and the table of routes.

use lkr_server::{Access, Endpoint, endpoints};
use serde_json::Value;

use super::{check, errors::codes};
use crate::support::api;

#[actix_web::test]
async fn reference_of_the_api_lists_every_operation() {
    let document = api().await.get("/api/v1/openapi.json").await.json();
    check("reference/api.md", &render(&document, &endpoints()));
}

/// Who may call a route, as the page says it, and what that means.
const fn access(access: Access) -> (&'static str, &'static str) {
    match access {
        Access::Public => ("public", "Anybody. A credential is ignored."),
        Access::PublicVerified => ("public, verified", "Anybody. A credential must be valid."),
        Access::Reader => {
            ("reader", "Anybody, unless `LKR_REQUIRE_LOGIN_FOR_READS` is set. A credential must be valid.")
        }
        Access::AuthenticatedReader => ("account, reading", "Any account."),
        Access::Authenticated => ("account", "Any account. Its API key must not be restricted to reading."),
        Access::Unrestricted => ("account, unrestricted", "Any account. Its API key must not be restricted."),
        Access::PendingPassword => {
            ("account, new", "Any account, also one that must change its password first.")
        }
        Access::PendingUnrestricted => (
            "account, new, unrestricted",
            "Any account, also one that must change its password first. Its API key must not be restricted.",
        ),
        Access::Admin => ("admin", "Accounts with the role admin. Their API key must not be restricted."),
        Access::AnyManager => {
            ("manager of a space", "Admins, and managers of any space. Their API key must not be restricted.")
        }
        Access::Owner => (
            "owner",
            "The creator of the document while a writer in its space, and the managers of its space. For an unknown \
             document any account.",
        ),
        Access::TaskOwner => {
            ("task owner", "Admins, and the creator of the task. For an unknown task any account.")
        }
        Access::SpaceReader => ("space reader", "Callers that may read the space that the path names."),
        Access::SpaceManager => (
            "space manager",
            "Managers of the space that the path names. Their API key must not be restricted.",
        ),
    }
}

fn render(document: &Value, endpoints: &[Endpoint]) -> String {
    let mut text = "# HTTP API\n\n".to_owned();
    text += "This page is generated from the server's OpenAPI document, which it answers at `/api/v1/openapi.json`. The page \
             `/docs` of a server shows the same with schemas and examples, and sends requests.\n\n";
    text += "A credential is sent as `Authorization: Bearer` with a session token (`POST /api/v1/auth/login`) or an API key. \
             Pages may send a session as a [cookie](../administration.md#sessions-in-cookies) instead; then every method but GET \
             and HEAD needs the header `X-Lkr-CSRF`. A `*` marks what is required. [Errors](errors.md) explains the codes in brackets.\n\n";
    text += "| access | who |\n|---|---|\n";
    let mut listed: Vec<(&str, &str)> = Vec::new();
    for row in endpoints {
        let access = access(row.access);
        if !listed.contains(&access) {
            listed.push(access);
        }
    }
    listed.sort_unstable();
    for (name, who) in listed {
        text += &format!("| {name} | {who} |\n");
    }
    for tag in document["tags"].as_array().unwrap() {
        let name = tag["name"].as_str().unwrap();
        text += &format!("\n## {name}\n\n{}\n", tag["description"].as_str().unwrap());
        for row in endpoints.iter().filter(|row| row.is_listed()) {
            let operation = &document["paths"][row.path][row.method.as_str().to_lowercase()];
            if operation["tags"][0] == name {
                text += &render_operation(document, row, operation);
            }
        }
    }
    text
}

fn render_operation(document: &Value, row: &Endpoint, operation: &Value) -> String {
    let Endpoint { method, path, .. } = row;
    let mut text = format!("\n### `{method} {path}`\n\n{}.\n\n", operation["summary"].as_str().unwrap());
    text += &format!("- Access: {}\n", access(row.access).0);
    for (place, label) in [("path", "Path"), ("query", "Query"), ("header", "Headers")] {
        let named = operation["parameters"].as_array().into_iter().flatten();
        let named: Vec<String> = named.filter(|parameter| parameter["in"] == place).map(parameter).collect();
        if !named.is_empty() {
            text += &format!("- {label}: {}\n", named.join(", "));
        }
    }
    if let Some(content) = operation["requestBody"]["content"].as_object() {
        for (content_type, body) in content {
            let fields = fields(document, &body["schema"]);
            text += &format!("- Body, `{content_type}`: {}\n", fields.join(", "));
        }
    }
    text + &format!("- Statuses: {}\n", statuses(operation).join(", "))
}

fn parameter(parameter: &Value) -> String {
    let star = if parameter["required"] == true && parameter["in"] != "path" { "*" } else { "" };
    format!("`{}`{star}", parameter["name"].as_str().unwrap())
}

/// The fields of a body, those of all its alternatives.
fn fields(document: &Value, schema: &Value) -> Vec<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        return fields(document, document.pointer(reference.trim_start_matches('#')).unwrap());
    }
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let star = |name: &str| if required.contains(&name) { "*" } else { "" };
    let own = schema["properties"].as_object().into_iter().flatten();
    let mut all: Vec<String> = own.map(|(name, _)| format!("`{name}`{}", star(name))).collect();
    for part in ["allOf", "oneOf", "anyOf"] {
        for schema in schema[part].as_array().into_iter().flatten() {
            for field in fields(document, schema) {
                if !all.contains(&field) {
                    all.push(field);
                }
            }
        }
    }
    all
}

fn statuses(operation: &Value) -> Vec<String> {
    let responses = operation["responses"].as_object().unwrap();
    let status = |(status, response): (&String, &Value)| {
        let codes: Vec<String> = codes(response).iter().map(u64::to_string).collect();
        if codes.is_empty() { status.clone() } else { format!("{status} ({})", codes.join(", ")) }
    };
    responses.iter().map(status).collect()
}

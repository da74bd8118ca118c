//! docs/reference/errors.md, from the table of errors and the OpenAPI document.

use std::collections::{BTreeMap, BTreeSet};

use lkr::FailureReason;
use lkr_server::ErrorCode;
use serde_json::Value;

use super::check;
use crate::support::api;

#[actix_web::test]
async fn reference_of_errors_lists_every_code() {
    let document = api().await.get("/api/v1/openapi.json").await.json();
    check("reference/errors.md", &render(&document));
}

fn render(document: &Value) -> String {
    let mut text = "# Errors\n\n".to_owned();
    text +=
        "This page is generated from the table of errors in the server and from its OpenAPI document.\n\n";
    text += "Every response below `/api/v1` is an envelope: `{\"code\", \"message\", \"data\", \"request_id\"}`. `code` is 0 \
             for success, or one of these. `message` is for people and may change; programs compare `code`. `request_id` \
             finds the request in the log.\n\n";
    text += "| code | name | HTTP status | when |\n|---|---|---|---|\n";
    for code in ErrorCode::all() {
        let (number, name, status) = (code.number(), code.name(), code.status().as_u16());
        text += &format!("| {number} | `{name}` | {status} | {} |\n", code.meaning());
    }
    text += "\nThe paths of the [OpenAI](../integrations/openai.md) and [Dify](../integrations/dify.md) protocols and of the \
             [Model Context Protocol](../integrations/mcp.md) answer errors in the form of their protocol, with the same HTTP \
             status.\n\n";
    text += "## Other statuses\n\nSome errors have a status of their own:\n\n";
    text += "| code | HTTP status | when |\n|---|---|---|\n";
    for ((code, status), operations) in unusual(document) {
        text += &format!("| {code} | {status} | {} |\n", when(status, &operations));
    }
    text += "| 1001 | 405 | The path does not have the method; `Allow` lists those that it has. |\n\n";
    text +=
        "A request whose head is malformed, too large or late is answered with 1001 and 400, 431 or 408.\n\n";
    text += "## Tasks\n\nA failed or cancelled task has a code too:\n\n| code | why the task ended |\n|---|---|\n";
    for (reason, meaning) in [
        (
            FailureReason::Invalid,
            "Its input cannot be processed, such as a file without text. A retry will not help.",
        ),
        (FailureReason::Cancelled, "It was cancelled, or its document was deleted or replaced."),
        (FailureReason::Internal, "A store, a model or a parser failed in every attempt. It can be retried."),
    ] {
        text += &format!("| {} | {meaning} |\n", ErrorCode::from(reason).number());
    }
    text
}

/// The operations by code and status, where the status is not the code's usual one.
fn unusual(document: &Value) -> BTreeMap<(u64, u64), BTreeSet<String>> {
    let mut found: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for (status, response) in operation["responses"].as_object().unwrap() {
                for code in codes(response) {
                    let status: u64 = status.parse().unwrap();
                    let usual = ErrorCode::all().find(|known| u64::from(known.number()) == code).unwrap();
                    if u64::from(usual.status().as_u16()) != status {
                        let name = format!("`{} {path}`", method.to_uppercase());
                        found.entry((code, status)).or_default().insert(name);
                    }
                }
            }
        }
    }
    found
}

/// The codes that the description of an error response lists: `1006 forbidden, 1008 password_change_required`.
pub(super) fn codes(response: &Value) -> Vec<u64> {
    let listed = response["description"].as_str().unwrap_or_default().split(", ");
    let codes = listed.filter_map(|code| code.split(' ').next()?.parse().ok());
    codes.filter(|code| ErrorCode::all().any(|known| u64::from(known.number()) == *code)).collect()
}

/// When a code is answered with a status that is not its usual one.
fn when(status: u64, operations: &BTreeSet<String>) -> String {
    match status {
        413 => "The body, or a part of it, is too large.".to_owned(),
        415 => "The body has another content type than the operation takes.".to_owned(),
        416 => "The range is outside of the file.".to_owned(),
        _ => operations.iter().cloned().collect::<Vec<_>>().join(", "),
    }
}

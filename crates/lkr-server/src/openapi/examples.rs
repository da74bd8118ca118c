//! The examples of the OpenAPI document, by operation. A test checks them against the schemas and sends the requests.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

/// Files with one object each: for an operation's id `request`, `response` and `errors`. `response` is a payload, or the text
/// of a response without an envelope. A key that is a status has the payload of another success. `errors` has messages by the
/// name of the error.
const FILES: [&str; 6] = [
    include_str!("examples/accounts.json"),
    include_str!("examples/documents.json"),
    include_str!("examples/operations.json"),
    include_str!("examples/other_protocols.json"),
    include_str!("examples/search.json"),
    include_str!("examples/spaces.json"),
];

/// The request id in examples.
const REQUEST_ID: &str = "0199f0c2a4b87d3e9a51c6f7e8d90b1a";

/// A file that is no JSON object leaves its examples out, which the test of the document finds.
static EXAMPLES: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let parse = |text: &&str| serde_json::from_str::<Map<String, Value>>(text).ok();
    FILES.iter().filter_map(parse).flatten().collect()
});

/// The request body of an operation.
pub(super) fn request(operation: &str) -> Option<&'static Value> {
    EXAMPLES.get(operation)?.get("request")
}

/// The payload of a success, or the text of a response without an envelope. `key` is `response` or another status.
pub(super) fn payload(operation: &str, key: &str) -> Option<&'static Value> {
    EXAMPLES.get(operation)?.get(key)
}

/// The message of an error that the operation explains itself.
pub(super) fn message(operation: &str, error: &str) -> Option<&'static str> {
    EXAMPLES.get(operation)?.get("errors")?.get(error)?.as_str()
}

/// A response in the envelope.
pub(super) fn envelope(code: u32, message: &str, data: &Value) -> Value {
    json!({ "code": code, "message": message, "data": data, "request_id": REQUEST_ID })
}

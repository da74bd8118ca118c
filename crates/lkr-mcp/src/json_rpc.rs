//! Errors of JSON-RPC 2.0, for whoever answers in place of the server.

use serde_json::{Value, json};

/// The message is not JSON.
pub const PARSE_ERROR: i32 = -32_700;
/// The message is no request, or one that is refused.
pub const INVALID_REQUEST: i32 = -32_600;
/// The request failed.
pub const INTERNAL_ERROR: i32 = -32_603;

/// An error response. `id` is the request's, or null if the error belongs to none.
#[must_use]
pub fn error_response(id: &Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// The code and the reason of the refusal of a message that is no message of the protocol.
pub(crate) fn unreadable(message: &serde_json::Result<Value>) -> (i32, String) {
    match message {
        Err(error) => (PARSE_ERROR, format!("the message is not JSON: {error}")),
        Ok(Value::Array(_)) => {
            (INVALID_REQUEST, "batches are not supported: send each message alone".to_owned())
        }
        Ok(_) => {
            (INVALID_REQUEST, "the message is no request, notification or response of JSON-RPC".to_owned())
        }
    }
}

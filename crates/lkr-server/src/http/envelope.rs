//! The envelope: the four keys of lkr's own JSON responses.

use super::request_id::RequestId;

/// The envelope around a payload.
pub(super) fn envelope_body(code: u32, message: &str, data: &[u8], id: &RequestId) -> Vec<u8> {
    let message = serde_json::Value::from(message);
    let head = format!("{{\"code\":{code},\"message\":{message},\"data\":");
    let tail = format!(",\"request_id\":\"{}\"}}", id.as_str());
    [head.as_bytes(), data, tail.as_bytes()].concat()
}

//! The headers of a message over HTTP, by which proxies route it. See the protocol's revision 2026-07-28, "Streamable HTTP".

use std::sync::{Mutex, PoisonError};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

/// The first revision whose messages carry their method and name in headers.
const NAMED: &str = "2026-07-28";

/// The key of a message's own revision in its `_meta`.
const META_VERSION: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";

/// The headers of the messages of one client. They carry the revision that the two sides agreed on.
#[derive(Debug, Default)]
pub(super) struct Headers {
    agreed: Mutex<Option<String>>,
}

impl Headers {
    /// The headers of a message to the server.
    pub(super) fn of(&self, message: &Value) -> Vec<(&'static str, String)> {
        let own = message.pointer(META_VERSION).and_then(Value::as_str).map(str::to_owned);
        let method = message.get("method").and_then(Value::as_str);
        let Some(version) = own.or_else(|| self.agreed()).filter(|_| method != Some("initialize")) else {
            return Vec::new();
        };
        let is_named = version.as_str() >= NAMED;
        let mut headers = vec![("MCP-Protocol-Version", version)];
        if let Some(method) = method.filter(|_| is_named) {
            headers.push(("Mcp-Method", encoded(method)));
            headers.extend(name(method, message).map(|name| ("Mcp-Name", encoded(name))));
        }
        headers
    }

    /// Notes the revision that the answer to `initialize` names.
    pub(super) fn note(&self, message: &Value, answer: &Value) {
        let agreed = answer.pointer("/result/protocolVersion").and_then(Value::as_str);
        if let (Some("initialize"), Some(agreed)) = (message.get("method").and_then(Value::as_str), agreed) {
            *self.agreed.lock().unwrap_or_else(PoisonError::into_inner) = Some(agreed.to_owned());
        }
    }

    fn agreed(&self) -> Option<String> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a message is about.
fn name<'a>(method: &str, message: &'a Value) -> Option<&'a str> {
    let key = match method {
        "tools/call" | "prompts/get" => "/params/name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "/params/uri",
        _ => return None,
    };
    message.pointer(key)?.as_str()
}

/// A header's value. One that a header cannot carry as it is is sent in base64.
fn encoded(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let is_bare = value.trim() == value && !value.starts_with("=?base64?");
    match is_plain && is_bare {
        true => value.to_owned(),
        false => format!("=?base64?{}?=", BASE64_STANDARD.encode(value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn agreed_revision_is_sent_after_the_handshake() {
        let headers = Headers::default();
        let initialize = json!({ "method": "initialize", "params": { "protocolVersion": "2025-06-18" } });
        assert_eq!(headers.of(&initialize), []);
        headers.note(&initialize, &json!({ "result": { "protocolVersion": "2025-06-18" } }));
        let list = json!({ "method": "tools/list" });
        assert_eq!(headers.of(&list), [("MCP-Protocol-Version", "2025-06-18".to_owned())]);
    }

    #[test]
    fn message_with_its_own_revision_is_named() {
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
        let call = json!({ "method": "tools/call", "params": { "name": "süß", "_meta": meta } });
        let expected = [
            ("MCP-Protocol-Version", "2026-07-28".to_owned()),
            ("Mcp-Method", "tools/call".to_owned()),
            ("Mcp-Name", "=?base64?c8O8w58=?=".to_owned()),
        ];
        assert_eq!(Headers::default().of(&call), expected);
    }
}

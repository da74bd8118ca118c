//! What becomes of a line: it is passed on to rmcp, answered here, or ignored.
//!
//! rmcp's own transport leaves a line that it cannot read without an answer, so that the client waits. Its server ends
//! if anything but a request precedes the handshake.

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetMeta, JsonRpcMessage, ProtocolVersion, RequestId,
    ServerJsonRpcMessage,
};
use serde_json::Value;

use super::lines::Line;
use crate::{
    json_rpc::{INVALID_REQUEST, error_response, unreadable},
    unread_request::invalid_params,
};

/// The largest message. rmcp has the same limit.
pub(super) const MAX_MESSAGE_BYTES: u64 = 16 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What becomes of a line.
#[derive(Debug)]
pub(super) enum Received {
    /// It is passed on.
    Message(Box<ClientJsonRpcMessage>),
    /// It is answered with this error.
    Refused(Value),
    /// It needs no answer.
    Ignored,
}

/// The messages of one client.
#[derive(Debug)]
pub(super) struct Receiver {
    /// The revisions that the server speaks.
    versions: Vec<ProtocolVersion>,
    /// Whether a request began the session.
    has_begun: bool,
}

impl Receiver {
    pub(super) const fn new(versions: Vec<ProtocolVersion>) -> Self {
        Self { versions, has_begun: false }
    }

    pub(super) fn receive(&mut self, line: Line) -> Received {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong(id) => {
                let reason = format!("the message is larger than {MAX_MESSAGE_BYTES} bytes");
                return Received::Refused(error_response(&id.unwrap_or_default(), INVALID_REQUEST, &reason));
            }
        };
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line).trim_ascii();
        if line.is_empty() {
            return Received::Ignored;
        }
        match serde_json::from_slice(line) {
            Ok(message) => self.admit(message),
            Err(_) => refuse(&serde_json::from_slice(line)),
        }
    }

    /// Passes on a message, if the session has begun or it is a request.
    fn admit(&mut self, message: ClientJsonRpcMessage) -> Received {
        if self.has_begun {
            return Received::Message(Box::new(message));
        }
        let JsonRpcMessage::Request(request) = &message else { return Received::Ignored };
        if let Some(refusal) = refuse_params(&request.request, &request.id) {
            return refusal;
        }
        self.has_begun = self.begins_session(&request.request);
        Received::Message(Box::new(message))
    }

    /// Whether rmcp begins the session by this request: it is the handshake, or names a known revision in its metadata.
    fn begins_session(&self, request: &ClientRequest) -> bool {
        match request {
            ClientRequest::InitializeRequest(_) => true,
            ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
            request => {
                let meta = request.get_meta();
                meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                    && meta.protocol_version().is_some_and(|version| self.versions.contains(&version))
            }
        }
    }
}

/// Refuses params that rmcp could not read. Before the handshake it would blame their metadata.
fn refuse_params(request: &ClientRequest, id: &RequestId) -> Option<Received> {
    let ClientRequest::CustomRequest(request) = request else { return None };
    let answer = ServerJsonRpcMessage::error(invalid_params(request)?, Some(id.clone()));
    serde_json::to_value(answer).ok().map(Received::Refused)
}

/// Refuses what is no message of the protocol.
fn refuse(message: &serde_json::Result<Value>) -> Received {
    let known = message.as_ref().ok();
    // JSON-RPC forbids to answer a notification.
    if known.is_some_and(is_notification) {
        return Received::Ignored;
    }
    let (code, reason) = unreadable(message);
    let id = known.filter(|message| message.get("method").is_some()).and_then(|message| message.get("id"));
    let id = id.filter(|id| id.is_string() || id.is_number());
    Received::Refused(error_response(id.unwrap_or(&Value::Null), code, &reason))
}

fn is_notification(message: &Value) -> bool {
    let is_current = message.get("jsonrpc").and_then(Value::as_str) == Some("2.0");
    is_current && message.get("method").is_some_and(Value::is_string) && message.get("id").is_none()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn receiver() -> Receiver {
        Receiver::new(vec![ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28])
    }

    fn receive(receiver: &mut Receiver, line: &[u8]) -> Received {
        receiver.receive(Line::Whole(line.to_vec()))
    }

    /// The id and the code of the refusal of a line.
    fn refusal(line: &[u8]) -> (Value, Value) {
        match receive(&mut receiver(), line) {
            Received::Refused(answer) => (answer["id"].clone(), answer["error"]["code"].clone()),
            other => panic!("{other:?}"),
        }
    }

    fn is_passed_on(receiver: &mut Receiver, message: &Value) -> bool {
        matches!(receive(receiver, message.to_string().as_bytes()), Received::Message(_))
    }

    fn request_with_revision(version: &str) -> Value {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } })
    }

    #[test]
    fn unreadable_line_is_refused_with_the_id_of_its_request() {
        let cases: [(&[u8], Value, i32); 9] = [
            (b"garbage\n", Value::Null, -32_700),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xFF\"}\n", Value::Null, -32_700),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1", Value::Null, -32_700),
            (br#"{"jsonrpc":"2.0","id":"s","method":"tools/list","params":[1]}"#, json!("s"), -32_600),
            (br#"{"id":7,"method":"tools/list"}"#, json!(7), -32_600),
            (br#"{"jsonrpc":"2.0","id":[7],"method":"tools/list"}"#, Value::Null, -32_600),
            (br#"{"jsonrpc":"2.0","id":7}"#, Value::Null, -32_600),
            (br#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#, Value::Null, -32_600),
            (br#"{"jsonrpc":"2.0","id":7,"method":"resources/read"}"#, json!(7), -32_602),
        ];
        for (line, id, code) in cases {
            assert_eq!(refusal(line), (id, json!(code)), "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn line_that_is_too_long_is_refused_with_the_limit() {
        let refused = receiver().receive(Line::TooLong(Some(json!(7))));
        let Received::Refused(answer) = refused else { panic!("{refused:?}") };
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32_600)));
        assert_eq!(answer["error"]["message"], "the message is larger than 16777216 bytes");
    }

    #[test]
    fn blank_line_and_unreadable_notification_are_ignored() {
        for line in ["\n", " \r\n", "\u{feff}\n", r#"{"jsonrpc":"2.0","method":"$/x","params":[1]}"#] {
            let received = receive(&mut receiver(), line.as_bytes());
            assert!(matches!(received, Received::Ignored), "{line}: {received:?}");
        }
    }

    #[test]
    fn byte_order_mark_and_carriage_return_are_no_part_of_a_message() {
        let line = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n";
        assert!(matches!(receive(&mut receiver(), line.as_bytes()), Received::Message(_)));
    }

    #[test]
    fn notification_is_passed_on_once_a_request_began_the_session() {
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" },
        } });
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        let unknown = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
        for (request, begins) in [
            (initialize, true),
            (request_with_revision("2026-07-28"), true),
            (request_with_revision("1999-01-01"), false),
            (ping, false),
            (unknown, false),
        ] {
            let mut receiver = receiver();
            assert!(!is_passed_on(&mut receiver, &note));
            assert!(is_passed_on(&mut receiver, &request), "{request}");
            assert_eq!(is_passed_on(&mut receiver, &note), begins, "{request}");
        }
    }
}

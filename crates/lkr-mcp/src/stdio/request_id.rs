//! The id of a request that is too large to be kept. Clients wait for an answer with this id.

use std::mem;

use serde_json::Value;

/// The longest id.
const ID_BYTES: usize = 1_024;

/// Finds the id of a request that is read in parts. It may follow the params, as in the TypeScript SDK.
#[derive(Debug, Default)]
pub(super) struct RequestIdScanner {
    /// How many objects and arrays are open. The members of the message are at depth 1.
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    /// The key of the member that is being read.
    key: Vec<u8>,
    /// The key or value that is being read, without what is inside of objects and arrays.
    token: Vec<u8>,
    has_method: bool,
    id: Option<Value>,
}

impl RequestIdScanner {
    /// Reads the next part of the message.
    pub(super) fn read(&mut self, part: &[u8]) {
        for &byte in part {
            if self.is_in_string {
                self.read_in_string(byte);
            } else {
                self.read_outside(byte);
            }
        }
    }

    /// The id, if the message was a request and its id is a string or a number.
    pub(super) fn into_id(self) -> Option<Value> {
        self.id.filter(|_| self.has_method)
    }

    fn read_in_string(&mut self, byte: u8) {
        self.keep(byte);
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = true,
            b'"' => self.is_in_string = false,
            _ => {}
        }
    }

    fn read_outside(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.is_in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                self.end_member();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.end_member(),
            b':' if self.depth == 1 => self.key = mem::take(&mut self.token),
            _ if byte.is_ascii_whitespace() => {}
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() < ID_BYTES {
            self.token.push(byte);
        }
    }

    fn end_member(&mut self) {
        if self.depth != 1 {
            return;
        }
        let value = mem::take(&mut self.token);
        match mem::take(&mut self.key).as_slice() {
            b"\"method\"" => self.has_method = true,
            b"\"id\"" => {
                let id = serde_json::from_slice(&value).ok();
                self.id = id.filter(|id: &Value| id.is_string() || id.is_number());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn id(message: &str) -> Option<Value> {
        let mut scanner = RequestIdScanner::default();
        for part in message.as_bytes().chunks(3) {
            scanner.read(part);
        }
        scanner.into_id()
    }

    #[test]
    fn id_of_a_request_is_found_wherever_it_is() {
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}"#), Some(json!(7)));
        let last =
            r#" { "method" : "x", "params" : { "id" : 1, "a" : [ "\"}", { "id": 2 } ] }, "id" : "a\"b" } "#;
        assert_eq!(id(last), Some(json!("a\"b")));
    }

    #[test]
    fn message_without_a_usable_id_has_none() {
        for message in [
            r#"{"id":1,"result":{"method":"x"}}"#,
            r#"{"method":"x","params":{"id":1}}"#,
            r#"{"method":"x","id":{"id":1}}"#,
            r#"{"method":"x","id":null}"#,
            r#"[{"method":"x","id":1}]"#,
            r#""id":1,"method":"x""#,
            "}}}}]]",
        ] {
            assert_eq!(id(message), None, "{message}");
        }
        let long = format!(r#"{{"method":"x","id":"{}"}}"#, "a".repeat(2_000));
        assert_eq!(id(&long), None);
    }
}

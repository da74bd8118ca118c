use serde_json::Value;

/// What the server answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as it came.
    pub body: Vec<u8>,
    /// The body as JSON; null where it is none.
    pub json: Value,
}

impl Answer {
    pub(crate) fn new(status: u16, headers: Vec<(String, String)>, body: Vec<u8>) -> Self {
        let json = serde_json::from_slice(&body).unwrap_or_default();
        Self { status, headers, body, json }
    }

    /// The value of a header, by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The code of the envelope.
    ///
    /// # Panics
    /// Where there is no envelope of exactly the four keys, or its request id is not that of the header.
    #[must_use]
    pub fn code(&self) -> u64 {
        let keys: Vec<&String> =
            self.json.as_object().map_or(Vec::new(), |envelope| envelope.keys().collect());
        assert!(
            keys.len() == 4
                && ["code", "message", "data", "request_id"]
                    .iter()
                    .all(|&key| keys.iter().any(|k| *k == key)),
            "no envelope: {} {}",
            self.status,
            String::from_utf8_lossy(&self.body)
        );
        assert_eq!(self.header("x-request-id"), self.json["request_id"].as_str());
        self.json["code"].as_u64().expect("a code is a number")
    }

    /// The message of the envelope.
    #[must_use]
    pub fn message(&self) -> &str {
        self.json["message"].as_str().unwrap_or_default()
    }

    /// The payload of an answer that went well.
    ///
    /// # Panics
    /// Where it did not.
    #[must_use]
    #[track_caller]
    pub fn data(&self) -> &Value {
        assert_eq!(self.code(), 0, "HTTP {}: {}", self.status, self.message());
        &self.json["data"]
    }

    /// Checks that it is this refusal.
    ///
    /// # Panics
    /// Where it is not.
    #[track_caller]
    pub fn refused(&self, code: u64, status: u16) {
        let got = (self.code(), self.status);
        assert_eq!(got, (code, status), "{}", self.message());
        assert!(self.json["data"].is_null() && !self.message().is_empty(), "{}", self.json);
    }
}

use serde_json::Value;

/// A response of the server.
#[derive(Debug, Clone)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The raw body.
    pub body: Vec<u8>,
    /// The body as JSON; null if it is not JSON.
    pub json: Value,
}

impl Response {
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
    /// If the body is not an envelope of exactly four keys, or its request id differs from the header's.
    #[must_use]
    pub fn code(&self) -> u64 {
        let keys: Vec<&String> =
            self.json.as_object().map_or(Vec::new(), |envelope| envelope.keys().collect());
        assert!(
            keys.len() == 4
                && ["code", "message", "data", "request_id"]
                    .iter()
                    .all(|&key| keys.iter().any(|k| *k == key)),
            "response is not an envelope: {} {}",
            self.status,
            String::from_utf8_lossy(&self.body)
        );
        assert_eq!(self.header("x-request-id"), self.json["request_id"].as_str());
        self.json["code"].as_u64().expect("a numeric code")
    }

    /// The message of the envelope.
    #[must_use]
    pub fn message(&self) -> &str {
        self.json["message"].as_str().unwrap_or_default()
    }

    /// The payload of a successful response.
    ///
    /// # Panics
    /// If the response is an error.
    #[must_use]
    #[track_caller]
    pub fn data(&self) -> &Value {
        assert_eq!(self.code(), 0, "HTTP {}: {}", self.status, self.message());
        &self.json["data"]
    }

    /// Checks that the response is this error.
    ///
    /// # Panics
    /// If the response is another one.
    #[track_caller]
    pub fn assert_error(&self, code: u64, status: u16) {
        let actual = (self.code(), self.status);
        assert_eq!(actual, (code, status), "{}", self.message());
        assert!(self.json["data"].is_null() && !self.message().is_empty(), "{}", self.json);
    }
}

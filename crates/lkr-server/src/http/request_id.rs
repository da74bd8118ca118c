//! Request ids.

use actix_web::{HttpMessage, HttpRequest, http::header::HeaderMap};

/// The id of a request: the caller's `X-Request-Id` if it is valid, else a new one.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(String);

impl RequestId {
    /// Chooses the id of a new request.
    pub(super) fn choose(headers: &HeaderMap) -> Self {
        let sent = headers.get("x-request-id").and_then(|value| value.to_str().ok());
        let is_valid = |id: &&str| {
            (1..=64).contains(&id.len())
                && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
        };
        sent.filter(is_valid).map_or_else(Self::generate, |id| Self(id.to_owned()))
    }

    /// A new id.
    pub(super) fn generate() -> Self {
        Self(uuid::Uuid::now_v7().simple().to_string())
    }

    /// The id that a request was given.
    pub(crate) fn of(request: &HttpRequest) -> Self {
        let given = request.extensions().get::<Self>().cloned();
        given.unwrap_or_else(|| Self::choose(request.headers()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

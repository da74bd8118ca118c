//! The envelope.

use actix_web::{
    HttpMessage, HttpRequest, HttpResponse, HttpResponseBuilder,
    http::{
        StatusCode,
        header::{self, HeaderMap, HeaderName, HeaderValue},
    },
};
use serde::Serialize;

use crate::error::{ApiError, Code};

/// How long a client is asked to wait before it tries again, in seconds.
const RETRY_AFTER: u64 = 1;

/// What a handler answers.
pub(crate) type Answer = Result<Reply, ApiError>;

/// A successful answer.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A payload for the envelope.
    Enveloped {
        code: u32,
        message: &'static str,
        status: StatusCode,
        /// JSON.
        data: Vec<u8>,
        headers: HeaderMap,
    },
    /// An answer that is what it is.
    Bare(HttpResponse),
}

impl Reply {
    /// 200 with a payload.
    pub(crate) fn ok(payload: &impl Serialize) -> Answer {
        Self::with(StatusCode::OK, payload)
    }

    /// 201 with a payload.
    pub(crate) fn created(payload: &impl Serialize) -> Answer {
        Self::with(StatusCode::CREATED, payload)
    }

    /// 202 with a payload.
    pub(crate) fn accepted(payload: &impl Serialize) -> Answer {
        Self::with(StatusCode::ACCEPTED, payload)
    }

    /// 503, with a payload nevertheless.
    pub(crate) fn not_ready(message: &'static str, payload: &impl Serialize) -> Answer {
        let Self::Enveloped { data, mut headers, .. } = Self::ok(payload)? else { return Self::ok(payload) };
        headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER));
        let code = Code::Overloaded;
        Ok(Self::Enveloped { code: code.number(), message, status: code.status(), data, headers })
    }

    fn with(status: StatusCode, payload: &impl Serialize) -> Answer {
        let data = serde_json::to_vec(payload).map_err(|error| ApiError::internal(&error))?;
        Ok(Self::Enveloped { code: 0, message: "ok", status, data, headers: HeaderMap::new() })
    }

    /// How much of it is in memory, in bytes.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Enveloped { data, .. } => data.len() as u64,
            Self::Bare(_) => 0,
        }
    }

    /// The same with one more header.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        match &mut self {
            Self::Enveloped { headers, .. } => headers.insert(name, value),
            Self::Bare(response) => response.headers_mut().insert(name, value),
        };
        self
    }

    /// The answer as it is sent.
    pub(crate) fn respond(answer: Answer, id: &RequestId) -> HttpResponse {
        match answer {
            Ok(Self::Bare(response)) => response,
            Ok(Self::Enveloped { code, message, status, data, headers }) => {
                let mut response = HttpResponseBuilder::new(status);
                for pair in headers {
                    response.insert_header(pair);
                }
                envelope(&mut response, code, message, &data, id)
            }
            Err(error) => {
                let mut response = HttpResponseBuilder::new(error.status);
                match error.code {
                    Code::Unauthenticated => {
                        response.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
                    }
                    Code::Overloaded | Code::RateLimited => {
                        response
                            .insert_header((header::RETRY_AFTER, error.retry_after.unwrap_or(RETRY_AFTER)));
                    }
                    _ => {}
                }
                if let Some(size) = error.size {
                    response.insert_header((header::CONTENT_RANGE, format!("bytes */{size}")));
                }
                if let Some(allow) = error.allow {
                    response.insert_header((header::ALLOW, allow));
                }
                envelope(&mut response, error.code.number(), &error.message, b"null", id)
            }
        }
    }
}

fn envelope(
    response: &mut HttpResponseBuilder,
    code: u32,
    message: &str,
    data: &[u8],
    id: &RequestId,
) -> HttpResponse {
    let message = serde_json::Value::from(message);
    let head = format!("{{\"code\":{code},\"message\":{message},\"data\":");
    let tail = format!(",\"request_id\":\"{}\"}}", id.0);
    let body = [head.as_bytes(), data, tail.as_bytes()].concat();
    response
        .content_type("application/json")
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .body(body)
}

/// What tells a request from all others: the caller's own id, where it sent a valid one.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(String);

impl RequestId {
    /// The id that a request shall have.
    pub(crate) fn choose(headers: &HeaderMap) -> Self {
        let sent = headers.get("x-request-id").and_then(|value| value.to_str().ok());
        let valid = |id: &&str| {
            (1..=64).contains(&id.len())
                && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
        };
        let own = || uuid::Uuid::now_v7().simple().to_string();
        Self(sent.filter(valid).map_or_else(own, str::to_owned))
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

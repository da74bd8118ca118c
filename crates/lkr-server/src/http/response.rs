//! Responses and the envelope around them.

use actix_web::{
    HttpResponse, HttpResponseBuilder,
    http::{
        StatusCode,
        header::{self, HeaderMap, HeaderName, HeaderValue},
    },
};
use serde::Serialize;

use super::request_id::RequestId;
use crate::error::{ApiError, ErrorCode};

/// The default `Retry-After`, in seconds.
const RETRY_AFTER: u64 = 1;

/// What a handler returns.
pub(crate) type HandlerResult = Result<ApiResponse, ApiError>;

/// A response without an error.
#[derive(Debug)]
pub(crate) enum ApiResponse {
    /// A payload for the envelope.
    Enveloped {
        code: u32,
        message: &'static str,
        status: StatusCode,
        /// JSON.
        data: Vec<u8>,
        headers: HeaderMap,
    },
    /// A response that is sent as it is.
    Raw(HttpResponse),
}

impl ApiResponse {
    /// 200 with a payload.
    pub(crate) fn ok(payload: &impl Serialize) -> HandlerResult {
        Self::with_status(StatusCode::OK, payload)
    }

    /// 201 with a payload.
    pub(crate) fn created(payload: &impl Serialize) -> HandlerResult {
        Self::with_status(StatusCode::CREATED, payload)
    }

    /// 202 with a payload.
    pub(crate) fn accepted(payload: &impl Serialize) -> HandlerResult {
        Self::with_status(StatusCode::ACCEPTED, payload)
    }

    /// 503 with a payload.
    pub(crate) fn not_ready(message: &'static str, payload: &impl Serialize) -> HandlerResult {
        let Self::Enveloped { data, mut headers, .. } = Self::ok(payload)? else { return Self::ok(payload) };
        headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER));
        let code = ErrorCode::Overloaded;
        Ok(Self::Enveloped { code: code.number(), message, status: code.status(), data, headers })
    }

    fn with_status(status: StatusCode, payload: &impl Serialize) -> HandlerResult {
        let data = serde_json::to_vec(payload).map_err(|error| ApiError::internal(&error))?;
        Ok(Self::Enveloped { code: 0, message: "ok", status, data, headers: HeaderMap::new() })
    }

    /// The number of bytes that the response holds in memory.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Enveloped { data, .. } => data.len() as u64,
            Self::Raw(_) => 0,
        }
    }

    /// Sets a header.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        match &mut self {
            Self::Enveloped { headers, .. } => headers.insert(name, value),
            Self::Raw(response) => response.headers_mut().insert(name, value),
        };
        self
    }

    /// The HTTP response of a handler's result.
    pub(crate) fn into_http(result: HandlerResult, id: &RequestId) -> HttpResponse {
        match result {
            Ok(Self::Raw(response)) => response,
            Ok(Self::Enveloped { code, message, status, data, headers }) => {
                let mut response = HttpResponseBuilder::new(status);
                for pair in headers {
                    response.insert_header(pair);
                }
                envelope(&mut response, code, message, &data, id)
            }
            Err(error) => error_response(error, id),
        }
    }
}

fn error_response(error: ApiError, id: &RequestId) -> HttpResponse {
    let mut response = HttpResponseBuilder::new(error.status);
    match error.code {
        ErrorCode::Unauthenticated => {
            response.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
        }
        ErrorCode::Overloaded | ErrorCode::RateLimited => {
            response.insert_header((header::RETRY_AFTER, error.retry_after.unwrap_or(RETRY_AFTER)));
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

/// The body of an error response.
pub(super) fn error_body(error: &ApiError, id: &RequestId) -> Vec<u8> {
    envelope_body(error.code.number(), &error.message, b"null", id)
}

fn envelope_body(code: u32, message: &str, data: &[u8], id: &RequestId) -> Vec<u8> {
    let message = serde_json::Value::from(message);
    let head = format!("{{\"code\":{code},\"message\":{message},\"data\":");
    let tail = format!(",\"request_id\":\"{}\"}}", id.as_str());
    [head.as_bytes(), data, tail.as_bytes()].concat()
}

fn envelope(
    response: &mut HttpResponseBuilder,
    code: u32,
    message: &str,
    data: &[u8],
    id: &RequestId,
) -> HttpResponse {
    let body = envelope_body(code, message, data, id);
    response
        .content_type("application/json")
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .body(body)
}
